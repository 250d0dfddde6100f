"""Claims: effective rank equals scipy's entropy of scipy's eigenvalues; known spectra give their closed form; the epsilon of
RankMe gives the values seen with public code; cosine statistics equal scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from sklearn.metrics.pairwise import cosine_similarity

from jepa_nb.metrics.geometry import cosine_stats, effective_rank, participation_ratio, rank_share


def cloud(rows: int, width: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, width)) @ generator.normal(size=(width, width)) + 5 * generator.normal(size=width)


@pytest.mark.parametrize("rows, width", [(200, 24), (20, 48), (2, 5), (49, 48)])
def test_eigenvalue_entropy_and_participation_equal_scipy(rows, width):
    x = cloud(rows, width)
    eigenvalues = np.clip(scipy.linalg.eigvalsh(np.cov(x, rowvar=False)), 0, None)
    expected = np.exp(scipy.stats.entropy(eigenvalues))
    assert effective_rank(torch.tensor(x)) == pytest.approx(expected, rel=1e-9)
    assert rank_share(torch.tensor(x)) == pytest.approx(expected / min(rows - 1, width), rel=1e-9)
    assert participation_ratio(torch.tensor(x)) == pytest.approx(eigenvalues.sum() ** 2 / (eigenvalues**2).sum(), rel=1e-9)


@pytest.mark.parametrize("rows, width", [(200, 24), (20, 48)])
def test_rankme_equals_its_equation_on_numpy_singular_values(rows, width):
    x = cloud(rows, width)
    singular = np.linalg.svd(x, compute_uv=False)
    p = singular / singular.sum() + 1e-5
    assert effective_rank(torch.tensor(x), "rankme") == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-8)


@pytest.mark.parametrize("spectrum", [[1.0], [3.0, 3.0, 3.0], [4.0, 2.0, 1.0, 1.0], [1e6, 1.0]])
def test_a_known_spectrum_gives_its_closed_form(spectrum):
    # Orthonormal columns orthogonal to the vector of ones: centring leaves the chosen singular values as they are.
    rows, width = 30, 12
    generator = np.random.default_rng(1)
    start = np.column_stack([np.ones(rows), generator.normal(size=(rows, len(spectrum)))])
    left = np.linalg.qr(start)[0][:, 1:]
    right = np.linalg.qr(generator.normal(size=(width, len(spectrum))))[0]
    x = torch.tensor(left * np.sqrt(spectrum) @ right.T)
    p = np.array(spectrum) / sum(spectrum)
    assert effective_rank(x) == pytest.approx(math.exp(-(p * np.log(p)).sum()), rel=1e-9)
    assert participation_ratio(x) == pytest.approx(1 / (p**2).sum(), rel=1e-9)
    root = np.sqrt(spectrum) / np.sqrt(spectrum).sum() + 1e-5
    noise = (width - len(spectrum)) * -1e-5 * math.log(1e-5)
    assert effective_rank(x, "rankme") == pytest.approx(math.exp(-(root * np.log(root)).sum() + noise), rel=1e-4)


@pytest.mark.parametrize("rank, width, seen", [(1, 2048, 1.27), (2, 768, 2.18)])
def test_rankme_reads_low_ranks_as_public_code_does(rank, width, seen):
    x = torch.zeros(width, width)
    x[torch.arange(rank), torch.arange(rank)] = 1.0
    assert effective_rank(x, "rankme") == pytest.approx(seen, abs=0.01)


def test_definitions_disagree_on_one_cloud_so_the_kind_must_be_named():
    x = torch.tensor(cloud(300, 32))
    values = [effective_rank(x, kind) for kind in ("eigenvalue_entropy", "rankme", "participation")]
    assert min(abs(a - b) for a, b in [(values[0], values[1]), (values[1], values[2]), (values[0], values[2])]) > 1


def test_collapse_below_float32_resolution_is_still_measured():
    direction = torch.tensor(cloud(100, 8))
    x = 1000.0 + 1e-9 * (direction - direction.mean(0))
    assert effective_rank(x) == pytest.approx(effective_rank(direction), rel=1e-3)
    assert cosine_stats(x).sd > 0


@pytest.mark.parametrize("rows, width, bins", [(23, 16, 10), (200, 3, 10), (2, 4, 7)])
def test_cosine_equals_sklearn_over_all_pairs(rows, width, bins):
    x = cloud(rows, width, seed=3)
    pairs = cosine_similarity(x)[np.triu_indices(rows, 1)]
    found = cosine_stats(torch.tensor(x), bins=bins)
    counts, edges = np.histogram(pairs, bins=bins, range=(-1, 1))
    assert found.mean == pytest.approx(pairs.mean(), abs=1e-12)
    assert found.sd == pytest.approx(pairs.std(), abs=1e-12)
    assert found.p95 == pytest.approx(np.percentile(pairs, 95), abs=1e-12)
    np.testing.assert_allclose(found.histogram, counts / len(pairs), atol=1e-15)
    np.testing.assert_allclose(found.edges, edges)
    assert found.zero_rows == 0


def test_a_zero_row_counts_as_cosine_zero_like_sklearn_and_is_reported():
    x = cloud(30, 6)
    x[[4, 9]] = 0.0
    pairs = cosine_similarity(x)[np.triu_indices(30, 1)]
    found = cosine_stats(torch.tensor(x))
    assert found.zero_rows == 2
    assert found.mean == pytest.approx(pairs.mean(), abs=1e-12)


def test_opposite_and_equal_directions_fall_into_the_end_bins():
    x = torch.tensor([[3.0, 0.0], [7.0, 0.0], [-2.0, 0.0]])
    found = cosine_stats(x)
    assert found.histogram[0] == pytest.approx(2 / 3) and found.histogram[-1] == pytest.approx(1 / 3)
