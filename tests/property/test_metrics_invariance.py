"""Claims: rank and cosine do not change under what they must ignore, stay inside their bounds, and see collapse and duplicates;
variances scale with the square and ignore shifts."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.metrics.geometry import RANK_KINDS, cosine_stats, effective_rank, rank_limit, rank_share
from jepa_nb.metrics.variance import conditional_variance, pairwise_variance, total_variance, within_group_variance

CENTRED = tuple(kind for kind in RANK_KINDS if kind != "rankme")
quick = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 10_000)
sizes = st.tuples(st.integers(2, 24), st.integers(1, 24))


def cloud(seed: int, rows: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scale = torch.rand(width, generator=generator, dtype=torch.float64) + 0.05
    return torch.randn(rows, width, generator=generator, dtype=torch.float64) * scale + 1


def rotation(seed: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0]


@quick
@given(seeds, sizes, st.sampled_from(RANK_KINDS), st.floats(1e-150, 1e150))
def test_rank_ignores_rotation_scale_and_the_order_of_rows(seed, size, kind, factor):
    x = cloud(seed, *size)
    rank = effective_rank(x, kind)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    for same in (x @ rotation(seed, size[1]), x * factor, -x, x[shuffle]):
        assert effective_rank(same, kind) == pytest.approx(rank, rel=1e-6)


@quick
@given(seeds, sizes, st.sampled_from(CENTRED), st.floats(-1e4, 1e4))
def test_centred_ranks_ignore_a_shift_and_stay_between_one_and_their_limit(seed, size, kind, offset):
    x = cloud(seed, *size)
    rank = effective_rank(x, kind)
    assert 1 - 1e-9 <= rank <= rank_limit(*size, kind) * (1 + 1e-9)
    assert 0 < rank_share(x, kind) <= 1 + 1e-9
    assert effective_rank(x + offset, kind) == pytest.approx(rank, rel=1e-5)


@quick
@given(seeds, sizes)
def test_rankme_stays_within_its_epsilon_of_the_limit(seed, size):
    limit = rank_limit(*size, "rankme")
    assert 1 - 1e-4 <= effective_rank(cloud(seed, *size), "rankme") <= limit * (1 + 1e-3)


@quick
@given(seeds, sizes, st.integers(2, 4))
def test_repeating_every_row_changes_no_centred_rank(seed, size, times):
    x = cloud(seed, *size)
    for kind in CENTRED:
        assert effective_rank(x.repeat(times, 1), kind) == pytest.approx(effective_rank(x, kind), rel=1e-6)


@quick
@given(st.floats(-1e6, 1e6), sizes, st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_constant_features_have_rank_one_and_cosine_one(value, size, dtype):
    x = torch.full(size, value, dtype=dtype)
    assert [effective_rank(x, kind) for kind in CENTRED] == [1.0, 1.0]
    assert effective_rank(torch.zeros(size, dtype=dtype), "rankme") == 1.0
    assert total_variance(x) == 0.0
    found = cosine_stats(x)
    zero = not bool((x != 0).any())
    assert found.mean == pytest.approx(0.0 if zero else 1.0) and found.zero_rows == (size[0] if zero else 0)
    assert found.sd < 1e-12


@quick
@given(seeds, st.integers(2, 16))
def test_classes_of_equal_rows_have_a_rank_below_their_number(seed, classes):
    codes = cloud(seed, classes, 24)
    assert effective_rank(codes[torch.arange(100) % classes]) <= classes - 1 + 1e-6


@quick
@given(seeds, sizes)
def test_cosine_ignores_rotation_row_scale_and_order_and_stays_in_bounds(seed, size):
    x = cloud(seed, *size)
    found = cosine_stats(x)
    lengths = 10 ** torch.empty(len(x), 1, dtype=torch.float64).uniform_(-250, 250, generator=torch.Generator().manual_seed(seed))
    for same in (x @ rotation(seed, size[1]), x * lengths, x.flip(0)):
        other = cosine_stats(same)
        assert (other.mean, other.sd, other.p95) == pytest.approx((found.mean, found.sd, found.p95), abs=1e-7)
    assert -1 <= found.mean <= 1 and 0 <= found.sd <= 1 and found.p95 <= 1
    assert sum(found.histogram) == pytest.approx(1.0) and len(found.edges) == len(found.histogram) + 1


@quick
@given(seeds, st.integers(2, 12), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_variances_scale_with_the_square_and_ignore_shifts(seed, draws, factor, offset):
    x = cloud(seed, 3 * draws, 5)
    groups = torch.arange(len(x)) % 3
    sets = x.reshape(3, draws, 5)
    for measure, data in ((total_variance, x), (lambda v: within_group_variance(v, groups), x),
                          (lambda v: conditional_variance(v).sum().item(), sets)):
        assert measure(data * factor + offset) == pytest.approx(factor**2 * measure(data), rel=1e-4)


@quick
@given(seeds, st.integers(1, 12))
def test_conditional_variance_equals_the_pairwise_identity_for_any_weights(seed, draws):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(4, draws, 6, generator=generator, dtype=torch.float64)
    weights = torch.rand(4, draws, generator=generator, dtype=torch.float64) + 1e-3
    weights[:, 1:2] = 0  # a completion of probability zero does not count
    torch.testing.assert_close(conditional_variance(x, weights), pairwise_variance(x, weights), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(conditional_variance(x, weights), conditional_variance(x, weights * 7), rtol=1e-10, atol=1e-12)


@quick
@given(seeds, st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
def test_any_dtype_is_measured_as_its_float64_copy_inside_and_outside_autocast_and_gradients(seed, dtype):
    x = cloud(seed, 20, 8).to(dtype).requires_grad_()
    expected = (effective_rank(x.double()), cosine_stats(x.double()), total_variance(x.double()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (effective_rank(x), cosine_stats(x), total_variance(x)) == expected
