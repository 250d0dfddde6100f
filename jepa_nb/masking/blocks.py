"""Multiblock masks of image patches for I-JEPA (Paper A, protocol A4): one context block, several target blocks.

All images of a batch share one target size and one context size, as in FAIR's public collator, so that the index tensors
are rectangular. Nothing loops over images. Two policies:

- ``"official"`` re-enacts FAIR's collator: one random number sets both scale and aspect; a block is at least one row and
  one column smaller than the grid and its corner is drawn from ``randint(0, H - h)``, so that the last row and column are
  never used; contexts are cut to the smallest of the batch in raster order, at the cost of the bottom of the image.
- ``"fixed"`` draws scale and aspect independently, reaches every row and column, and cuts contexts by random choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from jepa_nb.errors import ConfigError, require_known

POLICIES = ("fixed", "official")
TRIES = 20  # FAIR's collator gives up the last still respected target block after as many draws


@dataclass
class BlockMasks:
    """Row-major patch indices, sorted within a block.

    Attributes:
        context: (B, Nc) int64, patches the context encoder sees.
        targets: (B, M, Nt) int64, patches of each of the M target blocks.
    """

    context: torch.Tensor
    targets: torch.Tensor

    def to(self, device: torch.device | str) -> BlockMasks:
        """The same masks on another device."""
        return BlockMasks(self.context.to(device), self.targets.to(device))


def multiblock(
    grid: tuple[int, int],
    batch: int,
    generator: torch.Generator,
    *,
    policy: str = "fixed",
    n_targets: int = 4,
    context_scale: tuple[float, float] = (0.85, 1.0),
    target_scale: tuple[float, float] = (0.15, 0.2),
    aspect: tuple[float, float] = (0.75, 1.5),
    min_keep: int = 10,
    allow_overlap: bool = False,
) -> BlockMasks:
    """Draw context and target blocks for a batch of images.

    Where the context, less the target blocks, keeps too few patches, the image is drawn again (``"official"``: its
    context only). After 20 draws the context may overlap the last target block, after 20 more the last two, and so on.

    Args:
        grid: patches in height and width (H, W).
        batch: number of images B.
        generator: source of all randomness; the masks are made on its device.
        policy: ``"fixed"`` or ``"official"``, see the module.
        n_targets: target blocks an image, M.
        context_scale, target_scale: smallest and largest share of the grid that a block covers.
        aspect: smallest and largest height / width of target blocks; context blocks are square in aspect.
        min_keep: patches that a context keeps at least (``"official"``: more than this many).
        allow_overlap: leave the patches of target blocks in the context.

    Raises:
        UnknownName: unknown policy.
        ConfigError: an argument is out of range, or the smallest context block holds too few patches for ``min_keep``.
    """
    require_known("mask policy", policy, POLICIES)
    _check(grid, batch, n_targets, context_scale, target_scale, aspect)
    need = min_keep + (policy == "official")
    smallest = math.prod(_block_size(grid, context_scale[0], 1.0, policy))
    if smallest < max(need, 1):
        raise ConfigError(f"the smallest context block holds {smallest} of {grid[0]}x{grid[1]} patches, fewer than the {need} "
                          f"that min_keep={min_keep} asks for (policy '{policy}'); lower min_keep or raise context_scale.")
    target_size = _draw_size(grid, target_scale, aspect, policy, generator)
    context_size = _draw_size(grid, context_scale, (1.0, 1.0), policy, generator)
    targets = _corners(grid, target_size, (batch, n_targets), policy, generator)
    context = _corners(grid, context_size, (batch, 1), policy, generator)
    respected = 0 if allow_overlap else n_targets
    visible = _visible(grid, context, context_size, targets[:, :respected], target_size)
    for attempt in range(1, TRIES * (n_targets + 1)):
        poor = (visible.sum(1) < need).nonzero().squeeze(1)
        if not len(poor):
            break
        if policy == "fixed":
            targets[poor] = _corners(grid, target_size, (len(poor), n_targets), policy, generator)
        context = _corners(grid, context_size, (len(poor), 1), policy, generator)
        respected = n_targets - attempt // TRIES
        visible[poor] = _visible(grid, context, context_size, targets[poor, :respected], target_size)
    return BlockMasks(_equal_counts(visible, policy, generator), _patches(grid, targets, target_size))


def _check(grid, batch, n_targets, context_scale, target_scale, aspect) -> None:
    if min(grid) < 2 or batch < 1 or n_targets < 1:
        raise ConfigError(f"multiblock needs a grid of at least 2x2 patches, one image and one target block; got grid={grid}, "
                          f"batch={batch}, n_targets={n_targets}.")
    for name, (low, high), top in (("context_scale", context_scale, 1.0), ("target_scale", target_scale, 1.0),
                                   ("aspect", aspect, math.inf)):
        if not 0 < low <= high <= top:
            raise ConfigError(f"{name} must be (low, high) with 0 < low <= high <= {top}, got {(low, high)}.")


def _draw_size(grid, scale, aspect, policy, generator) -> tuple[int, int]:
    """Height and width of a block, in patches, from a random scale and aspect."""
    first, second = torch.rand(2, generator=generator, device=generator.device).tolist()
    if policy == "official":
        second = first
    return _block_size(grid, scale[0] + first * (scale[1] - scale[0]), aspect[0] + second * (aspect[1] - aspect[0]), policy)


def _block_size(grid: tuple[int, int], scale: float, aspect: float, policy: str) -> tuple[int, int]:
    area = int(grid[0] * grid[1] * scale)
    spare = 1 if policy == "official" else 0
    height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
    return max(1, min(height, grid[0] - spare)), max(1, min(width, grid[1] - spare))


def _corners(grid, size, shape, policy, generator) -> torch.Tensor:
    """(*shape, 2) int64, top and left of uniformly placed blocks."""
    reach = 0 if policy == "official" else 1
    draws = [torch.randint(0, grid[axis] - size[axis] + reach, shape, generator=generator, device=generator.device)
             for axis in (0, 1)]
    return torch.stack(draws, -1)


def _visible(grid, context, context_size, targets, target_size) -> torch.Tensor:
    """(B, H*W) bool, patches of the context block that lie in none of the given target blocks."""
    hidden = _inside(grid, targets, target_size).any(1)
    return _inside(grid, context, context_size)[:, 0] & ~hidden


def _inside(grid, corners, size) -> torch.Tensor:
    """(B, M, H*W) bool, the patches of each block."""
    axes = []
    for axis in (0, 1):
        offset = torch.arange(grid[axis], device=corners.device) - corners[..., axis, None]
        axes.append((offset >= 0) & (offset < size[axis]))
    return (axes[0][..., :, None] & axes[1][..., None, :]).flatten(-2)


def _patches(grid, corners, size) -> torch.Tensor:
    """(B, M, h*w) int64, row-major indices of each block's patches."""
    rows = torch.arange(size[0], device=corners.device)[:, None] * grid[1]
    block = (rows + torch.arange(size[1], device=corners.device)).flatten()
    return (corners[..., 0] * grid[1] + corners[..., 1])[..., None] + block


def _equal_counts(visible: torch.Tensor, policy: str, generator: torch.Generator) -> torch.Tensor:
    """(B, Nc) sorted indices of visible patches, Nc the smallest count of the batch."""
    keep = int(visible.sum(1).min())
    if policy == "official":
        order = torch.arange(visible.shape[1], device=visible.device).expand(visible.shape) / visible.shape[1]
    else:
        order = torch.rand(visible.shape, generator=generator, device=visible.device)
    order = order.masked_fill(~visible, 2.0)
    return order.topk(keep, dim=1, largest=False, sorted=False).indices.sort(1).values
