"""What Paper C's plots share: names of arms, the paper's numbers beside the measured ones, and rows of dots with intervals.

LLM-JEPA is vermilion with diamonds, next-token prediction black with crosses, in every figure; the paper's numbers are hollow squares.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jepa_nb import figures, papers
from jepa_nb.experiments.llm_jepa import comparisons
from jepa_nb.experiments.llm_jepa.arms import METHODS, base_of
from jepa_nb.experiments.llm_jepa.measurements import PAPER, arms_of, value
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import REPORTED, Look, look
from jepa_nb.metrics.statistics import t_interval
from jepa_nb.papers import Reported
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL, TINY = 7, 6.5
FLOOR = look("chance").color
ARMS = {
    "ntp": "next token", "jepa": "LLM-JEPA", "shuffled": "shuffled Code", "ntp_flops": "next token, equal cost", "l2": "L2", "mse": "MSE",
    "infonce": "InfoNCE", "prepend": "[PRED] in front", "reverse": "Code to Text", "mean_pool": "mean pooling",
    "linear_predictor": "linear predictor", "identical": "λ 2, k 3, identical [PRED]", "gamma0": "γ 0", "gamma01": "γ 0.1",
    "gamma_lam": "γ 2, λ 2", "dropout50": "loss dropout .5", "dropout75": "loss dropout .75", "from_ntp": "next token, both stages",
    "from_jepa": "LLM-JEPA first", "all_labels_ntp": "next token, all labels", "all_labels_jepa": "LLM-JEPA, all labels",
    "accumulated_jepa": "LLM-JEPA, 4 accumulated", "undivided_jepa": "LLM-JEPA, 4 not divided",
    "best(ntp)": "next token, searched", "best(jepa)": "LLM-JEPA, searched"}
BASES = {"sql": "SQL", "word": "word problems", "turk": "regex, people's words", "gemma": "Gemma-2-2B, regex", "olmo": "OLMo-2-1B, regex",
         "qwen": "Qwen3-1.7B, GSM8K", "distill": "R1-Distill-1.5B, GSM8K", "choice": "HellaSwag", "smol": "NQ-Open",
         "scratch": "from scratch, regex", "sentiment": "sentiment", "adapters": "regex", "small": "regex, 1,000 pairs"}
SAME = ("main", "sweep", "adapters")  # one setting in the paper
MAIN_RESULTS = ("llm_jepa_fig1_accuracy", "llm_jepa_tab12_models_datasets")
BESIDE = {True: 0.18, False: -0.12}  # how far from their mean the dots of the seeds stand, along y and along x
SECOND_HAND = "°"  # behind a number of which this holds:
FROM_A_NOTE = f"{SECOND_HAND} from a third party's note"


def method_of(arm: str) -> str:
    """``"jepa"`` of ``"main.jepa"``; a searched arm is its own method."""
    return arm if arm.startswith("best(") else arm.partition(".")[2]


def is_baseline(arm: str) -> bool:
    """Whether the arm is trained on the next token alone."""
    method = method_of(arm)
    return method.endswith(("ntp", "best(ntp)")) or method.startswith(("ntp_", "rate_"))


def arm_look(arm: str) -> Look:
    """Next-token prediction's look or LLM-JEPA's."""
    return look("next token" if is_baseline(arm) else "LLM-JEPA")


def arm_name(arm: str) -> str:
    """An arm's method in words."""
    method = method_of(arm)
    if method in ARMS:
        return f"all weights, {ARMS[method]}" if base_of(arm) == "adapters" else ARMS[method]
    if method.startswith("lora"):
        rank, _, kind = method[4:].partition("_")
        return f"rank {rank}, {ARMS[kind]}"
    terms = METHODS[method]
    return f"λ {terms['lam']:g}, k {terms['k']}" if isinstance(terms, dict) else method.replace("_", " ")


def base_name(study: Study, base: str) -> str:
    """A base's task in words; the regex bases differ in size, which is then named."""
    if base in BASES or base not in study.sizes:
        return BASES.get(base, "regex")
    size = study.sizes[base]
    width = "" if size["pretrained"] else f", width {size['width']}"
    return f"regex, {size['n_train']:,} pairs{width}"


def measured(study: Study, metric: str) -> pd.Series:
    """A metric by seed in the grammar of the claims; empty where an arm was not run or nothing finite was measured."""
    if not set(arms_of(metric)) <= set(study.arms):
        return pd.Series(dtype=float)
    found = value(study, metric)
    return found[np.isfinite(found)]


def spread(values: Sequence[float] | pd.Series) -> tuple[float, float, float]:
    """Mean and 95 % t interval over seeds; one seed stands for itself."""
    numbers = np.asarray(values, dtype=float)
    return tuple(t_interval(numbers)[:3]) if len(numbers) > 1 else (float(numbers[0]),) * 3


def published(name: str, metric: str) -> Reported | None:
    """What the paper reports for a metric: in this figure's claims, else in those of its main results; under the name of another base where
    that is the same setting. Other figures' numbers are left alone, since they were made under other conditions."""
    stated = [claim for claim in papers.claims(PAPER).values() if claim.origin == "paper" and claim.reported.centre is not None]
    for figure in (name, *MAIN_RESULTS):
        for each in _same_setting(name, metric):
            found = next((claim.reported for claim in stated if claim.figure == figure and claim.metric == each), None)
            if found is not None:
                return found
    return None


def _same_setting(name: str, metric: str) -> list[str]:
    """The metric, and at other bases that are the same setting in the paper unless the figure shows them in their own right."""
    quantity, _, arm = metric.partition(":")
    shown = {base_of(each) for each, _ in comparisons.pairs(name)}
    others = [base for base in SAME if base_of(arm) in SAME and base not in shown]
    return [metric, *(f"{quantity}:{base}.{method_of(arm)}" for base in others)]


def published_gain(name: str, arm: str, baseline: str) -> Reported | None:
    """The paper's difference in points: as it states it, or of the two numbers that it states."""
    kind = comparisons.quantity(name, arm)
    stated = published(name, f"{kind}:{arm}-{baseline}")
    if stated is not None:
        return stated
    first, second = (published(name, f"{kind}:{each}") for each in (arm, baseline))
    return None if first is None or second is None else Reported((*first.source, *second.source), value=first.centre - second.centre)


def cited(said: Reported, form: str = ".1f") -> str:
    """The paper's number as text, with the mark of a second-hand one."""
    return f"{said.centre:{form}}".replace("-", "−") + SECOND_HAND * said.second_hand


def dot(ax: Axes, values: pd.Series, at: float, appearance: Look, *, across: bool = True, shift: float | None = None) -> None:
    """Seeds as small dots beside their mean and 95 % t interval; ``across``: values run along x and ``at`` is the place on y."""
    if values.empty:
        return
    mean, low, high = spread(values)
    seeds = (values, np.full(len(values), at + (BESIDE[across] if shift is None else shift)))
    ax.plot(*(seeds if across else seeds[::-1]), ".", color=appearance.color, markersize=3, alpha=0.45, zorder=2)
    error = {"xerr" if across else "yerr": [[mean - low], [high - mean]]} if len(values) > 1 else {}
    ax.errorbar(*((mean, at) if across else (at, mean)), **error, fmt=appearance.marker, color=appearance.color, markersize=5, capsize=2,
                elinewidth=1.2, markeredgewidth=1.4, zorder=4)


def paper_mark(ax: Axes, said: Reported, at: float, *, across: bool = True) -> None:
    """The paper's value, its sd, and the number beside it."""
    place = (said.centre, at) if across else (at, said.centre)
    error = {"xerr" if across else "yerr": said.sd} if said.sd else {}
    ax.errorbar(*place, **error, fmt="s", color=REPORTED, markerfacecolor="white", markersize=4, markeredgewidth=1.0, elinewidth=0.9,
                capsize=1.5, zorder=3)
    end = said.centre + (said.sd or 0)
    if across:
        say(ax, cited(said), (end, at), (4, 0), va="center", color=REPORTED, fontsize=5.5, path_effects=halo(), zorder=5)
    else:
        say(ax, cited(said), (at, end), (0, 3), ha="center", va="bottom", color=REPORTED, fontsize=5.5, path_effects=halo(), zorder=5)


def halo(width: float = 1.5) -> list[Any]:
    """White around letters that may stand on a mark."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


def say(ax: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], **options: Any) -> None:
    """Small text ``offset`` points away from a place of the data."""
    ax.annotate(text, place, xytext=offset, textcoords="offset points", **{"fontsize": 6} | options)


def finish(ax: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Title and axis labels in the figures' small type."""
    ax.set_title(title, fontsize=7.5)
    ax.set_xlabel(xlabel, fontsize=SMALL)
    ax.set_ylabel(ylabel, fontsize=SMALL)
    ax.tick_params(labelsize=TINY)
    if ax.get_yscale() == "log":
        figures.log_ticks(ax)


def handles(*names: str) -> dict[str, Any]:
    """Legend entries by name, each a mark without a place: ``next token``, ``LLM-JEPA``, ``one seed``, ``before training``, ``paper``."""
    from matplotlib.lines import Line2D

    def mark(color: str, marker: str, **options: Any) -> Line2D:
        return Line2D([], [], color=color, marker=marker, linestyle="none", **options)

    ntp, jepa = look("next token"), look("LLM-JEPA")
    every = {"next token": mark(ntp.color, ntp.marker, markersize=5, markeredgewidth=1.4),
             "LLM-JEPA": mark(jepa.color, jepa.marker, markersize=5), "one seed": mark("#606060", ".", markersize=3.5, alpha=0.6),
             "before training": mark(FLOOR, "|", markersize=8, markeredgewidth=1.6),
             "paper": mark(REPORTED, "s", markersize=4, markerfacecolor="white")}
    return {f"paper ({FROM_A_NOTE})" if name == "paper" else name: every[name] for name in names}


def sign(fig: Figure, study: Study, context: RunContext, arms: Iterable[str], legend: dict[str, Any] | None = None, *,
         extra: str = "") -> None:
    """One legend for all panels, and the scale of the run under them; ``arms`` are those that the figure draws."""
    named = legend or {label: handle for ax in fig.axes for handle, label in zip(*ax.get_legend_handles_labels())}
    if named:
        fig.legend(named.values(), named.keys(), loc="outside upper center", ncols=min(6, len(named)), fontsize=TINY, frameon=False)
    parts = [part for part in (_fewer_seeds(study, context, arms), extra, study.standins) if part]
    figures.scale_note(fig, context, "\n".join(line for part in parts for line in textwrap.wrap(part, 145)))


def _fewer_seeds(study: Study, context: RunContext, arms: Iterable[str]) -> str:
    counts = {base_of(arm): study.table.loc[study.table["arm"] == arm, "seed"].nunique() for arm in arms if arm in study.arms}
    fewer = {base: count for base, count in counts.items() if count < len(context.seeds)}
    return ", ".join(f"{base_name(study, base)}: {count} seed{'s' if count > 1 else ''}" for base, count in fewer.items())
