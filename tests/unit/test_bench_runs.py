"""The step bench checks equal values, and its shares are those of one whole, at smoke sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

BENCH = Path(__file__).resolve().parents[1] / "bench" / "bench_step.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_step", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_part_of_a_step_is_reported(bench):
    for row in bench.rows("smoke", steps=2):
        assert set(row["share"]) == set(bench.PARTS) and sum(row["share"].values()) == pytest.approx(1.0)
        assert 0 < row["train_ms"] < row["ms"]


def test_a_step_that_computes_something_else_is_refused(bench, monkeypatch):
    training = bench.prepared(bench.scaled(bench.TIERS["smoke"].image), bench.TIERS["smoke"].masked_lm)
    bench.check_equal(training)
    monkeypatch.setattr(bench, "by_networks", lambda *_: torch.tensor(0.0))
    with pytest.raises(AssertionError, match="its networks"):
        bench.check_equal(training)
