"""Paper C's Figures 1 and 3: accuracy of both objectives over tasks and along training, and their two losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jepa_nb import figures
from jepa_nb.experiments.llm_jepa import comparisons
from jepa_nb.experiments.llm_jepa import plots_parts as parts
from jepa_nb.experiments.llm_jepa.arms import base_of
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import REPORTED, look
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIG1 = "llm_jepa_fig1_accuracy"
BOTH = {"ntp": "next token", "jepa": "LLM-JEPA"}
GAIN = look("LLM-JEPA")
LETTERS = "ABCDEFGHIJ"


@figures.style()
def accuracy(study: Study, context: RunContext) -> Figure:
    """Figure 1: accuracy of each base, accuracy by epoch, and the gain against the baseline's strength and the number of pairs."""
    fig, axes = figures.canvas(2, 2, height=5.6)
    bases = [base_of(arm) for arm, _ in comparisons.made(FIG1, study)]
    _bars(axes[0, 0], study, bases)
    _along(axes[0, 1], study, "accuracy", "rule", scale=100)
    parts.finish(axes[0, 1], f"accuracy by epoch\n{parts.base_name(study, 'main')}", "epoch", "per cent")
    _gain_by_strength(axes[1, 0], study, bases)
    _gain_by_pairs(axes[1, 1], study)
    arms = [f"{base}.{method}" for base in bases for method in BOTH]
    parts.sign(fig, study, context, arms, parts.handles("next token", "LLM-JEPA", "one seed", "paper"),
               extra="grey dashes: the floor, which is each model before training, since exact answers have no chance level; gain: "
                     "LLM-JEPA − next token, paired by seed; letters as in the first panel")
    return fig


def _bars(ax: Axes, study: Study, bases: list[str]) -> None:
    """Two bars a base with dots of seeds and intervals, the untrained model and the paper's values."""
    for index, base in enumerate(bases):
        for shift, method in ((-0.2, "ntp"), (0.2, "jepa")):
            arm, at = f"{base}.{method}", index + shift
            found, floor, said = (parts.measured(study, f"points:{arm}"), parts.measured(study, f"points@start:{arm}"),
                                  parts.published(FIG1, f"points:{arm}"))
            ax.bar(at, found.mean(), 0.36, color=look(BOTH[method]).color, alpha=0.22 if method == "ntp" else 0.45, zorder=1)
            parts.dot(ax, found, at, look(BOTH[method]), across=False, shift=-np.sign(shift) * 0.11)
            if floor.size:
                ax.plot(at, floor.mean(), "_", color=parts.FLOOR, markersize=9, markeredgewidth=1.8, zorder=3, clip_on=False)
            if said:
                parts.paper_mark(ax, said, at + np.sign(shift) * 0.14, across=False)
    names = [parts.base_name(study, base).replace(", ", "\n") for base in bases]
    ax.set_xticks(range(len(bases)), [f"{letter}\n{name}" for letter, name in zip(LETTERS, names)])
    ax.set_xlim(-0.6, len(bases) - 0.4)
    ax.margins(y=0.1)
    parts.finish(ax, "accuracy by task", "", "per cent of the test pairs")
    ax.tick_params(axis="x", labelsize=5.5)


def _along(ax: Axes, study: Study, metric: str, variant: str, *, split: str = "test", scale: float = 1.0, log: bool = False) -> None:
    """Both arms of ``main`` along training; what has vanished has no place on a logarithmic axis and is left out."""
    if log:
        ax.set_yscale("log")
    for method in BOTH:
        if f"main.{method}" not in study.arms:
            continue
        rows = study.select(f"main.{method}", metric, variant, split).dropna(subset=["value"])
        rows = rows.assign(value=scale * rows["value"])
        rows = rows[rows["value"] > 0] if log else rows
        if len(rows):
            figures.curve(ax, rows, "epoch", "value", BOTH[method], label=BOTH[method]).set_zorder(3 if method == "ntp" else 2.5)


def _gain(study: Study, base: str) -> tuple[float, float, float]:
    return parts.spread(parts.measured(study, f"points:{base}.jepa-{base}.ntp"))


def _gain_by_strength(ax: Axes, study: Study, bases: list[str]) -> None:
    """One point a base, with the paper's for the same tasks."""
    ax.axhline(0, color="0.55", linewidth=0.8, zorder=1)
    for letter, base in zip(LETTERS, bases):
        strength, gain = (parts.measured(study, f"points:{metric}") for metric in (f"{base}.ntp", f"{base}.jepa-{base}.ntp"))
        ax.plot(strength.reindex(gain.index), gain, ".", color=GAIN.color, markersize=3, alpha=0.45)
        mean, low, high = _gain(study, base)
        ax.errorbar(strength.mean(), mean, [[mean - low], [high - mean]] if len(gain) > 1 else None, fmt=GAIN.marker, color=GAIN.color,
                    capsize=2, elinewidth=1.2)
        parts.say(ax, letter, (strength.mean(), mean), (5, 1), va="bottom", fontsize=6.5)
    names = {"turk": "TURK", "gemma": "Gemma-2"} | dict(zip(bases, LETTERS))
    for arm, baseline in comparisons.pairs(FIG1):
        start, gain = parts.published(FIG1, f"points:{baseline}"), parts.published_gain(FIG1, arm, baseline)
        if start is not None and gain is not None:
            ax.plot(start.centre, gain.centre, "s", color=REPORTED, markerfacecolor="white", markersize=4)
            name = names.get(base_of(arm), base_of(arm)) + parts.SECOND_HAND * gain.second_hand
            parts.say(ax, name, (start.centre, gain.centre), (4, 0), va="center", color=REPORTED, path_effects=parts.halo())
    parts.finish(ax, "gain against the baseline's strength", "accuracy of next-token prediction, per cent", "gain, points")


def _gain_by_pairs(ax: Axes, study: Study) -> None:
    """The same number of steps on fewer pairs, seen several times, and on more, seen once."""
    ax.axhline(0, color="0.55", linewidth=0.8, zorder=1)
    found = [base for base in ("sweep", "large") if f"{base}.jepa" in study.arms and f"{base}.ntp" in study.arms]
    for index, base in enumerate(found):
        parts.dot(ax, parts.measured(study, f"points:{base}.jepa-{base}.ntp"), index, GAIN, across=False)
    sizes = [study.sizes[base] for base in found]
    names = [f"{size['n_train']:,} pairs\n{size['epochs']} epoch{'s' if size['epochs'] > 1 else ''}" for size in sizes]
    ax.set_xticks(range(len(found)), names)
    ax.set_xlim(-0.6, max(len(found), 1) - 0.4)
    parts.finish(ax, "gain against the number of pairs, equal steps", "", "gain, points")


@figures.style()
def loss_curves(study: Study, context: RunContext) -> Figure:
    """Figure 3: held-out next-token loss, the JEPA term of both arms, and the losses of the training batches."""
    fig, axes = figures.canvas(2, 2, height=4.7, sharex=True)
    panels = ((axes[0, 0], "ntp_loss", "label", "test", "next-token loss, test pairs", "nats a label"),
              (axes[0, 1], "jepa_distance", "cosine", "test", "JEPA term, test pairs", "1 − cosine of the two views"),
              (axes[1, 0], "loss", "ntp", "batch", "next-token loss, training batches", "nats a label"),
              (axes[1, 1], "loss", "jepa", "batch", "JEPA term, training batches", "1 − cosine of the two views"))
    for ax, metric, variant, split, title, unit in panels:
        _along(ax, study, metric, variant, split=split, log=True)
        parts.finish(ax, title, "epoch", unit)
    parts.sign(fig, study, context, ("main.ntp", "main.jepa"), extra="next-token prediction never computes the JEPA term of its batches")
    return fig
