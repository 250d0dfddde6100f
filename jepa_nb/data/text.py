"""Documents of sentences: read, cleaned, cut at ``[.!?]`` (Paper A's rule for C4) and split by document, never by sentence."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepa_nb import seeds
from jepa_nb.data import fetch, hub
from jepa_nb.data.recipes import Recipe, load
from jepa_nb.data.tokens import Tokens, sample_tokens, wordpiece

__all__ = ["Documents", "Tokens", "load_documents", "sample_tokens", "sentences", "wordpiece"]

WORDS = (8, 30)
VALIDATION_SHARE = 0.1
_MARKS = re.compile(r"[.!?]+")
_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)


@dataclass(frozen=True)
class Documents:
    """Text split by document.

    Attributes:
        train: sentences of each training document.
        val: the same of the validation documents.
        description: one line with the counts and the rules, for a figure's caption.
    """

    train: list[list[str]]
    val: list[list[str]]
    description: str

    def part(self, split: str) -> list[list[str]]:
        """The documents of ``"train"`` or ``"val"``."""
        return {"train": self.train, "val": self.val}[split]


def load_documents(source: str, recipe: str) -> Documents:
    """Read the documents of a text recipe from ``source``.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: the source is not offered, cannot be had, or the recipe holds no text.
    """
    return documents_of(load(recipe), source)


def documents_of(recipe: Recipe, source: str) -> Documents:
    """:func:`load_documents` for a recipe that is already read.

    Where the source has its own validation split that is used; otherwise a tenth of the documents, drawn from a fixed stream.
    """
    recipe.require(source)
    texts = {split: list(found) for split, found in _texts(recipe, source).items()}
    if "val" not in texts:
        texts = _split(recipe.name, list(dict.fromkeys(texts["train"])))
    cut = {split: _cut(found) for split, found in texts.items()}
    return Documents(cut["train"], cut["val"], _describe(recipe, source, cut))


def _split(name: str, texts: list[str]) -> dict[str, list[str]]:
    order = seeds.numpy_generator(0, "documents", name, "split").permutation(len(texts))
    held = max(1, round(VALIDATION_SHARE * len(texts)))
    return {"val": [texts[i] for i in sorted(order[:held])], "train": [texts[i] for i in sorted(order[held:])]}


def _cut(texts: Iterable[str]) -> list[list[str]]:
    return [kept for kept in map(sentences, dict.fromkeys(texts)) if kept]


def sentences(text: str) -> list[str]:
    """Sentences of 8 to 30 words; the marks they are cut at are dropped, as are line-break tags and quotes around them."""
    text = " ".join(_TAG.sub(" ", text).split())
    stripped = (piece.strip(" \"'()-*,;:") for piece in _MARKS.split(text))
    return [piece for piece in stripped if WORDS[0] <= piece.count(" ") + 1 <= WORDS[1]]


def _describe(recipe: Recipe, source: str, cut: dict[str, list[list[str]]]) -> str:
    counts = ", ".join(f"{split} {len(found):,} documents with {sum(map(len, found)):,} sentences"
                       for split, found in sorted(cut.items()))
    return f"{recipe.title} ({source}): {counts} of {WORDS[0]}-{WORDS[1]} words; duplicate documents dropped, split by document"


def _texts(recipe: Recipe, source: str) -> dict[str, Iterable[str]]:
    """Raw texts by split; without ``val`` the caller splits."""
    if source == "generated":
        module, _, function = recipe.generated["function"].partition(":")
        make = getattr(importlib.import_module(f"jepa_nb.worlds.{module}"), function)
        return {"train": make(**recipe.generated["arguments"])}
    if source == "hub":
        return {split: _column(recipe, hub.stream(recipe, named, recipe.hub["rows"][split]))
                for split, named in recipe.hub["splits"].items()}
    paths = fetch.fetch_recipe(recipe, source)
    if source == "embedded":
        return {"train": _csv(recipe, next(iter(paths.values())))}
    return {split: _column(recipe, _json_lines(paths[name], recipe.local["rows"][split]))
            for split, name in recipe.local["splits"].items()}


def _column(recipe: Recipe, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (row[recipe.read["column"]] for row in rows)


def _csv(recipe: Recipe, path: Path) -> list[str]:
    import pandas as pd

    columns = [recipe.read["column"], *recipe.read["keep"]]
    table = pd.read_csv(path, usecols=columns)
    for column, value in recipe.read["keep"].items():
        table = table[table[column] == value]
    return table[recipe.read["column"]].tolist()


def _json_lines(path: Path, count: int) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        for _, line in zip(range(count), handle):
            yield json.loads(line)
