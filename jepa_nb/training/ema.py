"""The target encoder: an exponential moving average (EMA) of the context encoder (paper A, A1 item 1)."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def update(target: nn.Module, online: nn.Module, decay: float) -> None:
    """``target <- decay * target + (1 - decay) * online`` for every parameter, in one fused call per list."""
    targets, sources = list(target.parameters()), list(online.parameters())
    torch._foreach_lerp_(targets, sources, 1.0 - decay)
