"""The fifteen figures of Paper C, drawn from made-up numbers (``llm_jepa_drawn``: test data, nothing measured or reported).

1. Every figure is drawn from the arms of its notebook: every panel has a title and axis labels, the note names tier, seeds and stand-ins,
no text leaves the figure and no labels of an axis overlap. 2. Arms that a tier lacks are left out, and one seed has no interval. 3. The
table under a figure is tidy, finite, sorted, without duplicates, and holds what is drawn. 4. The paper's numbers are those of the claims,
with the mark of second-hand ones, in their own colour. 5. Next-token prediction and LLM-JEPA keep their looks. 6. The t-SNE is the same
each time.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import pairwise

import llm_jepa_drawn as drawn
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.text import Text

from jepa_nb import papers
from jepa_nb.errors import UnknownName
from jepa_nb.experiments.llm_jepa import comparisons, plots, plots_costs, plots_parts, plots_tables, plots_views
from jepa_nb.experiments.llm_jepa.arms import FULL_GRID, METHODS
from jepa_nb.looks import REPORTED, look

PREFIX = "llm_jepa_"
TABLES = [name for name in plots.FIGURES if "tab" in name or "lora" in name]


@pytest.fixture(autouse=True)
def made_up_claims(monkeypatch):
    """Made-up numbers stand for the paper's, so that a number typed into a plot would not be found."""
    monkeypatch.setattr(papers, "claims", lambda _paper: drawn.claims())


@functools.cache
def of(name: str):
    """The study of a figure's notebook."""
    return drawn.study(drawn.NOTEBOOKS[name.removeprefix(PREFIX)])


@functools.cache
def figure(name: str):
    """A figure of its notebook's study, under a context of five seeds; tests read it and change nothing."""
    return plots.draw(name, of(name), drawn.context((0, 1, 2, 3, 4)))


def title(ax) -> str:
    return ax.get_title(loc="left") or ax.get_title()


def words(fig) -> list[str]:
    return [text.get_text() for text in fig.findobj(Text) if text.get_visible() and text.get_text()]


def test_the_fifteen_figures_are_those_of_the_notebooks():
    assert {name.removeprefix(PREFIX) for name in plots.FIGURES} == set(drawn.NOTEBOOKS) and len(plots.FIGURES) == 15
    assert set(comparisons.PAIRS) == set(plots.FIGURES) and set(plots.METRICS) <= set(plots.FIGURES)
    for call in (lambda: plots.draw("llm_jepa_fig2", of("fig4_tsne"), drawn.context()), lambda: plots.table_under("fig1", of("fig4_tsne")),
                 lambda: comparisons.pairs("fig1")):
        with pytest.raises(UnknownName):
            call()


@pytest.mark.parametrize("name", plots.FIGURES)
def test_a_figure_is_complete_and_legible(name):
    fig = figure(name)
    fig.draw_without_rendering()
    for ax in fig.axes:
        beside = ax.get_shared_y_axes().get_siblings(ax)  # charts of one column of rows name them once
        assert title(ax) and (ax.get_xlabel() or _labels(ax.xaxis)) and (ax.get_ylabel() or any(_labels(each.yaxis) for each in beside))
        assert ax.lines or ax.collections or ax.images or ax.patches
    note = fig._supxlabel.get_text()
    assert "laptop tier" in note and "test data, not a measurement" in note
    assert "1 seed" in note if "tsne" in name else "3 seeds" in note  # of five asked for
    assert fig.legends and len({text.get_text() for text in fig.legends[0].get_texts()}) == len(fig.legends[0].get_texts())
    _texts_stay_inside(fig)


def _texts_stay_inside(fig) -> None:
    renderer = fig._get_renderer()
    labels = {axis: _labels(axis) for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)}
    ticks = {label for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
             for label in (tick.label1, tick.label2)}
    texts = [text for text in fig.findobj(Text) if text not in ticks] + [label for axis in labels.values() for label in axis]
    for text in texts:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= fig.bbox.x1 + 1 and box.y1 <= fig.bbox.y1 + 1, text.get_text()
    for axis, own in labels.items():
        ends = ("x0", "x1") if axis.axis_name == "x" else ("y0", "y1")
        boxes = [label.get_window_extent(renderer) for label in own]
        places = sorted(tuple(getattr(box, end) for end in ends) for box in boxes)
        assert all(before[1] <= after[0] + 1 for before, after in pairwise(places)), f"{title(axis.axes)}: labels of an axis overlap"


def _labels(axis) -> list[Text]:
    """Tick labels that are drawn: those of ticks in view."""
    low, high = sorted(axis.get_view_interval())
    labels = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [label for label in labels if label.get_text() and label.get_visible()]


@pytest.mark.parametrize("name", plots.FIGURES)
def test_arms_that_were_not_run_are_left_out(name):
    fewer = drawn.study([arm for arm in drawn.NOTEBOOKS[name.removeprefix(PREFIX)] if arm.endswith((".ntp", ".jepa"))], seeds=(0,))
    if "tsne" not in name:  # drawn from one seed in any case
        assert plots.draw(name, fewer, drawn.context((0,))).axes
    assert set(comparisons.table(name, fewer)["n"]) <= {1}


@pytest.mark.parametrize("name", [*plots.FIGURES])
def test_the_table_under_a_figure_is_tidy(name):
    study = of(name)
    spoiled = study.table.copy()
    spoiled.loc[(spoiled["metric"] == "accuracy") & (spoiled["step"] == 0), "value"] = np.nan
    table = plots.table_under(name, replace(study, table=spoiled))
    values = [column for column in table.columns if column in ("value", "x", "y")]
    keys = [column for column in table.columns if column not in ("epoch", *values)]
    assert len(table) and values and np.isfinite(table[values]).all(axis=None) and not table.duplicated(keys).any()
    assert list(table.index) == list(range(len(table))) and set(table["arm"]) <= set(study.arms)
    if "tsne" not in name:
        pd.testing.assert_frame_equal(table, table.sort_values(keys, kind="stable"))


def test_what_is_drawn_stands_in_the_table():
    name = "llm_jepa_fig3_loss_curves"
    study, table = of(name), plots.table_under(name, of(name))
    ax = next(ax for ax in figure(name).axes if title(ax) == "JEPA term, test pairs")
    line = next(line for line in ax.lines if line.get_label() == "next token")
    rows = table.query("arm == 'main.ntp' and metric == 'jepa_distance' and split == 'test'")
    assert np.allclose(line.get_ydata(), np.exp(np.log(rows["value"]).groupby(rows["epoch"]).mean())) and ax.get_yscale() == "log"
    spectra = plots.table_under("llm_jepa_fig4_singular_values", study)
    text, code = (each.astype(float) for each in study.views("main.jepa", 1))
    rows = spectra.query("arm == 'main.jepa' and seed == 1 and metric == 'singular_value' and variant == 'raw'")
    assert np.allclose(rows["value"], np.linalg.svd(text - code, compute_uv=False)[:100], rtol=1e-6)
    assert set(spectra["metric"]) == {"singular_value", "linear_residual"}


def _centres(ax, color) -> list[float]:
    return [float(bars.lines[0].get_xdata()[0]) for bars in ax.containers if same_color(bars.lines[0].get_color(), color)]


@pytest.mark.parametrize("name", TABLES)
def test_a_chart_shows_the_mean_of_each_arm_and_its_paired_difference(name):
    study = of(name)
    left, right = figure(name).axes
    for ntp, appearance in ((True, look("next token")), (False, look("LLM-JEPA"))):
        rows = [arm for arm in plots_tables.arms_of_rows(name) if arm in study.arms and plots_parts.is_baseline(arm) == ntp]
        wanted = [plots_parts.measured(study, f"{comparisons.quantity(name, arm)}:{arm}").mean() for arm in rows]
        assert _centres(left, appearance.color) == pytest.approx(wanted) and wanted
    differences = {arm: low for arm, low in zip(comparisons.made(name, study), comparisons.table(name, study)["difference (points)"])}
    assert sorted(_centres(right, look("LLM-JEPA").color)) == pytest.approx(sorted(differences.values()))


def test_the_papers_numbers_are_the_claims_and_marked_as_second_hand():
    name = "llm_jepa_tab12_models_datasets"
    fig = figure(name)
    assert _centres(fig.axes[0], REPORTED) == [11.5, 22.25, 33.0, 44.5]
    assert {"11.5°", "22.2°", "33.0°", "44.5°", "+10.8°", "+11.5°"} <= set(words(fig))
    assert plots_parts.cited(papers.Reported(("summary",), value=-1.0), "+.1f") == "−1.0"
    labels = [label.get_text() for label in fig.axes[0].get_yticklabels()]
    assert "regex, people's words: LLM-JEPA" in labels and not any("Gemma" in label for label in labels)  # neither run nor stated


def test_the_papers_number_is_taken_from_the_figures_own_claim_first_and_from_the_same_setting(monkeypatch):
    said = papers.Reported(("summary",), value=77.0)
    own = replace(drawn.claims()["T.main.ntp"], id="T.own", figure="llm_jepa_tab10_gamma", reported=said)
    monkeypatch.setattr(papers, "claims", lambda _paper: drawn.claims() | {"T.own": own})
    assert plots_parts.published("llm_jepa_tab10_gamma", "points:sweep.ntp").value == 77.0
    assert plots_parts.published("llm_jepa_tab3_ablation", "points:sweep.ntp").value == 11.5
    assert plots_parts.published("llm_jepa_fig1_accuracy", "points:sweep.ntp") is None  # it shows main in its own right
    assert plots_parts.published("llm_jepa_tab3_ablation", "points:large.ntp") is None
    assert plots_parts.published("llm_jepa_tab3_ablation", "points:sweep.l2").value == 3.75
    assert plots_parts.published("llm_jepa_tab10_gamma", "points:sweep.dropout75") is None  # another figure's, under other conditions


def test_loss_dropout_draws_costs_and_what_the_paper_states_for_it():
    name = "llm_jepa_fig5_loss_dropout"
    study = of(name)
    left, right = figure(name).axes
    assert "paper: α .75 41.0°" in words(left) and "TFLOPs" in left.get_xlabel()
    assert any(np.allclose(line.get_ydata(), 41.0) and same_color(line.get_color(), REPORTED) for line in left.lines)
    for arm in ("sweep.jepa", "sweep.dropout50", "sweep.dropout75"):
        ratio = (study.last(arm, "pflops", "counted", "train") / study.last("sweep.ntp", "pflops", "counted", "train")).mean()
        assert f"{ratio:.2f}" in words(right)
    assert plots_costs.flops_unit(3.0) == (1.0, "PFLOPs") and plots_costs.flops_unit(3e-5)[1] == "GFLOPs"


def test_the_grid_of_a_search_holds_each_setting_and_leaves_gaps():
    study = of("llm_jepa_lambda_k")
    grid = plots_costs.grid(study)
    assert list(grid.index) == [0.5, 1.0, 2.0] and list(grid.columns) == [0, 1, 3] and grid.isna().sum().sum() == 2
    assert grid.loc[2.0, 3] == pytest.approx(100 * study.last("sweep.lam20_k3", "accuracy").mean())
    assert grid.loc[1.0, 1] == pytest.approx(100 * study.last("sweep.jepa", "accuracy").mean())
    published = drawn.study([f"sweep.{name}" for name in ("jepa", *FULL_GRID)], seeds=(0,))
    assert plots_costs.grid(published).notna().all(axis=None) and plots_costs.grid(published).shape == (4, 5)
    trainings = figure("llm_jepa_lambda_k").axes[3]
    assert [text for text in words(trainings) if text == "18"] == ["18", "18"]  # six settings, three seeds


def test_faults_of_the_answer_rules_are_drawn_where_they_were_measured():
    name = "llm_jepa_ext_published_pitfalls"
    study = of(name)
    assert len(figure(name).axes) == 2
    without = drawn.study([arm for arm in study.arms if arm.startswith("sweep.")])
    assert len(plots.draw(name, without, drawn.context()).axes) == 1


def test_the_audit_shows_chance_and_adjusted_p():
    study = of("llm_jepa_ext_audit")
    fig = figure("llm_jepa_ext_audit")
    retrieval = fig.axes[3]
    assert any(np.allclose(line.get_xdata(), 100 / drawn.PAIRS) for line in retrieval.lines)
    adjusted = comparisons.table("llm_jepa_ext_audit", study)["p Holm"]
    assert {f"{p:.3f}".lstrip("0") for p in adjusted if 0.001 < p < 1} <= set(words(fig.axes[1]))
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()][-2:] == ["next token, searched", "LLM-JEPA, searched"]


def test_the_map_of_the_views_is_the_same_each_time_and_joins_thirty_pairs():
    study = of("llm_jepa_fig4_tsne")
    once, again = (plots_views.embedding(study, 1, perplexity=5) for _ in range(2))
    pd.testing.assert_frame_equal(once, again)
    assert len(once) == 2 * 2 * drawn.PAIRS and not once.duplicated(["arm", "pair", "view"]).any()
    for ax in plots.draw("llm_jepa_fig4_tsne", study, drawn.context(), seed=1, perplexity=5).axes:
        assert len(ax.lines) == plots_views.JOINED and len(ax.collections) == 2
        arm = "main.ntp" if title(ax).startswith("next") else "main.jepa"
        places = once[once["arm"] == arm].set_index(["view", "pair"])[["x", "y"]]
        x, y = ax.lines[0].get_data()
        assert np.allclose([[x[0], y[0]], [x[1], y[1]]], [places.loc["text", 0], places.loc["code", 0]])


def test_looks_tell_the_two_objectives_apart():
    ntp = ("main.ntp", "main.ntp_flops", "best(ntp)", "sweep.rate_five", "adapters.lora8_ntp", "sentiment.from_ntp", "sweep.all_labels_ntp")
    assert all(plots_parts.arm_look(arm) == look("next token") for arm in ntp)
    jepa = ("main.jepa", "best(jepa)", "sweep.lam20_k3", "adapters.lora8_jepa", "sentiment.from_jepa", "sweep.gamma0", "main.shuffled")
    assert all(plots_parts.arm_look(arm) == look("LLM-JEPA") for arm in jepa)
    assert len({plots_parts.arm_name(f"sweep.{method}") for method in METHODS}) == len(METHODS)


def test_one_seed_has_no_interval():
    bars = [each for each in figure("llm_jepa_tab4_qa_reasoning").axes[0].containers if not same_color(each.lines[0].get_color(), REPORTED)]
    assert [each.has_xerr for each in bars] == [False, False, True, True]  # NQ-Open has one seed on a laptop
