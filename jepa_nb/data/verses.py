"""One verse in several translations of the Bible: pairs of texts that say the same in other words.

Paper C pre-trains on groups of five paraphrases, drawing each sentence towards the next; here a group is a verse and its members
are translations. Packages store them in three ways, all read as data: SQLite tables, a gzipped CSV, and a Python module whose one
call holds the text and where its verses start and end. The module is parsed and never run.
"""

from __future__ import annotations

import ast
import csv
import gzip
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from jepa_nb.errors import DataError

Place = tuple[int, int, int]
"""Book (1 to 66, in the usual order), chapter, verse."""

_FOOTNOTE = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"\w+")
_QUERY = ("SELECT books.sort_order, verses.chapter_number, verses.verse_number, verses.text FROM verses "
          "JOIN books ON books.id = verses.book_id")


def paraphrases(versions: Sequence[str], files: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    """``(text, code, group)`` of each verse, in the order of the Bible, for each two neighbours of ``versions`` that word it differently.

    A difference of capitals, blanks or punctuation alone is none. Footnotes in ``{...}`` are left out, and a verse that one of two
    versions lacks gives no pair.

    Args:
        versions: names of files, in the order in which version i is followed by version i + 1.
        files: paths of these files, in any order.

    Yields:
        the two wordings, and book and chapter, such as ``"book 1 chapter 3"``.

    Raises:
        DataError: fewer than two versions, a version without a file, or a file that is no such translation.
    """
    named = {file.name: file for file in files}
    missing = [name for name in versions if name not in named]
    if missing or len(versions) < 2:
        fault = f"no file '{missing[0]}'" if missing else "fewer than two versions"
        raise DataError(f"{fault} to pair verses of; the files are: {', '.join(named) or 'none'}.")
    texts = [read(named[name]) for name in versions]
    for place in sorted(set().union(*texts)):
        for before, after in zip(texts, texts[1:]):
            text, code = before.get(place, ""), after.get(place, "")
            if text and code and _words(text) != _words(code):
                yield text, code, f"book {place[0]} chapter {place[1]}"


def read(file: Path) -> dict[Place, str]:
    """Verses of one translation, without footnotes, with single blanks; verses that are empty then are left out.

    Raises:
        DataError: the file is of another kind, damaged, or has no verses.
    """
    if file.suffix not in READERS:
        raise DataError(f"{file} is neither of {', '.join(READERS)}; name a file of verses in the recipe.")
    try:
        verses = {place: " ".join(_FOOTNOTE.sub("", text).split()) for place, text in READERS[file.suffix](file)}
    except (OSError, EOFError, sqlite3.Error, csv.Error, SyntaxError, ValueError, LookupError, TypeError) as fault:
        raise DataError(f"{file} holds no verses in the form of its kind ({fault}); fetch it again.") from fault
    verses = {place: text for place, text in verses.items() if text}
    if not verses:
        raise DataError(f"{file} holds no verses; name a file of verses in the recipe.")
    return verses


def _sqlite(file: Path) -> Iterable[tuple[Place, str]]:
    # Read-only and immutable: no journal appears beside the pinned file.
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        return [((book, chapter, verse), text) for book, chapter, verse, text in base.execute(_QUERY)]


def _gzipped(file: Path) -> Iterable[tuple[Place, str]]:
    """Rows of number, book, chapter, verse, text; the header says ``field`` five times, so columns go by their place."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as handle:
        rows = csv.reader(handle)
        next(rows)
        return [((int(book), int(chapter), int(verse)), text) for _, book, chapter, verse, text in rows]


def _module(file: Path) -> Iterable[tuple[Place, str]]:
    """``bible = Bible(version, text, starts, ends, ...)``, with starts and ends by number: 43003016 is verse 16 of chapter 3 of book 43."""
    call = ast.parse(file.read_text(encoding="utf-8")).body[-1].value
    text, starts, ends = (ast.literal_eval(argument) for argument in call.args[1:4])
    return [((number // 1_000_000, number // 1000 % 1000, number % 1000), text[start:ends[number]]) for number, start in starts.items()]


READERS: dict[str, Callable[[Path], Iterable[tuple[Place, str]]]] = {".sqlite": _sqlite, ".gz": _gzipped, ".py": _module}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
