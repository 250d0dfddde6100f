"""Claims: conditional variance equals the pairwise identity and numpy; the variance splits into within and between groups;
intervals and paired tests equal scipy; the bootstrap covers; Holm equals the closed test that it abbreviates."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

from jepa_nb.metrics.statistics import bootstrap_ci, holm, paired_test, t_interval
from jepa_nb.metrics.variance import (
    conditional_variance,
    explained_by_groups,
    group_means,
    pairwise_variance,
    r2,
    total_variance,
    within_group_variance,
)


def completions(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(7, 16, 12)) * generator.exponential(size=(7, 1, 1)) + 3, generator.exponential(size=(7, 16))


def test_unweighted_conditional_variance_equals_numpy():
    x, _ = completions()
    np.testing.assert_allclose(conditional_variance(torch.tensor(x)), x.var(1, ddof=1).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(conditional_variance(torch.tensor(x), unbiased=False), x.var(1).sum(-1), rtol=1e-12)


def test_conditional_variance_equals_the_pairwise_identity():
    x, weights = completions()
    p = weights / weights.sum(1, keepdims=True)
    explicit = [sum(p[c, i] * p[c, j] * ((x[c, i] - x[c, j]) ** 2).sum() for i, j in itertools.combinations(range(16), 2))
                for c in range(7)]
    for unequal in (None, torch.tensor(weights)):
        by_mean = conditional_variance(torch.tensor(x), unequal, unbiased=False)
        np.testing.assert_allclose(by_mean, pairwise_variance(torch.tensor(x), unequal), rtol=1e-12)
    np.testing.assert_allclose(conditional_variance(torch.tensor(x), torch.tensor(weights)), explicit, rtol=1e-12)


def test_two_atoms_of_one_half_have_a_quarter_of_the_squared_distance():
    x = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]])
    assert conditional_variance(x, torch.tensor([[0.5, 0.5]])).item() == pytest.approx(25 / 4)
    assert conditional_variance(x).item() == pytest.approx(25 / 2)


def test_total_variance_splits_into_within_and_between_groups():
    generator = np.random.default_rng(1)
    groups = generator.integers(0, 6, 90)
    x = generator.normal(size=(90, 5)) + generator.normal(size=(6, 5))[groups]
    means = np.stack([x[groups == g].mean(0) for g in range(6)])
    between = sum((groups == g).sum() * ((means[g] - x.mean(0)) ** 2).sum() for g in range(6))
    within = within_group_variance(torch.tensor(x), torch.tensor(groups))
    total = total_variance(torch.tensor(x))
    assert total == pytest.approx(np.trace(np.cov(x, rowvar=False)), rel=1e-12)
    assert within * (90 - 6) + between == pytest.approx(total * 89, rel=1e-12)
    assert explained_by_groups(torch.tensor(x), torch.tensor(groups)) == pytest.approx(1 - within / total)
    np.testing.assert_allclose(group_means(torch.tensor(x), torch.tensor(groups)), means, rtol=1e-12)


def test_meaningless_labels_explain_nothing_on_average_even_when_groups_are_small():
    generator = torch.Generator().manual_seed(0)
    shares = [explained_by_groups(torch.randn(60, 4, generator=generator), torch.arange(60) % 30) for _ in range(100)]
    assert abs(np.mean(shares)) < 3 * np.std(shares) / 10


def test_r2_of_a_constant_target_is_undefined_and_of_the_mean_is_zero():
    assert math.isnan(r2(0.0, 0.0))
    assert r2(4.0, 4.0) == 0.0 and r2(1.0, 4.0) == 0.75


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_t_interval_equals_scipy(n, level):
    x = np.random.default_rng(n).normal(3, 2, n)
    low, high = scipy.stats.t.interval(level, n - 1, loc=x.mean(), scale=scipy.stats.sem(x))
    assert t_interval(x, level) == pytest.approx((x.mean(), low, high, n), rel=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [2, 5, 12])
def test_paired_test_equals_scipy(alternative, n):
    generator = np.random.default_rng(n)
    a, b = generator.normal(0.4, 1, n), generator.normal(0, 1, n)
    expected = scipy.stats.ttest_rel(a, b, alternative=alternative)
    interval = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
    found = paired_test(a, b, alternative=alternative)
    assert found == pytest.approx(((a - b).mean(), interval.low, interval.high, expected.pvalue, n), rel=1e-9)


def test_paired_test_without_spread_is_certain_or_says_nothing():
    a = np.array([0.1, 0.2, 0.4])
    assert paired_test(a, a).p == 1.0 and paired_test(a, a, alternative="greater").p == 0.5
    assert paired_test([3, 3, 3], [1, 1, 1]).p == 0.0
    assert paired_test([1, 1], [0, 0], alternative="less").p == 1.0
    assert paired_test([0.1] * 3, [0] * 3).p == 0.0  # numpy's deviation of three times 0.1 is not zero


def test_bootstrap_covers_the_mean_of_a_normal_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        found = bootstrap_ci(generator.normal(1.0, 2.0, 40), generator=generator, n=300, level=0.9)
        hits += found.low <= 1.0 <= found.high
    assert 0.83 <= hits / 200 <= 0.95


def test_bootstrap_equals_scipy_percentile_for_a_statistic_of_rows_and_repeats_under_one_generator():
    x = np.random.default_rng(5).normal(size=(60, 2))

    def slope(rows):
        return float(np.polyfit(rows[:, 0], rows[:, 1], 1)[0])

    found = bootstrap_ci(x, statistic=slope, generator=np.random.default_rng(1), n=1500)
    assert found == bootstrap_ci(x, statistic=slope, generator=np.random.default_rng(1), n=1500)
    other = scipy.stats.bootstrap((x[:, 0], x[:, 1]), lambda u, v: np.polyfit(u, v, 1)[0], paired=True, vectorized=False,
                                  n_resamples=1500, method="percentile", rng=np.random.default_rng(2)).confidence_interval
    assert found.mean == pytest.approx(slope(x))
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.04)


def test_holm_equals_a_case_worked_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_holm_equals_the_closed_test_over_all_intersections():
    generator = np.random.default_rng(0)
    for _ in range(10):
        p = np.round(generator.uniform(size=6) ** 2, 2)
        subsets = [s for k in range(1, 7) for s in itertools.combinations(range(6), k)]
        closed = [max(min(1.0, len(s) * p[list(s)].min()) for s in subsets if i in s) for i in range(6)]
        np.testing.assert_allclose(holm(p), closed)
