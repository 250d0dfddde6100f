"""Schedules agree with their closed forms, and the scaling rule keeps what it says it keeps.

1. Warm-up, cosine and straight line go through the values that the protocol gives. 2. The scaled learning rate times the width
is constant. 3. The scaled EMA decays by one half in the same fraction of training. 4. ``scaled`` changes those and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest

from jepa_nb.experiments.paradox.config import PAPER_TEXT, TIERS, few_documents, scaled, single_pass
from jepa_nb.training import schedule


def test_cosine_goes_from_start_to_final_by_half_a_cosine():
    values = [schedule.cosine(step, 101, 0.04, 0.4) for step in range(101)]
    assert values[0] == pytest.approx(0.04) and values[-1] == pytest.approx(0.4) and values[50] == pytest.approx(0.22)
    assert values[25] == pytest.approx(0.04 + 0.36 * (1 - math.sqrt(0.5)) / 2)
    assert values == sorted(values)


def test_warmup_is_linear_and_then_cosine():
    def rate(step):
        return schedule.warmup_cosine(step, 151, 100, 2e-4, 1e-3, 1e-6)

    assert [rate(step) for step in (0, 25, 50, 75)] == pytest.approx([2e-4, 4e-4, 6e-4, 8e-4])
    assert rate(100) == pytest.approx(1e-3) and rate(125) == pytest.approx((1e-3 + 1e-6) / 2) and rate(150) == pytest.approx(1e-6)
    assert max(map(rate, range(151))) == rate(100)


def test_without_warmup_and_past_the_end():
    assert schedule.warmup_cosine(0, 10, 0, 9.0, 1.0, 0.0) == 1.0
    assert schedule.cosine(99, 10, 1.0, 0.25) == pytest.approx(0.25) and schedule.cosine(0, 1, 1.0, 0.0) == 1.0
    assert schedule.linear(99, 10, 1.0, 0.25) == 0.25


def test_linear_is_a_straight_line():
    assert [schedule.linear(step, 5, 0.996, 1.0) for step in range(5)] == pytest.approx([0.996, 0.997, 0.998, 0.999, 1.0])


@pytest.mark.parametrize("width", [16, 96, 768, 1024, 2048])
def test_learning_rate_times_width_is_kept(width):
    assert schedule.scaled_learning_rate(1e-3, 1024, width) * width == pytest.approx(1e-3 * 1024)


@pytest.mark.parametrize("steps", [6, 450, 23_430, 100_000])
def test_half_life_is_kept_as_a_fraction_of_training(steps):
    decay = schedule.scaled_ema(0.996, 23_430, steps)
    half_life = math.log(0.5) / math.log(decay)
    assert half_life / steps == pytest.approx(math.log(0.5) / math.log(0.996) / 23_430)
    assert half_life / steps == pytest.approx(0.0074, abs=5e-5)  # 173 of 23,430 steps


@pytest.mark.parametrize("tier", ["smoke", "laptop"])
@pytest.mark.parametrize("modality", ["text", "image"])
def test_the_rule_changes_rates_and_ema_alone(tier, modality):
    base = getattr(TIERS[tier], modality)
    after = scaled(base)
    changed = {name for name, value in asdict(base).items() if asdict(after)[name] != value}
    assert changed == {"lr_start", "lr_peak", "lr_final", "ema"}
    for name in ("lr_start", "lr_peak", "lr_final"):
        assert getattr(after, name) * base.width == pytest.approx(getattr(PAPER_TEXT, name) * 1024)
    assert after.ema ** after.steps == pytest.approx(PAPER_TEXT.ema ** PAPER_TEXT.steps)
    assert after.warmup / after.steps == pytest.approx(base.warmup_epochs / base.epochs)


def test_both_modalities_share_schedules_steps_and_loss():
    laptop = TIERS["laptop"]
    text, image = asdict(scaled(laptop.text)), asdict(scaled(laptop.image))
    assert {name for name in text if text[name] != image[name]} == {"modality", "recipes"}
    assert text["latent_loss"] == "sum"


def test_controls_change_one_thing_of_the_scaled_recipe():
    base = TIERS["laptop"].text
    for arm, field in ((single_pass, "single_pass"), (few_documents, "n_documents")):
        one, other = asdict(scaled(base)), asdict(arm(base))
        assert {name for name in one if one[name] != other[name]} == {field}
