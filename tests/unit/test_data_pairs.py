"""Claims: chat lines, templates and verses become the stated pairs; no group stands on both sides of a split; no pair occurs twice in a
split; a fault names its line, field or file."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.data import fetch, hub, pair_rows, pairs, verses
from jepa_nb.data.pairs import Pair
from jepa_nb.data.recipes import Recipe, load
from jepa_nb.errors import DataError

SYSTEM = "Answer."
ROWS = {"system": SYSTEM, "text": "{question}", "code": "{answer}"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))


def recipe(**fields):
    return Recipe("sample", "Sample", "none", (), **fields)


def chat(*said, roles=("system", "user", "assistant")):
    return json.dumps({"messages": [{"role": role, "content": words} for role, words in zip(roles, said)]})


def written(folder, name, *lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder / name


def embedded(monkeypatch, *files, **form):
    monkeypatch.setattr(fetch, "fetch_recipe", lambda *_: {file.name: file for file in files})
    return pairs.pairs_of(recipe(embedded=("package",), read={"embedded": form}), "embedded")


def test_a_chat_line_is_a_pair_with_or_without_a_system_message(tmp_path):
    file = written(tmp_path, "a.jsonl", chat(SYSTEM, "wer ist’s?", "one\ntwo"), "", chat("q", "a", roles=("user", "assistant")))
    assert pairs.read_chat(file) == [Pair("wer ist’s?", "one\ntwo", SYSTEM), Pair("q", "a")]


@pytest.mark.parametrize("line, why", [
    ("{", "Expecting"), ("[]", "list"), ('{"text": "x"}', "messages"), (chat("q", roles=("user",)), "roles"), (chat(SYSTEM, "q", 3), "contents"),
    (chat("a", "q", roles=("assistant", "user")), "roles"), (chat("q", "a", "b", roles=("user", "assistant", "assistant")), "roles")])
def test_a_bad_chat_line_is_named_by_its_number(tmp_path, line, why):
    file = written(tmp_path, "a.jsonl", chat(SYSTEM, "q", "a"), line)
    with pytest.raises(DataError, match=f"line 2 of .*a.jsonl is not .*{why}"):
        pairs.read_chat(file)


def test_a_chat_file_in_another_coding_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfe")
    for name in ("a.jsonl", "none.jsonl"):
        with pytest.raises(DataError, match=f"{name} cannot be read .*UTF-8"):
            pairs.read_chat(tmp_path / name)


def test_the_toy_pairs_are_as_many_as_the_recipe_says_and_share_no_group():
    found, asked = pairs.load_pairs("generated", "toy_pairs"), load("toy_pairs").generated["arguments"]
    assert (len(found.train), len(found.test), found.more) == (asked["train"], asked["test"], {})
    assert not {pair.group for pair in found.train} & {pair.group for pair in found.test}
    assert found == pairs.load_pairs("generated", "toy_pairs")
    assert "train 64 pairs, test 32 pairs" in found.description and "NL-RX-Synth" in found.standin


def test_local_files_keep_their_split_and_lose_their_duplicates(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_DATA", str(tmp_path))
    lines = [chat(SYSTEM, f"q{number}", f"a{number}") for number in (3, 1, 3, 2)]
    written(tmp_path, "train.jsonl", *lines)
    written(tmp_path, "test.jsonl", lines[0])
    local = {"files": ["train.jsonl", "test.jsonl"], "splits": {"train": "train.jsonl", "test": "test.jsonl"}}
    found = pairs.pairs_of(recipe(local=local), "local")
    assert [pair.code for pair in found.train] == ["a3", "a1", "a2"] and [pair.code for pair in found.test] == ["a3"]
    assert "train 3 pairs" in found.description and found.standin == ""
    written(tmp_path, "test.jsonl", "")
    with pytest.raises(DataError, match="'sample' has no test pairs from source 'local'"):
        pairs.pairs_of(recipe(local=local), "local")


def test_questions_asked_twice_stand_on_one_side(tmp_path, monkeypatch):
    rows = [json.dumps({"question": f"q{number % 20}", "answer": [f"a{number}", "b"]}) for number in range(40)]
    found = embedded(monkeypatch, written(tmp_path, "a.jsonl", *rows), kind="rows", test=6, **ROWS)
    assert not {pair.text for pair in found.train} & {pair.text for pair in found.test}
    assert (len(found.train), len(found.test)) == (28, 12)
    assert {pair.code for pair in found.train + found.test} == {f"a{number}; b" for number in range(40)}
    assert {pair.system for pair in found.train} == {SYSTEM}


def test_values_are_written_in_their_words_and_other_rows_left_out(tmp_path, monkeypatch):
    file = written(tmp_path, "a.csv", "text,label,source", '"good, ""very""",1,x', "bad,0,x", "else,0,y", "odd,7,x")
    form = {"text": "{text}", "code": "{label}", "system": SYSTEM, "values": {"0": "Bad", "1": "Good"}, "keep": {"source": "x"}, "test": 1}
    found = embedded(monkeypatch, file, kind="rows", **form)
    assert {(pair.text, pair.code) for pair in found.train + found.test} == {('good, "very"', "Good"), ("bad", "Bad"), ("odd", "7")}


def test_rows_of_the_hub_keep_its_splits(monkeypatch):
    monkeypatch.setattr(hub, "stream", lambda _, split, count: ({"question": f"{split} {n}", "answer": [n]} for n in range(count)))
    source = {"kind": "dataset", "splits": {"train": "train", "test": "validation"}, "rows": {"train": 3, "test": 2}}
    found = pairs.pairs_of(recipe(hub=source, read={"hub": ROWS}), "hub")
    assert [pair.text for pair in found.train] == ["train 0", "train 1", "train 2"]
    assert [(pair.text, pair.code) for pair in found.test] == [("validation 0", "0"), ("validation 1", "1")]
    with pytest.raises(DataError, match="'sample' holds a model, not pairs"):
        pairs.pairs_of(recipe(hub={"kind": "model"}), "hub")


def test_hellaswag_is_written_as_in_the_public_files():
    row = {"ctx": "A man sits.", "endings": ["He stands.", "He {runs}.", "", "He."], "label": "2"}
    form = load("hellaswag").read["hub"]
    assert pair_rows.render(form["text"], row) == "A man sits.\nA) He stands.\nB) He {runs}.\nC) \nD) He."
    assert form["values"][pair_rows.render(form["code"], row)] == "C"


@pytest.mark.parametrize("template, shown", [
    ("{a}", "1; 2"), ("{a[1]}", "2"), ("{b[c]}: {d}", "x: 4"), ("{{{d}}}", "{4}"), ("{e}", ""), ("none", "none")])
def test_templates_reach_items_and_nested_fields(template, shown):
    assert pair_rows.render(template, {"a": [1, 2], "b": {"c": "x"}, "d": 4, "e": []}) == shown


@pytest.mark.parametrize("template, field", [("{q}", "q"), ("{a[2]}", "a[2]"), ("{b[x]}", "b[x]"), ("{d[0]}", "d[0]"), ("{n}", "n")])
def test_a_missing_field_is_named_with_those_there_are(template, field):
    with pytest.raises(DataError) as fault:
        pair_rows.render(template, {"a": [1, 2], "b": {"c": "x"}, "d": 4, "n": None})
    assert f"'{field}'" in str(fault.value) and "a, b, d, n" in str(fault.value)


@settings(max_examples=25, deadline=None)
@given(st.text(), st.lists(st.text(), max_size=3))
def test_fields_are_copied_letter_by_letter(words, items):
    assert pair_rows.render("<{a}|{b}>", {"a": words, "b": items}) == f"<{words}|{'; '.join(items)}>"


def test_tables_that_cannot_be_read_are_named(tmp_path):
    written(tmp_path, "a.jsonl", "{}", "{")
    written(tmp_path, "b.jsonl", "[1]")
    for name, why in (("a.jsonl", "line 2 of .*a.jsonl is no JSON "), ("b.jsonl", "line 1 of .*b.jsonl is no JSON object"),
                      ("none.csv", "none.csv cannot be read"), ("a.txt", "neither of .csv, .jsonl")):
        with pytest.raises(DataError, match=why):
            list(pair_rows.read(tmp_path / name, {}))
    with pytest.raises(DataError, match="no column 'kind'; its columns are: text, label"):
        list(pair_rows.read(written(tmp_path, "c.csv", "text,label", "x,0"), {"kind": "y"}))


def bibles(folder):
    """Three translations of book 1, chapters 1 to 4, two verses each; the third words every second verse as the second does."""
    base = sqlite3.connect(folder / "first.sqlite")
    base.execute("CREATE TABLE books (id, sort_order)")
    base.execute("CREATE TABLE verses (book_id, chapter_number, verse_number, text)")
    base.execute("INSERT INTO books VALUES (70, 1)")
    places = [(chapter, verse) for chapter in range(1, 5) for verse in (1, 2)]
    base.executemany("INSERT INTO verses VALUES (70, ?, ?, ?)", [(*place, f"first  {place}") for place in places])
    base.commit()
    base.close()
    with gzip.open(folder / "second.csv.gz", "wt", encoding="utf-8") as handle:
        handle.write("field,field,field,field,field\n")
        handle.writelines(f'"1","1","{c}","{v}","second{{a ""note""}} ({c}, {v})"\n' for c, v in places)
    words = [f" SECOND, ({c} {v})! " if v == 2 else f" third ({c}, {v})" for c, v in places]
    starts = {1_000_000 + 1000 * c + v: len("".join(words[:n])) for n, (c, v) in enumerate(places)}
    ends = {number: start + len(words[n]) for n, (number, start) in enumerate(starts.items())}
    (folder / "third.py").write_text(f'raise SystemExit("run")\nbible = Bible(V.X, """{"".join(words)}""", {starts}, {ends}, {{B.A: 1}})\n')
    return [folder / name for name in ("third.py", "first.sqlite", "second.csv.gz")]


VERSIONS = ("first.sqlite", "second.csv.gz", "third.py")


def test_each_verse_is_paired_with_its_next_version_where_the_words_differ(tmp_path):
    found = list(verses.paraphrases(VERSIONS, bibles(tmp_path)))
    assert found[:3] == [("first (1, 1)", "second (1, 1)", "book 1 chapter 1"), ("second (1, 1)", "third (1, 1)", "book 1 chapter 1"),
                         ("first (1, 2)", "second (1, 2)", "book 1 chapter 1")]
    assert len(found) == 12 and found[-1][2] == "book 1 chapter 4"


def test_a_verse_that_a_version_lacks_gives_no_pair(tmp_path):
    files = bibles(tmp_path)
    with gzip.open(tmp_path / "second.csv.gz", "wt", encoding="utf-8") as handle:
        handle.write('field\n"1","1","1","1","{only a note}"\n"1","1","4","2","other"\n')
    assert [pair[:2] for pair in verses.paraphrases(VERSIONS, files)] == [("first (4, 2)", "other"), ("other", "SECOND, (4 2)!")]


def test_whole_chapters_are_held_out(tmp_path, monkeypatch):
    found = embedded(monkeypatch, *bibles(tmp_path), kind="verses", versions=VERSIONS, system="", test=1)
    (chapter,) = {pair.group for pair in found.test}
    assert len(found.test) == 3 and len(found.train) == 9 and chapter not in {pair.group for pair in found.train}


def test_files_that_hold_no_verses_are_named(tmp_path):
    files = bibles(tmp_path)
    with pytest.raises(DataError, match="no file 'fourth.py' .*third.py, first.sqlite, second.csv.gz"):
        list(verses.paraphrases((*VERSIONS, "fourth.py"), files))
    with pytest.raises(DataError, match="fewer than two versions"):
        list(verses.paraphrases(VERSIONS[:1], files))
    damaged = {"first.sqlite": b"none", "second.csv.gz": b"none", "third.py": b"x = (", "empty.py": b"b = B(0, '', {}, {})", "odd.txt": b""}
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name} (holds no verses|is neither of)"):
            verses.read(tmp_path / name)


def test_recipes_without_pairs_are_refused(monkeypatch):
    with pytest.raises(DataError, match="'toy_sentences' generates no pairs"):
        pairs.load_pairs("generated", "toy_sentences")
    with pytest.raises(DataError, match="'sample' holds no pairs"):
        embedded(monkeypatch)
    with pytest.raises(DataError, match="'toy_pairs' does not offer source 'hub'"):
        pairs.load_pairs("hub", "toy_pairs")
