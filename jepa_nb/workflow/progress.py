"""One line for each finished job of ``make figures``: ``[12/31] about 7 min left   paradox/fig2_mi_and_rank``.

The handler listens to Snakemake's own log events, so it counts exactly the jobs that Snakemake found to be stale. The time
left is the planned seconds of what is missing, scaled by measured over planned seconds of what is done, over the cores.
Until a tenth of the plan is done the plan itself weighs in, so that a slow download does not multiply the estimate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from snakemake.common import NOTHING_TO_BE_DONE_MSG

REPEATS = ("RuleException", "Error in rule", "Exiting because a job execution failed",
           "WorkflowError:\nAt least one job did not complete")


def in_words(seconds: float) -> str:
    """A duration at the precision that an estimate has: ``40 s``, ``7 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(0, round(seconds / 10)) * 10} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Estimate:
    """Time left of a set of jobs.

    Args:
        planned: planned seconds of each job by name.
        cores: how many jobs run at a time.
    """

    def __init__(self, planned: Mapping[str, float], cores: int):
        self.waiting = dict(planned)
        self.total = len(planned)
        self.cores = cores
        self.prior = sum(planned.values()) / 10
        self.planned_done = self.measured_done = 0.0

    def finish(self, name: str, seconds: float) -> None:
        """Note that a job took ``seconds``."""
        self.planned_done += self.waiting.pop(name)
        self.measured_done += seconds

    def left(self) -> float:
        """Seconds until the last job ends, if the jobs that are missing keep the pace of those done."""
        weighed = self.planned_done + self.prior
        pace = (self.measured_done + self.prior) / weighed if weighed else 1.0
        return pace * sum(self.waiting.values()) / max(1, min(self.cores, len(self.waiting)))


class Progress(logging.Handler):
    """Prints the plan, each finished job with the time left, each failed one, and nothing else of Snakemake's log.

    Args:
        planned: planned seconds of each rule by rule name; rules that are not named cost nothing and aren't counted.
        titles: readable name of each of these rules.
        cores: how many jobs run at a time.
    """

    def __init__(self, planned: Mapping[str, float], titles: Mapping[str, str], cores: int, stream: TextIO, *,
                 clock: Callable[[], float] = time.monotonic):
        super().__init__(logging.INFO)
        self.planned, self.titles, self.cores, self.stream, self.clock = planned, titles, cores, stream, clock
        self.estimate = Estimate({}, cores)
        self.rules: dict[int, str] = {}
        self.started: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Take one log record of Snakemake; records without one of the events below are passed over."""
        event = str(getattr(record, "event", ""))
        if record.getMessage() == NOTHING_TO_BE_DONE_MSG:
            self._say("nothing to do: every figure is up to date")
        elif event == "run_info":
            self._plan(record.stats)
        elif event == "job_info" and record.rule_name in self.planned:
            self.rules[record.jobid] = record.rule_name
            self.started[record.rule_name] = self.clock()
        elif event == "job_error" and record.rule_name in self.planned:
            self._say(f"[failed] {self.titles[record.rule_name]}")
        elif event == "job_finished" and record.job_id in self.rules:
            self._finished(self.rules.pop(record.job_id))

    def _plan(self, stats: Mapping[str, int]) -> None:
        self.estimate = Estimate({rule: self.planned[rule] for rule in stats if rule in self.planned}, self.cores)
        self._say(f"{self.estimate.total} jobs, about {in_words(self.estimate.left())} on {self.cores} cores")

    def _finished(self, rule: str) -> None:
        seconds = self.clock() - self.started[rule]
        self.estimate.finish(rule, seconds)
        done, total = self.estimate.total - len(self.estimate.waiting), self.estimate.total
        self._say(f"[{done}/{total}] about {in_words(self.estimate.left())} left   {self.titles[rule]} ({seconds:.0f} s)")

    def _say(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


def show(logger: logging.Logger, progress: Progress) -> None:
    """Put ``progress`` on the terminal in place of Snakemake's own lines, which its log file keeps.

    Faults of the plan are still shown; what it repeats about a failed job, which named its own fault, is not.
    """
    for handler in logger.handlers:
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
            handler.setLevel(logging.WARNING)
            handler.addFilter(lambda record: not record.getMessage().startswith(REPEATS))
    logger.addHandler(progress)
