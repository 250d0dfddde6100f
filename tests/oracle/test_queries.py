"""Claims: a query's output is what sqlite3's command line prints, value by value; two queries are the same when they print the same rows
in the same order; a failing query equals nothing, except in the published rule; a generated query can neither write, nor open another
file, nor read settings, nor run for ever, nor print without end; the connection is given back as it was."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time

import pytest

from jepa_nb.errors import DataError
from jepa_nb.metrics import queries
from jepa_nb.metrics.queries import published_same_result, same_result

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
TABLE = """
CREATE TABLE singer (id INTEGER, name TEXT, age REAL);
INSERT INTO singer VALUES (1, 'Ana', 30.0), (2, 'Bob', 41.5), (3, NULL, 0.1), (4, 'é|x', 1e20);
"""
# what `sqlite3 database "SELECT ..."` prints, copied from its command line by hand
PRINTED = {
    "SELECT * FROM singer": "1|Ana|30.0\n2|Bob|41.5\n3||0.1\n4|é|x|1.0e+20\n",
    "SELECT id FROM singer ORDER BY id DESC": "4\n3\n2\n1\n",
    "SELECT count(*), avg(age) FROM singer WHERE id < 3": "2|35.75\n",
    "SELECT name FROM singer WHERE id = 3": "\n",
    "SELECT name FROM singer WHERE id = 9": "",
    "SELECT 1, 1.0, '1', '1.0', NULL, ''": "1|1.0|1|1.0||\n",
    "SELECT 7 / 2, 7 / 2.0, 1.0 / 3, 0.1 + 0.2": "3|3.5|0.333333333333333|0.3\n",
    "SELECT -0.0, 100.0, -2.5, 1234567.891": "0.0|100.0|-2.5|1234567.891\n",
    "SELECT 1e14, 1e15, 1e16, 1e-4, 1e-5, 1.5e300": "100000000000000.0|1.0e+15|1.0e+16|0.0001|1.0e-05|1.5e+300\n",
    "SELECT 9e999, -9e999": "Inf|-Inf\n",
    "SELECT 9223372036854775807, -1": "9223372036854775807|-1\n",
    "SELECT x'4142', 'a' || char(10) || 'b'": "AB|a\nb\n",
    "SELECT 'a' || char(0) || 'b', x'410042', x'00'": "a|A|\n",
    "SELECT 1; -- with a remark": "1\n",
    "VALUES (1, 2), (3, 4)": "1|2\n3|4\n",
}
FAILING = {
    "syntax": "SELEC 1", "unknown table": "SELECT * FROM band", "unknown column": "SELECT wage FROM singer", "empty": "", "remark": "-- nothing",
    "two statements": "SELECT 1; SELECT 2", "nul": "SELECT 1\0", "shell command": ".tables", "words": "I do not know.",
    "while running": "SELECT abs(-9223372036854775807 - 1)", "parameter": "SELECT ?",
}
FORBIDDEN = {
    "insert": "INSERT INTO singer VALUES (5, 'Eve', 1.0)", "insert and return": "INSERT INTO singer VALUES (5, 'Eve', 1.0) RETURNING id",
    "update": "UPDATE singer SET age = 0", "delete": "DELETE FROM singer", "drop": "DROP TABLE singer", "create": "CREATE TABLE band (id)",
    "temporary": "CREATE TEMP TABLE band (id)", "view": "CREATE VIEW band AS SELECT 1", "alter": "ALTER TABLE singer RENAME TO band",
    "begin": "BEGIN", "commit": "COMMIT", "savepoint": "SAVEPOINT s", "vacuum": "VACUUM", "reindex": "REINDEX", "analyze": "ANALYZE",
    "pragma": "PRAGMA table_info(singer)", "pragma writes": "PRAGMA user_version = 7",
    "pragma function": "SELECT * FROM pragma_table_info('singer')",
    "load_extension": "SELECT load_extension('mod_spatialite')",
}


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "concert singer.sqlite"
    with sqlite3.connect(place) as connection:
        connection.executescript(TABLE)
    connection.close()
    return place


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:")
    opened.executescript(TABLE)
    yield opened
    opened.close()


def printed(connection, query):
    return queries._outputs(connection, (query,), 2.0)[0]


@pytest.mark.parametrize("query", PRINTED)
def test_rows_are_printed_as_by_the_command_line(connection, query):
    assert printed(connection, query) == PRINTED[query]


def test_the_expected_strings_are_the_command_lines_own(file):
    if shutil.which("sqlite3") is None:
        pytest.skip("needs sqlite3's command line, which this machine does not have")
    version = subprocess.run(["sqlite3", "--version"], capture_output=True, text=True, timeout=20, check=True).stdout.split()[0]
    if tuple(map(int, version.split("."))) >= (3, 50):
        pytest.skip(f"sqlite3's command line {version} escapes control characters and may print other digits")
    for query, wanted in PRINTED.items():
        found = subprocess.run(["sqlite3", str(file), query], capture_output=True, text=True, timeout=20, check=True)
        assert found.stdout == wanted, query


def test_the_same_rows_in_the_same_order_are_the_same(connection):
    ordered = "SELECT name FROM singer WHERE id < 3 ORDER BY id"
    assert same_result(connection, "SELECT name FROM singer WHERE age IN (30, 41.5) ORDER BY age", ordered)
    assert same_result(connection, ordered + ";", ordered)
    assert not same_result(connection, ordered + " DESC", ordered)
    assert not same_result(connection, "SELECT name, id FROM singer", "SELECT id, name FROM singer")
    assert not same_result(connection, "SELECT 1", "SELECT 1.0")
    assert same_result(connection, "SELECT '1'", "SELECT 1") and same_result(connection, "SELECT NULL", "SELECT ''")
    assert not same_result(connection, "SELECT '1e+20'", "SELECT 1e20") and same_result(connection, "SELECT -0.0", "SELECT 0.0")
    assert same_result(connection, "SELECT 1 WHERE 0", "SELECT 2 WHERE 0")
    assert not same_result(connection, "SELECT NULL", "SELECT 1 WHERE 0")


@pytest.mark.parametrize("name", [*FAILING, *FORBIDDEN])
def test_a_failing_query_equals_nothing_and_in_the_published_rule_another_failure(connection, name):
    query = (FAILING | FORBIDDEN)[name]
    good, nothing = "SELECT id FROM singer", "SELECT id FROM singer WHERE 0"
    for other in (query, good, nothing):
        assert not same_result(connection, query, other) and not same_result(connection, other, query)
    assert published_same_result(connection, query, query) and published_same_result(connection, query, "SELEC 1")
    assert published_same_result(connection, query, nothing)
    assert not published_same_result(connection, query, good) and published_same_result(connection, good, good)


@pytest.mark.parametrize("query", FORBIDDEN.values(), ids=list(FORBIDDEN))
def test_a_generated_query_changes_nothing(file, query):
    before = file.read_bytes()
    for database in (file, str(file)):
        assert not same_result(database, query, query)
    opened = sqlite3.connect(file)
    state = list(opened.iterdump())
    assert not same_result(opened, query, query) and not opened.in_transaction
    assert list(opened.iterdump()) == state and opened.execute("PRAGMA user_version").fetchone() == (0,)
    opened.close()
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("statement", ["ATTACH '{}' AS more", "VACUUM INTO '{}'", "DETACH main"])
def test_no_other_file_is_opened_or_written(file, statement):
    other = file.parent / "other.sqlite"
    query = statement.format(other)
    opened = sqlite3.connect(file)
    assert not same_result(opened, query, query) and not same_result(file, query, query)
    opened.close()
    assert not other.exists()


def test_a_query_that_never_ends_is_stopped_and_fails(connection):
    begun = time.monotonic()
    assert not same_result(connection, ENDLESS, "SELECT 1", seconds=0.2)
    assert 0.2 <= time.monotonic() - begun < 2
    assert same_result(connection, "SELECT 1", "SELECT 1", seconds=0.2)
    assert published_same_result(connection, ENDLESS, "SELEC 1", seconds=0.05)


def test_the_limit_also_holds_while_rows_come(connection):
    endless_rows = ENDLESS.replace("count(*)", "1")
    begun = time.monotonic()
    assert not same_result(connection, "SELECT 1", endless_rows, seconds=0.2)
    assert time.monotonic() - begun < 2


def test_a_query_that_prints_too_much_fails(connection, monkeypatch):
    monkeypatch.setattr(queries, "MOST_CHARACTERS", 1000)
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT 'a' FROM n"
    assert printed(connection, rows.format(500)) == "a\n" * 500  # 1,000 characters
    assert printed(connection, rows.format(501)) is None
    assert printed(connection, "SELECT length(randomblob(900))") == "900\n"
    assert printed(connection, "SELECT length(randomblob(1100))") is None


def test_the_connection_is_given_back_as_it_was(connection):
    def in_a_list(cursor, row):
        return [row]

    connection.row_factory, connection.text_factory = in_a_list, bytes
    assert same_result(connection, "SELECT 1, 2", "SELECT '1|2'")  # whatever the owner makes of a row
    longest = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    assert same_result(connection, "SELECT name FROM singer", "SELECT name FROM singer")
    assert not same_result(connection, ENDLESS, ENDLESS, seconds=0.05)
    assert connection.row_factory is in_a_list and connection.text_factory is bytes
    assert connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == longest
    connection.execute("INSERT INTO singer VALUES (5, 'Eve', 1.0)")
    assert connection.execute("SELECT name FROM singer WHERE id = 5").fetchone() == [(b"Eve",)]


def test_text_that_is_not_utf_8_does_not_stop_a_comparison(connection):
    assert same_result(connection, "SELECT CAST(x'41FF' AS TEXT)", "SELECT CAST(x'41FF' AS TEXT)")
    assert not same_result(connection, "SELECT CAST(x'41FF' AS TEXT)", "SELECT 'A'")


def test_a_file_is_read_or_named(file, tmp_path):
    assert same_result(file, "SELECT count(*) FROM singer", "SELECT 4")
    with pytest.raises(DataError, match="absent.sqlite is missing"):
        same_result(tmp_path / "absent.sqlite", "SELECT 1", "SELECT 1")
    with pytest.raises(DataError, match="is missing"):
        published_same_result(tmp_path, "SELECT 1", "SELECT 1")
    assert not (tmp_path / "absent.sqlite").exists()
