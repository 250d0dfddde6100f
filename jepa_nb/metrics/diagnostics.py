"""The five diagnostics of paper A (figures 2-4 and the cosine figure) on a reader's own predictions and targets, in one call."""

from __future__ import annotations

import torch
from torch import Tensor

from jepa_nb import seeds
from jepa_nb.errors import ConfigError
from jepa_nb.metrics.geometry import cosine_stats, effective_rank, rank_limit
from jepa_nb.metrics.information import infonce_mi, position_conditioned_mi
from jepa_nb.metrics.inputs import features, labels, require_same_shape
from jepa_nb.metrics.variance import conditional_variance, group_means, r2, total_variance, within_group_variance

PAIR_ROWS = 2048  # paper A compares at most this many tokens pair by pair


def diagnose(pred: Tensor, target: Tensor, *, position: Tensor | None = None, sample: Tensor | None = None,
             completions: Tensor | None = None, rank_kind: str = "eigenvalue_entropy") -> dict[str, float]:
    """Diagnose predicted target states ``pred`` (N, D) against the true ones ``target`` (N, D); any encoder, any device.

    Args:
        position: (N,) place of each target in its sequence or image. With it the mutual information, R^2 and the irreducible
            share are also taken at a given position, so that a model which only knows the position earns nothing.
        sample: (N,) id of the text or image each row belongs to; rows of one sample are no negatives of each other.
        completions: (C, K, D) target states of K plausible completions of C contexts, from the same target encoder.
        rank_kind: a name of :data:`jepa_nb.metrics.geometry.RANK_KINDS`.

    Returns:
        Plain numbers; variances and the loss are summed over D, information is in nats.

        - always: ``loss`` (squared error), ``total_variance`` (of the targets), ``r2``; ``effective_rank_tokens``,
          ``rank_share_tokens``; ``cosine_mean``, ``cosine_sd``, ``cosine_p95``; ``mi``, ``mi_cap`` (centred, over all rows);
        - with ``position``: ``within_position_variance``, ``r2_position`` (what the position alone explains),
          ``r2_given_position``, ``mi_position_conditioned``, ``mi_position_conditioned_cap``;
        - with ``sample``: ``effective_rank_pooled``, ``rank_share_pooled`` (of each sample's mean target);
        - with ``completions``: ``irreducible_variance`` and ``irreducible_share`` (of the within-position variance; of the
          total without ``position``).

        Cosine and ``mi`` compare at most 2,048 rows, drawn by a fixed seed. A ratio to a variance of zero is NaN.

    Raises:
        ConfigError: shapes that disagree, too few rows, or too few samples at a position.
        NonFinite: a NaN or an infinity, named by argument. UnknownName: unknown ``rank_kind``.
    """
    pred, target = features("pred", pred), features("target", target)
    require_same_shape("pred", pred, "target", target)
    position = labels("position", position, target) if position is not None else None
    sample = labels("sample", sample, target) if sample is not None else None
    found = _fit(pred, target, position) | _rank(target, "tokens", rank_kind)
    drawn = _drawn(target)
    cosine = cosine_stats(target[drawn])
    found |= {"cosine_mean": cosine.mean, "cosine_sd": cosine.sd, "cosine_p95": cosine.p95}
    mi = infonce_mi(pred[drawn], target[drawn], centre=True, exclude=None if sample is None else sample[drawn])
    found |= {"mi": mi.nats, "mi_cap": mi.cap}
    if position is not None:
        mi = position_conditioned_mi(pred, target, position, sample=sample)
        found |= {"mi_position_conditioned": mi.nats, "mi_position_conditioned_cap": mi.cap}
    if sample is not None:
        found |= _rank(group_means(target, sample), "pooled", rank_kind)
    if completions is not None:
        found |= _irreducible(completions, target.shape[1], found.get("within_position_variance", found["total_variance"]))
    return found


def _fit(pred: Tensor, target: Tensor, position: Tensor | None) -> dict[str, float]:
    loss, total = float((pred - target).square().sum(1).mean()), total_variance(target)
    found = {"loss": loss, "total_variance": total, "r2": r2(loss, total)}
    if position is not None:
        within = within_group_variance(target, position)
        found |= {"within_position_variance": within, "r2_position": r2(within, total), "r2_given_position": r2(loss, within)}
    return found


def _rank(x: Tensor, of: str, kind: str) -> dict[str, float]:
    rank = effective_rank(x, kind)
    return {f"effective_rank_{of}": rank, f"rank_share_{of}": rank / rank_limit(*x.shape, kind)}


def _irreducible(completions: Tensor, width: int, variance: float) -> dict[str, float]:
    spread = conditional_variance(completions)
    if completions.shape[-1] != width:
        raise ConfigError(f"completions have width {completions.shape[-1]}, target has {width}; use one encoder for both.")
    raw = float(spread.mean())
    return {"irreducible_variance": raw, "irreducible_share": 1.0 - r2(raw, variance)}


def _drawn(x: Tensor) -> Tensor:
    """Indices of all rows, or of ``PAIR_ROWS`` drawn at random: evenly spaced ones could fall on one position of every sample."""
    return torch.randperm(len(x), generator=seeds.generator(0, "diagnose"))[:PAIR_ROWS].to(x.device)
