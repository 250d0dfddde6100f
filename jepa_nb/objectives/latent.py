"""Latent prediction loss (Paper A, equation in A1.1), in the forms of the two public codes.

T-JEPA sums squared errors over the D features and averages over masked tokens; I-JEPA as run for the paper averages over
both, and FAIR's I-JEPA takes a smooth absolute error against layer-normalised targets.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from jepa_nb.errors import ConfigError, DataError, require_known

REDUCTIONS = ("sum", "mean")
KINDS = {"mse": F.mse_loss, "smooth_l1": F.smooth_l1_loss}


def latent_loss(
    pred: torch.Tensor,
    target: torch.Tensor,
    *,
    reduction: str = "sum",
    target_norm: bool = False,
    kind: str = "mse",
) -> torch.Tensor:
    """Distance between predictions and targets, a scalar; no gradient goes into the targets (sg in A1.1).

    Computed in float32 at least, also under autocast.

    Args:
        pred, target: (N, D).
        reduction: over D; ``"sum"`` or ``"mean"``. Over N it is always the mean.
        target_norm: layer-normalise each target over its features, without learned scale.
        kind: ``"mse"`` (squared error) or ``"smooth_l1"`` (with its knee at 1).

    Raises:
        UnknownName: unknown ``reduction`` or ``kind``.
        ConfigError: the shapes differ.
        DataError: there is no row.
    """
    require_known("reduction", reduction, REDUCTIONS)
    require_known("kind of latent loss", kind, KINDS)
    if pred.shape != target.shape or pred.ndim != 2:
        raise ConfigError(f"latent_loss takes two tensors of one shape (N, D), got {tuple(pred.shape)} and "
                          f"{tuple(target.shape)}.")
    if not len(pred):
        raise DataError("latent_loss got no prediction, so its mean is undefined; mask at least one token.")
    dtype = torch.promote_types(pred.dtype, torch.float32)
    pred, target = pred.to(dtype), target.detach().to(dtype)
    if target_norm:
        target = F.layer_norm(target, target.shape[-1:])
    total = KINDS[kind](pred, target, reduction="sum") / len(pred)
    return total if reduction == "sum" else total / pred.shape[1]
