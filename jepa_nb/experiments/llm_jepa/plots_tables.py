"""Paper C's Tables 2, 3, 4, 10, 12 and that on LoRA as charts: one row an arm, its accuracy, the paper's, and its paired difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from jepa_nb import figures
from jepa_nb.experiments.llm_jepa import comparisons
from jepa_nb.experiments.llm_jepa import plots_parts as parts
from jepa_nb.experiments.llm_jepa.arms import base_of
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import REPORTED
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, FRAME = 0.27, 1.45  # inches of a row, and of all around the rows
MARGIN = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}


def arms_of_rows(name: str) -> list[str]:
    """Arms of a table's comparisons, each baseline before the first arm that is compared with it."""
    return list(dict.fromkeys(arm for pair in comparisons.pairs(name) for arm in reversed(pair)))


@figures.style()
def table_chart(name: str, study: Study, context: RunContext, *, note: str = "") -> Figure:
    """Accuracy (left) and paired difference to the named baseline (right), both with 95 % t intervals; the paper's numbers in their own
    colour. A row without measurement is a setting that the paper reports and this tier does not run."""
    rows = [arm for arm in arms_of_rows(name) if _accuracy(name, study, arm).size or _said(name, study, arm)]
    labels = _labels(study, rows)
    fig, (left, right) = figures.canvas(1, 2, height=FRAME + ROW * len(rows), sharey=True, width_ratios=(3, 2))
    for index, arm in enumerate(rows):
        _row(left, name, study, arm, -index)
    _differences(right, name, study, rows, labels)
    for ax in (left, right):
        _group_lines(ax, rows)
        ax.grid(axis="x")
        ax.grid(visible=False, axis="y")
    left.set_yticks([-index for index in range(len(rows))], [labels[arm] for arm in rows])
    left.set_ylim(0.35 - len(rows), 0.6)
    low, high = left.get_xlim()
    left.set_xlim(max(low, -4), high + 0.06 * (high - low))
    parts.finish(left, "accuracy", "per cent of the test pairs", "")
    parts.finish(right, "difference, paired by seed", "points", "")
    right.tick_params(axis="y", length=0)
    parts.sign(fig, study, context, rows, parts.handles("next token", "LLM-JEPA", "one seed", "before training", "paper"), extra=note)
    return fig


def _accuracy(name: str, study: Study, arm: str, start: str = "") -> pd.Series:
    return parts.measured(study, f"{comparisons.quantity(name, arm)}{start}:{arm}")


def _said(name: str, study: Study, arm: str) -> parts.Reported | None:
    return parts.published(name, f"{comparisons.quantity(name, arm)}:{arm}")


def _row(ax: Axes, name: str, study: Study, arm: str, at: float) -> None:
    found, said = _accuracy(name, study, arm), _said(name, study, arm)
    parts.dot(ax, found, at, parts.arm_look(arm))
    if said:
        parts.paper_mark(ax, said, at - (0.32 if found.size else 0.0))
    floor = _accuracy(name, study, arm, "@start")
    if floor.size:
        ax.plot(floor.mean(), at, "|", color=parts.FLOOR, markersize=8, markeredgewidth=1.6, zorder=1)


def _labels(study: Study, rows: Sequence[str]) -> dict[str, str]:
    """Names of the rows, with the base where there are several."""
    several = len({base_of(arm) for arm in rows}) > 1
    return {arm: f"{parts.base_name(study, base_of(arm))}: {parts.arm_name(arm)}" if several else parts.arm_name(arm) for arm in rows}


def _differences(ax: Axes, name: str, study: Study, rows: Sequence[str], labels: dict[str, str]) -> None:
    """Each arm minus its baseline, the baseline's name, and the paper's difference as a number in the margin."""
    ax.axvline(0, color="0.55", linewidth=0.8, zorder=1)
    baselines = dict(comparisons.pairs(name))
    ax.text(1.03, 1.0, "paper", transform=ax.transAxes, fontsize=6, color=REPORTED, va="bottom", fontweight="bold")
    for index, arm in enumerate(rows):
        baseline = baselines.get(arm)
        if baseline is None:
            continue
        found = parts.measured(study, f"{comparisons.quantity(name, arm)}:{arm}-{baseline}")
        parts.dot(ax, found, -index, parts.arm_look(arm))
        same = base_of(arm) == base_of(baseline)
        if found.size:
            ax.annotate(f"− {parts.arm_name(baseline) if same else labels[baseline]}", (0.01, 0.38 - index), fontsize=5, color="#606060",
                        va="center", path_effects=parts.halo(), zorder=5, **MARGIN)
        gain = parts.published_gain(name, arm, baseline)
        if gain is not None:
            ax.annotate(parts.cited(gain, "+.1f"), (1.03, -index), fontsize=6, color=REPORTED, va="center", **MARGIN)


def _group_lines(ax: Axes, rows: Sequence[str]) -> None:
    for index, (before, after) in enumerate(zip(rows, rows[1:])):
        if base_of(before) != base_of(after):
            ax.axhline(-index - 0.5, color="0.85", linewidth=0.7, zorder=0)


def pretraining(study: Study, context: RunContext) -> Figure:
    """Table 2: training from scratch, judged by the answer's first characters, and sentiment after pre-training on paraphrases."""
    return table_chart("llm_jepa_tab2_pretraining", study, context,
                       note="regex: the answer starts with the gold string (the paper's rule here)")


def ablation(study: Study, context: RunContext) -> Figure:
    """Table 3: distances, pooling, direction and predictor tokens, each against LLM-JEPA with the cosine."""
    return table_chart("llm_jepa_tab3_ablation", study, context, note="linear predictor: λ .5 and no predictor tokens, as in the paper")


def reasoning(study: Study, context: RunContext) -> Figure:
    """Tables 4 and 5: questions and word problems."""
    return table_chart("llm_jepa_tab4_qa_reasoning", study, context)


def gamma(study: Study, context: RunContext) -> Figure:
    """Table 10: the weight of the next-token term."""
    return table_chart("llm_jepa_tab10_gamma", study, context)


def models(study: Study, context: RunContext) -> Figure:
    """Table 12: all models and tasks."""
    return table_chart("llm_jepa_tab12_models_datasets", study, context)


def lora(study: Study, context: RunContext) -> Figure:
    """The table on LoRA: ranks against training all weights."""
    return table_chart("llm_jepa_lora_ranks", study, context)
