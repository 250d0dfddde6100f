"""What LLM-JEPA costs: Paper C's Figure 5 (loss dropout), the search for its two settings, and generation afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from jepa_nb import figures, papers
from jepa_nb.experiments.llm_jepa import plots_parts as parts
from jepa_nb.experiments.llm_jepa.arms import FULL_GRID, JEPA, RATES, SEARCHES
from jepa_nb.experiments.llm_jepa.measurements import PAPER, chosen, searched
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import REPORTED, look
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIG5 = "llm_jepa_fig5_loss_dropout"
DROPOUT = {"sweep.jepa": 0.0, "sweep.dropout50": 0.5, "sweep.dropout75": 0.75}
COSTED = ("sweep.ntp", "sweep.ntp_flops", *DROPOUT)
UNITS = {"PFLOPs": 1.0, "TFLOPs": 1e3, "GFLOPs": 1e6}
FACTORS = {"ntp": 1.0} | {f"rate_{name}": factor for name, factor in RATES.items()}  # of the base's learning rate
NTP, LLM_JEPA = look("next token"), look("LLM-JEPA")


def flops_unit(pflops: float) -> tuple[float, str]:
    """Factor and name of the unit in which a number of PFLOPs is easy to read."""
    return next(((factor, unit) for unit, factor in UNITS.items() if pflops * factor >= 1), (UNITS["GFLOPs"], "GFLOPs"))


@figures.style()
def loss_dropout(study: Study, context: RunContext) -> Figure:
    """Figure 5: accuracy against the counted operations of training, and the cost relative to next-token prediction beside 2 − α."""
    fig, (left, right) = figures.canvas(1, 2, height=3.5, width_ratios=(3, 2))
    _accuracy_by_cost(left, study)
    _relative_cost(right, study)
    parts.sign(fig, study, context, COSTED, parts.handles("next token", "LLM-JEPA", "one seed"),
               extra="λ (1 − α) is constant: λ 1, 2, 4 at a loss dropout α of 0, .5, .75; operations are counted from the computed shapes; "
                     + parts.FROM_A_NOTE)
    return fig


def _accuracy_by_cost(ax: Axes, study: Study) -> None:
    costs = {arm: parts.measured(study, f"pflops:{arm}") for arm in COSTED}
    factor, unit = flops_unit(max((cost.mean() for cost in costs.values() if cost.size), default=1.0))
    for index, arm in enumerate(arm for arm in COSTED if costs[arm].size):
        points, cost, appearance = parts.measured(study, f"points:{arm}"), factor * costs[arm], parts.arm_look(arm)
        ax.plot(cost.reindex(points.index), points, ".", color=appearance.color, markersize=3, alpha=0.45)
        (x, x_low, x_high), (y, low, high) = parts.spread(cost), parts.spread(points)
        ax.errorbar(x, y, [[y - low], [high - y]], [[x - x_low], [x_high - x]], fmt=appearance.marker, color=appearance.color, capsize=2,
                    markeredgewidth=1.4, elinewidth=1.2)
        below = parts.is_baseline(arm)  # the longest next-token training costs about what LLM-JEPA does
        parts.say(ax, _short(arm), (x, low if below else high), (0, -3 if below else 3), ha="center", va="top" if below else "bottom")
    _paper_lines(ax)
    ax.margins(0.18)
    parts.finish(ax, "accuracy against the cost of training", f"{unit}, forward and backward", "per cent of the test pairs")


def _paper_lines(ax: Axes) -> None:
    """The accuracies that the paper states for this figure; labels stand side by side, since lines may lie close."""
    stated = {arm: claim.reported for claim in papers.claims(PAPER).values() for arm in COSTED
              if claim.figure == FIG5 and claim.metric == f"points:{arm}" and claim.reported.centre is not None}
    for place, (arm, said) in zip((0.99, 0.66, 0.33), sorted(stated.items(), key=lambda item: item[1].centre)):
        ax.axhline(said.centre, color=REPORTED, linestyle=(0, (2, 2)), linewidth=1.0, zorder=1)
        ax.annotate(f"paper: {_short(arm)} {parts.cited(said)}", (place, said.centre), xycoords=("axes fraction", "data"), xytext=(0, 2),
                    textcoords="offset points", ha="right", va="bottom", fontsize=6, color=REPORTED, zorder=5,
                    path_effects=parts.halo(2))


def _short(arm: str) -> str:
    return f"α {DROPOUT[arm]:g}".replace("0.", ".") if arm in DROPOUT else {"sweep.ntp": "next token"}.get(arm, "next token, longer")


def _relative_cost(ax: Axes, study: Study) -> None:
    """Measured cost of the shared-prefix layout, and what the published layout with two rows costs."""
    ax.plot([0, 1], [2, 1], color=REPORTED, linestyle=(0, (2, 2)), linewidth=1.0, zorder=1)
    parts.say(ax, "paper: two rows a pair, 2 − α", (0.02, 2), (0, 4), color=REPORTED)
    for arm, alpha in DROPOUT.items():
        ratio = parts.measured(study, f"pflops:{arm}/sweep.ntp")
        if ratio.size:
            parts.dot(ax, ratio, alpha, LLM_JEPA, across=False, shift=-0.04)
            parts.say(ax, f"{ratio.mean():.2f}", (alpha, ratio.mean()), (0, -7), ha="center", va="top")
    ax.axhline(1, color=NTP.color, linewidth=0.8, linestyle=NTP.dash, zorder=1)
    ax.set(xlim=(-0.08, 1.05), ylim=(0.8, 2.25))
    parts.finish(ax, "cost relative to next token\nmeasured: shared-prefix layout", "loss dropout α", "ratio of operations")


def grid(study: Study) -> pd.DataFrame:
    """Mean accuracy in per cent, rows λ, columns k; NaN where a setting was not run."""
    settings = {(JEPA["lam"], JEPA["k"]): "jepa"} | {(terms["lam"], terms["k"]): name for name, terms in FULL_GRID.items()
                                                      if f"sweep.{name}" in study.arms}
    found = {place: parts.measured(study, f"points:sweep.{name}").mean() for place, name in settings.items()}
    return pd.Series(found).unstack().sort_index(axis=0).sort_index(axis=1)


@figures.style()
def lambda_k(study: Study, context: RunContext) -> Figure:
    """Accuracy over λ and k beside as large a search over next-token prediction's rate, what validation chooses, and both costs."""
    fig, axes = figures.canvas(2, 3, height=4.9, width_ratios=(6, 5, 5))
    _heat_map(axes[0, 0], grid(study))
    _rates(axes[0, 1], study)
    _choices(axes[0, 2], study)
    costs = (("points", "trainings, all seeds", "trainings"), ("pflops", "operations", ""), ("seconds", "time of training", "seconds"))
    for ax, (metric, title, unit) in zip(axes[1], costs):
        _search_cost(ax, study, metric, title, unit)
    arms = [arm for search in SEARCHES for arm in searched(search)]
    parts.sign(fig, study, context, arms, parts.handles("next token", "LLM-JEPA", "one seed"),
               extra="λ 1, k 1: the published choice, not part of the search; settings are chosen on validation pairs, shown on test pairs")
    return fig


def _heat_map(ax: Axes, values: pd.DataFrame) -> None:
    image = ax.imshow(np.ma.masked_invalid(values), cmap="cividis", aspect="auto")
    ax.set_facecolor("#eeeeee")
    for (row, column), cell in np.ndenumerate(values.to_numpy()):
        dark = np.isfinite(cell) and image.norm(cell) < 0.55
        text = f"{cell:.1f}" if np.isfinite(cell) else "not run"
        ax.text(column, row, text, ha="center", va="center", fontsize=6, color="white" if dark else "#202020")
    ax.set_xticks(range(values.shape[1]), values.columns)
    ax.set_yticks(range(values.shape[0]), [f"{lam:g}" for lam in values.index])
    ax.grid(visible=False)
    parts.finish(ax, "LLM-JEPA: accuracy, per cent", "predictor tokens k", "λ")


def _rates(ax: Axes, study: Study) -> None:
    for name, factor in FACTORS.items():
        parts.dot(ax, parts.measured(study, f"points:sweep.{name}"), factor, NTP, across=False, shift=-0.09 * factor)
    ax.set_xscale("log")
    ax.set_xticks(list(FACTORS.values()), [f"{factor:g}".replace("0.", ".") for factor in FACTORS.values()])
    ax.minorticks_off()
    parts.finish(ax, "next token: rate search", "rate ÷ the base's rate", "accuracy, per cent")


def _choices(ax: Axes, study: Study) -> None:
    """Accuracy of the two chosen settings on the test pairs."""
    names = []
    for index, (search, appearance) in enumerate((("ntp", NTP), ("jepa", LLM_JEPA))):
        found = parts.measured(study, f"points:best({search})")
        parts.dot(ax, found, index, appearance, across=False)
        names.append(_setting(chosen(study, search)) if found.size else "not run")
    ax.set_xticks((0, 1), names)
    ax.set_xlim(-0.6, 1.6)
    parts.finish(ax, "chosen by validation", "", "accuracy, per cent")


def _setting(arm: str) -> str:
    """A searched arm's setting in words."""
    method = parts.method_of(arm)
    return f"rate × {FACTORS[method]:g}" if method in FACTORS else parts.arm_name(arm)


def _search_cost(ax: Axes, study: Study, metric: str, title: str, unit: str) -> None:
    totals = {}
    for search in ("ntp", "jepa"):
        values = pd.concat([parts.measured(study, f"{metric}:{arm}") for arm in searched(search)])
        totals[search] = float(len(values) if metric == "points" else values.sum())
    factor, unit = flops_unit(max(totals.values())) if metric == "pflops" else (1.0, unit)
    for index, (search, appearance) in enumerate((("ntp", NTP), ("jepa", LLM_JEPA))):
        ax.barh(-index, factor * totals[search], 0.55, color=appearance.color, alpha=0.45 if search == "jepa" else 0.3)
        parts.say(ax, f"{factor * totals[search]:,.3g}", (factor * totals[search], -index), (3, 0), va="center", fontsize=6.5)
    ax.set_yticks((0, -1), ("next token", "LLM-JEPA"))
    ax.margins(x=0.22)
    ax.grid(visible=False)
    parts.finish(ax, f"search: {title}", unit, "")


@figures.style()
def inference_cost(study: Study, context: RunContext) -> Figure:
    """Generation costs the same after either training: tokens a second and number of weights, and their ratios paired by seed."""
    fig, (speed, weights, ratio) = figures.canvas(1, 3, height=2.9)
    arms = ("main.ntp", "main.jepa")
    for ax, metric, title, unit in ((speed, "tokens_per_second", "speed of greedy decoding", "tokens a second"),
                                    (weights, "weights", "weights of the trained model", "thousands")):
        for index, arm in enumerate(arms):
            found = parts.measured(study, f"{metric}:{arm}")
            parts.dot(ax, found / 1e3 if metric == "weights" else found, index, parts.arm_look(arm), across=False)
        ax.set_xticks((0, 1), ("next token", "LLM-JEPA"))
        ax.set_xlim(-0.6, 1.6)
        ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
        parts.finish(ax, title, "", unit)
    ratio.axhline(1, color="0.55", linewidth=0.8, zorder=1)
    for index, metric in enumerate(("tokens_per_second", "weights")):
        parts.dot(ratio, parts.measured(study, f"{metric}:main.jepa/main.ntp"), index, LLM_JEPA, across=False)
    ratio.set_xticks((0, 1), ("tokens\na second", "weights"))
    ratio.set_xlim(-0.6, 1.6)
    parts.finish(ratio, "LLM-JEPA ÷ next token", "", "ratio, paired by seed")
    parts.sign(fig, study, context, arms, parts.handles("next token", "LLM-JEPA", "one seed"),
               extra="speed depends on the machine and on what else runs on it: only the ratio is compared")
    return fig
