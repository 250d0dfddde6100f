"""Progress in a log: one line per tenth of the work, with the steps and the time left, and all steps are passed through.

1. Ten lines for a long work, one a step for a short one, none for none. 2. A resumed work shows only what is left. 3. In a
notebook a bar takes their place.
"""

from __future__ import annotations

import itertools
import re

import pytest

from jepa_nb.training import progress

LINE = re.compile(r"^work: (\d+) % \((\d+)/(\d+) steps\), about (\d+) s left$")


def lines(first: int, total: int, capsys) -> list[tuple[int, ...]]:
    assert list(progress.steps(first, total, "work")) == list(range(first, total))
    return [tuple(map(int, LINE.match(line).groups())) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("total", [10, 45, 450, 23_430])
def test_one_line_per_tenth(total, capsys):
    found = lines(0, total, capsys)
    assert [percent for percent, *_ in found] == list(range(10, 101, 10))
    assert all(done == -(-percent * total // 100) and shown == total for percent, done, shown, _left in found)


@pytest.mark.parametrize(("total", "percents"), [(0, []), (1, [100]), (3, [30, 60, 100]), (6, [10, 30, 50, 60, 80, 100])])
def test_short_work_has_a_line_a_step(total, percents, capsys):
    assert [percent for percent, *_ in lines(0, total, capsys)] == percents


def test_resumed_work_shows_what_is_left(capsys):
    assert [(percent, done) for percent, done, *_ in lines(230, 450, capsys)] == [
        (60, 270), (70, 315), (80, 360), (90, 405), (100, 450)]
    assert lines(450, 450, capsys) == []


def test_time_left_follows_the_speed_since_the_start(capsys, monkeypatch):
    clock = itertools.count(0, 2)  # two seconds a look
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    list(progress.steps(50, 100, "work"))
    found = [tuple(map(int, LINE.match(line).groups())) for line in capsys.readouterr().out.splitlines()]
    assert found[0] == (60, 60, 100, round(2 / 10 * 40)) and found[-1] == (100, 100, 100, 0)


def test_a_step_is_counted_when_it_is_done(capsys):
    work = progress.steps(0, 10, "work")
    next(work)
    assert capsys.readouterr().out == ""
    next(work)
    assert "10 % (1/10 steps)" in capsys.readouterr().out


def test_in_a_notebook_a_bar_takes_the_place_of_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    assert list(progress.steps(3, 8, "work")) == [3, 4, 5, 6, 7]
    shown = capsys.readouterr()
    assert shown.out == "" and "work" in shown.err


def test_a_plain_process_is_no_notebook():
    assert not progress.in_notebook()
