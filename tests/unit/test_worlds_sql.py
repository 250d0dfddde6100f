"""Claims: no pair of tables and no query is in both splits, and the test's words occur in training; a question's words determine its
query; every query runs in the database that its question names, most give rows, and they are the rows that the question asks for."""

from __future__ import annotations

import contextlib
import re
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.worlds import sql, sql_questions

FORM = re.compile(r"For db_id:\[(([a-z]+)_([a-z]+)_\d+)\]\n\n([A-Z][^\n]*[?.])")
KEYWORDS = ("SELECT FROM WHERE GROUP BY ORDER ASC DESC LIMIT HAVING DISTINCT JOIN ON AS OR NOT IN count avg max min sum "
            "T1 T2").split()


@pytest.fixture(scope="module")
def found():
    return sql.pairs(seed=0, train=3000, test=600)


@pytest.fixture(scope="module")
def asked(found):
    """(part, whole, question, pair) of every pair."""
    return {split: [(*FORM.fullmatch(pair["text"]).groups()[1:], pair) for pair in pairs] for split, pairs in found.items()}


def names(query):
    """Tables and columns of a query, keys without their ending."""
    bare = re.sub(r"'[^']*'", "", query)
    return {word.removesuffix("_id") for word in re.findall(r"[A-Za-z]\w*", bare)} - set(KEYWORDS)


def table(connection, name):
    """Rows as dictionaries."""
    cursor = connection.execute(f"SELECT * FROM {name}")
    return [dict(zip([column[0] for column in cursor.description], row)) for row in cursor]


def test_a_pair_has_the_public_form(found):
    for pair in found["train"] + found["test"]:
        assert pair["system"] == "Convert natural language to SQL." and FORM.fullmatch(pair["text"])[1] == pair["group"]


def test_no_pair_of_tables_and_no_query_is_in_both_splits(found, asked):
    assert len(found["train"]) == 3000 and len(found["test"]) == 600
    tables, queries = ([{key(row) for row in rows} for rows in asked.values()] for key in (lambda row: row[:2], lambda row: row[3]["code"]))
    assert not tables[0] & tables[1] and not queries[0] & queries[1]
    texts = [pair["text"] for pairs in found.values() for pair in pairs]
    assert len(set(texts)) == len(texts)


def test_every_word_name_and_value_of_the_test_split_occurs_in_training(found, asked):
    words = {split: {word for _, _, question, _ in rows for word in re.findall(r"\w+", question)} for split, rows in asked.items()}
    codes = {split: {name for pair in pairs for name in names(pair["code"])} for split, pairs in found.items()}
    assert words["test"] <= words["train"] and codes["test"] <= codes["train"]


def test_a_question_determines_its_query_and_says_every_name_and_value_in_it(asked):
    queries: dict[str, str] = {}
    for _, _, question, pair in asked["train"] + asked["test"]:
        assert queries.setdefault(question, pair["code"]) == pair["code"]
        words = set(re.findall(r"\w+", question))
        assert all({name, sql_questions.plural(name)} & words for name in names(pair["code"])), pair
        assert all(value in words for value in re.findall(r"'(\w+)'|\b(\d+)\b", re.sub("LIMIT 1$", "", pair["code"])) for value in value if value)


def test_every_query_runs_and_most_give_rows(found):
    full = []
    for pair in found["test"]:
        with contextlib.closing(sql.database(pair["group"])) as connection:
            rows = connection.execute(pair["code"]).fetchall()
        full.append(bool(rows) and rows not in ([(0,)], [(None,)]))
    assert fmean(full) > 0.9


def test_both_splits_mix_the_types_of_questions(found):
    least = {"count(": 0.2, "WHERE": 0.35, "ORDER BY": 0.1, "LIMIT": 0.08, "GROUP BY": 0.1, "JOIN": 0.25, "DISTINCT": 0.05,
             "HAVING": 0.01, "(SELECT": 0.05}
    for pairs in found.values():
        shares = {part: fmean(part in pair["code"] for pair in pairs) for part in least}
        assert all(least[part] < share < 0.65 for part, share in shares.items()), shares
        assert all(any(f"{function}(" in pair["code"] for pair in pairs) for function in ("avg", "max", "min", "sum"))
        assert max(len(pair["code"]) for pair in pairs) < 160




# wording: rows of the table that the question names, the other table's rows, the question's words -> the answer's rows in some order
ANSWERS = {
    r"How many (?P<table>\w+) are there\?": lambda own, _, q: [(len(own),)],
    r"How many (?P<table>\w+) have the (\w+) (\w+)\?": lambda own, _, q: [(sum(row[q[2]] == q[3] for row in own),)],
    r"Count the number of (?P<table>\w+) with a (\w+) above (\d+)\.": lambda own, _, q: [(sum(row[q[2]] > int(q[3]) for row in own),)],
    r"Find the (\w+) of each (?P<table>\w+) with (\w+) (\w+)\.":
        lambda own, _, q: [(row[q[1]],) for row in own if row[q[3]] == q[4]],
    r"Find the average (\w+) of all (?P<table>\w+)\.": lambda own, _, q: [(pytest.approx(fmean(row[q[1]] for row in own)),)],
    r"What is the total (\w+) of the (?P<table>\w+)\?": lambda own, _, q: [(sum(row[q[1]] for row in own),)],
    r"List each distinct (\w+) of the (?P<table>\w+)\.": lambda own, _, q: [(value,) for value in {row[q[1]] for row in own}],
    r"How many (?P<table>\w+) are there for each (\w+)\?":
        lambda own, _, q: [(value, sum(row[q[2]] == value for row in own)) for value in {row[q[2]] for row in own}],
    r"Find each (\w+) with 3 or more (?P<table>\w+)\.":
        lambda own, _, q: [(value,) for value in {row[q[1]] for row in own} if sum(row[q[1]] == value for row in own) >= 3],
    r"Find the (\w+) of each (?P<table>\w+) with a (\w+) below the average\.":
        lambda own, _, q: [(row[q[1]],) for row in own if row[q[3]] < fmean(each[q[3]] for each in own)],
    r"Find the name of each (?P<table>\w+) that has no \w+\.": lambda own, parts, q: [
        (row["name"],) for row in own if all(part[f"{q[1]}_id"] != row[f"{q[1]}_id"] for part in parts)],
    r"Show the name of each (?P<table>\w+) and the number of its \w+\.": lambda own, parts, q: [
        (row["name"], n) for row in own if (n := sum(part[f"{q[1]}_id"] == row[f"{q[1]}_id"] for part in parts))],
    r"Count the number of \w+ whose (?P<table>\w+) has the (\w+) (\w+)\.": lambda own, parts, q: [
        (sum(row[q[2]] == q[3] for part in parts for row in own if part[f"{q[1]}_id"] == row[f"{q[1]}_id"]),)],
}


@pytest.mark.parametrize("wording", ANSWERS)
def test_a_query_gives_what_its_question_asks_for(asked, wording):
    checked = 0
    for part, whole, question, pair in asked["train"]:
        said = re.fullmatch(wording, question)
        if said is None:
            continue
        with contextlib.closing(sql.database(pair["group"])) as connection:
            own = whole if said["table"] in (whole, sql_questions.plural(whole)) else part
            other = part if own == whole else whole
            wanted = ANSWERS[wording](table(connection, own), table(connection, other), said)
            assert sorted(connection.execute(pair["code"]).fetchall()) == sorted(wanted, key=repr if len(wanted) == 1 else None), pair
        checked += 1
        if checked == 8:
            break
    assert checked


def test_an_order_is_the_one_that_the_question_says(asked):
    checked = 0
    for part, whole, question, pair in asked["train"]:
        said = re.fullmatch(r"List the (?:names|titles) of the (\w+) in (ascending|descending) order of (\w+)\.", question)
        if said is None or checked == 10:
            continue
        label, own = ("name", whole) if said[1] == sql_questions.plural(whole) else ("title", part)
        with contextlib.closing(sql.database(pair["group"])) as connection:
            number = {row[label]: row[said[3]] for row in table(connection, own)}
            order = [number[name] for name, in connection.execute(pair["code"])]
        assert order == sorted(number.values(), reverse=said[2] == "descending")
        checked += 1
    assert checked == 10


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(list(sql.PARTS)), st.sampled_from(list(sql.WHOLES)), st.integers(0, 99))
def test_a_name_alone_determines_a_database_whose_keys_fit(part, whole, number):
    dumps = []
    for _ in range(2):
        with contextlib.closing(sql.database(f"{part}_{whole}_{number}")) as connection:
            dumps.append(list(connection.iterdump()))
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert {kind for _, _, kind, *_ in connection.execute(f"PRAGMA table_info({whole})")} == {"TEXT", "INTEGER"}
            parts, wholes = ([row[0] for row in connection.execute(f"SELECT count(*) FROM {name}")][0] for name in (part, whole))
            owners = connection.execute(f"SELECT count(DISTINCT {whole}_id) FROM {part}").fetchone()[0]
        assert 12 <= parts <= 16 and 7 <= wholes <= 10 and 1 <= owners <= wholes - 2
        sql._contents.cache_clear()
    assert dumps[0] == dumps[1]


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**31), st.integers(0, 40), st.integers(0, 20))
def test_fewer_pairs_are_the_first_ones_of_more(seed, train, test):
    many, few = sql.pairs(seed=seed, train=40, test=20), sql.pairs(seed=seed, train=train, test=test)
    assert few == {"train": many["train"][:train], "test": many["test"][:test]}


def test_another_seed_gives_other_pairs():
    assert sql.pairs(seed=1, train=20, test=5) != sql.pairs(seed=2, train=20, test=5)


def test_numbers_and_names_that_cannot_be_given_are_refused(monkeypatch):
    for train, test in ((-1, 1), (1, -1)):
        with pytest.raises(ConfigError, match="0 or more"):
            sql.pairs(seed=0, train=train, test=test)
    monkeypatch.setattr(sql, "NUMBERED", 1)
    with pytest.raises(ConfigError, match=r"give [\d,]+ test pairs, not 100,000: ask for fewer"):
        sql.pairs(seed=0, train=0, test=100_000)
    for name in ("concert_singer", "concert", "concert_singer_x", "concert_singer_7; DROP"):
        with pytest.raises(ConfigError, match="names no database"):
            sql.database(name)
    with pytest.raises(UnknownName, match="'concerto'.*did you mean 'concert'"):
        sql.database("concerto_singer_7")
    with pytest.raises(UnknownName, match="'singr'.*did you mean 'singer'"):
        sql.database("concert_singr_7")


@pytest.mark.parametrize("noun, wanted", [("city", "cities"), ("status", "statuses"), ("coach", "coaches"), ("race", "races"), ("day", "days"),
                                          ("singer", "singers"), ("box", "boxes")])
def test_plurals(noun, wanted):
    assert sql_questions.plural(noun) == wanted
