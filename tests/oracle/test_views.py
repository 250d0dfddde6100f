"""Claims: the spectrum of the views' difference is numpy's, raw and over the mean norm; the residual of the linear map is that of numpy's
lstsq, on the same rows and on rows held out; retrieval and both mean cosines equal loops over pairs with scipy's cosine. Turning both
views by one rotation changes nothing; a common scale changes the raw spectrum alone; a narrow cone has large cosines and chance retrieval."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine
from scipy.stats import ortho_group

from jepa_nb.errors import ConfigError, NonFinite
from jepa_nb.metrics.views import difference_spectrum, linear_fit_residual, paired_and_shuffled_cosine, retrieval_at_1

METRICS = {
    "spectrum": lambda text, code: difference_spectrum(text, code).raw, "linear fit": linear_fit_residual,
    "retrieval": retrieval_at_1, "cosine": paired_and_shuffled_cosine,
}
shapes = st.tuples(st.integers(2, 14), st.integers(1, 9), st.integers(0, 10_000))


def views(rows: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two views (rows, width) that share a part, with an offset."""
    draw = np.random.default_rng(seed)
    shared = draw.normal(size=(rows, width))
    return shared + draw.normal(size=(rows, width)) + 0.5, 0.7 * shared + 0.5 * draw.normal(size=(rows, width))


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(array) for array in arrays]


@given(shape=shapes, top=st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_the_spectrum_is_numpys_of_the_difference(shape, top):
    text, code = views(*shape)
    found = difference_spectrum(*tensors(text, code), top=top)
    wanted = np.linalg.svd(text - code, compute_uv=False)[:top]
    norm = np.mean([np.linalg.norm(row) for row in (*text, *code)])
    np.testing.assert_allclose(found.raw, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.normalised, wanted / norm, rtol=1e-9, atol=1e-12)
    assert len(found.raw) == min(top, *shape[:2]) and (found.raw.diff() <= 0).all()


def test_a_hundred_values_at_most_unless_more_are_asked_for():
    text, code = tensors(*views(120, 110, 0))
    assert len(difference_spectrum(text, code).raw) == 100 and len(difference_spectrum(text, code, top=200).raw) == 110


def lstsq_residual(text: np.ndarray, code: np.ndarray, fitted: slice, measured: slice) -> float:
    found = np.linalg.lstsq(text[fitted], code[fitted], rcond=None)[0]
    return np.linalg.norm(text[measured] @ found - code[measured]) / np.linalg.norm(code[measured])


@given(shape=shapes)
@settings(max_examples=30, deadline=None)
def test_the_residual_is_that_of_numpys_least_squares(shape):
    text, code = views(*shape)
    half = -(-len(text) // 2)
    assert linear_fit_residual(*tensors(text, code)) == pytest.approx(lstsq_residual(text, code, slice(None), slice(None)), rel=1e-6, abs=1e-9)
    held_out = linear_fit_residual(*tensors(text, code), held_out=True)
    assert held_out == pytest.approx(lstsq_residual(text, code, slice(half), slice(half, None)), rel=1e-6, abs=1e-9)


def test_no_other_map_leaves_less_and_an_exact_map_leaves_nothing():
    text, code = views(40, 6, 1)
    found, draw = linear_fit_residual(*tensors(text, code)), np.random.default_rng(0)
    best = np.linalg.lstsq(text, code, rcond=None)[0]
    others = [np.linalg.norm(text @ (best + 0.01 * draw.normal(size=(6, 6))) - code) / np.linalg.norm(code) for _ in range(20)]
    assert 0.1 < found < min(others) < 1
    turned = text @ draw.normal(size=(6, 6))
    for held_out in (False, True):
        assert linear_fit_residual(*tensors(text, turned), held_out=held_out) < 1e-12


def test_a_fit_to_fewer_rows_than_columns_says_nothing_until_it_is_held_out():
    draw = np.random.default_rng(0)
    text, code = tensors(draw.normal(size=(20, 64)), draw.normal(size=(20, 64)))  # nothing in common
    assert linear_fit_residual(text, code) < 1e-10
    assert linear_fit_residual(text, code, held_out=True) > 0.9


def looped_retrieval(text: np.ndarray, code: np.ndarray) -> float:
    hits = [int(np.argmin([cosine(each, other) for other in code])) == row for row, each in enumerate(text)]
    return float(np.mean(hits))


@given(shape=st.tuples(st.integers(2, 14), st.integers(2, 9), st.integers(0, 10_000)))
@settings(max_examples=30, deadline=None)
def test_retrieval_and_cosines_equal_loops_with_scipys_cosine(shape):
    text, code = views(*shape)
    assert retrieval_at_1(*tensors(text, code)) == pytest.approx(looped_retrieval(text, code), abs=1e-12)
    every = np.array([[1 - cosine(each, other) for other in code] for each in text])
    paired, shuffled = paired_and_shuffled_cosine(*tensors(text, code))
    assert paired == pytest.approx(np.diagonal(every).mean(), abs=1e-9)
    assert shuffled == pytest.approx(every[~np.eye(len(text), dtype=bool)].mean(), abs=1e-9)


def test_the_first_of_equal_codes_is_taken_whatever_rounding_says():
    code = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.1, 0.2, 0.3], [-1.0, 0.0, 0.0]], dtype=torch.float64) / 3
    assert retrieval_at_1(code, code) == 0.5  # three Codes of one direction: the first Text has the first of them, the last its own
    assert retrieval_at_1(torch.ones(8, 4), torch.ones(8, 4)) == 1 / 8
    assert retrieval_at_1(code, code.flip(0)) == 0.25  # now the second of them comes first and is right


def test_a_narrow_cone_has_large_cosines_of_any_two_and_retrieval_by_chance():
    draw = np.random.default_rng(3)
    cone = np.full((300, 16), 5.0)
    text, code = tensors(cone + 0.1 * draw.normal(size=cone.shape), cone + 0.1 * draw.normal(size=cone.shape))
    paired, shuffled = paired_and_shuffled_cosine(text, code)
    assert paired > 0.99 and abs(paired - shuffled) < 1e-3
    assert retrieval_at_1(text, code) < 0.03
    assert paired_and_shuffled_cosine(torch.eye(8), torch.eye(8)) == (1.0, 0.0)


@given(shape=shapes)
@settings(max_examples=15, deadline=None)
def test_one_rotation_of_both_views_changes_nothing(shape):
    text, code = views(*shape)
    turn = ortho_group.rvs(text.shape[1], random_state=shape[2]) if text.shape[1] > 1 else -np.eye(1)
    before, after = tensors(text, code), tensors(text @ turn, code @ turn)
    for metric in METRICS.values():
        np.testing.assert_allclose(metric(*after), metric(*before), rtol=1e-6, atol=1e-9)


@given(shape=shapes, scale=st.floats(1e-3, 1e3))
@settings(max_examples=15, deadline=None)
def test_a_common_scale_changes_the_raw_spectrum_and_nothing_else(shape, scale):
    before = tensors(*views(*shape))
    after = [scale * view for view in before]
    old, new = difference_spectrum(*before), difference_spectrum(*after)
    np.testing.assert_allclose(new.raw, scale * old.raw, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(new.normalised, old.normalised, rtol=1e-9, atol=1e-9)
    for name in ("linear fit", "retrieval", "cosine"):
        np.testing.assert_allclose(METRICS[name](*after), METRICS[name](*before), rtol=1e-6, atol=1e-9)


def test_shrunken_states_look_alike_in_the_raw_spectrum_only():
    text, code = tensors(*views(50, 8, 2))
    raw, normalised = difference_spectrum(text / 1000, code / 1000)
    assert raw[0] < 0.1 < normalised[0] and normalised[0] == pytest.approx(float(difference_spectrum(text, code).normalised[0]), rel=1e-9)


def test_equal_views_and_zero_states_give_numbers():
    text, _ = tensors(*views(5, 3, 4))
    assert difference_spectrum(text, text).raw.abs().max() == 0 and retrieval_at_1(text, text) == 1.0
    zero = torch.zeros(5, 3)
    for spectrum in difference_spectrum(zero, zero):
        assert spectrum.tolist() == [0, 0, 0]
    assert linear_fit_residual(zero, zero) == 0.0 and paired_and_shuffled_cosine(zero, zero) == (0.0, 0.0)
    assert linear_fit_residual(zero, text) == pytest.approx(1.0)


def test_half_precision_is_measured_in_float64_and_gradients_are_not_tracked():
    text, code = (view.half().requires_grad_() for view in tensors(*views(30, 6, 5)))
    for name, metric in METRICS.items():
        found, wanted = metric(text, code), metric(text.detach().double(), code.detach().double())
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)
    assert difference_spectrum(text, code).raw.dtype == torch.float64


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_what_cannot_be_measured_is_named(metric):
    good, bad = torch.ones(4, 3), torch.ones(4, 3)
    bad[2, 1] = float("nan")
    with pytest.raises(ConfigError, match=r"text and code must have one shape, got \(4, 3\) and \(4, 2\)"):
        metric(good, torch.ones(4, 2))
    with pytest.raises(ConfigError, match="text must be a real tensor"):
        metric(torch.ones(3), torch.ones(3))
    with pytest.raises(ConfigError, match="code must be a real tensor"):
        metric(good, good.numpy())
    with pytest.raises(ConfigError, match="rows"):
        metric(torch.ones(0, 3), torch.ones(0, 3))
    with pytest.raises(NonFinite, match="code holds 1 NaN or infinite values, the first in row 2"):
        metric(good, bad)
    if metric is not METRICS["spectrum"]:
        with pytest.raises(ConfigError, match="at least 2 rows"):
            metric(torch.ones(1, 3), torch.ones(1, 3))


def test_one_pair_has_a_spectrum():
    assert difference_spectrum(torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]])).raw.tolist() == [5.0]
