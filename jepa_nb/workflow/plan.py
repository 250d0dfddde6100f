"""Chunks of runs that the chosen notebooks need, and what is scheduled first. No torch: it is planned in a second.

Runs are keyed by content, so how they are cut into chunks never changes a result. A chunk holds runs that the same
notebooks share, so that one notebook alone trains nothing for another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jepa_nb import config
from jepa_nb.experiments import registry
from jepa_nb.experiments.registry import PlannedRun

LONGEST, SHORTEST = 600.0, 20.0  # seconds a chunk: no more is lost to a crash; less would mostly start Python
CHUNKS_A_CORE = 6  # so that the last chunks end together
PRIORITIES = {"first": 100, "headline": 50, "rest": 0}


@dataclass(frozen=True)
class Chunk:
    """Runs that one process trains one after the other.

    Attributes:
        keys: keys of the runs, in order.
        seconds: planned seconds of all of them.
        notebooks: the notebooks that read them.
        recipes: (recipe, source) pairs that they read.
        after: names of chunks that hold runs these build on.
    """

    keys: tuple[str, ...]
    seconds: float
    notebooks: frozenset[str]
    recipes: frozenset[tuple[str, str]] = frozenset()
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Hash of the keys."""
        return config.fingerprint(sorted(self.keys))


def priority(name: str) -> int:
    """Scheduling priority of a notebook: the first page, then the headline set, then the rest."""
    if name == registry.START:
        return PRIORITIES["first"]
    return PRIORITIES["headline" if registry.notebooks()[name].headline else "rest"]


def shared_runs(names: Iterable[str], tier: str) -> tuple[dict[str, PlannedRun], dict[str, frozenset[str]]]:
    """Every run that the notebooks need, by key and once, and which of the notebooks read it (also through ``needs``)."""
    runs: dict[str, PlannedRun] = {}
    readers: dict[str, set[str]] = defaultdict(set)
    for name in names:
        for run in registry.plan(name, tier):
            runs[run.key] = run
            readers[run.key].add(name)
    return runs, {key: frozenset(found) for key, found in readers.items()}


def chunks(names: Iterable[str], tier: str, cores: int) -> list[Chunk]:
    """Cut the runs of some notebooks into chunks, those that others build on first."""
    runs, readers = shared_runs(names, tier)
    levels = _levels(runs)
    groups: dict[tuple[int, tuple[str, ...]], list[PlannedRun]] = defaultdict(list)
    for key, run in runs.items():
        groups[levels[key], tuple(sorted(readers[key]))].append(run)
    total = sum(run.seconds for run in runs.values())
    target = min(LONGEST, max(SHORTEST, total / (CHUNKS_A_CORE * cores)))
    done: list[Chunk] = []
    home: dict[str, str] = {}
    for (_, notebooks), members in sorted(groups.items()):
        for part in _balanced(members, target):
            chunk = _chunk(part, notebooks, home)
            home |= {key: chunk.name for key in chunk.keys}
            done.append(chunk)
    return done


def _levels(runs: Mapping[str, PlannedRun]) -> dict[str, int]:
    """Length of the longest chain of runs below each run."""
    levels: dict[str, int] = {}

    def level(key: str) -> int:
        if key not in levels:
            levels[key] = 1 + max((level(need) for need in runs[key].needs if need in runs), default=-1)
        return levels[key]

    for key in runs:
        level(key)
    return levels


def _balanced(runs: list[PlannedRun], target: float) -> list[list[PlannedRun]]:
    """Fill bins of about ``target`` seconds: the longest run first, each into the emptiest bin."""
    count = min(len(runs), max(1, round(sum(run.seconds for run in runs) / target)))
    bins: list[list[PlannedRun]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for run in sorted(runs, key=lambda run: (-run.seconds, run.key)):
        emptiest = loads.index(min(loads))
        bins[emptiest].append(run)
        loads[emptiest] += run.seconds
    return bins


def _chunk(runs: list[PlannedRun], notebooks: tuple[str, ...], home: Mapping[str, str]) -> Chunk:
    after = {home[need] for run in runs for need in run.needs if need in home}
    seconds = sum(run.seconds for run in runs)
    recipes = frozenset(recipe for run in runs for recipe in run.recipes)
    return Chunk(tuple(run.key for run in runs), seconds, frozenset(notebooks), recipes, tuple(sorted(after)))
