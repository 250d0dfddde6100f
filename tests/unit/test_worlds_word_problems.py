"""Claims: an answer is the one that the numbers of its story give by a formula written here; every step is right and uses numbers that
are known by then; test templates are never trained on; seen pairs are new items of the training templates."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError
from jepa_nb.metrics import answers
from jepa_nb.worlds import word_problems

ANSWERS = {  # template: the answer from the numbers of the story, in the order in which it names them
    "buys_more": lambda a, b: a + b, "gives_away": lambda a, b: a - b, "bags": lambda a, b: a * b, "shares": lambda a, b: a / b,
    "cookies": lambda a, b, c: a * b - c, "eggs": lambda a, b, c: (a - b) * c, "two_prices": lambda a, b, c, d: a * b + c * d,
    "change": lambda a, b, note: note - a * b, "pages": lambda c, a, b: c - a * b, "ages": lambda a, b: 2 * a + b,
    "fish": lambda a, b: a * (1 + b), "fewer": lambda a, b: 2 * a - b, "chairs": lambda a, b, c: a * b - c,
    "savings": lambda a, b, c: a * b - c, "wages": lambda a, b, c: a * b * c, "train": lambda a, b, c: a * b + c,
    "weeks": lambda a, b: 7 * a * b, "dozens": lambda a, b: 12 * a - b, "beads": lambda a, b, c: (a + b) / c,
    "bus": lambda a, b, c: a - b + c, "stamps": lambda a, b, c: a + b * c, "garden": lambda a, b, c, d: a * b + c * d,
    "half": lambda a: 1.5 * a, "fence": lambda a, b: 2 * a + 2 * b, "floor": lambda a, b, c: a * b * c,
    "tank": lambda a, b, c: a - b * c, "teams": lambda a, b, c: (a + b) / c, "legs": lambda a, b: 4 * a + 2 * b,
    "coats": lambda a, b, c: (a - b) * c, "flour": lambda a, b, c: b - a * c, "monday": lambda a, b, c: a + b - c,
    "debt": lambda a, b: a / b, "average": lambda a, b, c: (a + b + c) / 3, "parking": lambda a, b, c, d: a * b - c + d,
    "gigabytes": lambda a, b, c: a + b * c, "cold": lambda a, b, c: a - b * c}
STEP = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)( [a-z]+)+")
FACTS = {7, 12, 4, 2, 3}  # days of a week, a dozen, legs, two sides or a half, games


@pytest.fixture(scope="module")
def found():
    return word_problems.pairs(seed=0, train=2000, test=400)


def all_pairs(found):
    return [pair for pairs in found.values() for pair in pairs]


def test_there_are_thirty_templates_or_more_and_all_are_told(found):
    assert len(word_problems.STORIES) >= 30
    assert {pair["group"] for pair in all_pairs(found)} == {story.name for story in word_problems.STORIES} == set(ANSWERS)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**31))
def test_an_answer_is_that_of_a_formula_on_the_numbers_of_the_story(seed):
    for pair in all_pairs(word_problems.pairs(seed=seed, train=80, test=40)):
        numbers = [int(number) for number in re.findall(r"\d+", pair["text"])]
        *_, last = pair["code"].split("\n")
        assert last == f"#### {ANSWERS[pair['group']](*numbers):g}", pair


def test_every_step_is_right_and_uses_known_numbers_and_the_last_one_is_the_answer(found):
    for pair in all_pairs(found):
        *steps, last = pair["code"].split("\n")
        known = {int(number) for number in re.findall(r"\d+", pair["text"])} | FACTS
        for step in steps:
            first, sign, second, result = STEP.fullmatch(step).groups()[:4]
            first, second, result = int(first), int(second), int(result)
            assert {first, second} <= known, pair
            assert {"+": first + second, "-": first - second, "*": first * second, "/": first / second}[sign] == result
            assert result >= 1
            known.add(result)
        assert steps and last == f"#### {result}"


def test_a_pair_has_the_form_of_gsm8k(found):
    for pair in all_pairs(found):
        assert pair["system"] == "Answer the math question, show steps." and pair["text"].endswith("?")
        assert re.search(r"\n#### (\d+)$", pair["code"]) and not re.search(r"[{}]", pair["text"] + pair["code"])
        assert answers.gsm8k(pair["code"], pair["code"]) and not answers.gsm8k(pair["code"] + "1", pair["code"])


def test_test_templates_are_never_trained_on_and_seen_ones_are(found):
    groups = {split: {pair["group"] for pair in pairs} for split, pairs in found.items()}
    assert not groups["test"] & groups["train"] and groups["seen"] == groups["train"]
    assert len(groups["test"]) == word_problems.TEST_TEMPLATES
    other = word_problems.pairs(seed=1, train=0, test=200)["test"]
    assert {pair["group"] for pair in other} != groups["test"]


def test_no_text_occurs_twice_and_seen_is_as_large_as_test(found):
    assert {split: len(pairs) for split, pairs in found.items()} == {"train": 2000, "test": 400, "seen": 400}
    texts = [pair["text"] for pair in all_pairs(found)]
    assert len(set(texts)) == len(texts)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**31), st.integers(0, 60), st.integers(0, 30))
def test_fewer_pairs_are_the_first_ones_of_more(seed, train, test):
    many, few = word_problems.pairs(seed=seed, train=60, test=30), word_problems.pairs(seed=seed, train=train, test=test)
    assert few == {"train": many["train"][:train], "test": many["test"][:test], "seen": many["seen"][:test]}


def test_another_seed_gives_other_pairs():
    assert word_problems.pairs(seed=1, train=20, test=5) != word_problems.pairs(seed=2, train=20, test=5)


def test_numbers_that_cannot_be_given_are_refused(monkeypatch):
    for train, test in ((-1, 1), (1, -1)):
        with pytest.raises(ConfigError, match="0 or more"):
            word_problems.pairs(seed=0, train=train, test=test)
    small = [story for story in word_problems.STORIES if story.name in ("change", "half", "teams")]
    monkeypatch.setattr(word_problems, "STORIES", small)
    monkeypatch.setattr(word_problems, "TEST_TEMPLATES", 1)
    monkeypatch.setattr(word_problems, "PATIENCE", 300)
    with pytest.raises(ConfigError, match=r"give [\d,]+ test pairs, not 9,000: ask for fewer"):
        word_problems.pairs(seed=0, train=0, test=9000)
