"""(Text, Code) pairs, Paper C's data: a question and its answer, a description and its regex, a verse in two translations.

Local files are chat JSONL, the form of the public LLM-JEPA data. Rows of the hub and of packages become pairs by the templates in a
recipe's ``[read]``. A source without its own test split has some pairs, or some groups (chapters), held out by a fixed stream.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jepa_nb import seeds
from jepa_nb.data import fetch, hub, pair_rows, verses
from jepa_nb.data.recipes import Recipe, load
from jepa_nb.errors import DataError

ROLES = (("system", "user", "assistant"), ("user", "assistant"))


@dataclass(frozen=True)
class Pair:
    """Two views of one thing.

    Attributes:
        text: what the user says: a question or a description.
        code: what the assistant answers: a regex, a query, an answer, another wording.
        system: the system message, or empty.
        group: what may not stand on both sides of a split (template, data base, chapter), or empty.
    """

    text: str
    code: str
    system: str = ""
    group: str = ""


@dataclass(frozen=True)
class Pairs:
    """Pairs by split.

    Attributes:
        train: training pairs.
        test: pairs of the test split.
        more: further test splits by name, such as ``"seen"``: new items of the training templates.
        description: one line with source and counts, for a figure's caption.
        standin: what the pairs stand in for, in words; empty for the published data.
    """

    train: list[Pair]
    test: list[Pair]
    more: dict[str, list[Pair]] = field(default_factory=dict)
    description: str = ""
    standin: str = ""


def load_pairs(source: str, recipe: str) -> Pairs:
    """Read the pairs of a recipe from ``source``; how many is up to the recipe.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: the source is not offered, cannot be had, or the recipe holds no pairs.
    """
    return pairs_of(load(recipe), source)


def pairs_of(recipe: Recipe, source: str) -> Pairs:
    """:func:`load_pairs` for a recipe that is already read; pairs that occur twice in a split are kept once."""
    recipe.require(source)
    found = {split: list(dict.fromkeys(pairs)) for split, pairs in _splits(recipe, source).items()}
    empty = [split for split in ("train", "test") if not found.get(split)]
    if empty:
        raise DataError(f"recipe '{recipe.name}' has no {empty[0]} pairs from source '{source}'; choose a recipe of pairs.")
    train, test = found.pop("train"), found.pop("test")
    standin = recipe.read.get("standin", {}).get(source, "")
    return Pairs(train, test, found, _describe(recipe, source, {"train": train, "test": test} | found), standin)


def read_chat(path: str | Path) -> list[Pair]:
    """Pairs of a chat JSONL file: a line is ``{"messages": [system (optional), user, assistant]}``.

    Raises:
        DataError: the file cannot be read or a line has another form; the text names file and line.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as handle:
            return [_of_chat(line, f"line {number} of {path}") for number, line in enumerate(handle, start=1) if line.strip()]
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path} cannot be read ({fault}); give a chat JSONL file in UTF-8.") from fault


def _of_chat(line: str, where: str) -> Pair:
    try:
        messages = json.loads(line)["messages"]
        said = {message["role"]: message["content"] for message in messages}
        if tuple(message["role"] for message in messages) not in ROLES or not all(isinstance(words, str) for words in said.values()):
            raise ValueError("roles or contents differ")
    except (ValueError, KeyError, TypeError) as fault:
        raise DataError(f'{where} is not {{"messages": [system (optional), user, assistant]}} with texts as contents ({fault}); '
                        "bring it into this form.") from fault
    return Pair(said["user"], said["assistant"], said.get("system", ""))


def _splits(recipe: Recipe, source: str) -> Mapping[str, Iterable[Pair]]:
    if source == "generated":
        return _generated(recipe)
    if source == "hub":
        if recipe.hub["kind"] != "dataset":
            raise DataError(f"recipe '{recipe.name}' holds a model, not pairs; choose a recipe of pairs.")
        return {split: _rendered(recipe, source, hub.stream(recipe, named, recipe.hub["rows"][split]))
                for split, named in recipe.hub["splits"].items()}
    files = fetch.fetch_recipe(recipe, source)
    if source == "local":
        return {split: read_chat(files[name]) for split, name in recipe.local.get("splits", {}).items()}
    return _held_out(recipe, _embedded(recipe, list(files.values())))


def _generated(recipe: Recipe) -> dict[str, Iterable[Pair]]:
    module, _, function = recipe.generated["function"].partition(":")
    make = getattr(importlib.import_module(f"jepa_nb.worlds.{module}"), function)
    found = make(**recipe.generated["arguments"])
    if not isinstance(found, dict):
        raise DataError(f"recipe '{recipe.name}' generates no pairs; choose a recipe of pairs.")
    return {split: [Pair(**row) for row in rows] for split, rows in found.items()}


def _embedded(recipe: Recipe, files: list[Path]) -> Iterator[Pair]:
    form = recipe.read.get("embedded", {})
    if form.get("kind") == "verses":
        return (Pair(*parts, system=form["system"], group=group) for *parts, group in verses.paraphrases(form["versions"], files))
    if form.get("kind") == "rows":
        return _rendered(recipe, "embedded", pair_rows.read(files[0], form.get("keep", {})))
    raise DataError(f"recipe '{recipe.name}' holds no pairs; choose a recipe of pairs.")


def _rendered(recipe: Recipe, source: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[Pair]:
    form = recipe.read[source]
    return (Pair(pair_rows.render(form["text"], row), form.get("values", {}).get(code, code), form["system"])
            for row in rows for code in (pair_rows.render(form["code"], row),))


def _held_out(recipe: Recipe, pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """``[read.embedded] test`` groups held out; pairs without a group are their own, as are pairs of one text."""
    pairs = list(pairs)
    groups = list(dict.fromkeys(pair.group or pair.text for pair in pairs))
    order = seeds.numpy_generator(0, "pairs", recipe.name, "split").permutation(len(groups))
    held = {groups[index] for index in order[:recipe.read["embedded"]["test"]]}
    return {"train": [pair for pair in pairs if (pair.group or pair.text) not in held],
            "test": [pair for pair in pairs if (pair.group or pair.text) in held]}


def _describe(recipe: Recipe, source: str, splits: dict[str, list[Pair]]) -> str:
    counts = ", ".join(f"{split} {len(pairs):,} pairs" for split, pairs in splits.items())
    return f"{recipe.title} ({source}): {counts}; duplicate pairs dropped"
