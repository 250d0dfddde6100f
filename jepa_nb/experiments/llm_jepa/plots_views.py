"""Paper C's Figure 4 and its neighbour: where the two views of a pair lie, and how far they are from one another and from a linear map."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from jepa_nb import figures
from jepa_nb.experiments.llm_jepa import plots_parts as parts
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.looks import BLUE, ORANGE, look
from jepa_nb.metrics import views
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARMS = {"main.ntp": "next token", "main.jepa": "LLM-JEPA"}
JOINED, DRAWN = 30, 200  # pairs joined by a line, and pairs embedded
TOP = 100
VIEWS = {"text": ("Text", BLUE, "o"), "code": ("Code", ORANGE, "^")}


def embedding(study: Study, seed: int, *, perplexity: float = 30.0) -> pd.DataFrame:
    """t-SNE of the test pairs' views, Text and Code of an arm in one map: columns arm, seed, pair, view, x, y.

    PCA start and a fixed seed; an arm has its own map, so that places compare within a panel only.
    """
    from sklearn.manifold import TSNE

    found = []
    for arm in (arm for arm in ARMS if arm in study.arms):
        states = np.concatenate([each[:DRAWN] for each in study.views(arm, seed)])
        pairs = len(states) // 2
        usable = min(perplexity, (len(states) - 1) / 3)
        places = TSNE(perplexity=usable, init="pca", learning_rate="auto", random_state=seed).fit_transform(states.astype(np.float32))
        found.append(pd.DataFrame({"arm": arm, "seed": seed, "pair": np.tile(np.arange(pairs), 2), "view": np.repeat(list(VIEWS), pairs),
                                   "x": places[:, 0], "y": places[:, 1]}))
    return pd.concat(found, ignore_index=True)


def shown_seed(study: Study) -> int:
    """The first seed of the headline arms."""
    return int(study.table.loc[study.table["arm"].isin(ARMS), "seed"].min())


@figures.style()
def tsne(study: Study, context: RunContext, *, seed: int | None = None, perplexity: float = 30.0) -> Figure:
    """Figure 4: t-SNE of the views of one seed, with lines between the views of some pairs.

    Args:
        study: the runs.
        context: the notebook's context.
        seed: the run that is shown; the first one where None.
        perplexity: t-SNE's, lowered where there are too few pairs for it.
    """
    chosen = shown_seed(study) if seed is None else seed
    places = embedding(study, chosen, perplexity=perplexity)
    shown = list(dict.fromkeys(places["arm"]))
    fig, axes = figures.canvas(1, len(shown), height=3.9, squeeze=False)
    for ax, arm in zip(axes[0], shown):
        _map(ax, places[places["arm"] == arm])
        cosine = {variant: parts.measured(study, f"cosine.{variant}:{arm}").get(chosen, np.nan) for variant in ("paired", "shuffled")}
        right = parts.measured(study, f"retrieval_at_1:{arm}").get(chosen, np.nan)
        parts.finish(ax, f"{ARMS[arm]}\ncosine {cosine['paired']:.2f} in a pair, {cosine['shuffled']:.2f} across\n"
                         f"nearest Code right for {right:.0%}", "t-SNE 1", "t-SNE 2")
    pairs = places["pair"].nunique()
    parts.sign(fig, study, replace(context, seeds=(chosen,)), (),
               extra=f"seed {chosen}, {pairs} test pairs, {min(JOINED, pairs)} of them joined; each arm has a map of its own")
    return fig


def _map(ax: Axes, places: pd.DataFrame) -> None:
    text, code = (places[places["view"] == view].set_index("pair")[["x", "y"]] for view in VIEWS)
    for pair in np.linspace(0, len(text) - 1, min(JOINED, len(text))).astype(int):
        ax.plot(*zip(text.loc[pair], code.loc[pair]), color="0.45", linewidth=0.5, alpha=0.8, zorder=1)
    for rows, (name, color, marker) in zip((text, code), VIEWS.values()):
        ax.scatter(rows["x"], rows["y"], s=9, color=color, marker=marker, linewidths=0, alpha=0.8, label=name, zorder=2)
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)


def spectra(study: Study) -> pd.DataFrame:
    """Singular values of Enc(Text) − Enc(Code) over the test pairs: columns arm, seed, variant (raw, normalised), number (from 1) and
    value."""
    found = []
    for arm in (arm for arm in ARMS if arm in study.arms):
        for seed in sorted(study.table.loc[study.table["arm"] == arm, "seed"].unique()):
            text, code = (torch.as_tensor(np.asarray(each, dtype=np.float64)) for each in study.views(arm, int(seed)))
            spectrum = views.difference_spectrum(text, code, top=TOP)
            for variant in ("raw", "normalised"):
                values = np.asarray(getattr(spectrum, variant), dtype=float)
                numbered = pd.DataFrame({"number": np.arange(1, len(values) + 1), "value": values})
                found.append(numbered.assign(arm=arm, seed=seed, variant=variant))
    return pd.concat(found, ignore_index=True)


@figures.style()
def singular_values(study: Study, context: RunContext) -> Figure:
    """Figure 4's neighbour: top singular values of the views' difference, raw and over the mean norm, and what a linear map leaves."""
    values = spectra(study)
    fig, axes = figures.canvas(1, 3, height=3.2, width_ratios=(3, 3, 2))
    for ax, variant, title in zip(axes, ("raw", "normalised"), ("singular values, raw", "divided by the mean norm")):
        ax.set_yscale("log")
        for arm, name in ARMS.items():
            rows = values[(values["arm"] == arm) & (values["variant"] == variant) & (values["value"] > 0)]
            if len(rows):
                figures.curve(ax, rows, "number", "value", name, label=name)
        parts.finish(ax, f"{title}\nEnc(Text) − Enc(Code)", "number of the singular value", "singular value")
    for index, arm in enumerate(arm for arm in ARMS if arm in study.arms):
        parts.dot(axes[2], parts.measured(study, f"linear_residual:{arm}"), index, look(ARMS[arm]), across=False)
    axes[2].axhline(1, color="0.55", linewidth=0.8, linestyle=(0, (2, 2)))
    axes[2].set_xticks(range(len(ARMS)), ["next\ntoken", "LLM-\nJEPA"])
    axes[2].set_xlim(-0.6, 1.6)
    axes[2].set_ylim(0, max(1.1, axes[2].get_ylim()[1]))
    parts.finish(axes[2], "linear map to Code\nheld-out residual", "", "relative residual")
    parts.sign(fig, study, context, ARMS, extra="a relative residual of 1: the linear map explains nothing")
    return fig
