"""Paper A's figures 2, 3, 4 and the cosine figure. Each is drawn as published and as corrected, in two rows where they differ.

The x-axis is epochs: both the paper's trainings and these have 15, so the red line stands at the same place, 9,340 of the
15,000 published steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from jepa_nb import figures
from jepa_nb.experiments.paradox.measurements import EVENT
from jepa_nb.experiments.paradox.study import Study
from jepa_nb.looks import look
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {"text": "T-JEPA", "image": "I-JEPA"}
PAPER = {"mi": 0.35, "rank_early": 4.66, "rank_late": 1.57, "rank_image": (4.7, 4.85)}
RECIPES = {"scaled": "scaled recipe", "published": "unscaled recipe"}
XLABEL = "epoch"


def _draw(ax: Axes, study: Study, metric: str, variant: str, *, arm: str = "scaled", network: str = "target",
          splits: tuple[str, ...] = ("train", "val"), modalities: tuple[str, ...] = ("text", "image"), dash: object = None,
          label: str = "") -> None:
    """Both modalities, train thin and validation bold."""
    for modality in modalities:
        for split in splits:
            rows = study.select(metric, variant, arm=arm, modality=modality, split=split, network=network).dropna()
            if len(rows):
                figures.curve(ax, rows, "epoch", "value", METHODS[modality], split=split, dash=dash,
                              label=f"{METHODS[modality]}{label}, {split}")


def _finish(ax: Axes, study: Study, title: str, ylabel: str, *, legend: bool = False) -> None:
    last = study.table["epoch"].max()
    ax.set(title=title, xlabel=XLABEL, ylabel=ylabel, xlim=(0, last))
    figures.event(ax, EVENT * last)
    if legend:
        ax.legend(fontsize=6.5)


@figures.style()
def mi_and_rank(study: Study, context: RunContext) -> Figure:
    """Figure 2: MI proxy and effective rank, scaled recipe above, unscaled below; columns: the published proxy, the proxy
    conditioned on position, effective rank of the target network's tokens with the online network dashed."""
    fig, axes = figures.canvas(2, 3, height=4.6, sharex=True)
    for row, (arm, name) in enumerate(RECIPES.items()):
        published, conditioned, rank = axes[row]
        _draw(published, study, "mi", "published", arm=arm)
        figures.reported(published, 0.0, "paper: T-JEPA ≤ .35", high=PAPER["mi"])
        _finish(published, study, f"MI, published proxy\n({name})", "nats", legend=row == 0)
        _draw(conditioned, study, "mi", "position_conditioned", arm=arm)
        _draw(conditioned, study, "mi", "uncontrolled", arm=arm, splits=("val",), dash=(0, (1, 1.4)), label=" uncontrolled")
        cap = study.select("mi_cap", "position_conditioned", arm=arm)["value"].mean()
        conditioned.axhline(cap, color="0.6", linewidth=0.7)
        conditioned.annotate("cap", (0.02, cap), xycoords=("axes fraction", "data"), va="bottom", fontsize=6.5, color="0.4")
        _finish(conditioned, study, f"MI given the position\n({name})", "nats", legend=row == 0)
        rank.set_yscale("log")
        _draw(rank, study, "rank_tokens", "eigenvalue_entropy", arm=arm)
        _draw(rank, study, "rank_tokens", "eigenvalue_entropy", arm=arm, network="online", splits=("val",), dash=(0, (3, 1.5)),
              label=" online")
        figures.reported(rank, PAPER["rank_late"], "paper: T-JEPA 1.57")
        figures.reported(rank, PAPER["rank_image"][0], "paper: I-JEPA 4.8", high=PAPER["rank_image"][1])
        _finish(rank, study, f"effective rank, eigenvalue entropy\n({name})", "dimensions", legend=row == 0)
    figures.scale_note(fig, context, study.standins)
    return fig


@figures.style()
def loss_divergence(study: Study, context: RunContext) -> Figure:
    """Figure 3: train and validation loss, loss over target variance (R²), and total target variance."""
    fig, axes = figures.canvas(2, 3, height=4.6, sharex=True)
    for row, (arm, name) in enumerate(RECIPES.items()):
        loss, explained, total = axes[row]
        loss.set_yscale("log")
        _draw(loss, study, "loss", "published", arm=arm)
        _finish(loss, study, f"loss, as published\n({name})", "squared error, sum over dims", legend=row == 0)
        _draw(explained, study, "r2", "within_position", arm=arm, splits=("val",))
        _draw(explained, study, "r2", "total", arm=arm, splits=("val",), dash=(0, (1, 1.4)), label=" with position")
        explained.axhline(0, color="0.6", linewidth=0.7)
        explained.set_ylim(-1.5, 1)
        _finish(explained, study, f"R² given the position\n({name})", "1 − loss / target variance", legend=row == 0)
        total.set_yscale("log")
        _draw(total, study, "total_variance", "tokens", arm=arm, splits=("val",))
        _draw(total, study, "total_variance", "tokens", arm=arm, network="online", splits=("val",), dash=(0, (3, 1.5)),
              label=" online")
        _finish(total, study, f"total variance of the tokens\n({name})", "sum over dims", legend=row == 0)
    figures.scale_note(fig, context, study.standins)
    return fig


@figures.style()
def irreducible_variance(study: Study, context: RunContext) -> Figure:
    """Figure 4: irreducible variance as published on a logarithmic and a linear axis, then as corrected, and its share."""
    fig, axes = figures.canvas(2, 2, height=4.6, sharex=True)
    panels = ((axes[0, 0], "irreducible", "published", "log", "as published: masked LM / pixel noise", "variance"),
              (axes[0, 1], "irreducible", "published", "linear", "as published, linear", "variance"),
              (axes[1, 0], "irreducible", "corrected", "log", "corrected: joint completions / real patches", "variance"),
              (axes[1, 1], "irreducible_share", "corrected", "linear", "corrected ÷ target variance at the position", "share"))
    for ax, metric, variant, scale, title, unit in panels:
        ax.set_yscale(scale)
        _draw(ax, study, metric, variant)
        _finish(ax, study, title, unit, legend=ax is axes[0, 0])
    _draw(axes[1, 1], study, "irreducible_share", "published", splits=("val",), dash=(0, (1, 1.4)), label=" as published")
    axes[1, 1].legend(fontsize=6.5)
    figures.scale_note(fig, context, study.standins)
    return fig


@figures.style()
def cosine(study: Study, context: RunContext) -> Figure:
    """The cosine figure: mean, spread and 95th percentile of pairwise cosines, and their histogram first and last."""
    fig, axes = figures.canvas(2, 3, height=4.6)
    for ax, metric, title in ((axes[0, 0], "cosine_mean", "mean"), (axes[0, 1], "cosine_sd", "standard deviation"),
                              (axes[0, 2], "cosine_p95", "95th percentile")):
        _draw(ax, study, metric, "published", splits=("train", "val") if metric == "cosine_mean" else ("val",), network="online")
        _finish(ax, study, f"pairwise cosine, {title}", "cosine", legend=metric == "cosine_mean")
    _draw(axes[1, 0], study, "cosine_mean", "centred", splits=("val",), network="online")
    _finish(axes[1, 0], study, "mean after centring", "cosine")
    _draw(axes[1, 1], study, "cosine_mean", "published", arm="published", splits=("val",), network="online")
    _finish(axes[1, 1], study, "mean (unscaled recipe)", "cosine", legend=True)
    _histogram(axes[1, 2], study)
    figures.scale_note(fig, context, study.standins)
    return fig


def _histogram(ax: Axes, study: Study) -> None:
    """Share of pairs per bin, mean over seeds: T-JEPA first and last, I-JEPA last."""
    last = study.table["step"].max()
    edges = np.linspace(-1, 1, 11)
    for modality, step, dash, name in (("text", 0, "dotted", "T-JEPA, untrained"), ("text", last, "solid", "T-JEPA, last"),
                                       ("image", last, "solid", "I-JEPA, last")):
        ax.stairs(histogram(study, modality, step), edges, color=look(modality).color, linestyle=dash, linewidth=1.4, label=name)
    ax.set(title="histogram of cosines", xlabel="cosine", ylabel="share of pairs")
    ax.legend(fontsize=6.5)


def histogram(study: Study, modality: str, step: int) -> np.ndarray:
    """(10,) share of pairs per bin of [-1, 1] after ``step`` steps, mean over seeds, online network, validation data."""
    rows = study.arm("scaled")
    bins = rows[rows["metric"].str.startswith("cosine_bin_") & (rows["variant"] == "published") & (rows["split"] == "val")
                & (rows["network"] == "online") & (rows["modality"] == modality) & (rows["step"] == step)]
    return bins.groupby("metric")["value"].mean().sort_index().to_numpy()


FIGURES = {"paradox_fig2_mi_and_rank": (mi_and_rank, ("mi", "mi_cap", "rank_")),
           "paradox_fig3_loss_divergence": (loss_divergence, ("loss", "r2", "total_variance", "position_share", "predicted_variance")),
           "paradox_fig4_irreducible_variance": (irreducible_variance, ("irreducible", "token_variance")),
           "paradox_cosine_similarity": (cosine, ("cosine_",))}


def draw(name: str, study: Study, context: RunContext) -> Figure:
    """The figure of that name."""
    return FIGURES[name][0](study, context)


def table_under(name: str, study: Study) -> pd.DataFrame:
    """The tidy rows that a figure draws, of all arms it reads, in a fixed order."""
    rows = study.table[study.table["metric"].str.startswith(FIGURES[name][1])].dropna(subset=["value"])
    return rows.sort_values(["arm", "modality", "seed", "split", "network", "metric", "variant", "step"]).reset_index(drop=True)
