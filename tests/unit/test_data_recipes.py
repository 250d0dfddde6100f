"""Claims: every committed recipe is readable; a source it lacks is refused by name; the fingerprint names content, not prose; recipes of
pairs say how their rows are written, and those of Paper C's tiers are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jepa_nb import paths
from jepa_nb.data import recipes
from jepa_nb.errors import DataError, UnknownName
from jepa_nb.experiments.llm_jepa.config import TIERS

SLICE = {"imdb", "photographs", "textures", "video_frames", "emoji_sheets", "c4", "imagenet", "bert_base_uncased",
         "toy_sentences", "toy_pictures"}
PAIRS = {"nl_rx_synth", "nl_rx_turk", "toy_pairs", "sql_world", "spider", "word_problems", "gsm8k", "nq_open", "hellaswag",
         "rotten_tomatoes", "yelp", "paraphrase"}
MODELS = {"smollm2", "llama_3_2_1b", "qwen3_1_7b", "gemma_2_2b", "olmo_2_1b", "r1_distill_qwen_1_5b"}

TOML = """name = "sample"
title = "{title}"
licence = "{licence}"
needs = {needs}

[[embedded]]
package = "sample-data==1.0"
members = [{{ path = "a/b.txt", sha256 = "{sha}", bytes = 3 }}]

[read]
column = "{column}"
"""


def write(folder, **changes):
    values = {"title": "t", "licence": "l", "needs": "[]", "sha": "a" * 64, "column": "text"} | changes
    (folder / "sample.toml").write_text(TOML.format(**values))
    return recipes.parse(folder / "sample.toml")


def test_every_recipe_of_the_slice_is_there_and_readable():
    assert SLICE | PAIRS | MODELS <= set(recipes.names())
    for name in recipes.names():
        recipe = recipes.load(name)
        assert recipe.title and recipe.licence and recipe.needs and recipe.sources


def test_embedded_recipes_pin_each_byte():
    for name in recipes.names():
        for package in recipes.load(name).embedded:
            assert package.sha256 or package.members
            assert not package.members or all(len(member.sha256) == 64 and member.bytes > 0 for member in package.members)


def test_every_original_of_a_recipe_is_a_pinned_member_and_stands_on_one_side():
    for name in ("photographs", "textures", "video_frames"):
        recipe = recipes.load(name)
        pinned = {member.path for package in recipe.embedded for member in package.members}
        originals = recipe.read["originals"]
        used = {file for entry in originals for file in entry.get("files", [entry.get("clip")])}
        assert used == pinned
        assert {entry["split"] for entry in originals} == {"train", "val"}
        assert len({entry["name"] for entry in originals}) == len(originals)


def test_hub_sources_pin_a_full_revision():
    for name in recipes.names():
        hub = recipes.load(name).hub
        assert not hub or len(hub["revision"]) == 40


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_pairs_say_how_their_rows_are_written_and_what_they_stand_in_for(name):
    recipe = recipes.load(name)
    assert set(recipe.local.get("splits", {}).values()) == set(recipe.local.get("files", ()))
    assert set(recipe.hub.get("splits", {})) == set(recipe.hub.get("rows", {}))
    for source in {"embedded", "hub"} & set(recipe.sources):
        form = recipe.read[source]
        assert "system" in form and ("versions" in form or {"text", "code"} <= set(form))
        assert source == "hub" or form["test"] > 0 and form["kind"] in ("rows", "verses")
    standin = recipe.read.get("standin", {})
    assert set(standin) <= set(recipe.sources) - {"local"} and {"generated", "embedded"} & set(recipe.sources) <= set(standin)
    for table in (recipe.local, recipe.hub):
        assert not table or set(table["splits"]) == {"train", "test"}


def test_weights_are_taken_as_safetensors_and_no_code_is_fetched():
    for name in MODELS:
        files = recipes.load(name).hub["files"]
        assert any(file.endswith(".safetensors") for file in files) and "tokenizer.json" in files
        assert all(file.endswith((".json", ".safetensors", ".jinja")) for file in files)


@pytest.mark.parametrize("tier", sorted(TIERS))
def test_each_recipe_of_paper_c_is_there_and_offers_its_source(tier):
    for base in TIERS[tier].bases.values():
        recipes.load(base.recipe).require(base.source)
        assert {base.pretrained or "smollm2", *base.vocab_recipes} <= PAIRS | MODELS


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'textures'"):
        recipes.load("texture")


def test_a_source_not_offered_is_refused_with_those_offered():
    with pytest.raises(DataError, match="'toy_pictures' does not offer source 'hub'; it offers: generated"):
        recipes.load("toy_pictures").require("hub")
    with pytest.raises(UnknownName, match="did you mean 'embedded'"):
        recipes.load("imdb").require("embeded")


@pytest.mark.parametrize("name", sorted(SLICE | PAIRS | MODELS))
def test_fingerprint_is_stable_and_needs_no_fetch(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "never"))
    for source in recipes.load(name).sources:
        assert recipes.fingerprint(name, source) == recipes.fingerprint(name, source)
    assert not paths.cache().exists()


def test_fingerprint_ignores_prose_and_follows_content(tmp_path):
    base = recipes.content_fingerprint(write(tmp_path), "embedded")
    assert recipes.content_fingerprint(write(tmp_path, title="x", licence="y", needs='["z"]'), "embedded") == base
    assert recipes.content_fingerprint(write(tmp_path, sha="b" * 64), "embedded") != base
    assert recipes.content_fingerprint(write(tmp_path, column="body"), "embedded") != base


@pytest.mark.parametrize("old, new, word", [
    ("title", "titel", "titel"), ('name = "sample"', 'name = "other"', "other"), ("==1.0", "", "name==version"),
    ("a/b.txt", "../b.txt", r"\.\./b.txt"), ("bytes = 3", "size = 3", "size"), ("[read]", "[read", "TOML|Expected")])
def test_a_bad_recipe_file_is_named_with_its_fault(tmp_path, old, new, word):
    write(tmp_path)
    file = tmp_path / "sample.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(DataError, match=f"sample.toml cannot be used.*({word})"):
        recipes.parse(file)


def test_recipes_fetch_and_commands_import_no_torch():
    code = "import sys, jepa_nb.data.commands; sys.exit(bool({'torch', 'datasets', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.project()).returncode == 0
