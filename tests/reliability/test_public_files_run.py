"""The path of the gpu and paper tiers on public files: C4 shards, an ImageNet folder, and pretrained BERT weights.

1. text reads C4's json.gz, takes tokenizer and frozen masked LM from the local BERT folder, and trains;
2. images read a folder per class, and train;
3. both give every diagnostic, finite.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from transformers import BertConfig, BertForMaskedLM

from jepa_nb.data import text
from jepa_nb.device import resolve
from jepa_nb.experiments.paradox.config import SMOKE_TEXT, Diagnostics
from jepa_nb.experiments.paradox.diagnostics import Training


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data under their public names."""
    monkeypatch.setenv("JEPA_NB_DATA", str(tmp_path))
    documents = text.load_documents("generated", "toy_sentences")
    for split, name in (("train", "c4-train.00000-of-01024"), ("val", "c4-validation.00000-of-00008")):
        (tmp_path / "en").mkdir(exist_ok=True)
        with gzip.open(tmp_path / "en" / f"{name}.json.gz", "wt", encoding="utf-8") as file:
            for document in documents.part(split):
                file.write(json.dumps({"text": ". ".join(document) + "."}) + "\n")
    _bert(tmp_path / "bert-base-uncased", documents)
    draw = np.random.default_rng(0)
    for split, count in (("train", 8), ("val", 3)):
        for index in range(count):
            file = tmp_path / "imagenet" / split / f"n0{index % 2}" / f"{index}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw.integers(0, 255, (40, 50, 3), dtype=np.uint8)).save(file)
    return tmp_path


def _bert(folder: Path, documents: text.Documents) -> None:
    tokenizer = text.wordpiece(documents, 200)
    sizes = BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=32, max_position_embeddings=32)
    BertForMaskedLM(sizes).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    words = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    (folder / "vocab.txt").write_text("\n".join(word for word, _ in words), encoding="utf-8")


def _metrics(config: Diagnostics, folder: Path) -> set[tuple[str, str]]:
    rows = Training(config, resolve("cpu")).run(folder, "test")
    last = [row for row in rows if row["step"] == config.steps]
    assert all(np.isfinite(row["value"]) for row in last)
    return {(row["metric"], row["variant"]) for row in last}


def test_text_from_c4_shards_with_pretrained_completions(public: Path, tmp_path: Path):
    config = replace(SMOKE_TEXT, recipes=("c4",), source="local", pretrained="bert_base_uncased")
    found = _metrics(config, tmp_path / "run")
    assert {("irreducible", "published"), ("irreducible", "corrected"), ("mi", "position_conditioned")} <= found


def test_images_from_a_folder_per_class(public: Path, tmp_path: Path):
    config = replace(SMOKE_TEXT, modality="image", recipes=("imagenet",), source="local")
    found = _metrics(config, tmp_path / "run")
    assert {("irreducible", "published"), ("irreducible", "corrected"), ("mi", "position_conditioned")} <= found


def test_a_missing_weights_folder_is_named(public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from jepa_nb.errors import DataError

    (public / "bert-base-uncased" / "tokenizer.json").unlink()
    with pytest.raises(DataError, match="tokenizer.json"):
        Training(replace(SMOKE_TEXT, recipes=("c4",), source="local", pretrained="bert_base_uncased"), resolve("cpu"))
