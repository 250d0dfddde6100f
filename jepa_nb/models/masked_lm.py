"""Masked language model: the frozen source of alternative completions (Paper A, A5) and a baseline encoder (A6).

transformers' BertForMaskedLM, post-LN, its output matrix tied to the word table. The vocabulary is scored only at the
positions that are asked for, which is what makes it affordable on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from jepa_nb.errors import ConfigError, DataError


class MaskedLM(nn.Module):
    """Wraps a BertForMaskedLM, pretrained or made by :meth:`from_sizes`, as ``.lm``."""

    def __init__(self, lm: BertForMaskedLM):
        super().__init__()
        self.lm = lm

    @classmethod
    def from_sizes(cls, *, vocab_size: int, width: int, depth: int, heads: int, max_length: int, ffn: int | None = None,
                   dropout: float = 0.0, attention: str = "sdpa", pad_id: int = 0) -> MaskedLM:
        """A randomly initialised model; for the arguments see :class:`jepa_nb.models.text.TextStack`."""
        return cls(BertForMaskedLM(BertConfig(
            vocab_size=vocab_size, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
            intermediate_size=ffn or 4 * width, max_position_embeddings=max_length, hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout, pad_token_id=pad_id, attn_implementation=attention)))

    @classmethod
    def from_folder(cls, folder: Path, *, attention: str = "sdpa") -> MaskedLM:
        """Pretrained weights from a local folder (config.json and model.safetensors); nothing is downloaded."""
        return cls(BertForMaskedLM.from_pretrained(folder, local_files_only=True, use_safetensors=True,
                                                   attn_implementation=attention))

    def states(self, ids: torch.Tensor, attention: torch.Tensor | None = None) -> torch.Tensor:
        """Last hidden states (B, T, D) of ids (B, T) under attention (B, T) bool, None where nothing is padded."""
        return self.lm.bert(ids, attention_mask=attention).last_hidden_state

    def forward(self, ids: torch.Tensor, attention: torch.Tensor | None, asked: torch.Tensor) -> torch.Tensor:
        """Logits (N, V) at the N positions where asked (B, T) bool is True, in row-major order."""
        return self.lm.cls(self.states(ids, attention)[asked])

    def loss(self, inputs: torch.Tensor, labels: torch.Tensor, attention: torch.Tensor | None = None) -> torch.Tensor:
        """Mean cross-entropy (nats) over the labels (B, T) that are not -100; equal to BertForMaskedLM's own."""
        asked = labels != -100
        return F.cross_entropy(self(inputs, attention, asked).float(), labels[asked])


def mlm_batch(
    ids: torch.Tensor,
    maskable: torch.Tensor,
    generator: torch.Generator,
    *,
    vocab: int,
    mask_id: int,
    special: Sequence[int],
    rate: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    """BERT's corruption: of each row ``rate`` of the maskable tokens, rounded, at least one; 80 % become [MASK], 10 % a
    random ordinary token, 10 % stay.

    Args:
        ids: (B, T) int64.
        maskable: (B, T) bool, no special tokens, no padding.
        generator: source of all randomness, on its own device.
        vocab: number of token ids V.
        mask_id: id of [MASK].
        special: ids that are never put in as random tokens.
        rate: share of tokens to predict.

    Returns:
        inputs (B, T) int64, and labels (B, T) int64 with -100 where nothing is asked.

    Raises:
        DataError: a row has no maskable token.
        ConfigError: every id of the vocabulary is special.
    """
    where, rows = generator.device, maskable.to(generator.device)
    count = rows.sum(1)
    if bool((count == 0).any()):
        raise DataError(f"row {int((count == 0).nonzero()[0, 0])} has no maskable token; drop empty rows from the corpus.")
    ordinary = _ordinary(vocab, special).nonzero().squeeze(1)
    wanted = (count * rate).round().clamp(min=1)
    keys = torch.rand(rows.shape, generator=generator, device=where).masked_fill_(~rows, 2.0)
    chosen = (keys.argsort(1).argsort(1) < wanted[:, None]).to(ids.device)
    kind = torch.rand(rows.shape, generator=generator, device=where).to(ids.device)
    drawn = torch.randint(len(ordinary), rows.shape, generator=generator, device=where)
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind >= 0.9), ordinary.to(where)[drawn].to(ids.device), inputs)
    return inputs, ids.masked_fill(~chosen, -100)


@torch.no_grad()
def completions(
    model: MaskedLM,
    ids: torch.Tensor,
    attention: torch.Tensor | None,
    position: torch.Tensor,
    k: int,
    generator: torch.Generator,
    *,
    mask_id: int,
    special: Sequence[int],
    min_prob: float | None = None,
    replace: bool = True,
    temperature: float = 1.0,
) -> torch.Tensor:
    """Sample K tokens for one position of each row, from the model's distribution with only that position masked.

    As published (A5): ``min_prob=.01, replace=False`` keeps the candidates of at least that probability and draws without
    replacement where K or more survive, with replacement elsewhere; where none survives the likeliest stays.

    Args:
        model: in evaluation mode.
        ids: (B, T) int64, clean tokens; [MASK] is put in here.
        attention: (B, T) bool, None where nothing is padded.
        position: (B,) int64.
        k: completions a row, K.
        generator: source of all randomness; probabilities are moved to its device.
        mask_id: id of [MASK].
        special: ids never returned.
        min_prob: probability below which a candidate is dropped; None keeps all.
        replace: draw with replacement, that is, independently.
        temperature: divides the logits.

    Returns:
        (B, K) int64 on the device of ``ids``.

    Raises:
        ConfigError: temperature is not positive, or every id of the vocabulary is special.
    """
    if not temperature > 0:
        raise ConfigError(f"temperature must be positive, got {temperature}; 1 samples the model's own distribution.")
    asked = torch.zeros_like(ids, dtype=torch.bool).scatter_(1, position[:, None], True)
    logits = model(ids.masked_fill(asked, mask_id), attention, asked).float().to(generator.device) / temperature
    probs = _candidates(logits.softmax(1), _ordinary(logits.shape[1], special).to(logits.device), min_prob)
    without = probs.new_zeros(len(probs), dtype=torch.bool) if replace else ((probs > 0).sum(1) >= k)
    drawn = torch.empty(len(probs), k, dtype=torch.int64, device=probs.device)
    for rows, again in ((without, False), (~without, True)):
        if bool(rows.any()):
            drawn[rows] = torch.multinomial(probs[rows], k, replacement=again, generator=generator)
    return drawn.to(ids.device)


def _candidates(probs: torch.Tensor, ordinary: torch.Tensor, min_prob: float | None) -> torch.Tensor:
    """(B, V) probabilities with special and unlikely tokens at 0, not renormalised; at least one stays in each row."""
    # Clamped, so that a row whose mass all lies on special tokens still has ordinary ones to draw from.
    probs = probs.clamp(min=torch.finfo(probs.dtype).tiny) * ordinary
    if min_prob is None:
        return probs
    best = probs == probs.amax(1, keepdim=True)
    return probs * ((probs >= min_prob) | best)


def _ordinary(vocab: int, special: Sequence[int]) -> torch.Tensor:
    """(V,) bool, True on ids that are not special."""
    flags = torch.ones(vocab, dtype=torch.bool)
    flags[list(special)] = False
    if not bool(flags.any()):
        raise ConfigError(f"all {vocab} ids of the vocabulary are special; pass the special ids alone.")
    return flags
