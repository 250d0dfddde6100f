"""What a set of (Text, Code) pairs looks like in numbers, so that generated pairs can be shown beside the published ones (Paper C)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jepa_nb.errors import DataError

if TYPE_CHECKING:
    from jepa_nb.data.pairs import Pair

REGEX_OPERATORS = {  # name: how the operator is written, with a pattern that finds it in an expression of NL-RX
    "and &": r"&", "or |": r"\|", "not ~": r"~", "word \\b": r"\\b", "times {n,}": r"\{\d+,\}", "plus +": r"\)\+", "star )*": r"\)\*",
    "any .*": r"\.\*"}


def statistics(pairs: Sequence[Pair], tokenizer: Any = None, operators: Mapping[str, str] | None = None) -> dict[str, float]:
    """Numbers by name, in the order in which a table shows them.

    Words of a text are what white space separates. Lengths are given as mean, median and 95 % quantile: of texts in words, of codes in
    characters, and of both in tokens. An entropy is that of single words, characters or tokens, in bits.

    Args:
        pairs: N pairs.
        tokenizer: adds the statistics of tokens; ``tokenizer(text)["input_ids"]`` are the ids without special tokens or with them.
        operators: adds the share of codes in which each named pattern occurs, the commonest first: :data:`REGEX_OPERATORS`.

    Raises:
        DataError: no pairs.
    """
    if not pairs:
        raise DataError("there are no pairs to count; give at least one.")
    texts, codes = [pair.text for pair in pairs], [pair.code for pair in pairs]
    found: dict[str, float] = {"pairs": len(pairs)}
    found |= _units("text words", [text.split() for text in texts]) | _units("code characters", codes)
    if tokenizer is not None:
        for name, strings in (("text tokens", texts), ("code tokens", codes)):
            found |= _units(name, [tokenizer(string)["input_ids"] for string in strings])
    found |= {"texts that occur once": _once(texts), "codes that occur once": _once(codes)}
    return found | _shares(codes, operators or {})


def _units(name: str, rows: Sequence[Sequence]) -> dict[str, float]:
    """Lengths of the rows, number of different units, and entropy of a unit in bits (0 where all rows are empty)."""
    lengths = np.array([len(row) for row in rows])
    counts = np.array(list(Counter(unit for row in rows for unit in row).values()), dtype=float)
    shares = counts / counts.sum()
    return {
        f"{name}, mean": float(lengths.mean()), f"{name}, median": float(np.median(lengths)),
        f"{name}, 95 %": float(np.quantile(lengths, 0.95)), f"{name}, different": len(counts),
        f"{name}, entropy (bits)": float(-(shares * np.log2(shares)).sum()) + 0.0}


def _once(strings: Iterable[str]) -> float:
    """Share of the strings that are there a single time."""
    counts = Counter(strings)
    return sum(count == 1 for count in counts.values()) / counts.total()


def _shares(codes: Sequence[str], operators: Mapping[str, str]) -> dict[str, float]:
    shares = {f"codes with {name}": sum(re.search(pattern, code) is not None for code in codes) / len(codes)
              for name, pattern in operators.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
