"""Answers of a causal language model: batched greedy decoding, and the logits of a few choices (Paper C, sheet C5).

The published evaluation answers one prompt at a time. Here prompts of similar length share a batch: shorter ones are padded on the
left, padding is masked, positions count from the first real token, and an answer that has ended leaves the batch. In exact arithmetic
the answers are those of one prompt at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from jepa_nb.errors import ConfigError, NonFinite

Prompts = Sequence[Sequence[int]]


def greedy(model: nn.Module, prompts: Prompts, *, stop_ids: Collection[int], max_new_tokens: int, pad_id: int,
           batch: int = 64) -> list[list[int]]:
    """The most likely continuation of every prompt, token by token; equal logits go to the smaller id.

    Sampling settings and penalties of the model's own generation config are not applied.

    Args:
        model: any causal language model of transformers, also with adapters; dropout is off meanwhile.
        prompts: token ids without padding, one or more each.
        stop_ids: tokens that end an answer; they are not part of it.
        max_new_tokens: longest answer.
        pad_id: any id of the vocabulary; may be one of ``stop_ids``.
        batch: prompts decoded together.

    Returns:
        One answer a prompt, in the prompts' order; empty where the first token already stops.

    Raises:
        ConfigError: an empty prompt, or ``max_new_tokens`` or ``batch`` below 1.
        NonFinite: the model's logits hold a NaN.
    """
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens must be at least 1, got {max_new_tokens}.")
    answers: list[list[int]] = [[] for _ in prompts]
    with _evaluating(model):
        for rows in _batches(prompts, batch):
            found = _decode(model, [prompts[row] for row in rows], frozenset(stop_ids), max_new_tokens, pad_id)
            for row, answer in zip(rows, found):
                answers[row] = answer
    return answers


def choice_logits(model: nn.Module, prompts: Prompts, choice_ids: Sequence[int], *, pad_id: int = 0, batch: int = 64) -> Tensor:
    """Logits (N, C) of the token after each prompt, for the C tokens ``choice_ids`` (HellaSwag's letters); float32 on the CPU.

    Raises:
        ConfigError: an empty prompt, no choices, or ``batch`` below 1.
        NonFinite: the model's logits hold a NaN.
    """
    if not choice_ids:
        raise ConfigError("choice_ids is empty; give the token ids of the choices.")
    found = torch.empty(len(prompts), len(choice_ids))
    with _evaluating(model):
        for rows in _batches(prompts, batch):
            state = _Rows(model, [prompts[row] for row in rows], pad_id, cached=False)
            logits = state.logits[:, list(choice_ids)].float().cpu()
            _require_numbers(logits)
            found[rows] = logits
    return found


class _Rows:
    """A batch of prompts in decoding: mask (B, L), last positions (B,), logits (B, V) of the next token, and the cache."""

    def __init__(self, model: nn.Module, prompts: Prompts, pad_id: int, *, cached: bool):
        self.model = model
        base = model.get_base_model() if hasattr(model, "get_base_model") else model  # adapters hide the model's own arguments
        known = inspect.signature(base.forward).parameters
        self.extra = {"logits_to_keep": 1} if "logits_to_keep" in known else {}
        self.cache = DynamicCache(config=model.config) if cached else None
        if cached:
            self.extra["cache" if "cache" in known else "past_key_values"] = self.cache
        longest = max(map(len, prompts))
        ids = torch.tensor([[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=model.device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
        columns = torch.arange(longest, device=model.device) - (longest - lengths)[:, None]
        self.mask = (columns >= 0).long()
        self.last = lengths - 1
        self.logits = self._forward(ids, columns.clamp(min=0))

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        output = self.model(input_ids=ids, attention_mask=self.mask, position_ids=positions, use_cache=self.cache is not None, **self.extra)
        return output.logits[:, -1]

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.mask, self.last = self.mask[rows], self.last[rows]
        self.cache.batch_select_indices(rows)

    def step(self, ids: Tensor) -> None:
        """Append one token to every row and read the next one's logits."""
        self.last = self.last + 1
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(ids), 1)], 1)
        self.logits = self._forward(ids[:, None], self.last[:, None])


def _decode(model: nn.Module, prompts: Prompts, stop_ids: frozenset[int], max_new_tokens: int, pad_id: int) -> list[list[int]]:
    answers: list[list[int]] = [[] for _ in prompts]
    state, running = _Rows(model, prompts, pad_id, cached=True), list(range(len(prompts)))
    while True:
        best, ids = state.logits.max(-1)
        _require_numbers(best)
        tokens = ids.tolist()
        going = [place for place, token in enumerate(tokens) if token not in stop_ids]
        for place in going:
            answers[running[place]].append(tokens[place])
        running = [running[place] for place in going]
        if not running or len(answers[running[0]]) == max_new_tokens:
            return answers
        if len(going) < len(tokens):
            rows = torch.tensor(going, device=ids.device)
            state.keep(rows)
            ids = ids[rows]
        state.step(ids)


def _batches(prompts: Prompts, batch: int) -> Iterator[list[int]]:
    """Indices of prompts, similar lengths together."""
    if batch < 1:
        raise ConfigError(f"batch must be at least 1, got {batch}.")
    empty = [row for row, prompt in enumerate(prompts) if not len(prompt)]
    if empty:
        raise ConfigError(f"prompt {empty[0]} is empty; a prompt needs at least one token, such as the beginning-of-text token.")
    order = sorted(range(len(prompts)), key=lambda row: len(prompts[row]))
    return (order[start:start + batch] for start in range(0, len(order), batch))


def _require_numbers(logits: Tensor) -> None:
    if bool(logits.isnan().any()):
        raise NonFinite("the model's logits hold NaN; look for the training step that produced them before generating.")


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout and gradients; each module's mode is put back afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True
