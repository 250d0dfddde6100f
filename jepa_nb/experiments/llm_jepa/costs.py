"""Floating-point operations of a training step, counted from the shapes that were computed (Paper C, Figure 5: accuracy against PFLOPs)."""

from __future__ import annotations

from typing import Any

import torch

from jepa_nb.masking.streams import StreamBatch

IGNORED = -100


def step_flops(config: Any, batch: StreamBatch) -> float:
    """Operations (a multiply-add is two) of forward and backward pass of a Llama-like model on one batch.

    Matrix products of the layers, attention over whole rows as it is computed, and the head at the columns that predict a label; the backward
    pass costs twice the forward pass. With LoRA it costs less: the number is then an upper bound.

    Args:
        config: the model's configuration (hidden_size, intermediate_size, num_hidden_layers, heads, vocab_size).
        batch: rows (R, L) as they go through the model.
    """
    rows, length = batch.input_ids.shape
    width, heads = config.hidden_size, config.num_attention_heads
    head_width = getattr(config, "head_dim", None) or width // heads
    queries, keys = heads * head_width, (config.num_key_value_heads or heads) * head_width
    layer = width * (2 * queries + 2 * keys) + 3 * width * config.intermediate_size
    attention = 2 * length * queries
    columns = int((batch.labels[:, 1:] != IGNORED).any(0).sum())
    forward = rows * length * config.num_hidden_layers * (layer + attention) + rows * columns * width * config.vocab_size
    return 3.0 * 2.0 * forward


def padded_tokens(batch: StreamBatch) -> int:
    """Tokens of all rows, padding included."""
    return int(torch.numel(batch.input_ids))
