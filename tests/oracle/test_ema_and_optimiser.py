"""A training step equals the same step written out plainly.

1. The target encoder equals an exponential moving average computed in float64 by a loop. 2. AdamW with clipping, schedules and
EMA equals textbook formulas in float64, for both modalities over several steps. 3. Clipping acts: gradients come in above the
limit. 4. The target encoder and the optimiser's list of parameters are what they should be.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from jepa_nb import seeds
from jepa_nb.device import resolve
from jepa_nb.experiments.paradox.config import TIERS
from jepa_nb.experiments.paradox.diagnostics import Training
from jepa_nb.training import ema


def test_the_target_equals_a_moving_average_in_float64():
    online, target = (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)) for _ in range(2))
    average = [value.detach().double() for value in target.parameters()]
    generator = seeds.generator(0, "ema test")
    for _ in range(50):
        for value in online.parameters():
            value.data.add_(torch.randn(value.shape, generator=generator))
        ema.update(target, online, 0.9)
        average = [0.9 * old + 0.1 * new.detach().double() for old, new in zip(average, online.parameters())]
    for value, expected in zip(target.parameters(), average):
        assert torch.allclose(value.double(), expected, atol=1e-5)


@pytest.mark.parametrize(("decay", "which"), [(1.0, 1), (0.0, 0)])
def test_decay_one_keeps_and_decay_zero_copies(decay, which):
    networks = [nn.Linear(2, 2), nn.Linear(2, 2)]
    expected = copy.deepcopy(networks[which].state_dict())
    ema.update(networks[1], networks[0], decay)
    assert all(torch.allclose(value, expected[name]) for name, value in networks[1].state_dict().items())


class Plain:
    """AdamW (betas .9 and .999, eps 1e-8), clipping of the global norm, schedules and EMA in float64, by the book."""

    def __init__(self, training: Training):
        self.config = training.config
        self.values = [value.detach().double().clone() for value in training.trained]
        self.target = [value.detach().double().clone() for value in training.jepa.target_encoder.parameters()]
        self.first, self.second = ([torch.zeros_like(value) for value in self.values] for _ in range(2))
        self.norms: list[float] = []

    def rates(self, index: int) -> tuple[float, float]:
        c = self.config
        rest = (index - c.warmup) / (c.steps - c.warmup - 1)
        rate = (c.lr_start + (c.lr_peak - c.lr_start) * index / c.warmup if index < c.warmup
                else c.lr_final + (c.lr_peak - c.lr_final) * (1 + math.cos(math.pi * rest)) / 2)
        decay = c.wd_final + (c.wd_start - c.wd_final) * (1 + math.cos(math.pi * index / (c.steps - 1))) / 2
        return rate, decay

    def step(self, index: int, gradients: list[torch.Tensor]) -> None:
        rate, decay = self.rates(index)
        norm = math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))
        self.norms.append(norm)
        factor = min(1.0, self.config.clip / norm)
        for place, gradient in enumerate(gradients):
            clipped = gradient.double() * factor
            self.first[place] = 0.9 * self.first[place] + 0.1 * clipped
            self.second[place] = 0.999 * self.second[place] + 0.001 * clipped ** 2
            mean = self.first[place] / (1 - 0.9 ** (index + 1))
            spread = (self.second[place] / (1 - 0.999 ** (index + 1))).sqrt() + 1e-8
            self.values[place] = self.values[place] * (1 - rate * decay) - rate * mean / spread
        online = self.values[:len(self.target)]  # the context encoder's parameters stand first
        self.target = [self.config.ema * old + (1 - self.config.ema) * new for old, new in zip(self.target, online)]


def raw_gradients(training: Training, index: int) -> list[torch.Tensor]:
    """Gradients of the step's loss before clipping, from the plain definition of the loss."""
    batch = training.task.batch("train", training._rows(index), seeds.generator(training.config.seed, "masks", index))
    found = training.task.predict(batch)
    loss = (found.pred - found.target.detach()).square().sum(dim=1).mean()
    return list(torch.autograd.grad(loss, training.trained))


@pytest.mark.parametrize("modality", ["text", "image"])
def test_training_steps_equal_the_formulas(modality):
    config = replace(getattr(TIERS["smoke"], modality), lr_start=1e-3, lr_peak=4e-3)
    training = Training(config, resolve("cpu"))
    plain = Plain(training)
    for index in range(config.steps):
        gradients = raw_gradients(training, index)
        rows = training.step(index)
        plain.step(index, gradients)
        logged = {row["metric"]: row["value"] for row in rows}
        assert logged["gradient_norm"] == pytest.approx(plain.norms[-1], rel=1e-4)
    # Where a gradient is about 0 Adam divides rounding by rounding, so single weights may differ by a step.
    for got, expected in ((training.trained, plain.values), (training.jepa.target_encoder.parameters(), plain.target)):
        got, expected = (torch.cat([value.detach().double().flatten() for value in values]) for values in (got, expected))
        assert float((got - expected).abs().quantile(0.99)) < 2e-5
    assert max(plain.norms) > config.clip


def test_what_is_trained_and_what_is_averaged():
    training = Training(TIERS["smoke"].text, resolve("cpu"))
    jepa = training.jepa
    held = {id(value) for group in training.optimizer.param_groups for value in group["params"]}
    assert held == {id(value) for part in (jepa.context_encoder, jepa.predictor) for value in part.parameters()}
    assert not any(value.requires_grad for value in jepa.target_encoder.parameters())
    before = [value.clone() for value in jepa.target_encoder.parameters()]
    training.step(0)
    assert all(value.grad is None for value in jepa.target_encoder.parameters())
    assert any(not torch.equal(old, new) for old, new in zip(before, jepa.target_encoder.parameters()))
