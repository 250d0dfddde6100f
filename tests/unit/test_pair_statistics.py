"""Claims: the numbers are those of a count by hand, scipy's entropy and numpy's quantiles; a tokenizer and operators add theirs."""

from __future__ import annotations


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from jepa_nb.data.pairs import Pair
from jepa_nb.errors import DataError
from jepa_nb.metrics.pair_statistics import REGEX_OPERATORS, statistics
from jepa_nb.worlds import regex

HAND = [Pair("a b a b", "xx"), Pair("a b", "xxyy"), Pair("a b", "xxyyz"), Pair("c", "xx")]


def test_a_count_by_hand():
    found = statistics(HAND)
    assert found["pairs"] == 4
    assert found["text words, mean"] == 9 / 4 and found["text words, median"] == 2 and found["text words, different"] == 3
    assert found["code characters, mean"] == 13 / 4 and found["code characters, median"] == 3 and found["code characters, different"] == 3
    assert found["texts that occur once"] == 0.5 and found["codes that occur once"] == 0.5
    assert found["text words, entropy (bits)"] == pytest.approx(entropy([4, 4, 1], base=2))
    assert found["code characters, entropy (bits)"] == pytest.approx(entropy([8, 4, 1], base=2))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.text("ab c", max_size=12), st.text("xyz", max_size=9)), min_size=1, max_size=20))
def test_equal_to_scipy_and_numpy(drawn):
    found = statistics([Pair(*pair) for pair in drawn])
    for name, rows in (("text words", [text.split() for text, _ in drawn]), ("code characters", [list(code) for _, code in drawn])):
        lengths, units = [len(row) for row in rows], sum(rows, [])
        assert found[f"{name}, mean"] == pytest.approx(np.mean(lengths)) and found[f"{name}, 95 %"] == pytest.approx(np.percentile(lengths, 95))
        assert found[f"{name}, different"] == len(set(units))
        wanted = entropy([units.count(unit) for unit in set(units)], base=2) if units else 0
        assert found[f"{name}, entropy (bits)"] == pytest.approx(wanted, abs=1e-12)
    codes = [code for _, code in drawn]
    assert found["codes that occur once"] == pytest.approx(sum(codes.count(code) == 1 for code in codes) / len(codes))


def test_one_unit_has_no_entropy_and_no_minus_sign():
    assert str(statistics([Pair("a a", "x")])["text words, entropy (bits)"]) == "0.0"


def test_a_tokenizer_adds_its_tokens():
    letters = statistics(HAND, tokenizer=lambda string: {"input_ids": list(string)})
    plain = statistics(HAND)
    assert letters.keys() - plain.keys() == {f"{name} tokens, {what}" for name in ("text", "code")
                                              for what in ("mean", "median", "95 %", "different", "entropy (bits)")}
    assert {key.replace("characters", "tokens"): value for key, value in plain.items() if "characters" in key}.items() <= letters.items()
    assert letters["text tokens, mean"] == np.mean([7, 3, 3, 1]) and letters["text tokens, different"] == 4


def test_operators_come_commonest_first_with_the_share_of_codes_that_hold_them():
    codes = ["(a)&(b)", "(a)|(b)", "(a)|(~(b))", r"\b(.*a){3,}\b", "(a)+", "(a)*", "((a)|(b))*", "[A-Z]"]
    found = statistics([Pair("", code) for code in codes], operators=REGEX_OPERATORS)
    shares = {key.removeprefix("codes with "): value * 8 for key, value in found.items() if key.startswith("codes with ")}
    assert shares == {"or |": 3, "star )*": 2, "and &": 1, "not ~": 1, r"word \b": 1, "times {n,}": 1, "plus +": 1, "any .*": 1}
    assert list(shares)[:2] == ["or |", "star )*"] and list(shares.values()) == sorted(shares.values(), reverse=True)


def test_every_operator_of_the_generated_expressions_is_counted():
    pairs = [Pair(**row) for row in regex.pairs(seed=0, train=300, test=0)["train"]]
    found = statistics(pairs, operators=REGEX_OPERATORS)
    assert all(0 < found[f"codes with {name}"] < 1 for name in REGEX_OPERATORS)


def test_no_pairs_are_refused():
    with pytest.raises(DataError, match="no pairs"):
        statistics([])
