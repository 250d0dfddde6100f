"""Questions about small generated databases and the SQLite queries that answer them, for the form of Paper C's Spider pairs.

A database has two tables, a whole (singer) and its parts (concert, with singer_id), and is known by a name such as
``concert_singer_7``, which alone determines its columns and rows. As in the published pairs a model sees that name and the question,
not the columns; here a question's words determine the columns' names, so that a database that was never seen can be queried.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, require_known
from jepa_nb.worlds import sql_questions
from jepa_nb.worlds.sql_questions import Column, Table

SYSTEM = "Convert natural language to SQL."
TEST_SHARE = 0.2
QUESTIONS = 6  # for each database, fewer where some are the same
TRIES = 16  # to fill a type of question so that its query belongs to the split
NUMBERED = 9  # databases of each pair of tables

FIRST = ("Alma", "Boris", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karla", "Leo", "Mira", "Nils")
PLACES = ("Oslo", "Lima", "Cairo", "Porto", "Kyoto", "Quito", "Dublin", "Tunis")
LANDS = ("France", "Japan", "Peru", "Kenya", "Norway", "Egypt")
TITLES = ("Amber", "Breeze", "Comet", "Delta", "Ember", "Falcon", "Galaxy", "Harbor", "Island", "Jasmine", "Kestrel", "Lotus", "Meadow",
          "North", "Orchid", "Prairie", "Quartz", "River", "Summit", "Thunder")
KINDS = ("gold", "silver", "bronze", "basic", "premium")
STATES = ("open", "closed", "planned", "cancelled")

WORDS: dict[str, tuple[str, ...]] = {  # column of text: its values
    "city": PLACES, "country": LANDS, "nationality": LANDS, "category": KINDS, "level": KINDS, "status": STATES, "language":
    ("Spanish", "Arabic", "French", "Japanese", "Swahili"), "color": ("red", "blue", "green", "black", "white"),
    "season": ("spring", "summer", "autumn", "winter"), "theme": ("history", "nature", "science", "travel")}
NUMBERS: dict[str, tuple[int, int, int]] = {  # column of whole numbers: least, greatest, step
    "age": (18, 70, 1), "year": (1990, 2020, 1), "price": (10, 500, 10), "rating": (1, 10, 1), "budget": (100, 9000, 100),
    "capacity": (50, 5000, 50), "salary": (1000, 9000, 100), "weight": (1, 90, 1), "distance": (5, 900, 5), "duration": (10, 240, 10)}

WHOLES: dict[str, tuple[str, ...]] = {  # table of the whole: its possible columns beside id and name
    person: ("city", "country", "nationality", "age", "salary", "level", "rating") for person in
    ("singer", "teacher", "doctor", "player", "author", "chef", "pilot", "student", "artist", "director", "driver", "manager")} | {
    place: ("city", "country", "category", "capacity", "budget", "year", "rating") for place in
    ("museum", "hotel", "school", "stadium", "theater", "company", "library", "shop", "club", "farm", "airport", "hospital")}
PARTS: dict[str, tuple[str, ...]] = {  # table of the parts: its possible columns beside id and title
    event: ("year", "theme", "status", "season", "duration", "budget", "price") for event in
    ("concert", "course", "tour", "workshop", "festival", "race", "lecture", "project")} | {
    item: ("color", "price", "weight", "category", "year", "rating", "status") for item in
    ("painting", "car", "product", "book", "album", "ticket", "purchase", "device")} | {
    trip: ("year", "distance", "duration", "status", "language", "season", "price") for trip in
    ("flight", "visit", "film", "report", "meeting", "game", "show", "delivery")}


@dataclass(frozen=True)
class Contents:
    """Tables of a database, and their rows in the order of the columns (the id first)."""

    whole: Table
    part: Table
    rows: dict[str, list[tuple[int | str, ...]]]


def pairs(*, seed: int, train: int, test: int) -> dict[str, list[dict[str, str]]]:
    """``train`` and ``test`` pairs, each a dictionary of system, text ("For db_id:[...]", question), code (the query) and group (db_id).

    Split by database: no pair of tables (concert, singer) is in both splits, whatever its number, and no query's text is; every word
    and column of the test split occurs in the training split, given enough pairs. No text occurs twice. Fewer pairs are the first
    ones of more, in both splits.

    Args:
        seed: seed of the named stream.
        train: number of training pairs.
        test: number of test pairs.

    Raises:
        ConfigError: a negative number, or more pairs than the databases give.
    """
    if min(train, test) < 0:
        raise ConfigError(f"{train} training and {test} test pairs: give numbers of 0 or more.")
    return {"train": _split(seed, "train", train), "test": _split(seed, "test", test)}


def database(db_id: str) -> sqlite3.Connection:
    """A new SQLite database in memory with the tables and rows that ``db_id`` determines; the caller closes it.

    Raises:
        ConfigError: a name that is not <part>_<whole>_<number>. UnknownName: a table that this world does not have.
    """
    contents = _contents(db_id)
    connection = sqlite3.connect(":memory:")
    for table in (contents.whole, contents.part):
        columns = [f"{column.name} {'TEXT' if column.values else 'INTEGER'}" for column in table.columns]
        key = f"{table.name}_id INTEGER PRIMARY KEY"
        if table is contents.part:
            columns.append(f"{contents.whole.name}_id INTEGER REFERENCES {contents.whole.name}({contents.whole.name}_id)")
        connection.execute(f"CREATE TABLE {table.name} ({', '.join([key, *columns])})")
        rows = contents.rows[table.name]
        connection.executemany(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    connection.commit()
    return connection


def _split(seed: int, split: str, count: int) -> list[dict[str, str]]:
    """The first ``count`` pairs of one split."""
    found: list[dict[str, str]] = []
    for pair in _asked(seed, split):
        if len(found) == count:
            break
        found.append(pair)
    if len(found) < count:
        raise ConfigError(f"the databases give {len(found):,} {split} pairs, not {count:,}: ask for fewer.")
    return found


def _asked(seed: int, split: str) -> Iterator[dict[str, str]]:
    """All pairs of one split, database after database in a random order."""
    generator = seeds.numpy_generator(seed, "worlds", "sql", split)
    tables = [(part, whole, number) for part in PARTS for whole in WHOLES for number in range(1, NUMBERED + 1)
              if _side(seed, part, whole) == split]
    for index in generator.permutation(len(tables)):
        db_id = "{}_{}_{}".format(*tables[index])
        contents = _contents(db_id)
        questions = dict(filter(None, (_question(seed, split, generator, contents) for _ in range(QUESTIONS))))
        for question, code in questions.items():
            yield {"system": SYSTEM, "text": f"For db_id:[{db_id}]\n\n{question}", "code": code, "group": db_id}


def _question(seed: int, split: str, generator: np.random.Generator, contents: Contents) -> tuple[str, str] | None:
    """A question and its query, which belongs to ``split``; ``None`` where no try gives one.

    A query about both tables goes with them. One about a singer alone can be asked in both splits, so a coin decides where.
    """
    kind = sql_questions.kind(generator)
    for _ in range(TRIES):
        question, code = sql_questions.ask(generator, kind, contents.whole, contents.part)
        if kind in sql_questions.BOTH or _side(seed, code) == split:
            return question, code
    return None


def _side(seed: int, *names: str) -> str:
    """The split of a pair of tables or of a query, by a coin of its own."""
    return "test" if seeds.stream(seed, "worlds", "sql", "split", *names) % 1000 < 1000 * TEST_SHARE else "train"


@functools.lru_cache(maxsize=256)
def _contents(db_id: str) -> Contents:
    """Tables and rows of a database; its name alone seeds them."""
    named = re.fullmatch(r"([a-z]+)_([a-z]+)_([0-9]+)", db_id)
    if named is None:
        raise ConfigError(f"'{db_id}' names no database: give <part>_<whole>_<number>, such as concert_singer_7.")
    part, whole = require_known("table of parts", named[1], PARTS), require_known("table of the whole", named[2], WHOLES)
    generator = seeds.numpy_generator(0, "worlds", "sql", db_id)
    tables = (_table(generator, whole, "name", FIRST, WHOLES[whole], (7, 10)), _table(generator, part, "title", TITLES, PARTS[part], (12, 16)))
    rows = {table.name: [(number, *row) for number, row in enumerate(_rows(generator, table), 1)] for table in tables}
    owners = generator.permutation(len(rows[whole]))[:-2] + 1  # two wholes have no parts, so that a question for them has an answer
    rows[part] = [(*row, int(owners[generator.integers(len(owners))])) for row in rows[part]]
    return Contents(*tables, rows)


def _table(generator: np.random.Generator, name: str, label: str, labels: tuple[str, ...], others: tuple[str, ...],
           size: tuple[int, int]) -> Table:
    """A table whose rows the texts of its first column name; two columns of text and two of numbers follow in a random order."""
    count = int(generator.integers(size[0], size[1] + 1))
    texts, numbers = [each for each in others if each in WORDS], [each for each in others if each in NUMBERS]
    columns = [Column(each, _some(generator, WORDS[each], 4)) for each in _some(generator, texts, 2)]
    columns += [Column(each, numbers=NUMBERS[each]) for each in _some(generator, numbers, 2)]
    return Table(name, (Column(label, _some(generator, labels, count)), *_some(generator, columns, len(columns))))


def _some(generator: np.random.Generator, choices, count: int) -> tuple:
    """``count`` of the choices, or all where there are fewer, in a random order."""
    return tuple(choices[index] for index in generator.permutation(len(choices))[:count])


def _rows(generator: np.random.Generator, table: Table) -> Iterator[tuple[int | str, ...]]:
    """Rows without keys: every text of the first column once, of the others at least one where there are rows enough."""
    count = len(table.columns[0].values)
    return zip(*(_cells(generator, column, count) for column in table.columns))


def _cells(generator: np.random.Generator, column: Column, count: int) -> list[int | str]:
    if column.values:
        drawn = [*column.values, *(column.values[index] for index in generator.integers(len(column.values), size=count - len(column.values)))]
        return list(_some(generator, drawn, count))
    least, greatest, step = column.numbers
    return (least + step * generator.integers((greatest - least) // step + 1, size=count)).tolist()
