"""Saving a figure: same bytes for the same content, everything needed beside it, and nothing wrong gets in.

1. All five files are byte-identical on a second call and in a fresh process. 2. The sidecar holds no time, commit or path.
3. NaN, infinity, repeated columns, foreign claims and a name of another notebook are refused, and nothing is left half-written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from jepa_nb import device, figures, papers, paths
from jepa_nb.errors import ConfigError, NonFinite, UnknownName
from jepa_nb.ledger import Measurement, judge
from jepa_nb.provenance import RunContext

NAME, ENDINGS = "paradox_cosine_similarity", ("png", "svg", "pdf", "csv", "json")


def context(folder, notebook="paradox/cosine_similarity"):
    return RunContext(notebook, "laptop", (0, 1, 2), device.resolve("cpu"), {"tier": "default", "output_dir": str(folder)},
                      {"width": 64}, {"imdb": "0123abcd"}, "c0de", folder)


def table():
    return pd.DataFrame({"seed": [0, 0, 1, 1], "step": [0, 10, 0, 10], "cosine": [0.1, 1 / 3, 0.2, 0.5]})


def verdicts():
    return [judge(papers.claim("A.cosine_text_to_one"), Measurement([0.99, 0.98, 0.985]), tier="laptop", standin="IMDB")]


def draw():
    with figures.style():
        fig, ax = figures.canvas(width="column", height=2.0)
        figures.curve(ax, table(), "step", "cosine", "T-JEPA")
        figures.reported(ax, 1.0, "paper: 1")
        figures.event(ax, 5, "event")
        ax.legend()
    return fig


def save(folder, **changes):
    arguments = {"name": NAME, "fig": draw(), "table": table(), "verdicts": verdicts(), "context": context(folder),
                 "finding": "It goes to 1."} | changes
    return figures.save(**arguments)


def contents(folder):
    return {ending: (folder / f"{NAME}.{ending}").read_bytes() for ending in ENDINGS}


def test_a_second_call_writes_the_same_bytes(tmp_path):
    fig = draw()
    save(tmp_path, fig=fig)
    first = contents(tmp_path)
    save(tmp_path, fig=fig)
    assert contents(tmp_path) == first
    save(tmp_path)
    assert contents(tmp_path) == first
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(f"{NAME}.{ending}" for ending in ENDINGS)


def test_a_fresh_process_writes_the_same_bytes(tmp_path, project):
    code = "import sys, pathlib, test_figures_save as t; t.save(pathlib.Path(sys.argv[1]))"
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{project}:{project / 'tests' / 'unit'}"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / hash_seed)], check=True, env=environment, cwd=tmp_path)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_the_sidecar_says_what_made_the_figure_and_nothing_of_the_machine(tmp_path):
    sidecar = json.loads(save(tmp_path).path("json").read_text())
    assert sidecar["paper_item"].startswith("Figure on cosine") and sidecar["notebook"] == "paradox/cosine_similarity"
    assert (sidecar["tier"], sidecar["seeds"], sidecar["code"]) == ("laptop", [0, 1, 2], "c0de")
    assert sidecar["data"] == {"imdb": "0123abcd"}
    assert sidecar["parameters"] == {"tier": "default"} and sidecar["overrides"] == {"width": 64}
    assert sidecar["stand_ins"] == ["IMDB"] and sidecar["versions"]["matplotlib"] and sidecar["device"]["device"] == "cpu"
    assert sidecar["verdicts"][0]["claim"] == "A.cosine_text_to_one" and sidecar["verdicts"][0]["verdict"] == "supports"
    text = save(tmp_path).path("json").read_text()
    assert str(tmp_path) not in text and "commit" not in text and "saved" not in text


def test_the_table_is_written_with_the_stated_precision(tmp_path):
    lines = save(tmp_path).path("csv").read_text().splitlines()
    assert lines[:3] == ["seed,step,cosine", "0,0,0.1", "0,10,0.33333333"]


def test_pdf_embeds_truetype_and_svg_has_no_date(tmp_path):
    save(tmp_path)
    files = contents(tmp_path)
    assert b"/Type3" not in files["pdf"] and b"CreationDate" not in files["pdf"] and b"<dc:date>" not in files["svg"]


def test_a_notebook_shows_the_saved_picture(tmp_path):
    assert save(tmp_path)._repr_png_() == contents(tmp_path)["png"]


def test_by_default_it_goes_to_the_build_folder_with_its_provenance(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path))
    saved = save(None)
    assert saved.path("png") == tmp_path / "laptop" / "figures" / f"{NAME}.png" and saved.path("png").exists()
    record = json.loads((paths.tier_build("laptop") / "provenance" / f"{NAME}.json").read_text())
    assert set(record) == {"commit", "saved", "machine", "device"}


@pytest.mark.parametrize(("change", "error", "word"), [
    ({"table": table().assign(cosine=float("nan"))}, NonFinite, "4 missing values"),
    ({"table": table().assign(cosine=float("inf")), "may_be_missing": ["cosine"]}, NonFinite, "infinity"),
    ({"table": pd.concat([table(), table()], axis=1)}, ConfigError, "repeats the name"),
    ({"table": table(), "may_be_missing": ["cosin"]}, UnknownName, "cosine"),
    ({"verdicts": verdicts() * 2}, ConfigError, "judged twice"),
    ({"name": "paradox_fig2_mi_and_rank"}, ConfigError, "is tested by figure 'paradox_cosine_similarity'"),
    ({"name": "paradox_cosine_similarit", "verdicts": []}, UnknownName, "paradox_cosine_similarity"),
    ({"name": "../escape", "verdicts": []}, ConfigError, "lower-case words"),
    ({"name": "Fig.png", "verdicts": []}, ConfigError, "without an extension"),
])
def test_what_is_wrong_is_refused_and_leaves_nothing(tmp_path, change, error, word):
    with pytest.raises(error, match=word):
        save(tmp_path, **change)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_sidecar_and_no_half_file(tmp_path, monkeypatch):
    fig = draw()
    write = fig.savefig

    def full(path, **options):
        write(path, **options)
        if path.suffix == ".pdf":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(fig, "savefig", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, fig=fig)
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{NAME}.png", f"{NAME}.svg"]


def test_a_missing_value_is_kept_where_it_is_allowed(tmp_path):
    saved = save(tmp_path, table=table().assign(probe=[1.0, None, 2.0, None]), may_be_missing=["probe"])
    assert saved.path("csv").read_text().splitlines()[2] == "0,10,0.33333333,"


def test_a_name_belongs_to_one_notebook(tmp_path):
    save(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="was saved by notebook 'paradox/cosine_similarity'"):
        save(tmp_path, context=context(tmp_path, "paradox/other"))
    assert contents(tmp_path) == before


def test_a_figure_outside_the_papers_brings_its_title(tmp_path):
    saved = save(tmp_path, name="start_here", title="A JEPA in twenty lines", verdicts=[])
    sidecar = json.loads(saved.path("json").read_text())
    assert (sidecar["title"], sidecar["paper_item"]) == ("A JEPA in twenty lines", "none")
