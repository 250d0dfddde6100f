"""Execution accuracy of generated SQL (Paper C, Spider; sheet C5): two queries are equal where they print the same rows.

Public code compares what ``sqlite3 database query`` prints, so rows in another order differ, and so do 1 and 1.0. Two queries that
fail both print nothing, and public code counts them as equal; :func:`same_result` does not. A generated query is a stranger's: it may
only read, one statement at a time, for a limited time and a limited output.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from jepa_nb.errors import DataError

SECONDS = 2.0
MOST_CHARACTERS = 1 << 23  # of all that a query may print, and of one value
_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_CHECK_EVERY = 1000  # instructions of sqlite's machine between two looks at the clock

Database = sqlite3.Connection | str | Path


def same_result(database: Database, generated: str, gold: str, *, seconds: float = SECONDS) -> bool:
    """Whether both queries run and print the same rows in the same order.

    A query fails that is no single statement, is refused by sqlite, writes, reads a setting or another file, runs longer than
    ``seconds``, or prints more than :data:`MOST_CHARACTERS`; a failing query equals nothing, not even itself.

    Args:
        database: an open connection, whose authorizer and progress handler are removed, or a file, opened read-only.

    Raises:
        DataError: the file is missing or cannot be opened.
    """
    found, wanted = _outputs(database, (generated, gold), seconds)
    return found is not None and found == wanted


def published_same_result(database: Database, generated: str, gold: str, *, seconds: float = SECONDS) -> bool:
    """As :func:`same_result` with the fault of public code: a failing query prints nothing, and nothing equals nothing."""
    found, wanted = _outputs(database, (generated, gold), seconds)
    return (found or "") == (wanted or "")


def _outputs(database: Database, queries: tuple[str, ...], seconds: float) -> list[str | None]:
    if isinstance(database, sqlite3.Connection):
        with _guarded(database):
            return [_printed(database, query, seconds) for query in queries]
    file = Path(database).resolve()
    if not file.is_file():
        raise DataError(f"{file} is missing; queries are executed in that data base.")
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        return _outputs(connection, queries, seconds)


@contextmanager
def _guarded(connection: sqlite3.Connection) -> Iterator[None]:
    """A connection that reads only, short values only, and forgives text that is not UTF-8."""
    text_factory = connection.text_factory
    longest = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_CHARACTERS)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
        connection.text_factory = text_factory
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)


def _printed(connection: sqlite3.Connection, query: str, seconds: float) -> str | None:
    """The rows of a query as sqlite3's command line prints them; ``None`` where it fails."""
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end, _CHECK_EVERY)
    lines, size = [], 0
    try:
        with closing(connection.cursor()) as cursor:
            cursor.row_factory = None
            cursor.execute(query)
            if cursor.description is None:  # an empty string or a comment is no query
                return None
            for row in cursor:
                lines.append("|".join(map(_text, row)) + "\n")
                size += len(lines[-1])
                if size > MOST_CHARACTERS:
                    return None
    except (sqlite3.Error, sqlite3.Warning, ValueError):  # two statements are a Warning, a NUL character a ValueError
        return None
    return "".join(lines)


def _text(value: str | bytes | float | None) -> str:
    """A value as sqlite3's command line prints it: numbers with 15 digits, text up to a NUL character, and NULL as nothing."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float):
        digits, *power = f"{value + 0.0:.15g}".split("e")  # minus zero is printed as zero
        return "e".join([f"{digits}.0" if digits.lstrip("-").isdigit() else digits.replace("inf", "Inf"), *power])
    return str(value).partition("\0")[0]
