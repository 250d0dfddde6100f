"""The step benches check equal values, and the shares of a step are those of one whole, at smoke sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

BENCHES = Path(__file__).resolve().parents[1] / "bench"


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench():
    return loaded("bench_step")


@pytest.fixture(scope="module")
def language_bench():
    found = loaded("bench_llm_jepa_step")
    found.PADDED = 48
    return found


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


def test_all_layouts_of_llm_jepa_are_the_same_step(language_bench):
    model = language_bench.tiny_llama(vocab_size=40, width=16, depth=1, heads=2, max_length=48, seed=0)
    examples = language_bench.pairs(40, count=2, lengths=(20, 12, 9))
    language_bench.check_equal(model, examples)
    spent = language_bench.seconds(model, examples, rounds=1)
    assert set(spent) == set(language_bench.STEPS) and all(len(times) == 1 and times[0] > 0 for times in spent.values())


def test_another_loss_or_gradient_is_refused(language_bench, monkeypatch):
    model = language_bench.tiny_llama(vocab_size=40, width=16, depth=1, heads=2, max_length=48, seed=0)
    examples = language_bench.pairs(40, count=2, lengths=(20, 12, 9))
    right = language_bench.STEPS["packed"]
    monkeypatch.setitem(language_bench.STEPS, "packed", lambda *given: 2 * right(*given))
    with pytest.raises(AssertionError, match="packed: loss"):
        language_bench.check_equal(model, examples)
    monkeypatch.setitem(language_bench.STEPS, "packed", lambda *given: 2 * right(*given) - right(*given).detach())
    with pytest.raises(AssertionError, match="packed: another gradient"):
        language_bench.check_equal(model, examples)
