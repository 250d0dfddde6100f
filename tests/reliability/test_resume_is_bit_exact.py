"""A run that was killed again and again equals the uninterrupted one, bit for bit.

1. Text, image and masked LM, each killed by SIGKILL at random steps. 2. Killed at the awkward places: between backward pass
and optimiser, between optimiser and EMA, between the two files of a checkpoint, while a file is renamed.
3. What a killed run leaves is used, not trained again. 4. A run that was killed by another process at no chosen place.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time

import pytest
import small_runs
from small_runs import PER_EPOCH, STEPS

from jepa_nb import paths
from jepa_nb.training import store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Uninterrupted runs by modality, trained in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JEPA_NB_BUILD", str(tmp_path_factory.mktemp("whole")))
        return {modality: small_runs.job(modality).run() for modality in ("text", "image", "masked_lm")}


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path / "build"))
    return tmp_path


def finish(modality: str, build) -> tuple[store.Run, str]:
    """Run to the end in a child; the finished run and what the child printed."""
    assert small_runs.ended(small_runs.start(modality, build / "last.log")) == 0
    return store.find(small_runs.job(modality).spec.key), (build / "last.log").read_text()


def first_shown(printed: str) -> int:
    """Number of steps done in the first line of progress of the JEPA."""
    return int(re.search(r"-JEPA.*\((\d+)/", printed)[1])


@pytest.mark.parametrize("modality", ["text", "image"])
def test_killed_at_random_steps(modality, whole, build):
    draw, done = random.Random(modality), 0
    while done + PER_EPOCH < STEPS - PER_EPOCH:
        count = min(draw.randint(2 * PER_EPOCH, 5 * PER_EPOCH), STEPS - done - 1)  # steps from the last checkpoint on
        child = small_runs.start(modality, build / "log", "between optimiser and EMA", count)
        assert small_runs.ended(child) == -signal.SIGKILL
        done = (done + count - 1) // PER_EPOCH * PER_EPOCH
        kept = sorted((paths.runs() / f"{small_runs.job(modality).spec.key}.partial").glob("step-*.json"))
        assert kept[-1].stem == f"step-{done:08d}"
    found, printed = finish(modality, build)
    assert first_shown(printed) > done
    small_runs.same(found, whole[modality])


@pytest.mark.parametrize(("place", "count"), [("between the files of a checkpoint", 2), ("while a file is renamed", 3)])
def test_killed_at_awkward_places(place, count, whole, build):
    child = small_runs.start("image", build / "log", place, count)
    assert small_runs.ended(child) == -signal.SIGKILL
    found, _printed = finish("image", build)
    small_runs.same(found, whole["image"])
    assert not (paths.runs() / f"{found.key}.partial").exists()


def test_the_masked_lm_killed_in_training(whole, build):
    child = small_runs.start("masked_lm", build / "log", "between backward pass and optimiser", 6)
    assert small_runs.ended(child) == -signal.SIGKILL
    found, _printed = finish("masked_lm", build)
    small_runs.same(found, whole["masked_lm"])


def test_killed_from_outside(whole, build):
    child = small_runs.start("image", build / "log")
    partial = paths.runs() / f"{small_runs.job('image').spec.key}.partial"
    while child.exitcode is None and len(list(partial.glob("step-*.json"))) < 2:
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    assert small_runs.ended(child) == -signal.SIGKILL
    found, printed = finish("image", build)
    assert first_shown(printed) > 2 * PER_EPOCH
    small_runs.same(found, whole["image"])
