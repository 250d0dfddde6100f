"""What the first notebook draws of its own twenty-line JEPA: R² of the prediction and total variance of the targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from jepa_nb import figures, seeds
from jepa_nb.looks import look
from jepa_nb.metrics import geometry, variance
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH, POINTS = 128, 20
PAIRS = {"own": "own lower half", "shuffled": "shuffled lower halves"}
QUANTITIES = {"r2": "R² of the prediction", "total variance": "total variance of targets", "effective rank": "effective rank of targets"}


def watch(build: Callable[[], tuple], step: Callable[..., float], upper: torch.Tensor, lower: torch.Tensor,
          steps: int, data_seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Train the notebook's JEPA on pairs of halves (N, 32), once a seed, and measure it along training.

    Args:
        build: gives encoder, predictor, target encoder and optimiser.
        step: the notebook's training step; takes those and a batch of both halves.
        upper: (N, 32) contexts.
        lower: (N, 32) what is to be predicted of each.
        steps: optimiser steps.
        data_seeds: seeds of initialisation and batches.
    """
    return [row for seed in data_seeds for row in _one(build, step, upper, lower, steps, seed)]


def _one(build: Callable[[], tuple], step: Callable[..., float], upper: torch.Tensor, lower: torch.Tensor, steps: int,
         seed: int) -> list[dict[str, Any]]:
    with seeds.scoped(seed, "start here"):
        parts = build()
    draw, rows = seeds.generator(seed, "start here batches"), []
    for index in range(steps):
        chosen = torch.randint(len(upper), (BATCH,), generator=draw)
        step(*parts, upper[chosen], lower[chosen])
        if (index + 1) % max(steps // POINTS, 1) == 0:
            rows += _measure(parts, upper, lower, seed, index + 1)
    return rows


@torch.no_grad()
def _measure(parts: tuple, upper: torch.Tensor, lower: torch.Tensor, seed: int, step: int) -> list[dict[str, Any]]:
    encoder, predictor, target, _optimizer = parts
    goal = target(lower)
    loss = float((predictor(encoder(upper)) - goal).square().sum(1).mean())
    total = variance.total_variance(goal)
    values = {"r2": variance.r2(loss, total), "total variance": total, "effective rank": geometry.effective_rank(goal)}
    return [{"seed": seed, "step": step, "quantity": name, "value": value} for name, value in values.items()]


def table(history: dict[str, list[dict[str, Any]]]) -> pd.DataFrame:
    """Columns ``pairs, quantity, seed, step, value``."""
    rows = [{"pairs": name, **row} for name, found in history.items() for row in found]
    return pd.DataFrame(rows)[["pairs", "quantity", "seed", "step", "value"]]


@figures.style()
def draw(history: dict[str, list[dict[str, Any]]], context: RunContext) -> Figure:
    """Three panels along training: R², total variance and effective rank of the targets, mean and 95 % interval."""
    rows = table(history)
    fig, axes = figures.canvas(1, 3, height=2.4)
    for ax, (quantity, title) in zip(axes, QUANTITIES.items()):
        for pairs, method in (("own", "good views"), ("shuffled", "bad views")):
            chosen = rows[(rows["pairs"] == pairs) & (rows["quantity"] == quantity)]
            figures.curve(ax, chosen, "step", "value", method, label=PAIRS[pairs])
        ax.set_title(title, fontsize=8)
        ax.set_xlabel("step")
    axes[0].axhline(0, color=look("chance").color, linewidth=0.7)
    axes[0].legend()
    figures.scale_note(fig, context, "8 x 8 digits of scikit-learn, networks of width 64")
    return fig


def finding(history: dict[str, list[dict[str, Any]]]) -> str:
    """One sentence from the last measurement, means over seeds."""
    rows = table(history)
    last = rows[rows["step"] == rows["step"].max()].groupby(["pairs", "quantity"])["value"].mean()
    return (f"After {rows['step'].max()} steps the prediction explains {last['own', 'r2']:.2f} of the target variance with a digit's own "
            f"lower half and {last['shuffled', 'r2']:.2f} with shuffled ones; the targets' total variance is "
            f"{last['own', 'total variance']:.2f} against {last['shuffled', 'total variance']:.2f}.")
