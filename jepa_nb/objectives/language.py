"""The two terms of LLM-JEPA: next-token loss, and a distance between the embeddings of two views (Paper C, equation 2).

``L = gamma * L_NTP + lam * d(Pred(Enc(Text)), Enc(Code))``. No gradient is stopped: both views move, and the next-token term is what keeps
them from collapsing.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from jepa_nb.errors import ConfigError, DataError, require_known
from jepa_nb.masking.streams import IGNORED

DISTANCES = ("cosine", "l2", "mse", "infonce")
POOLINGS = ("last", "mean")
IMPLEMENTATIONS = ("sdpa", "eager")


def next_token_sum(logits: Tensor, labels: Tensor) -> tuple[Tensor, int]:
    """Summed next-token loss in nats, in float32, and the number of labels.

    Args:
        logits: (R, C, V), each from the state of the token *before* its label.
        labels: (R, C), -100 where nothing is predicted.

    Raises:
        ConfigError: the shapes do not fit.
        DataError: no label at all.
    """
    if logits.shape[:-1] != labels.shape:
        raise ConfigError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit; give logits (R, C, V), labels (R, C).")
    kept = labels != IGNORED
    count = int(kept.sum())
    if not count:
        raise DataError("no token of the batch has a label, so the next-token loss is undefined; check the label policy and the templates.")
    return F.cross_entropy(logits[kept].float(), labels[kept], reduction="sum"), count


def view_states(hidden: Tensor, index: Tensor, pooling: str = "last") -> Tensor:
    """The embedding of each view, (B, D).

    Args:
        hidden: (R, L, D) states after the model's last norm.
        index: (B, T), places of a view's tokens as row * L + column, -1 behind the last.
        pooling: ``"last"`` token (the paper's), or the ``"mean"`` over the view's tokens (its ablation).

    Raises:
        UnknownName: unknown pooling.
    """
    require_known("pooling", pooling, POOLINGS)
    flat, valid = hidden.reshape(-1, hidden.shape[-1]), index >= 0
    count = valid.sum(1)
    if pooling == "last":
        return flat[index.gather(1, (count - 1)[:, None])[:, 0]]
    taken = flat[index.clamp(min=0)] * valid[..., None]
    return taken.sum(1) / count[:, None]


def jepa_distance(pred: Tensor, target: Tensor, distance: str = "cosine", *, temperature: float = 0.07) -> Tensor:
    """Distance between predicted and target embeddings, a scalar in float32; gradients go into both.

    ``cosine``: mean of 1 - cos (the paper's). ``l2``: mean Euclidean distance. ``mse``: mean squared difference over all numbers. ``infonce``:
    cross-entropy in nats of the right target among the batch's, by cosine over temperature (Paper C, Table 3).

    Args:
        pred, target: (B, D).
        distance: one of :data:`DISTANCES`.
        temperature: of ``infonce``.

    Raises:
        UnknownName: unknown distance.
        ConfigError: shapes differ, or the temperature is not positive.
    """
    require_known("distance", distance, DISTANCES)
    if pred.shape != target.shape or pred.ndim != 2 or not len(pred):
        raise ConfigError(f"jepa_distance takes two tensors (B, D) of one shape, got {tuple(pred.shape)} and {tuple(target.shape)}.")
    if temperature <= 0:
        raise ConfigError(f"temperature must be positive, got {temperature}.")
    dtype = torch.promote_types(pred.dtype, torch.float32)
    with torch.autocast(pred.device.type, enabled=False):
        return _DISTANCE[distance](pred.to(dtype), target.to(dtype), temperature)


def _infonce(pred: Tensor, target: Tensor, temperature: float) -> Tensor:
    similar = F.normalize(pred, dim=1) @ F.normalize(target, dim=1).T
    return F.cross_entropy(similar / temperature, torch.arange(len(pred), device=pred.device))


_DISTANCE = {
    "cosine": lambda pred, target, _: 1 - F.cosine_similarity(pred, target, dim=1).mean(),
    "l2": lambda pred, target, _: torch.linalg.vector_norm(pred - target, dim=1).mean(),
    "mse": lambda pred, target, _: F.mse_loss(pred, target),
    "infonce": _infonce,
}


def total(ntp: Tensor, jepa: Tensor, *, gamma: float, lam: float) -> Tensor:
    """``gamma * ntp + lam * jepa`` (Paper C, equation 2)."""
    return gamma * ntp + lam * jepa


def model_mask(attention: Tensor, *, attention_implementation: str, dtype: torch.dtype) -> Tensor:
    """The mask in the form that transformers' attention takes.

    A mask (R, L) goes through as it is. One of (R, 1, L, L) is used by the model as given: ``sdpa`` reads it as a bool, ``eager`` *adds* it,
    so it becomes 0 where attending is allowed and the dtype's least number elsewhere (minus infinity would make an empty row NaN).

    Raises:
        UnknownName: an implementation that does not take such a mask; load the model with attn_implementation="sdpa".
    """
    if attention.ndim == 2:
        return attention
    require_known("attention implementation for a mask of (R, 1, L, L)", attention_implementation, IMPLEMENTATIONS)
    if attention_implementation == "sdpa":
        return attention
    return torch.zeros((), dtype=dtype, device=attention.device).masked_fill(~attention, torch.finfo(dtype).min)
