"""Schedules of learning rate, weight decay and EMA decay, and the one rule that carries a recipe to another scale.

All of them are functions of the step alone, so a resumed run needs no schedule state.
"""

from __future__ import annotations

import math


def cosine(step: int, total: int, start: float, final: float) -> float:
    """Half a cosine from ``start`` at step 0 to ``final`` at the last step (``total`` - 1)."""
    progress = min(step / max(total - 1, 1), 1.0)
    return final + (start - final) * 0.5 * (1.0 + math.cos(math.pi * progress))


def warmup_cosine(step: int, total: int, warmup: int, start: float, peak: float, final: float) -> float:
    """Linear from ``start`` to ``peak`` over ``warmup`` steps, then half a cosine to ``final`` (paper A, protocol A4)."""
    if step < warmup:
        return start + (peak - start) * step / warmup
    return cosine(step - warmup, total - warmup, peak, final)


def linear(step: int, total: int, start: float, final: float) -> float:
    """Straight line from ``start`` at step 0 to ``final`` at the last step."""
    return start + (final - start) * min(step / max(total - 1, 1), 1.0)


def scaled_learning_rate(rate: float, reference_width: int, width: int) -> float:
    """The rate that gives a ``width`` wide network updates of the size ``rate`` gives a ``reference_width`` wide one.

    Under Adam the update of a hidden weight does not depend on the gradient's size, and its effect on the output grows
    with the fan-in; the rate therefore scales with 1 / width.
    """
    return rate * reference_width / width


def scaled_ema(decay: float, reference_steps: int, steps: int) -> float:
    """The decay whose half-life is the same fraction of ``steps`` as that of ``decay`` is of ``reference_steps``."""
    return decay ** (reference_steps / steps)
