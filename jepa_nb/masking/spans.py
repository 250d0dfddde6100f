"""Span masking of text for T-JEPA (Paper A, protocol A4): 1-5 spans of 1-5 tokens, never on special tokens.

A span is a run of consecutive *maskable* tokens. Where a row's maskable tokens are contiguous, as between [CLS] and
[SEP], it is a run of neighbouring positions; where something unmaskable lies between them, the span continues behind it.
"""

from __future__ import annotations

import torch

from jepa_nb.errors import ConfigError, DataError


def sample_spans(
    maskable: torch.Tensor,
    generator: torch.Generator,
    *,
    n_spans: tuple[int, int] = (1, 5),
    span_length: tuple[int, int] = (1, 5),
) -> torch.Tensor:
    """Draw non-overlapping spans for a batch of rows.

    The number of spans and the length of each are uniform on the given closed ranges; the arrangement is uniform over all
    ways to lay the spans out without overlap (they may touch). Spans that would cover a whole row are cut, the last ones
    first, so that one maskable token stays visible. Draws come from ``generator`` on its own device.

    Args:
        maskable: (B, T) bool, True where a token may be masked (no [CLS], [SEP], padding).
        generator: source of all randomness.
        n_spans: smallest and largest number of spans in a row.
        span_length: shortest and longest span, in tokens.

    Returns:
        (B, T) bool on the device of ``maskable``, True on masked tokens.

    Raises:
        ConfigError: a range is empty or starts below 1.
        DataError: a row has fewer than two maskable tokens.
    """
    for name, (low, high) in (("n_spans", n_spans), ("span_length", span_length)):
        if not 1 <= low <= high:
            raise ConfigError(f"{name} must be a range (low, high) with 1 <= low <= high, got {(low, high)}.")
    rows = maskable.to(generator.device)
    count = rows.sum(1)
    if bool((count < 2).any()):
        short = int((count < 2).nonzero()[0, 0])
        raise DataError(f"row {short} has {int(count[short])} maskable token(s) but span masking needs two, one to hide and "
                        "one to see; drop rows that short from the corpus.")
    lengths = _lengths(count, rows.shape[1], n_spans, span_length, generator)
    hidden = _lay_out(count, lengths, rows.shape[1], generator)
    rank = (rows.cumsum(1) - 1).clamp_(min=0)
    return (hidden.gather(1, rank) & rows).to(maskable.device)


def _lengths(
    count: torch.Tensor, tokens: int, n_spans: tuple[int, int], span_length: tuple[int, int], generator: torch.Generator
) -> torch.Tensor:
    """(B, S) span lengths; unused spans have length 0 and stand last. A row's sum is at most ``count - 1``."""
    batch, most, where = len(count), n_spans[1], generator.device
    n = torch.randint(n_spans[0], most + 1, (batch, 1), generator=generator, device=where)
    lengths = torch.randint(span_length[0], span_length[1] + 1, (batch, most), generator=generator, device=where)
    lengths = lengths * (torch.arange(most, device=where) < n)
    total = lengths.cumsum(1).minimum(count[:, None] - 1)
    return total.diff(dim=1, prepend=total.new_zeros(batch, 1))[:, :tokens]


def _lay_out(count: torch.Tensor, lengths: torch.Tensor, tokens: int, generator: torch.Generator) -> torch.Tensor:
    """(B, T) bool by rank among the maskable tokens.

    A row is a sequence of items, each a span or one visible token; the spans take distinct items drawn uniformly, in
    random order, which makes every arrangement equally likely.
    """
    batch, where = len(count), generator.device
    active = lengths > 0
    items = count - lengths.sum(1) + active.sum(1)
    keys = torch.rand(batch, tokens, generator=generator, device=where)
    keys.masked_fill_(torch.arange(tokens, device=where) >= items[:, None], 2.0)
    slots = keys.topk(lengths.shape[1], dim=1, largest=False).indices
    # Unused spans point at an item that lies behind the last one, which no token belongs to.
    slots = torch.where(active, slots, tokens)
    widths = torch.ones(batch, tokens + 1, dtype=torch.int64, device=where).scatter_(1, slots, lengths)
    is_span = torch.zeros(batch, tokens + 1, dtype=torch.bool, device=where).scatter_(1, slots, active)
    is_span[:, tokens] = False
    token_rank = torch.arange(tokens, device=where).expand(batch, tokens).contiguous()
    item = torch.searchsorted(widths.cumsum(1), token_rank, right=True).clamp_(max=tokens)
    return is_span.gather(1, item)
