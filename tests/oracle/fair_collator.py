"""FAIR's I-JEPA mask collator, written anew from its description: one image and one block at a time, in Python.

It is the reference of the ``"official"`` policy in tests and the slow side of the mask benchmark.
"""

from __future__ import annotations

import math

import torch


def _size(grid, scale, aspect, generator):
    u = torch.rand(1, generator=generator).item()
    area = int(grid[0] * grid[1] * (scale[0] + u * (scale[1] - scale[0])))
    ratio = aspect[0] + u * (aspect[1] - aspect[0])
    height, width = int(round(math.sqrt(area * ratio))), int(round(math.sqrt(area / ratio)))
    while height >= grid[0]:
        height -= 1
    while width >= grid[1]:
        width -= 1
    return height, width


def _block(grid, size, generator, min_keep, regions=None):
    """Indices of one block within the acceptable regions, and the complement of the whole block."""
    tries, left_over = 0, 20
    while True:
        top = int(torch.randint(0, grid[0] - size[0], (1,), generator=generator))
        left = int(torch.randint(0, grid[1] - size[1], (1,), generator=generator))
        mask = torch.zeros(grid, dtype=torch.int32)
        mask[top:top + size[0], left:left + size[1]] = 1
        if regions is not None:
            for region in regions[:max(len(regions) - tries, 0)]:
                mask *= region
        index = mask.flatten().nonzero().squeeze(1)
        if len(index) > min_keep:
            break
        left_over -= 1
        if left_over == 0:
            tries, left_over = tries + 1, 20
    complement = torch.ones(grid, dtype=torch.int32)
    complement[top:top + size[0], left:left + size[1]] = 0
    return index, complement


def collate(grid, batch, generator, *, n_targets=4, context_scale=(0.85, 1.0), target_scale=(0.15, 0.2), aspect=(0.75, 1.5),
            min_keep=10):
    """Context (B, Nc) and targets (B, M, Nt) of a batch, cut to the smallest of the batch in raster order."""
    target_size = _size(grid, target_scale, aspect, generator)
    context_size = _size(grid, context_scale, (1.0, 1.0), generator)
    contexts, targets = [], []
    for _ in range(batch):
        blocks, regions = zip(*(_block(grid, target_size, generator, 0) for _ in range(n_targets)))
        targets.append(torch.stack(blocks))
        contexts.append(_block(grid, context_size, generator, min_keep, list(regions))[0])
    keep = min(map(len, contexts))
    return torch.stack([index[:keep] for index in contexts]), torch.stack(targets)
