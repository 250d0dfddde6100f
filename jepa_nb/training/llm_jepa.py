"""One forward pass of LLM-JEPA on any causal language model of transformers (Paper C, section 3)."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from jepa_nb.errors import ConfigError, require_known
from jepa_nb.masking.streams import IGNORED, LAYOUTS, StreamBatch
from jepa_nb.objectives import language
from jepa_nb.objectives.language import DISTANCES, POOLINGS, jepa_distance, model_mask, next_token_sum, view_states


@dataclass(frozen=True)
class JEPATerms:
    """The objective.

    Attributes:
        lam: weight of the JEPA term; 0 leaves plain fine-tuning.
        gamma: weight of the next-token term.
        distance, pooling: of the two embeddings, :data:`jepa_nb.objectives.language.DISTANCES` and ``POOLINGS``.
        temperature: of the distance ``infonce``.
        loss_dropout: share of batches without the JEPA term, in [0, 1).
        layout: how the three streams share rows; it changes cost, not value.
        linear_predictor: a trained linear map after the Text view's state (Paper C, Table 3).

    Raises:
        UnknownName, ConfigError: a value that names or means nothing.
    """

    lam: float = 1.0
    gamma: float = 1.0
    distance: str = "cosine"
    pooling: str = "last"
    temperature: float = 0.07
    loss_dropout: float = 0.0
    layout: str = "shared_prefix"
    linear_predictor: bool = False

    def __post_init__(self) -> None:
        require_known("distance", self.distance, DISTANCES)
        require_known("pooling", self.pooling, POOLINGS)
        require_known("layout", self.layout, LAYOUTS)
        if not (0 <= self.lam < math.inf and 0 <= self.gamma < math.inf and self.lam + self.gamma):
            raise ConfigError(f"lam and gamma must be finite and not negative, nor both 0; got lam {self.lam}, gamma {self.gamma}.")
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be positive, got {self.temperature}.")
        if not 0 <= self.loss_dropout < 1:
            raise ConfigError(f"loss_dropout is a share in [0, 1), got {self.loss_dropout}; without any JEPA term set lam to 0.")


@dataclass(frozen=True)
class Losses:
    """Scalars of one batch.

    Attributes:
        total: ``gamma * ntp + lam * jepa``.
        ntp: nats a label.
        jepa: distance, 0 where the batch has no views.
        labels: number of labels of the batch.
        with_jepa: whether the JEPA term was computed.
    """

    total: Tensor
    ntp: Tensor
    jepa: Tensor
    labels: int
    with_jepa: bool


@dataclass(frozen=True)
class Forwarded:
    """What the model gave for a batch.

    Attributes:
        logits: (R, C, V) at the columns before a label.
        labels: (R, C).
        hidden: (R, L, D) states after the last norm, or ``None``.
    """

    logits: Tensor
    labels: Tensor
    hidden: Tensor | None


def forward(model: nn.Module, batch: StreamBatch, *, hidden: bool) -> Forwarded:
    """Compute a batch; logits only at the columns that predict a label in some row.

    Args:
        model: a causal language model of transformers, or one wrapped by peft, with ``sdpa`` or ``eager`` attention.
        batch: rows (R, L).
        hidden: whether the states are wanted.
    """
    columns = (batch.labels[:, 1:] != IGNORED).any(0).nonzero()[:, 0]
    bare = getattr(model, "module", model)  # of a model that torch wraps for several devices
    mask = model_mask(batch.attention, attention_implementation=bare.config._attn_implementation, dtype=bare.dtype)
    chosen = {"logits_to_keep": columns} if _chooses_logits(_unwrapped(bare)) else {}
    found = model(input_ids=batch.input_ids, attention_mask=mask, position_ids=batch.position_ids, output_hidden_states=hidden,
                  use_cache=False, **chosen)
    logits = found.logits if chosen else found.logits[:, columns]
    return Forwarded(logits, batch.labels[:, columns + 1], found.hidden_states[-1] if hidden else None)


def _unwrapped(model: nn.Module) -> type[Any]:
    return type(model.get_base_model() if hasattr(model, "get_base_model") else model)


@lru_cache
def _chooses_logits(kind: type[Any]) -> bool:
    return "logits_to_keep" in inspect.signature(kind.forward).parameters


def losses(
    model: nn.Module, batch: StreamBatch, terms: JEPATerms, *, predictor: nn.Module | None = None, num_labels: int | Tensor | None = None
) -> Losses:
    """Both terms of a batch with their gradients (Paper C, equation 2).

    Args:
        model: see :func:`forward`.
        batch: B pairs as rows; laid out without views it has no JEPA term.
        terms: weights and distance.
        predictor: linear map (D to D) applied to the Text view's state.
        num_labels: what the summed next-token loss is divided by; by default the batch's own labels. With gradient accumulation: those of
            the whole accumulated batch.
    """
    with_jepa = bool(terms.lam) and batch.text_index is not None
    found = forward(model, batch, hidden=with_jepa)
    summed, labels = next_token_sum(found.logits, found.labels)
    ntp = summed / (labels if num_labels is None else num_labels)
    jepa = ntp.new_zeros(())
    if with_jepa:
        pred = view_states(found.hidden, batch.text_index, terms.pooling)
        pred = pred if predictor is None else predictor(pred)
        jepa = jepa_distance(pred, view_states(found.hidden, batch.code_index, terms.pooling), terms.distance, temperature=terms.temperature)
    return Losses(language.total(ntp, jepa, gamma=terms.gamma, lam=terms.lam), ntp, jepa, labels, with_jepa)
