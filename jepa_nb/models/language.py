"""Causal language models of Paper C: a small Llama from scratch, predictor tokens, LoRA, and the linear predictor of the ablation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, require_known
from jepa_nb.models.text import ATTENTION

if TYPE_CHECKING:
    from peft import PeftModel

INITS = ("mean", "random", "named")


def tiny_llama(*, vocab_size: int, width: int, depth: int, heads: int, max_length: int, seed: int, attention: str = "sdpa") -> LlamaForCausalLM:
    """transformers' Llama, randomly initialised, with tied embeddings, a feed-forward of 3 D and no dropout.

    Weights are drawn with deviation D ** -0.5: logits then begin at unit scale. Llama's 0.02 is made for large D; at D of 64 to 256 it
    learns next to nothing in a few hundred steps.

    Args:
        vocab_size: number of token ids V.
        width, depth, heads: model width D, layers, attention heads.
        max_length: longest sequence, in tokens.
        seed: of the initial weights.
        attention: ``"sdpa"`` or ``"eager"``.

    Raises:
        UnknownName: unknown ``attention``.
        ConfigError: ``width`` is no even multiple of ``heads``.
    """
    require_known("attention", attention, ATTENTION)
    if width % (2 * heads):
        raise ConfigError(f"width {width} is no even multiple of heads {heads}, which rotary positions need; choose other heads.")
    config = LlamaConfig(
        vocab_size=vocab_size, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=depth, num_attention_heads=heads,
        max_position_embeddings=max_length, initializer_range=width ** -0.5, tie_word_embeddings=True, attention_dropout=0.0,
        pad_token_id=None, bos_token_id=None, eos_token_id=None, attn_implementation=attention)
    with seeds.scoped(seed, "language model"):
        return LlamaForCausalLM(config)


def add_predictor_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, k: int, *, init: str = "mean", named: str = "",
                         seed: int = 0, multiple: int = 8) -> tuple[int, ...]:
    """Give tokenizer and model the special tokens ``<|predictor_1|>`` ... ``<|predictor_k|>``; those that are there stay as they are.

    The embedding grows once, and only where it has no spare rows. New rows, of the input and of an untied output embedding, begin as
    the mean of the rows before them; a mean logit is never the largest, so no untrained row is generated.

    Args:
        model: a causal language model, before LoRA.
        tokenizer: its tokenizer.
        k: number of tokens.
        init: of the tokens: ``"mean"``, ``"random"`` (normal, with mean and deviation of the other rows), ``"named"`` (a token's row).
        named: that token.
        seed: of ``"random"``.
        multiple: the number of rows of a grown embedding is a multiple of this.

    Returns:
        Ids of ``<|predictor_1|>`` ... ``<|predictor_k|>``.

    Raises:
        UnknownName: unknown ``init``.
        ConfigError: ``k`` is negative, or ``named`` is no token of the tokenizer.
    """
    require_known("init", init, INITS)
    if k < 0:
        raise ConfigError(f"k is {k}; the number of predictor tokens is 0 or more.")
    names = [f"<|predictor_{i}|>" for i in range(1, k + 1)]
    known = tokenizer.get_vocab()
    if init == "named" and named not in known:
        raise ConfigError(f"'{named}' is no token of this tokenizer; name one of its tokens to start the predictor tokens from.")
    rows = len(_tables(model)[0])
    used = min(len(tokenizer), rows)
    tokenizer.add_tokens([name for name in names if name not in known], special_tokens=True)
    ids = tokenizer.convert_tokens_to_ids(names)
    fresh = [token for name, token in zip(names, ids) if name not in known or token >= rows]  # a tokenizer may have served another model
    if fresh:
        _make_room(model, used, len(tokenizer), multiple)
        _start(model, fresh, used, known.get(named), init, seed)
    return tuple(ids)


def _tables(model: PreTrainedModel) -> list[torch.Tensor]:
    """Weights (V, D) of the input embedding, and of the output embedding where it is another tensor."""
    given, asked = model.get_input_embeddings().weight, model.get_output_embeddings()
    return [given] if asked is None or asked.weight is given else [given, asked.weight]


def _make_room(model: PreTrainedModel, used: int, needed: int, multiple: int) -> None:
    before = len(_tables(model)[0])
    if needed <= before:
        return
    with seeds.scoped(0, "new rows"):  # drawn by transformers, then overwritten
        model.resize_token_embeddings(needed, pad_to_multiple_of=multiple, mean_resizing=False)
    with torch.no_grad():
        for table in _tables(model):
            table[before:] = table[:used].mean(0)


def _start(model: PreTrainedModel, rows: list[int], used: int, source: int | None, init: str, seed: int) -> None:
    """Write the first values of the new tokens' rows from the ``used`` rows before them."""
    with torch.no_grad():
        for number, table in enumerate(_tables(model)):
            mean = table[:used].mean(0)
            if init == "random":
                noise = torch.randn(len(rows), len(mean), generator=seeds.generator(seed, "predictor tokens", number))
                table[rows] = mean + table[:used].std(0) * noise.to(table)
            else:
                table[rows] = mean if init == "mean" else table[source].clone()


def with_lora(model: PreTrainedModel, rank: int, *, alpha: float | None = None, dropout: float = 0.1, tokens: Sequence[int] = (),
              seed: int = 0) -> PeftModel:
    """Low-rank adapters on every linear projection but the head; nothing else is trained (Paper C, LoRA table).

    Args:
        model: a causal language model; it is changed in place.
        rank: rank r of the adapters.
        alpha: their scale is alpha / r; by default alpha = 2 r, as published.
        dropout: rate at the input of the adapters.
        tokens: ids whose embeddings are trained beside the adapters, such as new predictor tokens.
        seed: of the adapters' first values.

    Raises:
        ConfigError: ``rank`` is below 1.
    """
    if rank < 1:
        raise ConfigError(f"lora rank is {rank}; take 1 or more, or train all weights without LoRA.")
    from peft import LoraConfig, get_peft_model

    (table,) = (name for name, module in model.named_modules() if module is model.get_input_embeddings())
    config = LoraConfig(
        task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank if alpha is None else alpha, lora_dropout=dropout, target_modules="all-linear",
        trainable_token_indices={table.rpartition(".")[2]: list(tokens)} if tokens else None)
    with seeds.scoped(seed, "lora"):
        return get_peft_model(model, config)


def linear_predictor(width: int, seed: int) -> nn.Linear:
    """A linear map D -> D on the state of the Text view (Paper C, Table 3)."""
    with seeds.scoped(seed, "linear predictor"):
        return nn.Linear(width, width)
