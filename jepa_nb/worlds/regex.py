"""Descriptions of sets of lines and the regular expressions that match them, in the wording of the published NL-RX-Synth pairs.

Paper C trains on 8,000 such pairs. This grammar is written anew: seven operators on one child, five on several, six classes of
characters and quoted strings. Two fifths of the pairs have one of the twenty commonest published shapes, the others a drawn one.
As in the published pairs, a description can leave open how far an operator reaches ("a vowel or a letter, 3 or more times"), so no
model can answer every test pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from jepa_nb import seeds
from jepa_nb.errors import ConfigError

SYSTEM = "Convert natural language to regular expression."
CLASSES = (("a vowel", "[AEIOUaeiou]"), ("a number", "[0-9]"), ("a letter", "[A-Za-z]"), ("a capital letter", "[A-Z]"),
           ("a lower-case letter", "[a-z]"), ("a character", "."))
STRINGS = ("dog", "truck", "ring", "lake")  # named in this order within one pair, as published
STRING_SHARE = 0.31
TEST_SHARE = 0.2
PATIENCE = 20_000  # draws in a row that add nothing new

# Operator: description, expression. A child's expression is inserted as it is.
OPERATORS = {
    "starts": ("starting with {}", "({})(.*)"), "ends": ("ending with {}", "(.*)({})"), "contains": ("containing {}", ".*{}.*"),
    "only": ("containing only {}", "{}"), "lacks": ("not containing {}", ".*~({}).*"), "not": ("not {}", "~({})"),
    "words": ("words with {}", r"\b{}\b"), "words_contain": ("words that contain {}", r"\b.*{}.*\b"),
    "words_only": ("words that contain only {}", r"\b{}\b"), "words_lack": ("words that don't have {}", r"\b~({})\b"),
    "times": ("{}, # or more times", "({}){#,}"), "plus": ("{} at least once", "({})+"), "star": ("{}, zero or more times", "({})*"),
    "before": ("{} before {}", "({}).*({}).*"), "followed": ("{} followed by {}", "{}.*{}.*"),
    "and": ("{} and {}", "({})&({})"), "or": ("{} or {}", "({})|({})"),
    "and3": ("{}, {}, and {}", "({})&({})&({})"), "or3": ("either {}, {}, or {}", "({})|({})|({})"),
    "neither3": ("not {}, {}, or {}", "~(({})|({})|({}))"), "not_and": ("not {} and not {}", "~(({})&({}))"),
    "not_and3": ("not {}, not {}, and not {}", "~(({})&({})&({}))"),
}
REPEATS = ("times", "times", "times", "plus", "star")
PLACES = ("starts", "ends", "contains", "words")
INNER = ("followed", "or", "or", "and", "before", "and3", "or3")  # on characters and strings only
WORD = "_"  # a leaf of a shape

Shape = str | tuple  # a leaf, or (operator, child, ...)

COMMON: tuple[tuple[int, Shape], ...] = (  # the twenty commonest published shapes, with how often each occurs
    (337, ("before", ("and3", WORD, WORD, WORD), WORD)), (310, ("before", ("or3", WORD, WORD, WORD), WORD)),
    (254, ("times", ("followed", WORD, WORD))), (247, ("before", ("times", WORD), WORD)), (246, ("times", ("or", WORD, WORD))),
    (198, ("words", ("and3", WORD, WORD, WORD))), (195, ("before", ("or", WORD, WORD), WORD)),
    (194, ("before", ("followed", WORD, WORD), WORD)), (191, ("words", ("or3", WORD, WORD, WORD))),
    (190, ("before", ("and", WORD, WORD), WORD)), (185, ("before", WORD, ("and3", WORD, WORD, WORD))),
    (183, ("before", WORD, ("times", WORD))), (182, ("not_and3", WORD, WORD, WORD)), (177, ("neither3", WORD, WORD, WORD)),
    (175, ("contains", ("or3", WORD, WORD, WORD))), (173, ("contains", ("and3", WORD, WORD, WORD))),
    (167, ("before", WORD, ("or3", WORD, WORD, WORD))), (156, ("before", WORD, ("or", WORD, WORD))),
    (155, ("before", WORD, ("followed", WORD, WORD))), (152, ("before", WORD, ("and", WORD, WORD))))
COMMON_SHARE = 0.41
_COMMON_UP_TO = np.cumsum([count for count, _ in COMMON]) / sum(count for count, _ in COMMON)


def pairs(*, seed: int, train: int, test: int) -> dict[str, list[dict[str, str]]]:
    """``train`` and ``test`` pairs, each a dictionary of system, text (the description), code (the expression) and group.

    No expression and no description occurs twice, and no expression is in both splits, also after renaming its strings: which split
    an expression belongs to is a coin of its own. Fewer pairs are the first ones of more, in both splits. ``group`` is the expression
    with its strings numbered.

    Args:
        seed: seed of the named stream.
        train: number of training pairs.
        test: number of test pairs.

    Raises:
        ConfigError: a negative number, or more pairs than the grammar gives.
    """
    if min(train, test) < 0:
        raise ConfigError(f"{train} training and {test} test pairs: give numbers of 0 or more.")
    wanted, found = {"train": train, "test": test}, {"train": [], "test": []}
    drawn = _distinct(seeds.numpy_generator(seed, "worlds", "regex"))
    while any(len(found[split]) < count for split, count in wanted.items()):
        pair = next(drawn, None)
        if pair is None:
            raise ConfigError(f"the grammar gives no {train} training and {test} test expressions that differ: ask for fewer.")
        split = "test" if seeds.stream(seed, "worlds", "regex", "split", pair["group"]) % 1000 < 1000 * TEST_SHARE else "train"
        if len(found[split]) < wanted[split]:
            found[split].append(pair)
    return found


def renamed(code: str) -> str:
    """The expression ``code`` with its strings numbered in the order in which they first occur: <1>, <2>, ..."""
    names = sorted((name for name in STRINGS if name in code), key=code.index)
    for number, name in enumerate(names, 1):
        code = code.replace(name, f"<{number}>")
    return code


def _distinct(generator: np.random.Generator) -> Iterator[dict[str, str]]:
    """Pairs whose description and renamed expression are new; ends after :data:`PATIENCE` draws in a row without a new one."""
    groups: set[str] = set()
    texts: set[str] = set()
    idle = 0
    while idle < PATIENCE:
        shape = _shape(generator)
        text, code = _Leaves(generator).fill(shape)
        text, group, idle = _sentence(text, shape), renamed(code), idle + 1
        if group not in groups and text not in texts:
            groups.add(group)
            texts.add(text)
            idle = 0
            yield {"system": SYSTEM, "text": text, "code": code, "group": group}


def _sentence(text: str, shape: Shape) -> str:
    """``lines with ...``, with the verb that the description's first words ask for, as published."""
    if shape[0] == "before" and shape[1][0] in ("and3", "or3"):
        return f"lines having {text}"
    negated = text.startswith("not ")
    rest = text.removeprefix("not ") if negated else text
    if rest.startswith(("starting", "ending", "containing")):
        return f"lines {text}"
    return f"lines not having {rest}" if negated else f"lines with {text}"


def _one(generator: np.random.Generator, choices: Sequence):
    return choices[int(generator.integers(len(choices)))]


def _shape(generator: np.random.Generator) -> Shape:
    if generator.random() < COMMON_SHARE:
        return COMMON[int(np.searchsorted(_COMMON_UP_TO, generator.random(), side="right"))][1]
    draw = generator.random()
    if draw < 0.32:
        return _unary(generator, WORD if draw < 0.12 else _unary(generator, WORD))
    if draw < 0.56:
        return _unary(generator, _inner(generator, generator.random() < 0.6))
    if draw < 0.65:
        return (_one(generator, ("not", "lacks")), _outer(generator))
    operator = _one(generator, ("before", "or", "and"))
    children = [_outer(generator), WORD if generator.random() < 0.75 else _inner(generator, True)]
    return (operator, *(children if generator.random() < 0.6 else reversed(children)))


def _unary(generator: np.random.Generator, child: Shape) -> Shape:
    places = (*PLACES, *REPEATS[:3], "words_contain", "words_only", "words_lack", "not", "only")
    return (_one(generator, places), child)


def _outer(generator: np.random.Generator) -> Shape:
    """A place or a repetition of a leaf or of a small expression: the deeper side of a drawn shape."""
    child = WORD if generator.random() < 0.75 else _inner(generator, True)
    return (_one(generator, PLACES + REPEATS), child)


def _inner(generator: np.random.Generator, small: bool) -> Shape:
    operator = _one(generator, INNER[:5] if small else INNER)
    leaves: list[Shape] = [WORD] * OPERATORS[operator][0].count("{}")
    if not small and operator != "followed" and generator.random() < 0.5:
        leaves[int(generator.integers(len(leaves)))] = (_one(generator, REPEATS), WORD)
    return (operator, *leaves)


@dataclass
class _Leaves:
    """Fills the leaves of one shape from left to right: a class at most once, strings in the order of :data:`STRINGS`."""

    generator: np.random.Generator
    classes: list[tuple[str, str]] = field(default_factory=lambda: list(CLASSES))
    strings: list[str] = field(default_factory=lambda: list(STRINGS))

    def fill(self, shape: Shape) -> tuple[str, str]:
        """Description and expression of ``shape``."""
        if shape == WORD:
            return self._leaf()
        text, code = OPERATORS[shape[0]]
        children = [self.fill(child) for child in shape[1:]]
        if "#" in text:
            number = str(int(self.generator.integers(2, 8)))
            text, code = text.replace("#", number), code.replace("#", number)
        for child_text, child_code in children:
            text, code = text.replace("{}", child_text, 1), code.replace("{}", child_code, 1)
        return text, code

    def _leaf(self) -> tuple[str, str]:
        if self.strings and self.generator.random() < STRING_SHARE:
            word = self.strings.pop(0)
            return f"the string '{word}'", word
        return self.classes.pop(int(self.generator.integers(len(self.classes))))
