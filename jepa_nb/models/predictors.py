"""The narrow predictors g(z_C, p) of Paper A (equation in A1.1, sizes in A4)."""

from __future__ import annotations

import torch
from timm.layers import LayerNorm, trunc_normal_
from torch import nn

from jepa_nb.models.text import TextStack
from jepa_nb.models.vision import init_linear, positions, vit_blocks


class TextPredictor(nn.Module):
    """Linear, narrow BERT with its own positions, linear: it reads the whole context, [MASK] positions included.

    Args:
        width: width D of the encoder.
        pred_width, depth, heads: width, layers and attention heads of the narrow BERT.
        max_length: longest sequence, in tokens.
        ffn, dropout, norm, attention: as in :class:`jepa_nb.models.text.TextStack`.
    """

    def __init__(self, width: int, pred_width: int, depth: int, heads: int, max_length: int, *, ffn: int | None = None,
                 dropout: float = 0.0, norm: str = "post", attention: str = "sdpa"):
        super().__init__()
        self.enter = nn.Linear(width, pred_width)
        self.stack = TextStack(vocab_size=None, width=pred_width, depth=depth, heads=heads, max_length=max_length, ffn=ffn,
                               dropout=dropout, norm=norm, attention=attention)
        self.leave = nn.Linear(pred_width, width)
        init_linear(self.enter)
        init_linear(self.leave)

    def forward(self, states: torch.Tensor, attention: torch.Tensor | None = None) -> torch.Tensor:
        """Predictions (B, T, D) from context states (B, T, D) under attention (B, T) bool, None where nothing is padded."""
        return self.leave(self.stack(attention, inputs_embeds=self.enter(states)))


class VisionPredictor(nn.Module):
    """Linear, narrow ViT over the context tokens and one mask token a target patch, linear.

    Each target block is predicted separately from the others, as in I-JEPA: the blocks are folded into the batch.

    Args:
        grid: patches in height and width.
        width: width D of the encoder.
        pred_width, depth, heads: width, blocks and attention heads of the narrow ViT.
        dropout: rate, on attention weights and residual branches.
    """

    def __init__(self, grid: tuple[int, int], width: int, pred_width: int, depth: int, heads: int, *, dropout: float = 0.0):
        super().__init__()
        self.enter = nn.Linear(width, pred_width)
        self.grid = tuple(grid)
        self.mask_token = nn.Parameter(trunc_normal_(torch.empty(pred_width), std=0.02))
        self.register_buffer("pos_embed", positions(grid, pred_width), persistent=False)
        self.blocks = vit_blocks(pred_width, depth, heads, dropout=dropout)
        self.norm = LayerNorm(pred_width)
        self.leave = nn.Linear(pred_width, width)
        init_linear(self.enter)
        init_linear(self.leave)

    def forward(self, context: torch.Tensor, context_idx: torch.Tensor, target_idx: torch.Tensor) -> torch.Tensor:
        """Predictions for every target patch.

        Args:
            context: (B, Nc, D) states of the context patches.
            context_idx: (B, Nc) int64, which patches they are.
            target_idx: (B, M, Nt) int64, patches of the M target blocks.

        Returns:
            (B, M, Nt, D).
        """
        batch, blocks, size = target_idx.shape
        seen = self.enter(context) + self.pos_embed[context_idx]
        asked = self.mask_token + self.pos_embed[target_idx]
        seen = seen[:, None].expand(-1, blocks, -1, -1)
        tokens = torch.cat([seen, asked.to(seen.dtype)], 2).flatten(0, 1)
        answer = self.norm(self.blocks(tokens)[:, -size:])
        return self.leave(answer).unflatten(0, (batch, blocks))
