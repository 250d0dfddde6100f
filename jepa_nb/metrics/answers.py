"""When a generated answer counts as right: Paper C's rule for each data set (sheet C5, the public evaluate.py).

A rule takes the generated and the gold answer as text. White space around both is ignored; an empty gold answer is never matched.
Rules that execute the answer are in :mod:`jepa_nb.metrics.queries`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from torch import Tensor

from jepa_nb.errors import ConfigError, require_known
from jepa_nb.metrics.inputs import features

LETTERS = ("A", "B", "C", "D")
_RESULT = re.compile(r"\n#### (.+)$")
_LETTER = re.compile(r"\(?([A-D])(?!\w)")


def exact(generated: str, gold: str) -> bool:
    """The same string (synth, turk)."""
    return bool(gold.strip()) and generated.strip() == gold.strip()


def startswith(generated: str, gold: str) -> bool:
    """The generated answer begins with the gold one (rotten_tomatoes, yelp, models trained from scratch)."""
    return bool(gold.strip()) and generated.strip().startswith(gold.strip())


def gsm8k(generated: str, gold: str) -> bool:
    """The same result after ``####`` on the last line, as text: "1,000" is not "1000". Without such a line an answer is wrong.

    Public code also counts it as right when neither answer has a result; no gold answer of GSM8K lacks one.
    """
    found, wanted = (_RESULT.search(text.strip()) for text in (generated, gold))
    return found is not None and wanted is not None and found[1] == wanted[1]


def nq_open(generated: str, gold: str) -> bool:
    """Any of the generated answers, separated by "; ", is a part of the gold string; an empty one is not an answer.

    A generous rule: "1" is right where the gold answer is "1992".
    """
    pieces = (piece.strip() for piece in generated.strip().split("; "))
    return any(piece and piece in gold for piece in pieces)


def nq_open_published(generated: str, gold: str) -> bool:
    """As :func:`nq_open` in public code, where an empty answer is a part of every gold string and so counts as right."""
    return any(piece in gold for piece in generated.strip().split("; "))


def choice(generated: str, gold: str) -> bool:
    """The same letter A to D at the beginning (hellaswag), alone or as in "A)". Public code compares logits: :func:`chosen`."""
    found, wanted = (_LETTER.match(text.strip()) for text in (generated, gold))
    return found is not None and wanted is not None and found[1] == wanted[1]


RULES: dict[str, Callable[[str, str], bool]] = {
    "exact": exact, "startswith": startswith, "gsm8k": gsm8k, "nq_open": nq_open, "nq_open_published": nq_open_published, "choice": choice}


def chosen(logits: Tensor, letters: Sequence[str] = LETTERS) -> list[str]:
    """The letter with the largest of the logits (N, C) in each row, the first of equals (hellaswag, as published).

    Raises:
        ConfigError: no matrix, or not one column a letter.
        NonFinite: a NaN or an infinity.
    """
    logits = features("logits", logits, axes=("N", "C"), least=0)
    if logits.shape[1] != len(letters):
        raise ConfigError(f"logits must have a column for each of {len(letters)} letters, got shape {tuple(logits.shape)}.")
    return [letters[index] for index in logits.argmax(1).tolist()]


def accuracy(rule: str, generated: Sequence[str], gold: Sequence[str]) -> float:
    """Share of right answers under a rule of :data:`RULES`, in [0, 1].

    Raises:
        UnknownName: unknown rule.
        ConfigError: no answers, or not one gold answer for each.
    """
    require_known("answer rule", rule, RULES)
    if not generated or len(generated) != len(gold):
        raise ConfigError(f"each of one or more generated answers needs its gold one, got {len(generated)} and {len(gold)}.")
    return sum(RULES[rule](answer, wanted) for answer, wanted in zip(generated, gold)) / len(generated)
