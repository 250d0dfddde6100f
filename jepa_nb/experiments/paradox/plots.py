"""Paper A's figures 2, 3, 4 and the cosine figure. Each is drawn as published and as corrected, in two rows where they differ.

The x-axis is epochs: both the paper's trainings and these have 15, so the red line stands at the same place, 9,340 of the
15,000 published steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jepa_nb import figures
from jepa_nb.errors import require_known
from jepa_nb.experiments.paradox.measurements import EARLY, EVENT
from jepa_nb.experiments.paradox.study import Study
from jepa_nb.looks import look
from jepa_nb.metrics.geometry import RANK_KINDS
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {"text": "T-JEPA", "image": "I-JEPA"}
PAPER = {"mi": 0.35, "rank_early": 4.66, "rank_late": 1.57, "rank_image": (4.7, 4.85)}
RECIPES = {"scaled": "scaled recipe", "published": "unscaled recipe"}
BOTH, VAL = ("train", "val"), ("val",)
DASHED, DOTTED, LONG = (0, (3, 1.5)), (0, (1, 1.4)), (0, (6, 2))


def _draw(ax: Axes, study: Study, metric: str, variant: str, *, arm: str = "scaled", network: str = "target",
          splits: tuple[str, ...] = BOTH, modalities: tuple[str, ...] = ("text", "image"), dash: object = None,
          label: str = "") -> None:
    """Both modalities, train thin and validation bold. What has vanished has no place on a logarithmic axis and is left out."""
    for modality in modalities:
        for split in splits:
            rows = study.select(metric, variant, arm=arm, modality=modality, split=split, network=network).dropna()
            if ax.get_yscale() == "log":
                rows = rows[rows["value"] > 0]
            if len(rows):
                figures.curve(ax, rows, "epoch", "value", METHODS[modality], split=split, dash=dash,
                              label=f"{METHODS[modality]}{label}, {split}")


def _finish(ax: Axes, study: Study, title: str, ylabel: str) -> None:
    last = study.table["epoch"].max()
    ax.set_title(title, fontsize=7.5)
    ax.set(xlim=(0, last))
    ax.set_xlabel("epoch", fontsize=7)
    ax.set_ylabel(ylabel, fontsize=7)
    ax.tick_params(labelsize=6.5)
    if ax.get_yscale() == "log":
        figures.log_ticks(ax)
    figures.event(ax, EVENT * last)


def _sign(fig: Figure, axes: np.ndarray, study: Study, context: RunContext, arms: Iterable[str], extra: str = "") -> None:
    """One legend for all panels, and the scale of the run; ``arms`` are those that the figure draws."""
    named = {label: handle for ax in axes.flat for handle, label in zip(*ax.get_legend_handles_labels())}
    fig.legend(named.values(), named.keys(), loc="outside upper center", ncols=4, fontsize=6, frameon=False, handlelength=2.6)
    parts = [part for part in (_fewer_seeds(study, context, arms), extra, study.standins) if part]
    figures.scale_note(fig, context, "\n".join(parts))


def _fewer_seeds(study: Study, context: RunContext, arms: Iterable[str]) -> str:
    """Those of some arms that have fewer seeds than the headline one, in words."""
    counts = {arm: study.arm(arm)["seed"].nunique() for arm in arms}
    fewer = {arm: count for arm, count in counts.items() if count < len(context.seeds)}
    return ", ".join(f"{RECIPES.get(arm, arm.replace('_', ' '))}: {count} seed{'s' if count > 1 else ''}" for arm, count in fewer.items())


@figures.style()
def mi_and_rank(study: Study, context: RunContext, *, rank_kind: str = "eigenvalue_entropy") -> Figure:
    """Figure 2: MI proxy and effective rank, scaled recipe above, unscaled below; columns: the published proxy, the proxy
    conditioned on position, effective rank of tokens (online network dashed), and ranks as a share of their maximum.

    Args:
        study: the runs.
        context: the notebook's context.
        rank_kind: which effective rank to draw, see :func:`jepa_nb.metrics.geometry.effective_rank`.
    """
    require_known("kind of effective rank", rank_kind, RANK_KINDS)
    fig, axes = figures.canvas(2, 4, height=4.6, sharex=True)
    for (published, conditioned, rank, share), (arm, name) in zip(axes, RECIPES.items()):
        _draw(published, study, "mi", "published", arm=arm)
        figures.reported(published, 0.0, "paper: T-JEPA ≤ .35", high=PAPER["mi"])
        _finish(published, study, f"MI, published proxy\n{name}", "nats (of at most 7.6)")
        _draw(conditioned, study, "mi", "position_conditioned", arm=arm)
        _draw(conditioned, study, "mi", "uncontrolled", arm=arm, splits=VAL, dash=DOTTED, label=" uncontrolled")
        cap = study.select("mi_cap", "position_conditioned", arm=arm)["value"].mean()
        _finish(conditioned, study, f"MI given the position\n{name}", f"nats (of at most {cap:.1f})")
        rank.set_yscale("log")
        _draw(rank, study, "rank_tokens", rank_kind, arm=arm)
        _draw(rank, study, "rank_tokens", rank_kind, arm=arm, network="online", splits=VAL, dash=DASHED, label=" online")
        if rank_kind == "eigenvalue_entropy":
            figures.reported(rank, PAPER["rank_late"], "paper: T-JEPA 1.57")
            figures.reported(rank, PAPER["rank_image"][0], "paper: I-JEPA 4.8", high=PAPER["rank_image"][1])
        _finish(rank, study, f"effective rank of tokens\n{name}", rank_kind.replace('_', ' '))
        share.set_yscale("log")
        _draw(share, study, "rank_share_tokens", rank_kind, arm=arm, splits=VAL)
        _draw(share, study, "rank_share_pooled", rank_kind, arm=arm, splits=VAL, dash=LONG, label=" pooled")
        _finish(share, study, f"rank share\n{name}", "rank ÷ its maximum")
    _sign(fig, axes, study, context, RECIPES)
    return fig


@figures.style()
def loss_divergence(study: Study, context: RunContext) -> Figure:
    """Figure 3: train and validation loss, R² of the prediction, total target variance, and the effective rank on a logarithmic
    axis with the paper's two call-outs; rows: scaled recipe, unscaled recipe, and two controls of text under the scaled recipe."""
    fig, axes = figures.canvas(3, 4, height=6.6, sharex=True)
    names = RECIPES | {"single_pass": "controls of text"}
    for row, (arm, name) in zip(axes, names.items()):
        _loss_row(study, arm, name, *row)
    _call_outs(axes[0, 3], study)
    few = {"arm": "few_documents", "modalities": ("text",), "dash": DASHED, "label": " few reviews"}
    for ax, metric, variant, splits in zip(axes[2], ("loss", "r2", "total_variance", "rank_tokens"),
                                           ("published", "within_position", "tokens", "eigenvalue_entropy"), (BOTH, VAL, VAL, VAL)):
        _draw(ax, study, metric, variant, splits=splits, **few)
    _sign(fig, axes, study, context, (*names, "few_documents"))
    return fig


def _loss_row(study: Study, arm: str, name: str, loss: Axes, explained: Axes, total: Axes, rank: Axes) -> None:
    for ax in (loss, total, rank):
        ax.set_yscale("log")
    _draw(loss, study, "loss", "published", arm=arm)
    _finish(loss, study, f"loss\n{name}", "squared error, sum over dims")
    _draw(explained, study, "r2", "within_position", arm=arm, splits=VAL)
    _draw(explained, study, "r2", "total", arm=arm, splits=VAL, dash=DOTTED, label=" with position")
    explained.axhline(0, color="0.6", linewidth=0.7)
    explained.set_ylim(-1.5, 1)
    _finish(explained, study, "R² given position", "1 − loss ÷ target variance")
    for ax, metric, variant in ((total, "total_variance", "tokens"), (rank, "rank_tokens", "eigenvalue_entropy")):
        _draw(ax, study, metric, variant, arm=arm, splits=VAL)
        _draw(ax, study, metric, variant, arm=arm, network="online", splits=VAL, dash=DASHED, label=" online")
    _finish(total, study, "total variance", "sum over dims")
    _finish(rank, study, "effective rank", "eigenvalue entropy")


def _call_outs(ax: Axes, study: Study) -> None:
    """T-JEPA's rank at the two moments that the paper calls out, geometric mean over seeds, beside the paper's values."""
    rows = study.select("rank_tokens", "eigenvalue_entropy", modality="text")
    epochs = np.sort(rows["epoch"].unique())
    moments = ((epochs[np.abs(epochs - EARLY * epochs[-1]).argmin()], PAPER["rank_early"]), (epochs[-1], PAPER["rank_late"]))
    for (epoch, published), place in zip(moments, ((0.97, 0.95), (0.97, 0.52))):  # where no curve runs
        value = float(np.exp(np.log(rows[rows["epoch"] == epoch]["value"]).mean()))
        ax.annotate(f"{value:.1f} (paper {published})", (epoch, value), xytext=place, textcoords="axes fraction", fontsize=6,
                    ha="right", va="top", arrowprops={"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0})


@figures.style()
def irreducible_variance(study: Study, context: RunContext) -> Figure:
    """Figure 4: irreducible variance as published on a logarithmic and a linear axis, then as corrected, and its share, which
    has no bound where a collapsed target varies less than its completions do."""
    fig, axes = figures.canvas(2, 2, height=5.0, sharex=True)
    panels = ((axes[0, 0], "irreducible", "published", "log", "as published: masked LM, pixel noise", "variance"),
              (axes[0, 1], "irreducible", "published", "linear", "as published, linear axis", "variance"),
              (axes[1, 0], "irreducible", "corrected", "log", "corrected: joint completions, real patches", "variance"),
              (axes[1, 1], "irreducible_share", "corrected", "log", "corrected ÷ target variance at the position", "share"))
    for ax, metric, variant, scale, title, unit in panels:
        ax.set_yscale(scale)
        _draw(ax, study, metric, variant)
        _finish(ax, study, title, unit)
    _draw(axes[1, 1], study, "irreducible_share", "published", splits=VAL, dash=DOTTED, label=" as published")
    _sign(fig, axes, study, context, ("scaled",), _completer(study))
    return fig


def _completer(study: Study) -> str:
    """How good the trained masked LM is, beside token frequencies alone."""
    if "masked_lm_loss" not in study.masked_lm:
        return ""
    found = study.masked_lm
    return (f"completions by a masked LM with a held-out loss of {found['masked_lm_loss']:.2f} nats a token "
            f"(token frequencies alone: {found['unigram_loss']:.2f})")


@figures.style()
def cosine(study: Study, context: RunContext) -> Figure:
    """The cosine figure: mean, spread and 95th percentile of pairwise cosines, and their histogram first and last."""
    fig, axes = figures.canvas(2, 3, height=4.8)
    for ax, metric, title in zip(axes[0], ("cosine_mean", "cosine_sd", "cosine_p95"), ("mean", "sd", "95th percentile")):
        _draw(ax, study, metric, "published", splits=BOTH if metric == "cosine_mean" else VAL, network="online")
        _finish(ax, study, f"cosine, {title}\nscaled recipe", "cosine")
    _draw(axes[1, 0], study, "cosine_mean", "centred", splits=VAL, network="online")
    _finish(axes[1, 0], study, "cosine after centring, mean\nscaled recipe", "cosine")
    _draw(axes[1, 1], study, "cosine_mean", "published", arm="published", network="online")
    _finish(axes[1, 1], study, "cosine, mean\nunscaled recipe", "cosine")
    _histogram(axes[1, 2], study)
    _sign(fig, axes, study, context, RECIPES)
    return fig


def _histogram(ax: Axes, study: Study) -> None:
    """Share of pairs per bin, mean over seeds: T-JEPA first and last, I-JEPA last."""
    import seaborn

    last = study.table["step"].max()
    edges = np.linspace(-1, 1, 11)
    for modality, step, dash, name in (("text", 0, "dotted", "T-JEPA, untrained"), ("text", last, "solid", "T-JEPA, last"),
                                       ("image", last, "solid", "I-JEPA, last")):
        seaborn.histplot(x=(edges[1:] + edges[:-1]) / 2, weights=histogram(study, modality, step), bins=10, binrange=(-1, 1), element="step",
                         fill=False, color=look(modality).color, linestyle=dash, linewidth=1.4, label=name, ax=ax)
    ax.set_title("histogram of cosines\nscaled recipe", fontsize=7.5)
    ax.set_xlabel("cosine", fontsize=7)
    ax.set_ylabel("share of pairs", fontsize=7)
    ax.tick_params(labelsize=6.5)


def histogram(study: Study, modality: str, step: int) -> np.ndarray:
    """(10,) share of pairs per bin of [-1, 1] after ``step`` steps, mean over seeds, online network, validation data."""
    rows = study.arm("scaled")
    bins = rows[rows["metric"].str.startswith("cosine_bin_") & (rows["variant"] == "published") & (rows["split"] == "val")
                & (rows["network"] == "online") & (rows["modality"] == modality) & (rows["step"] == step)]
    return bins.groupby("metric")["value"].mean().sort_index().to_numpy()


FIGURES = {"paradox_fig2_mi_and_rank": (mi_and_rank, ("mi", "mi_cap", "rank_")),
           "paradox_fig3_loss_divergence": (loss_divergence, ("loss", "r2", "total_variance", "position_share", "rank_tokens")),
           "paradox_fig4_irreducible_variance": (irreducible_variance, ("irreducible", "token_variance")),
           "paradox_cosine_similarity": (cosine, ("cosine_",))}


def draw(name: str, study: Study, context: RunContext, **choices: Any) -> Figure:
    """The figure of that name; ``choices`` are the notebook's own parameters."""
    return FIGURES[name][0](study, context, **choices)


def table_under(name: str, study: Study) -> pd.DataFrame:
    """The tidy rows under a figure in a fixed order; of histograms the first and the last."""
    rows = study.table[study.table["metric"].str.startswith(FIGURES[name][1])].dropna(subset=["value"])
    ends = rows["step"].isin((0, rows["step"].max()))
    rows = rows[ends | ~rows["metric"].str.startswith("cosine_bin_")]
    return rows.sort_values(["arm", "modality", "seed", "split", "network", "metric", "variant", "step"]).reset_index(drop=True)
