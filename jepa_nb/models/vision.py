"""Vision encoder of I-JEPA (Paper A, protocol A4): timm's patch embedding and ViT blocks, fixed 2-D sin-cos positions.

Parameter names are those of timm's ``VisionTransformer`` without class token, so that weights pass between the two.
"""

from __future__ import annotations

import math

import torch
from timm.layers import LayerNorm, PatchEmbed, build_sincos2d_pos_embed, trunc_normal_
from timm.models.vision_transformer import Block
from torch import nn

from jepa_nb.errors import ConfigError


class VisionEncoder(nn.Module):
    """Images to patch states; only the kept patches enter the blocks.

    Args:
        image_size, patch: side of the image and of a patch, in pixels.
        width, depth, heads: model width D, blocks, attention heads.
        channels: colour channels of the image.
        dropout: rate, on attention weights and residual branches.

    Attributes:
        grid: patches in height and width.
        n_patches: their number N.

    Raises:
        ConfigError: ``image_size`` is no multiple of ``patch``, or ``width`` none of ``heads`` and 4.
    """

    def __init__(self, image_size: int, patch: int, width: int, depth: int, heads: int, *, channels: int = 3,
                 dropout: float = 0.0):
        super().__init__()
        if image_size % patch:
            raise ConfigError(f"image_size {image_size} is no multiple of patch {patch}; choose a patch that divides it.")
        self.patch_embed = PatchEmbed(image_size, patch, channels, width)
        self.grid: tuple[int, int] = self.patch_embed.grid_size
        self.n_patches: int = self.patch_embed.num_patches
        self.width = width
        self.register_buffer("pos_embed", positions(self.grid, width)[None], persistent=False)
        self.blocks = vit_blocks(width, depth, heads, dropout=dropout)
        self.norm = LayerNorm(width)
        trunc_normal_(self.patch_embed.proj.weight, std=0.02)
        nn.init.zeros_(self.patch_embed.proj.bias)

    def forward(self, images: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        """States (B, N, D) of images (B, 3, S, S), or (B, Nc, D) of the patches keep (B, Nc) int64 alone."""
        tokens = self.patch_embed(images) + self.pos_embed
        if keep is not None:
            tokens = take(tokens, keep)
        return self.norm(self.blocks(tokens))


def positions(grid: tuple[int, int], width: int) -> torch.Tensor:
    """(N, D) fixed sin-cos positions of a grid, row-major.

    Raises:
        ConfigError: ``width`` is no multiple of 4.
    """
    if width % 4:
        raise ConfigError(f"width {width} is no multiple of 4, which two-dimensional sin-cos positions need.")
    return build_sincos2d_pos_embed(list(grid), width)


def vit_blocks(width: int, depth: int, heads: int, *, dropout: float = 0.0) -> nn.Sequential:
    """timm ViT blocks with I-JEPA's initialisation: truncated normal .02, and the last matrix of both branches of block
    ``i`` (from 1) divided by sqrt(2 i).

    Raises:
        ConfigError: ``width`` is no multiple of ``heads``.
    """
    if width % heads:
        raise ConfigError(f"width {width} is no multiple of heads {heads}; choose heads that divide it.")
    blocks = nn.Sequential(
        *(Block(width, heads, qkv_bias=True, proj_drop=dropout, attn_drop=dropout) for _ in range(depth)))
    blocks.apply(init_linear)
    with torch.no_grad():
        for i, block in enumerate(blocks, 1):
            block.attn.proj.weight.div_(math.sqrt(2 * i))
            block.mlp.fc2.weight.div_(math.sqrt(2 * i))
    return blocks


def init_linear(module: nn.Module) -> None:
    """Truncated normal weights (.02) and zero biases for linear layers; other modules are left as they are."""
    if isinstance(module, nn.Linear):
        trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)


def take(tokens: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Tokens (B, K, D) at index (B, K) of tokens (B, N, D)."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.shape[-1]))
