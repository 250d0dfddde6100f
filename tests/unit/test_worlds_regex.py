"""Claims: an expression is in one split, also after renaming its strings; one seed gives one list, and fewer pairs are its head; a
description follows from its expression by the table of operators; an expression is well formed and means what its operator says."""

from __future__ import annotations

import functools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError
from jepa_nb.worlds import regex

LEAVES = {code: text for text, code in regex.CLASSES} | {name: f"the string '{name}'" for name in regex.STRINGS}


@pytest.fixture(scope="module")
def found():
    return regex.pairs(seed=0, train=1200, test=300)


def balanced(code):
    depth = 0
    for letter in code:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def children(pieces, code):
    """All ways to read ``code`` as the pieces of an operator's expression with a balanced child between each two of them."""
    if not code.startswith(pieces[0]):
        return
    rest = code[len(pieces[0]):]
    if len(pieces) == 1:
        if not rest:
            yield ()
        return
    for end in range(1, len(rest) + 1):
        if balanced(rest[:end]):
            for others in children(pieces[1:], rest[end:]):
                yield rest[:end], *others


@functools.lru_cache(maxsize=None)
def descriptions(code):
    """Every description that the table of operators gives an expression, read from the expression."""
    texts = {LEAVES[code]} if code in LEAVES else set()
    for text, form in (pair for name, pair in regex.OPERATORS.items() if name != "only"):
        for number in range(2, 8) if "#" in form else [0]:
            for parts in children(form.replace("#", str(number)).split("{}"), code):
                filled = {text.replace("#", str(number))}
                for part in parts:
                    filled = {whole.replace("{}", child, 1) for whole in filled for child in descriptions(part)}
                texts |= filled
    return frozenset(texts | {f"containing only {text}" for text in texts})  # the one operator that leaves its expression as it is


def test_a_pair_has_the_published_form(found):
    for pair in found["train"] + found["test"]:
        assert pair["system"] == "Convert natural language to regular expression." and pair["text"].startswith("lines ")
        assert pair["group"] == regex.renamed(pair["code"]) and not set(regex.STRINGS) & set(re.findall("[a-z]{4,}|dog", pair["group"]))


def test_no_expression_is_in_both_splits_even_with_other_strings(found):
    assert len(found["train"]) == 1200 and len(found["test"]) == 300
    pairs = found["train"] + found["test"]
    for field in ("text", "code", "group"):
        assert len({pair[field] for pair in pairs}) == len(pairs)
    assert regex.renamed("(truck)|(dog)") == regex.renamed("(dog)|(lake)") == "(<1>)|(<2>)" != regex.renamed("(dog)|(dog)")


def test_a_description_follows_from_its_expression_by_the_operators(found):
    for pair in found["test"]:
        said = {form + text for text in descriptions(pair["code"]) for form in ("lines with ", "lines having ", "lines ")}
        said |= {f"lines not having {text.removeprefix('not ')}" for text in descriptions(pair["code"]) if text.startswith("not ")}
        assert pair["text"] in said, pair


def test_the_reading_of_expressions_refuses_another_description():
    assert descriptions("([0-9]).*(dog).*") == {f"{only}{text}" for only in ("", "containing only ") for text in (
        "a number before the string 'dog'", "a number before containing only the string 'dog'", "containing only a number before the string 'dog'",
        "containing only a number before containing only the string 'dog'")}
    assert not descriptions("([0-9]).*(dog)")


def test_expressions_compile_where_complement_and_intersection_are_left_out(found):
    for pair in found["train"]:
        assert balanced(pair["code"])
        re.compile(pair["code"].replace("~", "").replace("&", ""))


@pytest.mark.parametrize("operator, fitting, other", [
    ("starts", "dogma", "hotdog"), ("ends", "hotdog", "dogma"), ("contains", "a dog, b", "a cat"), ("only", "dog", "dogs"),
    ("words", "dog", "dogs"), ("words_contain", "hotdogs", "cat"), ("plus", "dogdog", ""), ("star", "", "dogs")])
def test_an_operator_on_a_string_means_what_it_says(operator, fitting, other):
    expression = regex.OPERATORS[operator][1].replace("{}", "dog")
    assert re.fullmatch(expression, fitting) and not re.fullmatch(expression, other)


@pytest.mark.parametrize("operator, fitting, other", [
    ("before", "dog and truck here", "truck and dog"), ("followed", "dog, truck", "truck, dog"), ("or", "truck", "dogtruck")])
def test_an_operator_on_two_strings_means_what_it_says(operator, fitting, other):
    expression = regex.OPERATORS[operator][1].replace("{}", "dog", 1).replace("{}", "truck", 1)
    assert re.fullmatch(expression, fitting) and not re.fullmatch(expression, other)


def test_every_operator_class_and_string_occurs(found):
    texts = " ".join(pair["text"] for pair in found["train"])
    codes = [pair["code"] for pair in found["train"]]
    assert all(text in texts for text in LEAVES.values() if "lake" not in text)  # a fourth string is rare
    assert all(any(part in code for code in codes) for part in ("~(", ")&(", ")|(", r"\b", ",}", ")+", ")*"))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**31), st.integers(0, 60), st.integers(0, 20))
def test_fewer_pairs_are_the_first_ones_of_more(seed, train, test):
    many, few = regex.pairs(seed=seed, train=60, test=20), regex.pairs(seed=seed, train=train, test=test)
    assert few == {"train": many["train"][:train], "test": many["test"][:test]}


def test_another_seed_gives_other_pairs():
    assert regex.pairs(seed=1, train=20, test=5) != regex.pairs(seed=2, train=20, test=5)


def test_numbers_that_cannot_be_given_are_refused(monkeypatch):
    for train, test in ((-1, 1), (1, -1)):
        with pytest.raises(ConfigError, match="0 or more"):
            regex.pairs(seed=0, train=train, test=test)
    monkeypatch.setattr(regex, "PATIENCE", 0)
    with pytest.raises(ConfigError, match="ask for fewer"):
        regex.pairs(seed=0, train=10, test=0)
