"""Rows of tables as texts: read from CSV or JSON lines, and put into a template such as ``"Question: {question}"``."""

from __future__ import annotations

import csv
import json
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jepa_nb.errors import DataError

JOINT = "; "  # between the items of a list, as between the accepted answers of the public NQ-Open pairs


def read(file: Path, keep: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of a ``.csv`` (every value a string) or ``.jsonl`` file whose columns have the values of ``keep``.

    Raises:
        DataError: another kind of file, a file that cannot be read, a damaged line, or a row without a column of ``keep``.
    """
    if file.suffix not in READERS:
        raise DataError(f"{file} is neither of {', '.join(READERS)}; name a member of such a kind in the recipe.")
    try:
        for row in READERS[file.suffix](file):
            missing = [column for column in keep if column not in row]
            if missing:
                raise DataError(f"{file} has no column '{missing[0]}'; its columns are: {', '.join(map(str, row))}.")
            if all(row[column] == value for column, value in keep.items()):
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise DataError(f"{file} cannot be read ({fault}); fetch it again.") from fault


def _csv(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as handle:
        yield from csv.DictReader(handle)


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, start=1):
            try:
                row = json.loads(line)
            except ValueError as fault:
                raise DataError(f"line {number} of {file} is no JSON ({fault}); fetch it again.") from fault
            if not isinstance(row, dict):
                raise DataError(f"line {number} of {file} is no JSON object; name a file of one object a line.")
            yield row


READERS = {".csv": _csv, ".jsonl": _json_lines}


def render(template: str, row: Mapping[str, Any]) -> str:
    """A format template over the fields of a row: ``{question}``, an item as ``{endings[0]}``, a nested field as ``{a[b]}``.

    A list without an index is written as its items, joined with ``"; "``.

    Raises:
        DataError: a field that the row lacks or that is empty there (null); the text names it and the row's fields.
    """
    return _RENDER.vformat(template, (), row)


class _Render(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        try:
            found = super().get_field(field_name, args, kwargs)
        except (LookupError, AttributeError, TypeError) as fault:
            raise DataError(f"the row has no '{field_name}'; its fields are: {', '.join(map(str, kwargs))}.") from fault
        if found[0] is None:
            raise DataError(f"'{field_name}' of a row is null; its fields are: {', '.join(map(str, kwargs))}.")
        return found

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (list, tuple)):
            return JOINT.join(map(str, value))
        return super().format_field(value, format_spec)


_RENDER = _Render()
