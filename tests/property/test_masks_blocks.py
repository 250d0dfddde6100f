"""Multiblock masks: valid on any grid, disjoint, unbiased under "fixed", biased as FAIR's under "official"."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.masking.blocks import BlockMasks, multiblock


def coverage(masks: BlockMasks, grid: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """How often each patch (H, W) is in a context, and in a target block."""
    counts = [torch.bincount(index.flatten(), minlength=grid[0] * grid[1]) for index in (masks.context, masks.targets)]
    return counts[0].reshape(grid).double(), counts[1].reshape(grid).double()


def total_coverage(policy: str, grid: tuple[int, int], batches: int, **options) -> tuple[torch.Tensor, torch.Tensor]:
    generator = seeds.generator(0, "coverage", policy)
    drawn = [coverage(multiblock(grid, 64, generator, policy=policy, **options), grid) for _ in range(batches)]
    return sum(c for c, _ in drawn), sum(t for _, t in drawn)


@settings(deadline=None, max_examples=40)
@given(height=st.integers(5, 14), width=st.integers(5, 14), batch=st.integers(1, 9), n_targets=st.integers(1, 4),
       policy=st.sampled_from(["fixed", "official"]), seed=st.integers(0, 2**20))
def test_masks_are_sorted_distinct_rectangles_inside_the_grid(height, width, batch, n_targets, policy, seed):
    masks = multiblock((height, width), batch, seeds.generator(seed), policy=policy, n_targets=n_targets, min_keep=4)
    assert masks.context.dtype == masks.targets.dtype == torch.int64
    assert masks.targets.shape[:2] == (batch, n_targets) and len(masks.context) == batch
    assert masks.context.shape[1] >= 4 + (policy == "official")
    for index in (masks.context, masks.targets):
        assert (index.diff(dim=-1) > 0).all() and index.min() >= 0 and index.max() < height * width
    rows, columns = masks.targets // width, masks.targets % width
    area = (rows.amax(-1) - rows.amin(-1) + 1) * (columns.amax(-1) - columns.amin(-1) + 1)
    assert (area == masks.targets.shape[2]).all()


@settings(deadline=None, max_examples=40)
@given(grid=st.sampled_from([(5, 5), (6, 6), (14, 14), (6, 11)]), seed=st.integers(0, 2**20))
def test_fixed_contexts_share_no_patch_with_the_targets(grid, seed):
    masks = multiblock(grid, 16, seeds.generator(seed), min_keep=4)
    overlap = masks.context[:, :, None] == masks.targets.flatten(1)[:, None]
    assert not overlap.any()


def test_equal_generators_give_equal_masks_and_the_generator_moves_on():
    first, again = seeds.generator(3), seeds.generator(3)
    a, b, c = multiblock((14, 14), 8, first), multiblock((14, 14), 8, again), multiblock((14, 14), 8, again)
    assert torch.equal(a.context, b.context) and torch.equal(a.targets, b.targets)
    assert a.targets.shape != c.targets.shape or not torch.equal(a.targets, c.targets)


def test_official_never_uses_the_last_row_and_column_and_fixed_uses_every_patch():
    grid = (14, 14)
    for counts in total_coverage("official", grid, 40):
        assert counts[-1].sum() == 0 and counts[:, -1].sum() == 0 and counts[0].sum() > 0
    for counts in total_coverage("fixed", grid, 40):
        assert (counts > 0).all()


def test_fixed_treats_top_and_bottom_alike_and_official_cuts_the_bottom():
    grid = (14, 14)

    def imbalance(policy: str) -> float:
        context, _ = total_coverage(policy, grid, 60)
        used = context[:13] if policy == "official" else context
        return float((used[:6].sum() - used[-6:].sum()) / used.sum())

    assert abs(imbalance("fixed")) < 0.02
    assert imbalance("official") > 0.2


def test_area_and_aspect_rise_together_in_official_and_are_independent_in_fixed():
    def correlation(policy: str) -> float:
        generator, found = seeds.generator(0, "shapes"), []
        for _ in range(500):
            targets = multiblock((56, 56), 1, generator, policy=policy, n_targets=1).targets[0, 0]
            height = int((targets[-1] - targets[0]) // 56) + 1
            found.append((len(targets), height * height / len(targets)))
        return float(torch.tensor(found).double().T.corrcoef()[0, 1])

    assert correlation("official") > 0.95
    assert abs(correlation("fixed")) < 0.15


def test_overlap_is_kept_only_where_it_is_allowed():
    masks = multiblock((14, 14), 8, seeds.generator(0), allow_overlap=True, context_scale=(1.0, 1.0))
    assert torch.equal(masks.context, torch.arange(196).expand(8, 196))


def test_overlap_is_relaxed_where_the_targets_leave_too_little():
    masks = multiblock((6, 6), 8, seeds.generator(0), target_scale=(1.0, 1.0), aspect=(1.0, 1.0), min_keep=10)
    assert masks.targets.shape == (8, 4, 36) and masks.context.shape[1] >= 10
    enough = multiblock((6, 6), 64, seeds.generator(0), n_targets=2, target_scale=(0.7, 0.7), aspect=(1.0, 1.0), min_keep=14)
    hidden = (enough.context[:, :, None] == enough.targets[:, 0][:, None]).any(-1)
    assert not hidden.all() and enough.context.shape[1] >= 14


def test_fixed_draws_the_targets_again_before_it_lets_them_overlap_the_context():
    masks = multiblock((6, 6), 64, seeds.generator(0), n_targets=2, context_scale=(1.0, 1.0), target_scale=(0.4, 0.4),
                       aspect=(1.0, 1.0), min_keep=16)  # two 4x4 blocks must share 12 patches, as four draws in ten do
    assert masks.context.shape[1] >= 16
    assert not (masks.context[:, :, None] == masks.targets.flatten(1)[:, None]).any()


def test_official_asks_for_more_than_min_keep_and_fixed_for_as_many():
    options = {"context_scale": (0.85, 0.85), "allow_overlap": True}  # a context of 5x5 patches
    assert multiblock((6, 6), 2, seeds.generator(0), min_keep=25, **options).context.shape[1] == 25
    assert multiblock((6, 6), 2, seeds.generator(0), policy="official", min_keep=24, **options).context.shape[1] == 25
    with pytest.raises(ConfigError, match="fewer than the 26"):
        multiblock((6, 6), 2, seeds.generator(0), policy="official", min_keep=25, **options)


@pytest.mark.parametrize(("options", "said"), [
    ({"min_keep": 40}, "min_keep=40"),
    ({"target_scale": (0.2, 0.1)}, "target_scale"),
    ({"context_scale": (0.5, 1.5)}, "context_scale"),
    ({"aspect": (0.0, 1.0)}, "aspect"),
    ({"n_targets": 0}, "n_targets=0"),
])
def test_impossible_requests_say_what_is_wrong(options, said):
    with pytest.raises(ConfigError, match=said):
        multiblock((6, 6), 4, seeds.generator(0), **options)


def test_an_unknown_policy_names_the_nearest():
    with pytest.raises(UnknownName, match="official"):
        multiblock((6, 6), 4, seeds.generator(0), policy="oficial")
