"""A method looks the same everywhere and can be told from the others without colour; curves show mean and interval.

1. Marker and dash are unique. 2. Methods that share an axis differ in grey. 3. A band is Student's interval over seeds.
4. Train is thin, validation bold. 5. Bad data is refused.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from jepa_nb import figures
from jepa_nb.errors import ConfigError, NonFinite, UnknownName
from jepa_nb.looks import ALIASES, METHODS, TOGETHER, look, luminance
from jepa_nb.metrics.statistics import t_interval


def test_marker_and_dash_tell_all_methods_apart():
    pairs = [(method.marker, str(method.dash)) for method in METHODS.values()]
    assert len(set(pairs)) == len(pairs)


def test_methods_on_one_axis_differ_in_grey_or_in_dash():
    for one, other in TOGETHER:
        apart = abs(luminance(look(one).color) - luminance(look(other).color))
        assert apart >= 0.1 or look(one).dash != look(other).dash, (one, other)


def test_text_is_orange_and_image_blue_and_far_apart_in_grey():
    assert look("text") == look("T-JEPA") and look("image") == look("I-JEPA")
    red, green, blue = (int(look("T-JEPA").color[i:i + 2], 16) for i in (1, 3, 5))
    assert red > green > blue
    assert luminance(look("T-JEPA").color) - luminance(look("I-JEPA").color) > 0.15


def test_every_colour_stands_out_from_white():
    for name, method in METHODS.items():
        contrast = 1.05 / (luminance(method.color) + 0.05)
        assert contrast >= 1.2 and (contrast >= 2 or method.dash != "solid"), name


def test_luminance_runs_from_black_to_white():
    assert luminance("#000000") == 0 and luminance("#ffffff") == pytest.approx(1)
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


def test_an_unknown_method_offers_the_nearest():
    with pytest.raises(UnknownName, match="T-JEPA"):
        look("T-JEP")
    assert set(ALIASES.values()) <= set(METHODS)


def runs(seeds=3):
    rng = np.random.default_rng(0)
    rows = [(seed, step, 2 + rng.random()) for seed, step in itertools.product(range(seeds), (0, 10, 20))]
    return pd.DataFrame(rows, columns=["seed", "step", "value"])


def axis(scale="linear"):
    _, ax = figures.canvas()
    ax.set_yscale(scale)
    return ax


def band(ax):
    vertices = ax.collections[0].get_paths()[0].vertices
    return {x: (vertices[vertices[:, 0] == x, 1].min(), vertices[vertices[:, 0] == x, 1].max()) for x in (0, 10, 20)}


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_band_is_students_interval_over_seeds(scale):
    table, ax = runs(), axis(scale)
    line = figures.curve(ax, table, "step", "value", "T-JEPA")
    to, back = (np.log, np.exp) if scale == "log" else (np.asarray, float)
    for index, step in enumerate((0, 10, 20)):
        expected = t_interval(to(table.loc[table.step == step, "value"].to_numpy()))
        assert line.get_ydata()[index] == pytest.approx(back(expected.mean))
        assert band(ax)[step] == pytest.approx((back(expected.low), back(expected.high)))


def test_one_seed_draws_a_line_without_a_band():
    ax = axis()
    line = figures.curve(ax, runs(seeds=1), "step", "value", "I-JEPA")
    assert len(line.get_ydata()) == 3 and not np.isfinite(ax.collections[0].get_datalim(ax.transData).get_points()).all()


def test_rows_that_were_not_measured_are_left_out():
    table = runs()
    table.loc[table.step == 10, "value"] = np.nan
    assert list(figures.curve(axis(), table, "step", "value", "T-JEPA").get_xdata()) == [0, 20]


def test_train_is_thin_and_validation_bold():
    ax = axis()
    train, val = (figures.curve(ax, runs(), "step", "value", "T-JEPA", split=split) for split in ("train", "val"))
    assert train.get_linewidth() < val.get_linewidth() and train.get_color() == val.get_color() == look("T-JEPA").color
    assert train.get_label() == "T-JEPA, train"


def test_bad_data_is_refused():
    with pytest.raises(NonFinite, match="infinity"):
        figures.curve(axis(), runs().assign(value=np.inf), "step", "value", "T-JEPA")
    with pytest.raises(ConfigError, match="no value"):
        figures.curve(axis(), runs().assign(value=np.nan), "step", "value", "T-JEPA")
    with pytest.raises(ConfigError, match="several values"):
        figures.curve(axis(), pd.concat([runs(), runs()]), "step", "value", "T-JEPA")
    with pytest.raises(ConfigError, match="logarithmic"):
        figures.curve(axis("log"), runs().assign(value=-1.0), "step", "value", "T-JEPA")
    with pytest.raises(UnknownName, match="val"):
        figures.curve(axis(), runs(), "step", "value", "T-JEPA", split="valid")


def test_widths_are_in_inches_and_the_style_is_found():
    import matplotlib

    fig, _ = figures.canvas(width="column", height=2.0)
    assert fig.get_size_inches().tolist() == [3.35, 2.0]
    with figures.style():
        assert matplotlib.rcParams["pdf.fonttype"] == 42 and not matplotlib.rcParams["text.usetex"]
        assert not matplotlib.rcParams["axes.spines.top"]
    with pytest.raises(UnknownName, match="column"):
        figures.canvas(width="colum")
