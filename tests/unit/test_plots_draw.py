"""The four figures of Paper A are drawn from real runs of the smoke tier.

1. Every panel has a title, axis labels, the paper's red line and at least one curve; one legend names them all. 2. The table
under a figure is tidy and finite, holds what the panels show, and nothing twice. 3. Histograms are shares of pairs. 4. The
study knows data, stand-ins, time shares and the masked LM. 5. A training of which the variance has vanished can be drawn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jepa_nb.experiments import registry
from jepa_nb.experiments.paradox import plots, study

NOTEBOOK = "paradox/fig3_loss_divergence"  # it reads all four arms
METRICS = {"paradox_fig2_mi_and_rank": {"mi", "mi_cap", "rank_tokens", "rank_share_tokens"},
           "paradox_fig3_loss_divergence": {"loss", "r2", "total_variance"},
           "paradox_fig4_irreducible_variance": {"irreducible", "irreducible_share"},
           "paradox_cosine_similarity": {"cosine_mean", "cosine_sd", "cosine_p95", "cosine_bin_00", "cosine_bin_09"}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Context and study of all arms at the smoke tier, trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JEPA_NB_BUILD", str(tmp_path_factory.mktemp("build")))
        context = registry.context(NOTEBOOK, tier="smoke")
        yield context, study.diagnostics(context)


def title(ax) -> str:
    return " ".join(ax.get_title(loc=place) for place in ("left", "center", "right")).strip()


@pytest.mark.parametrize("name", METRICS)
def test_every_panel_has_titles_axes_curves_and_the_event(name, runs):
    context, found = runs
    fig = plots.draw(name, found, context)
    assert len(fig.axes) >= 4
    for ax in fig.axes:
        assert title(ax) and ax.get_xlabel() and ax.get_ylabel()
        assert ax.get_legend_handles_labels()[1], title(ax)
        if "histogram" not in title(ax):
            assert any(np.allclose(line.get_xdata(), 2 * 9340 / 15000) for line in ax.lines)
    (legend,) = fig.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(set(labels)) == len(labels)
    assert all(any(name in label for label in labels) for name in ("T-JEPA", "I-JEPA"))
    note = fig._supxlabel.get_text()
    assert "smoke tier" in note and "2 seeds" in note and "generated sentences for C4" in note
    fig.canvas.draw()


@pytest.mark.parametrize("name", METRICS)
def test_the_table_under_a_figure_is_tidy_and_finite(name, runs):
    _context, found = runs
    table = plots.table_under(name, found)
    assert list(table.columns) == study.COLUMNS and METRICS[name] <= set(table["metric"])
    assert np.isfinite(table["value"]).all() and not table.duplicated(study.COLUMNS[:-1]).any()
    key = [column for column in study.COLUMNS if column not in ("epoch", "value")]
    assert not table.duplicated(key).any()
    assert set(table["modality"]) == {"text", "image"} and {"scaled", "published"} <= set(table["arm"])


def test_what_is_drawn_stands_in_the_table(runs):
    context, found = runs
    ax = next(ax for ax in plots.draw("paradox_cosine_similarity", found, context).axes
              if "cosine, mean\nscaled" in title(ax))
    line = next(line for line in ax.lines if line.get_label() == "T-JEPA, val")
    table = plots.table_under("paradox_cosine_similarity", found)
    rows = table.query("arm == 'scaled' and modality == 'text' and split == 'val' and network == 'online' and "
                       "metric == 'cosine_mean' and variant == 'published'")
    mean = rows.groupby("epoch")["value"].mean()
    assert np.allclose(line.get_xdata(), mean.index) and np.allclose(line.get_ydata(), mean)


def test_histograms_are_shares_of_pairs(runs):
    _context, found = runs
    for modality in ("text", "image"):
        for step in (0, found.table["step"].max()):
            shares = plots.histogram(found, modality, step)
            assert shares.shape == (10,) and shares.min() >= 0 and shares.sum() == pytest.approx(1)
    bins = plots.table_under("paradox_cosine_similarity", found).query("metric == 'cosine_bin_03'")
    assert set(bins["step"]) == {0, found.table["step"].max()}


def test_the_study_says_what_it_was_made_of(runs):
    context, found = runs
    assert "documents" in found.data["text"] and "training + " in found.data["image"]
    assert found.standins.startswith("generated sentences for C4; generated pictures for ImageNet; 1 layers of width 16")
    assert {"masked_lm_loss", "unigram_loss"} <= set(found.masked_lm)
    assert np.allclose(found.time_share.sum(axis=1), 1) and set(found.time_share.index) == {"text", "image"}
    assert set(found.table["arm"]) == {"scaled", "published", "single_pass", "few_documents"}
    assert set(found.arm("scaled")["seed"]) == set(context.seeds) == {0, 1}


def test_selection_separates_split_network_and_arm(runs):
    _context, found = runs
    one = found.select("total_variance", "tokens", modality="text", split="val", network="online")
    assert set(one["arm"]) == {"scaled"} and set(one["network"]) == {"online"} and len(one) == 2 * len(set(one["step"]))


def test_a_vanished_variance_can_be_drawn(runs):
    context, found = runs
    collapsed = found.table.copy()
    gone = collapsed["metric"].isin(("irreducible", "total_variance", "loss")) & (collapsed["modality"] == "text")
    collapsed.loc[gone & (collapsed["step"] > 0), "value"] = 0.0
    for name in ("paradox_fig3_loss_divergence", "paradox_fig4_irreducible_variance"):
        fig = plots.draw(name, replace(found, table=collapsed), context)
        fig.canvas.draw()
