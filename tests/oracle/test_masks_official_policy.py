"""The "official" mask policy has the statistics of FAIR's per-image collator."""

from __future__ import annotations

import pytest
import torch
from fair_collator import collate

from jepa_nb import seeds
from jepa_nb.masking.blocks import multiblock


def share_of_batches(draw, patches, count):
    """(count, 2 * patches): share of a batch's images whose context, and of its blocks whose target, holds each patch."""
    rows = []
    for _ in range(count):
        context, targets = draw()
        rows.append(torch.cat([torch.bincount(context.flatten(), minlength=patches) / len(context),
                               torch.bincount(targets.flatten(), minlength=patches) / targets[..., 0].numel()]))
    return torch.stack(rows)


@pytest.mark.parametrize(("grid", "min_keep"), [((14, 14), 10), ((6, 6), 4), ((7, 9), 12)])
def test_coverage_of_every_patch_agrees_with_the_per_image_collator(grid, min_keep):
    ours, theirs = seeds.generator(0, "ours"), seeds.generator(0, "theirs")

    def draw():
        masks = multiblock(grid, 4, ours, policy="official", min_keep=min_keep)
        return masks.context, masks.targets

    count, patches = 400, grid[0] * grid[1]
    a = share_of_batches(draw, patches, count)
    b = share_of_batches(lambda: collate(grid, 4, theirs, min_keep=min_keep), patches, count)
    spread = ((a.var(0) + b.var(0)) / count).sqrt()
    z = (a.mean(0) - b.mean(0)) / spread.clamp(min=1e-9)
    assert z.abs().max() < 4.5
    assert z[:patches].std() < 2  # the map as a whole, not only its worst patch


def test_block_sizes_agree_with_the_per_image_collator():
    ours, theirs = seeds.generator(1, "ours"), seeds.generator(1, "theirs")
    a = torch.tensor([multiblock((14, 14), 1, ours, policy="official").targets.shape[2] for _ in range(600)])
    b = torch.tensor([collate((14, 14), 1, theirs)[1].shape[2] for _ in range(600)])
    assert set(a.tolist()) == set(b.tolist())
    assert abs(a.float().mean() - b.float().mean()) < 4 * (a.float().var() / 300).sqrt()
