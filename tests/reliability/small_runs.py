"""Small real trainings of Paper A for the tests of reliability, here or in children that can be killed.

Children are forked from a server that has imported everything that trains, so that each starts in a fraction of a second.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch

from jepa_nb import files
from jepa_nb.experiments.paradox import diagnostics, jobs
from jepa_nb.training import checkpoint, store

# 36 steps in 12 epochs, a checkpoint an epoch, three evaluations of which two probe the irreducible variance, and a queue
# that reaches back over 16 steps, so that a resumed run that lost it would show
CHANGES = {"epochs": 12, "warmup_epochs": 8, "eval_epochs": 6.0, "probe_epochs": 12.0, "queue": 512}
STEPS, PER_EPOCH = 36, 3

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["jepa_nb.experiments.paradox.execute", "scipy.stats", "pyarrow.parquet"])


def job(modality: str, **changes: object) -> jobs.Job:
    """One run of the smoke tier with the sizes above; ``"masked_lm"`` is the one that the text run builds on."""
    planned = jobs.jobs("smoke", ["scaled"], seeds=[0], overrides=CHANGES | changes)
    found = {each.spec.config["modality"]: each for each in planned}
    return found["text"].needs[0] if modality == "masked_lm" else found[modality]


def same(one: store.Run, other: store.Run) -> None:
    """Assert that two finished runs are equal bit for bit."""
    pd.testing.assert_frame_equal(one.table, other.table, check_exact=True)
    assert one.table["value"].to_numpy().tobytes() == other.table["value"].to_numpy().tobytes()
    assert (one.folder / store.WEIGHTS).read_bytes() == (other.folder / store.WEIGHTS).read_bytes()
    assert np.isfinite(one.table["value"]).all()


def at_call(count: int, action: Callable[[], None], wrapped: Callable) -> Callable:
    """``wrapped``, with ``action`` just before its ``count``-th call."""
    calls = iter(range(1, 1_000_000))

    def counted(*arguments: object, **options: object) -> object:
        if next(calls) == count:
            action()
        return wrapped(*arguments, **options)

    return counted


PLACES = {"between optimiser and EMA": (diagnostics.ema, "update"),
          "between backward pass and optimiser": (torch.nn.utils, "clip_grad_norm_"),
          "before a checkpoint": (checkpoint, "save"), "between the files of a checkpoint": (files, "write_text"),
          "while a file is renamed": (os, "replace"), "at publication": (store.provenance, "commit")}


@contextmanager
def stopped(place: str, count: int, action: Callable[[], None]) -> Iterator[None]:
    """Do ``action`` just before the ``count``-th time that training comes to a place."""
    owner, name = PLACES[place]
    with mock.patch.object(owner, name, at_call(count, action, getattr(owner, name))):
        yield


def die() -> None:
    """Kill this process at once, as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def _train(environment: dict[str, str], modality: str, output: str, place: str, count: int) -> None:
    os.environ.update(environment)
    sys.stdout = sys.stderr = open(output, "w", buffering=1)  # noqa: SIM115 - the child's own until it ends
    with stopped(place, count, die):
        job(modality).run()


def start(modality: str, output: Path, place: str = "before a checkpoint", count: int = -1) -> multiprocessing.Process:
    """Start a child that trains one run, and kills itself at the ``count``-th coming to a place (never, by default)."""
    environment = {name: os.environ[name] for name in ("JEPA_NB_BUILD", "JEPA_NB_HOME", "JEPA_NB_TIER", "OMP_NUM_THREADS")}
    child = CHILDREN.Process(target=_train, args=(environment, modality, str(output), place, count))
    child.start()
    return child


def ended(child: multiprocessing.Process) -> int:
    """Exit status of a child, waiting for it; ``-9`` after SIGKILL."""
    child.join(120)
    assert child.exitcode is not None, "the child hangs"
    return child.exitcode
