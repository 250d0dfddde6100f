"""Two figures that Paper C lacks: what faults of the public code change, and LLM-JEPA against controls and an equal search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from jepa_nb import figures
from jepa_nb.experiments.llm_jepa import comparisons
from jepa_nb.experiments.llm_jepa import plots_parts as parts
from jepa_nb.experiments.llm_jepa.arms import base_of
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import look
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

PITFALLS, AUDIT = "llm_jepa_ext_published_pitfalls", "llm_jepa_ext_audit"
WORDS = {
    ("sweep.all_labels_ntp", "sweep.ntp"): "next token: all labels − answer's labels",
    ("sweep.all_labels_jepa", "sweep.jepa"): "LLM-JEPA: all labels − answer's labels",
    ("sweep.accumulated_jepa", "sweep.jepa"): "LLM-JEPA: 4 batches accumulated − one",
    ("sweep.undivided_jepa", "sweep.accumulated_jepa"): "LLM-JEPA: sum of 4 batches − their mean",
    ("sweep.jepa", "sweep.ntp"): "LLM-JEPA − next token: without a fault",
    ("sweep.all_labels_jepa", "sweep.all_labels_ntp"): "LLM-JEPA − next token: both on all labels",
    ("sweep.undivided_jepa", "sweep.ntp"): "LLM-JEPA − next token: its 4 batches summed"}
FAULTY = {"published": "the published rule", "answers_cut": "answers cut in half", "prompts_cut": "prompts cut in half"}
PLAIN, VIEW = look("exact"), "o"


@figures.style()
def published_pitfalls(study: Study, context: RunContext) -> Figure:
    """Paired differences that each fault of the training code makes, then what faults of the answer rules add or take."""
    made = comparisons.made(PITFALLS, study)
    rules = rule_faults(study)
    lower = len(rules)
    heights = (len(made), lower) if lower else None
    fig, axes = figures.canvas(2 if lower else 1, 1, height=1.6 + 0.27 * (len(made) + lower) + (0.6 if lower else 0.0), squeeze=False,
                               height_ratios=heights)
    _differences(axes[0, 0], study, made)
    if lower:
        _rule_faults(axes[1, 0], study, rules)
    arms = [*(arm for pair in made for arm in pair), *(arm for arm, _ in rules)]
    parts.sign(fig, study, context, arms, parts.handles("next token", "LLM-JEPA", "one seed"))
    return fig


def _differences(ax: Axes, study: Study, made: list[tuple[str, str]]) -> None:
    ax.axvline(0, color="0.55", linewidth=0.8, zorder=1)
    adjusted = comparisons.table(PITFALLS, study)["p Holm"]
    for index, ((arm, baseline), p) in enumerate(zip(made, adjusted)):
        parts.dot(ax, parts.measured(study, f"points:{arm}-{baseline}"), -index, parts.arm_look(arm))
        _margin(ax, -index, p)
    ax.text(1.02, 1.0, "p, Holm", transform=ax.transAxes, fontsize=6, va="bottom", fontweight="bold")
    _rows(ax, [WORDS[pair] for pair in made])
    parts.finish(ax, "faults of training: difference, paired by seed", "points of accuracy", "")


def rule_faults(study: Study) -> list[tuple[str, str]]:
    """(arm, variant) of accuracies that a faulty rule of the public code gives besides the right one's."""
    rows = study.table[(study.table["metric"] == "accuracy") & (study.table["split"] == "test")]
    found = rows[["arm", "variant"]].drop_duplicates()
    return [(arm, variant) for arm, variant in found.itertuples(index=False) if variant in FAULTY]


def _rule_faults(ax: Axes, study: Study, rules: list[tuple[str, str]]) -> None:
    ax.axvline(0, color="0.55", linewidth=0.8, zorder=1)
    labels = []
    for arm, variant in rules:
        change = parts.measured(study, f"points.{variant}:{arm}") - parts.measured(study, f"points:{arm}")
        parts.dot(ax, change.dropna(), -len(labels), parts.arm_look(arm))
        labels.append(f"{parts.base_name(study, base_of(arm))}, {parts.arm_name(arm)}: {FAULTY[variant]} − the right one")
    _rows(ax, labels)
    parts.finish(ax, "faults of the answer rules", "points of accuracy", "")


def _rows(ax: Axes, labels: list[str]) -> None:
    ax.set_yticks([-index for index in range(len(labels))], labels)
    ax.set_ylim(0.6 - len(labels), 0.6)
    ax.grid(axis="x")
    ax.grid(visible=False, axis="y")


def _margin(ax: Axes, at: float, p: float) -> None:
    """An adjusted p-value right of the axis, nothing where there was no test."""
    if p == p:
        text = "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"
        ax.annotate(text, (1.02, at), xycoords=("axes fraction", "data"), fontsize=6, va="center", annotation_clip=False)


@figures.style()
def audit(study: Study, context: RunContext) -> Figure:
    """Accuracy with controls and after equal searches, paired differences with Holm-adjusted p, cosines, and retrieval with its chance."""
    fig, axes = figures.canvas(2, 2, height=5.4, height_ratios=(7, 5))
    arms = [arm for arm in ("main.ntp", "main.jepa", "main.shuffled", "main.ntp_flops", "best(ntp)", "best(jepa)")
            if parts.measured(study, f"points:{arm}").size]
    _audited(axes[0, 0], study, arms)
    _audit_differences(axes[0, 1], study)
    viewed = [arm for arm in arms if arm in study.arms]
    _cosines(axes[1, 0], study, viewed)
    _retrieval(axes[1, 1], study, viewed)
    parts.sign(fig, study, context, arms, parts.handles("next token", "LLM-JEPA", "one seed") | _view_handles(),
               extra="searched: the setting that validation chose, among as many for either objective, at the smaller base")
    return fig


def _audited(ax: Axes, study: Study, arms: list[str]) -> None:
    for index, arm in enumerate(arms):
        parts.dot(ax, parts.measured(study, f"points:{arm}"), -index, parts.arm_look(arm))
    _rows(ax, [parts.arm_name(arm) for arm in arms])
    parts.finish(ax, "accuracy", "per cent of the test pairs", "")


def _audit_differences(ax: Axes, study: Study) -> None:
    ax.axvline(0, color="0.55", linewidth=0.8, zorder=1)
    made, adjusted = comparisons.made(AUDIT, study), comparisons.table(AUDIT, study)["p Holm"]
    for index, ((arm, baseline), p) in enumerate(zip(made, adjusted)):
        parts.dot(ax, parts.measured(study, f"points:{arm}-{baseline}"), -index, parts.arm_look(arm))
        _margin(ax, -index, p)
    ax.text(1.02, 1.0, "p, Holm", transform=ax.transAxes, fontsize=6, va="bottom", fontweight="bold")
    _rows(ax, [f"{parts.arm_name(arm)}\n− {parts.arm_name(baseline)}" for arm, baseline in made])
    parts.finish(ax, "difference, paired by seed", "points", "")


def _view_handles() -> dict[str, Line2D]:
    from matplotlib.lines import Line2D

    return {f"views of {name}": Line2D([], [], color="#505050", markerfacecolor=face, marker=VIEW, linestyle="none", markersize=5)
            for name, face in (("one pair", "#505050"), ("different pairs", "white"))}


def _cosines(ax: Axes, study: Study, arms: list[str]) -> None:
    for index, arm in enumerate(arms):
        appearance = parts.arm_look(arm)
        for variant, face, shift in (("paired", appearance.color, 0.12), ("shuffled", "white", -0.12)):
            found = parts.measured(study, f"cosine.{variant}:{arm}")
            if found.size:
                mean, low, high = parts.spread(found)
                ax.errorbar(mean, shift - index, xerr=[[mean - low], [high - mean]], fmt=VIEW, color=appearance.color, markerfacecolor=face,
                            markersize=5, capsize=2, elinewidth=1.2)
    _rows(ax, [parts.arm_name(arm) for arm in arms])
    parts.finish(ax, "cosine of Text and Code", "mean cosine", "")


def _retrieval(ax: Axes, study: Study, arms: list[str]) -> None:
    """The share of Texts whose nearest Code is their own; chance is one in the number of pairs."""
    chance = look("chance")
    for index, arm in enumerate(arms):
        parts.dot(ax, 100 * parts.measured(study, f"retrieval_at_1:{arm}"), -index, parts.arm_look(arm))
    if arms:
        pairs = len(study.views(arms[0], int(study.table.loc[study.table["arm"] == arms[0], "seed"].min()))[0])
        ax.axvline(100 / pairs, color=chance.color, linestyle=chance.dash, linewidth=1.2, zorder=1)
        parts.say(ax, f"chance, 1 of {pairs}", (100 / pairs, 0.6), (3, 0), va="top", color="#606060")
    _rows(ax, [parts.arm_name(arm) for arm in arms])
    parts.finish(ax, "retrieval of the own Code", "per cent of the Texts", "")
