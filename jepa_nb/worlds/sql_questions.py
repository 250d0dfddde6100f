"""Questions and queries about two tables, a whole and its parts, as templates that :mod:`jepa_nb.worlds.sql` fills.

Every name that a query needs is a word of its question, in the singular or the plural.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Column:
    """A column with its name and the texts that it holds, or the least, the greatest and the step of its whole numbers."""

    name: str
    values: tuple[str, ...] = ()
    numbers: tuple[int, int, int] = (0, 0, 1)

    def bounds(self) -> list[int]:
        """The quarter, the half and three quarters of the range, on its steps: what a question compares with."""
        least, greatest, step = self.numbers
        return [least + round((greatest - least) * quarter / 4 / step) * step for quarter in (1, 2, 3)]


@dataclass(frozen=True)
class Table:
    """A table without its keys: the name is a noun in the singular, the first column names a row (name, title)."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Kind:
    """A type of question: how often it is drawn, its query, and its wordings."""

    weight: int
    code: str
    wordings: tuple[str, ...]


# About one table: {table} with the {label} of a row, a {text} column that holds {value}, and a {number} column; an s is the plural.
ONE: tuple[Kind, ...] = (
    Kind(3, "SELECT count(*) FROM {table}", ("How many {tables} are there?", "Count the number of {tables}.")),
    Kind(4, "SELECT count(*) FROM {table} WHERE {text} = '{value}'",
         ("How many {tables} have the {text} {value}?", "Count the number of {tables} with {text} {value}.")),
    Kind(3, "SELECT count(*) FROM {table} WHERE {number} {sign} {bound}",
         ("How many {tables} have a {number} {above} {bound}?", "Count the number of {tables} with a {number} {above} {bound}.")),
    Kind(3, "SELECT {label}, {column} FROM {table}",
         ("What are the {label} and {column} of each {table}?", "Show the {label} and {column} of all {tables}.")),
    Kind(5, "SELECT {label} FROM {table} WHERE {text} = '{value}'",
         ("What are the {labels} of the {tables} with {text} {value}?", "Find the {label} of each {table} with {text} {value}.")),
    Kind(4, "SELECT {label} FROM {table} WHERE {number} {sign} {bound}",
         ("What are the {labels} of the {tables} with a {number} {above} {bound}?",
          "Find the {label} of each {table} with a {number} {above} {bound}.")),
    Kind(3, "SELECT {label} FROM {table} WHERE {text} = '{value}' OR {number} {sign} {bound}",
         ("Which {tables} have the {text} {value} or a {number} {above} {bound}? List the {labels}.",
          "Find the {label} of each {table} with {text} {value} or a {number} {above} {bound}.")),
    Kind(6, "SELECT {label} FROM {table} ORDER BY {number} {direction}",
         ("List the {labels} of the {tables} in {order} order of {number}.",
          "What are the {labels} of all {tables}, sorted by {number} in {order} order?")),
    Kind(7, "SELECT {label} FROM {table} ORDER BY {number} {direction} LIMIT 1",
         ("What is the {label} of the {table} with the {extreme} {number}?", "Find the {label} of the {table} with the {extreme} {number}.")),
    Kind(3, "SELECT {label} FROM {table} ORDER BY {number} {direction} LIMIT {few}",
         ("What are the {labels} of the {few} {tables} with the {extreme} {number}?",
          "List the {labels} of the {few} {tables} with the {extreme} {number}.")),
    Kind(5, "SELECT {function}({number}) FROM {table}",
         ("What is the {mean} {number} of the {tables}?", "Find the {mean} {number} of all {tables}.")),
    Kind(3, "SELECT {function}({number}) FROM {table} WHERE {text} = '{value}'",
         ("What is the {mean} {number} of the {tables} with {text} {value}?",
          "Find the {mean} {number} of all {tables} with {text} {value}.")),
    Kind(4, "SELECT DISTINCT {text} FROM {table}",
         ("What are the different {texts} of the {tables}?", "List each distinct {text} of the {tables}.")),
    Kind(2, "SELECT count(DISTINCT {text}) FROM {table}",
         ("How many different {texts} do the {tables} have?", "Count the number of distinct {texts} of the {tables}.")),
    Kind(5, "SELECT {text}, count(*) FROM {table} GROUP BY {text}",
         ("How many {tables} are there for each {text}?", "Show each {text} and the number of {tables}.")),
    Kind(4, "SELECT {text}, {function}({number}) FROM {table} GROUP BY {text}",
         ("What is the {mean} {number} of the {tables} for each {text}?", "Show each {text} and the {mean} {number} of its {tables}.")),
    Kind(5, "SELECT {text} FROM {table} GROUP BY {text} ORDER BY count(*) DESC LIMIT 1",
         ("What is the most common {text} of the {tables}?", "Which {text} do most {tables} have?")),
    Kind(6, "SELECT {text} FROM {table} GROUP BY {text} HAVING count(*) >= {few}",
         ("Which {texts} have at least {few} {tables}?", "Find each {text} with {few} or more {tables}.")),
    Kind(4, "SELECT {label} FROM {table} WHERE {number} {sign} (SELECT avg({number}) FROM {table})",
         ("Which {tables} have a {number} {above} the average? List the {labels}.",
          "Find the {label} of each {table} with a {number} {above} the average.")))

# About both: as above with {whole_text} and so on, {part} and {whole} for the table. A join needs the key that the whole's name gives.
JOIN = "FROM {part} AS T1 JOIN {whole} AS T2 ON T1.{whole}_id = T2.{whole}_id"
BOTH: tuple[Kind, ...] = (
    Kind(5, "SELECT T1.{part_label} " + JOIN + " WHERE T2.{whole_label} = '{whole_row}'",
         ("What are the {part_labels} of the {parts} of the {whole} with {whole_label} {whole_row}?",
          "Find the {part_label} of each {part} of the {whole} with {whole_label} {whole_row}.")),
    Kind(4, "SELECT T1.{part_label} " + JOIN + " WHERE T2.{whole_text} = '{whole_value}'",
         ("What are the {part_labels} of the {parts} whose {whole} has the {whole_text} {whole_value}?",
          "Find the {part_label} of each {part} whose {whole} has the {whole_text} {whole_value}.")),
    Kind(4, "SELECT T1.{part_label}, T2.{whole_label} " + JOIN,
         ("What is the {part_label} of each {part}, and the {whole_label} of its {whole}?",
          "Show the {part_label} of each {part} with the {whole_label} of its {whole}.")),
    Kind(4, "SELECT count(*) " + JOIN + " WHERE T2.{whole_text} = '{whole_value}'",
         ("How many {parts} belong to a {whole} with {whole_text} {whole_value}?",
          "Count the number of {parts} whose {whole} has the {whole_text} {whole_value}.")),
    Kind(4, "SELECT DISTINCT T2.{whole_label} " + JOIN + " WHERE T1.{part_text} = '{part_value}'",
         ("What are the different {whole_labels} of the {wholes} of the {parts} with {part_text} {part_value}?",
          "List each distinct {whole_label} of a {whole} of a {part} with {part_text} {part_value}.")),
    Kind(4, "SELECT T2.{whole_label}, count(*) " + JOIN + " GROUP BY T2.{whole}_id",
         ("How many {parts} does each {whole} have? List the {whole_label} too.",
          "Show the {whole_label} of each {whole} and the number of its {parts}.")),
    Kind(4, "SELECT T2.{whole_label} " + JOIN + " GROUP BY T2.{whole}_id ORDER BY count(*) DESC LIMIT 1",
         ("What is the {whole_label} of the {whole} with the most {parts}?", "Which {whole} has the most {parts}? Show the {whole_label}.")),
    Kind(4, "SELECT {part_function}(T1.{part_number}) " + JOIN + " WHERE T2.{whole_label} = '{whole_row}'",
         ("What is the {part_mean} {part_number} of the {parts} of the {whole} with {whole_label} {whole_row}?",
          "Find the {part_mean} {part_number} of all {parts} of the {whole} with {whole_label} {whole_row}.")),
    Kind(5, "SELECT {whole_label} FROM {whole} WHERE {whole}_id NOT IN (SELECT {whole}_id FROM {part})",
         ("What are the {whole_labels} of the {wholes} without {parts}?", "Find the {whole_label} of each {whole} that has no {parts}.")))

SIGNS = ((">", "above"), ("<", "below"))
DIRECTIONS = (("ASC", "ascending", "lowest"), ("DESC", "descending", "highest"))
FUNCTIONS = (("avg", "average"), ("max", "maximum"), ("min", "minimum"), ("sum", "total"))
FEW = (2, 3)
BOTH_SHARE = 0.4


def plural(noun: str) -> str:
    """The regular plural of a noun: cities, statuses, coaches, singers."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def kind(generator: np.random.Generator) -> Kind:
    """A type of question, by its weight; :data:`BOTH_SHARE` of them are about both tables."""
    kinds = BOTH if generator.random() < BOTH_SHARE else ONE
    weights = np.array([each.weight for each in kinds])
    return kinds[int(generator.choice(len(kinds), p=weights / weights.sum()))]


def ask(generator: np.random.Generator, drawn: Kind, whole: Table, part: Table) -> tuple[str, str]:
    """A question of the type ``drawn`` and its query, with columns and values drawn anew; a question about one table takes either."""
    if drawn in ONE:
        words = _words(generator, (whole, part)[int(generator.integers(2))])
    else:
        words = {"whole": whole.name, "wholes": plural(whole.name), "part": part.name, "parts": plural(part.name)}
        for side, table in (("whole", whole), ("part", part)):
            words |= {f"{side}_{key}": word for key, word in _words(generator, table).items()}
    return _one(generator, drawn.wordings).format(**words), drawn.code.format(**words)


def _words(generator: np.random.Generator, table: Table) -> dict[str, str]:
    """One word for each blank that a template can have about one table."""
    label, *others = table.columns
    text, number = (_one(generator, [each for each in others if bool(each.values) is texts]) for texts in (True, False))
    sign, above = _one(generator, SIGNS)
    direction, order, extreme = _one(generator, DIRECTIONS)
    function, mean = _one(generator, FUNCTIONS)
    return {
        "table": table.name, "tables": plural(table.name), "label": label.name, "labels": plural(label.name),
        "row": _one(generator, label.values), "text": text.name, "texts": plural(text.name), "value": _one(generator, text.values),
        "number": number.name, "bound": str(_one(generator, number.bounds())), "column": _one(generator, others).name, "sign": sign,
        "above": above, "direction": direction, "order": order, "extreme": extreme, "function": function, "mean": mean,
        "few": str(_one(generator, FEW))}


def _one(generator: np.random.Generator, choices: Sequence):
    return choices[int(generator.integers(len(choices)))]
