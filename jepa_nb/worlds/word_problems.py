"""Small arithmetic stories with worked steps, for the form of Paper C's GSM8K pairs: an answer ends with ``#### 42``.

A template is a story with blanks and the steps of its answer. The split is by template, so that the test stories are told in words
that were never trained on; ``seen`` holds new items of the training templates, which ask for the arithmetic alone.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jepa_nb import seeds
from jepa_nb.errors import ConfigError

SYSTEM = "Answer the math question, show steps."
TEST_TEMPLATES = 8
SEEN_SHARE = 0.2
PATIENCE = 5_000  # draws in a row that add nothing new

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jack", "Kate", "Leo", "Maria", "Noah", "Olga", "Paul")
THINGS = ("apples", "pears", "marbles", "stickers", "cards", "shells", "coins", "buttons")
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


@dataclass(frozen=True)
class Story:
    """A template.

    Attributes:
        name: its group.
        text: the story; blanks are numbers, {name}, {other} and {things}.
        numbers: least and greatest value of each number that is drawn.
        steps: ``"t = a * b eggs"`` for each step, the last one's result being the answer; what follows the two numbers is their unit.
        derived: steps without a unit that give further numbers of the story, so that every division is exact.
    """

    name: str
    text: str
    numbers: dict[str, tuple[int, int]]
    steps: tuple[str, ...]
    derived: tuple[str, ...] = ()


STORIES = (
    Story("buys_more", "{name} has {a} {things} and buys {b} more. How many {things} does {name} have now?",
          {"a": (2, 60), "b": (2, 40)}, ("t = a + b {things}",)),
    Story("gives_away", "{name} had {a} {things} and gave {b} of them to {other}. How many {things} are left?",
          {"a": (30, 90), "b": (2, 28)}, ("t = a - b {things}",)),
    Story("bags", "{name} fills {a} bags with {b} {things} each. How many {things} are in the bags?",
          {"a": (2, 12), "b": (2, 12)}, ("t = a * b {things}",)),
    Story("shares", "{name} shares {a} {things} equally among {b} friends. How many {things} does each friend get?",
          {"b": (2, 12), "c": (2, 12)}, ("t = a / b {things}",), ("a = b * c",)),
    Story("cookies", "{name} buys {a} boxes of {b} cookies and eats {c} cookies. How many cookies remain?",
          {"a": (3, 9), "b": (4, 12), "c": (2, 11)}, ("t = a * b cookies", "u = t - c cookies")),
    Story("eggs", "The hens of {name} lay {a} eggs a day. {name} eats {b} and sells the others for {c} dollars each. "
          "How many dollars is that a day?", {"a": (10, 20), "b": (2, 8), "c": (2, 5)}, ("t = a - b eggs", "u = t * c dollars")),
    Story("two_prices", "{name} buys {a} pens for {b} dollars each and {c} books for {d} dollars each. How many dollars does {name} pay?",
          {"a": (2, 6), "b": (2, 5), "c": (2, 6), "d": (6, 12)}, ("t = a * b dollars", "u = c * d dollars", "v = t + u dollars")),
    Story("change", "A ticket costs {a} dollars. {name} pays for {b} tickets with a note of 100 dollars. How many dollars of change are due?",
          {"a": (2, 12), "b": (2, 8)}, ("t = a * b dollars", "u = 100 - t dollars")),
    Story("pages", "A book has {c} pages. {name} reads {a} pages on each of {b} days. How many pages are unread?",
          {"a": (5, 12), "b": (3, 9), "c": (110, 200)}, ("t = a * b pages", "u = c - t pages")),
    Story("ages", "{name} is {a} years old and {other} is {b} years older. What is the sum of their ages?",
          {"a": (5, 40), "b": (2, 12)}, ("t = a + b years", "u = a + t years")),
    Story("fish", "{name} caught {a} fish and {other} caught {b} times as many. How many fish did they catch together?",
          {"a": (3, 15), "b": (2, 6)}, ("t = a * b fish", "u = a + t fish")),
    Story("fewer", "{name} picked {a} plums. {other} picked {b} plums fewer. How many plums did both pick in all?",
          {"a": (20, 50), "b": (2, 18)}, ("t = a - b plums", "u = a + t plums")),
    Story("chairs", "A hall has {a} rows of {b} chairs, and {c} chairs are taken. How many chairs are free?",
          {"a": (4, 12), "b": (6, 12), "c": (3, 22)}, ("t = a * b chairs", "u = t - c chairs")),
    Story("savings", "{name} saves {a} dollars a week. After {b} weeks {name} spends {c} dollars. How many dollars does {name} still have?",
          {"a": (5, 20), "b": (4, 9), "c": (3, 19)}, ("t = a * b dollars", "u = t - c dollars")),
    Story("wages", "{name} earns {a} dollars an hour and works {b} hours a day. How many dollars does {name} earn in {c} days?",
          {"a": (5, 15), "b": (2, 8), "c": (2, 6)}, ("t = a * b dollars", "u = t * c dollars")),
    Story("train", "A train covers {a} miles an hour for {b} hours and then {c} miles more. How many miles does it cover?",
          {"a": (20, 60), "b": (2, 5), "c": (3, 30)}, ("t = a * b miles", "u = t + c miles")),
    Story("weeks", "{name} runs {a} minutes every day. How many minutes does {name} run in {b} weeks?",
          {"a": (5, 30), "b": (2, 8)}, ("t = b * 7 days", "u = t * a minutes")),
    Story("dozens", "{name} bakes {a} dozen muffins and {b} of them are sold. How many muffins are unsold?",
          {"a": (2, 8), "b": (3, 22)}, ("t = a * 12 muffins", "u = t - b muffins")),
    Story("beads", "{name} has {a} red beads and {b} blue beads and strings all of them, {c} on each chain. How many chains does {name} make?",
          {"b": (4, 18), "c": (4, 9), "d": (5, 10)}, ("t = a + b beads", "u = t / c chains"), ("n = c * d", "a = n - b")),
    Story("bus", "A bus carries {a} people. At a stop {b} people get off and {c} get on. How many people does the bus carry then?",
          {"a": (20, 50), "b": (2, 18), "c": (2, 15)}, ("t = a - b people", "u = t + c people")),
    Story("stamps", "{name} owns {a} stamps and receives {b} stamps on each of {c} days. How many stamps does {name} own at the end?",
          {"a": (10, 60), "b": (2, 9), "c": (2, 9)}, ("t = b * c stamps", "u = a + t stamps")),
    Story("garden", "{name} plants {a} rows of {b} beans and {c} rows of {d} peas. How many plants is that?",
          {"a": (2, 9), "b": (3, 9), "c": (2, 9), "d": (3, 9)}, ("t = a * b plants", "u = c * d plants", "v = t + u plants")),
    Story("half", "{name} sold {a} cakes in May and half as many in June. How many cakes did {name} sell in the two months?",
          {"h": (3, 45)}, ("t = a / 2 cakes", "u = a + t cakes"), ("a = h * 2",)),
    Story("fence", "A field is {a} metres long and {b} metres wide. How many metres of fence does {name} need to go around it?",
          {"a": (10, 60), "b": (4, 30)}, ("t = a + b metres", "u = t * 2 metres")),
    Story("floor", "A floor is {a} feet long and {b} feet wide. {name} pays {c} dollars for a square foot. How many dollars does the floor cost?",
          {"a": (4, 12), "b": (3, 9), "c": (2, 6)}, ("t = a * b square feet", "u = t * c dollars")),
    Story("tank", "A tank holds {a} litres and loses {b} litres an hour. How many litres does it hold after {c} hours?",
          {"a": (110, 200), "b": (2, 11), "c": (2, 9)}, ("t = b * c litres", "u = a - t litres")),
    Story("teams", "{a} boys and {b} girls form teams of {c}. How many teams are there?",
          {"b": (4, 18), "c": (3, 9), "d": (7, 12)}, ("t = a + b children", "u = t / c teams"), ("n = c * d", "a = n - b")),
    Story("legs", "{name} sees {a} dogs and {b} hens in a yard. How many legs do these animals have?",
          {"a": (2, 15), "b": (2, 20)}, ("t = a * 4 legs", "u = b * 2 legs", "v = t + u legs")),
    Story("coats", "A coat costs {a} dollars, and a coupon takes {b} dollars off each. How many dollars do {c} coats cost {name}?",
          {"a": (25, 60), "b": (3, 15), "c": (2, 6)}, ("t = a - b dollars", "u = t * c dollars")),
    Story("flour", "A loaf takes {a} cups of flour. {name} has {b} cups and bakes {c} loaves. How many cups of flour does {name} keep?",
          {"a": (2, 8), "b": (75, 150), "c": (2, 9)}, ("t = a * c cups", "u = b - t cups")),
    Story("monday", "{name} won {a} {things} on Monday and {b} on Tuesday and lost {c} on Friday. How many {things} did {name} gain?",
          {"a": (5, 40), "b": (5, 40), "c": (2, 9)}, ("t = a + b {things}", "u = t - c {things}")),
    Story("debt", "{name} owes {other} {a} dollars and pays back {b} dollars a week. After how many weeks is all of it paid?",
          {"b": (3, 12), "c": (3, 20)}, ("t = a / b weeks",), ("a = b * c",)),
    Story("average", "{name} scored {a}, {b} and {c} points in three games. What is the average score of {name}?",
          {"a": (10, 20), "b": (10, 20), "m": (17, 28)}, ("t = a + b points", "u = t + c points", "v = u / 3 points"),
          ("n = m * 3", "k = n - a", "c = k - b")),
    Story("parking", "A garage has {a} floors with {b} places each. In the morning {c} cars come, and {d} of them leave. "
          "How many places are empty?",
          {"a": (4, 9), "b": (10, 20), "c": (18, 38), "d": (2, 14)}, ("t = a * b places", "u = c - d cars", "v = t - u places")),
    Story("gigabytes", "{name} pays {a} dollars a month for a phone and {b} dollars for each gigabyte. "
          "How many dollars does a month with {c} gigabytes cost?",
          {"a": (10, 30), "b": (2, 6), "c": (2, 12)}, ("t = b * c dollars", "u = a + t dollars")),
    Story("cold", "It is {a} degrees at noon. Every hour it gets {b} degrees colder. How many degrees are there {c} hours later?",
          {"a": (50, 90), "b": (2, 6), "c": (2, 8)}, ("t = b * c degrees", "u = a - t degrees")),
)


def pairs(*, seed: int, train: int, test: int) -> dict[str, list[dict[str, str]]]:
    """Pairs of three splits, each a dictionary of system, text (the story), code (steps and answer) and group (the template).

    ``test`` holds pairs of :data:`TEST_TEMPLATES` templates that ``train`` lacks, ``seen`` as many other pairs of the templates of
    ``train``. No text occurs twice, in one split or in two. Fewer pairs are the first ones of more, in every split. The last line of
    a code is ``#### `` and the answer; each line before it is one step, such as ``3 * 4 = 12 cookies``.

    Args:
        seed: seed of the named streams, of which one chooses the test templates.
        train: number of training pairs.
        test: number of test pairs, and of seen ones.

    Raises:
        ConfigError: a negative number, or more pairs than the templates give.
    """
    if min(train, test) < 0:
        raise ConfigError(f"{train} training and {test} test pairs: give numbers of 0 or more.")
    order = seeds.numpy_generator(seed, "worlds", "word_problems", "split").permutation(len(STORIES))
    held, kept = ([STORIES[index] for index in part] for part in (order[:TEST_TEMPLATES], order[TEST_TEMPLATES:]))
    wanted = {"train": (kept, train), "test": (held, test), "seen": (kept, test)}
    return {split: _first(_distinct(seed, split, stories), split, count) for split, (stories, count) in wanted.items()}


def _first(drawn: Iterator[dict[str, str]], split: str, count: int) -> list[dict[str, str]]:
    found = [pair for _, pair in zip(range(count), drawn)]
    if len(found) < count:
        raise ConfigError(f"the templates give {len(found):,} {split} pairs, not {count:,}: ask for fewer.")
    return found


def _distinct(seed: int, split: str, stories: Sequence[Story]) -> Iterator[dict[str, str]]:
    """Pairs with new texts; ends after :data:`PATIENCE` draws in a row without one. A coin decides which texts are seen ones."""
    generator = seeds.numpy_generator(seed, "worlds", "word_problems", split)
    texts: set[str] = set()
    idle = 0
    while idle < PATIENCE:
        pair = _told(generator, stories[int(generator.integers(len(stories)))])
        text, idle = pair["text"], idle + 1
        if text not in texts and split in ("test", _coin(seed, text)):
            texts.add(text)
            idle = 0
            yield pair


def _coin(seed: int, text: str) -> str:
    return "seen" if seeds.stream(seed, "worlds", "word_problems", "seen", text) % 1000 < 1000 * SEEN_SHARE else "train"


def _told(generator: np.random.Generator, story: Story) -> dict[str, str]:
    """A story with its blanks filled, and the steps to its answer."""
    numbers = {blank: int(generator.integers(least, greatest + 1)) for blank, (least, greatest) in story.numbers.items()}
    name, other = (NAMES[index] for index in generator.choice(len(NAMES), size=2, replace=False))
    things = THINGS[int(generator.integers(len(THINGS)))]
    for step in story.derived:
        _work(step, numbers)
    text = story.text.format(name=name, other=other, things=things, **numbers)
    lines = [_work(step, numbers) for step in story.steps]
    answer = lines[-1].split()[4]
    code = "\n".join([*lines, f"#### {answer}"]).format(things=things)
    return {"system": SYSTEM, "text": text, "code": code, "group": story.name}


def _work(step: str, numbers: dict[str, int]) -> str:
    """Work one step out, add its result to ``numbers``, and give its line, ``3 * 4 = 12 cookies``."""
    result, _, left, sign, right, *unit = step.split()
    first, second = (int(term) if term.isdigit() else numbers[term] for term in (left, right))
    numbers[result] = OPERATIONS[sign](first, second)
    return " ".join([f"{first} {sign} {second} = {numbers[result]}", *unit])
