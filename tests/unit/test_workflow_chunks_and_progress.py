"""The plan of `make figures`.

1. every run is in exactly one chunk, after the runs it builds on;
2. chunks fill the cores evenly and none is longer than ten minutes, a single longer run apart;
3. one notebook alone trains nothing for another;
4. the first page and the headline set are scheduled first;
5. the time left follows the pace of what is done, and a line is printed for each finished or failed job.
"""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.experiments import registry
from jepa_nb.experiments.registry import PlannedRun
from jepa_nb.workflow import plan
from jepa_nb.workflow.progress import Estimate, Progress, in_words, show


def run(key: str, seconds: float = 60.0, needs: tuple[str, ...] = ()) -> PlannedRun:
    return PlannedRun(key, key, seconds, needs, (("imdb", "embedded"),))


def cut(monkeypatch: pytest.MonkeyPatch, plans: dict[str, list[PlannedRun]], cores: int = 2) -> list[plan.Chunk]:
    monkeypatch.setattr(registry, "plan", lambda name, tier: plans[name])
    return plan.chunks(plans, "laptop", cores)


def test_twenty_five_minute_runs_on_two_cores_make_chunks_of_about_two_minutes(monkeypatch):
    found = cut(monkeypatch, {"a/x": [run(f"k{index}") for index in range(25)]})
    assert 10 <= len(found) <= 14
    assert {chunk.seconds for chunk in found} <= {60.0, 120.0, 180.0}


def test_no_chunk_is_longer_than_ten_minutes_but_a_single_longer_run(monkeypatch):
    found = cut(monkeypatch, {"a/x": [run(f"k{index}", 550) for index in range(40)] + [run("long", 4000)]}, cores=1)
    assert all(chunk.seconds <= plan.LONGEST or len(chunk.keys) == 1 for chunk in found)
    assert ("long",) in [chunk.keys for chunk in found]


def test_short_runs_share_one_process(monkeypatch):
    assert len(cut(monkeypatch, {"a/x": [run(f"k{index}", 1.0) for index in range(10)]})) == 1


def test_a_notebook_alone_trains_nothing_for_another(monkeypatch):
    plans = {"a/x": [run("shared", 1), run("x", 1)], "a/y": [run("shared", 1), run("y", 1)]}
    assert {chunk.notebooks: set(chunk.keys) for chunk in cut(monkeypatch, plans)} == {
        frozenset({"a/x", "a/y"}): {"shared"}, frozenset({"a/x"}): {"x"}, frozenset({"a/y"}): {"y"}}


def test_a_chunk_names_the_recipes_its_runs_read(monkeypatch):
    assert cut(monkeypatch, {"a/x": [run("k")]})[0].recipes == {("imdb", "embedded")}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0.1, 900), st.integers(0, 6)), min_size=1, max_size=30), st.integers(1, 16))
def test_each_run_is_in_one_chunk_after_what_it_builds_on(drawn, cores):
    runs = [run(f"k{index}", seconds, (f"k{index - back}",) if 0 < back <= index else ())
            for index, (seconds, back) in enumerate(drawn)]
    with pytest.MonkeyPatch.context() as patch:
        found = cut(patch, {"a/x": runs}, cores)
    home = {key: chunk.name for chunk in found for key in chunk.keys}
    order = [chunk.name for chunk in found]
    assert sorted(home) == sorted(each.key for each in runs) and sum(len(chunk.keys) for chunk in found) == len(runs)
    for chunk in found:
        needed = {home[need] for each in runs if each.key in chunk.keys for need in each.needs}
        assert set(chunk.after) == needed and all(order.index(name) < order.index(chunk.name) for name in needed)


def test_the_first_page_comes_first_and_the_headline_set_next(monkeypatch):
    specs = {name: SimpleNamespace(headline=name != "a/y") for name in (registry.START, "a/x", "a/y")}
    monkeypatch.setattr(registry, "notebooks", lambda: specs)
    assert plan.priority(registry.START) > plan.priority("a/x") > plan.priority("a/y")


def test_the_time_left_follows_the_pace_and_the_cores():
    estimate = Estimate({f"j{index}": 60.0 for index in range(10)}, cores=2)
    assert estimate.left() == 300
    for index in range(4):
        estimate.finish(f"j{index}", 120.0)
    # measured 480 s for planned 240 s, with a tenth of the plan (60 s) weighing in at pace 1: 540 / 300
    assert estimate.left() == pytest.approx(1.8 * 360 / 2)
    for index in range(4, 9):
        estimate.finish(f"j{index}", 120.0)
    assert estimate.left() == pytest.approx((540 + 600) / 600 * 60)  # one job left occupies one core


def test_one_slow_download_does_not_multiply_the_estimate():
    estimate = Estimate({"data": 5.0} | {f"j{index}": 60.0 for index in range(20)}, cores=2)
    estimate.finish("data", 60.0)
    assert estimate.left() < 1.6 * 600


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (43, "40 s"), (420, "7 min"), (9000, "2.5 h")])
def test_durations_are_told_at_the_precision_of_an_estimate(seconds, words):
    assert in_words(seconds) == words


def events(progress: Progress, *records: dict) -> list[str]:
    logger = logging.Logger("snakemake")
    show(logger, progress)
    for record in records:
        message = record.pop("message", "")
        logger.info(message, extra=record)
    return progress.stream.getvalue().splitlines()


def progress(now: list[float]) -> Progress:
    rules = ("one", "two", "done")
    titles = {rule: f"a/{rule}" for rule in rules}
    return Progress(dict.fromkeys(rules, 60.0), titles, 1, io.StringIO(), clock=lambda: now.pop(0))


def test_each_finished_job_prints_its_number_and_the_time_left():
    lines = events(progress([0.0, 60.0, 60.0]),
                   {"event": "run_info", "stats": {"one": 1, "two": 1, "all": 1, "total": 3}},
                   {"event": "job_info", "jobid": 7, "rule_name": "one"}, {"event": "job_finished", "job_id": 7},
                   {"event": "job_info", "jobid": 8, "rule_name": "two"}, {"event": "job_error", "rule_name": "two"})
    assert lines == ["2 jobs, about 2 min on 1 cores", "[1/2] about 60 s left   a/one (60 s)", "[failed] a/two"]


def test_nothing_to_do_is_said():
    message = "Nothing to be done (all requested files are present and up to date)."
    assert events(progress([]), {"message": message}) == ["nothing to do: every figure is up to date"]


def test_a_fault_of_the_plan_is_shown_and_what_repeats_a_job_is_not():
    logger, terminal = logging.Logger("snakemake"), io.StringIO()
    logger.addHandler(logging.StreamHandler(terminal))
    show(logger, progress([]))
    for message in ("Building DAG of jobs...", "WorkflowError:\nFailed to create output directory /x.", "Error in rule one, jobid: 2",
                    "WorkflowError:\nAt least one job did not complete successfully."):
        (logger.info if message.startswith("Building") else logger.error)(message)
    assert terminal.getvalue() == "WorkflowError:\nFailed to create output directory /x.\n"
