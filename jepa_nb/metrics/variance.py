"""How much of the target can be predicted: conditional, within-group and total variance; paper A, condition 3, figure 4.

Every variance is summed over the D dimensions (a squared distance), so ratios of them have no unit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jepa_nb.errors import ConfigError, NonFinite
from jepa_nb.metrics.inputs import centred, features, labels


def conditional_variance(completions: Tensor, weights: Tensor | None = None, *, unbiased: bool = True) -> Tensor:
    """Variance of the target among K completions of one context, for each of C contexts: the irreducible loss (A5).

    Args:
        completions: (C, K, D) target states.
        weights: (C, K) probabilities of the completions, normalised here: the result is the variance of that distribution, and
            ``unbiased`` does not apply. ``None``: K equally likely draws.
        unbiased: divide draws by K - 1; ``False`` divides by K, as the paper does, which reads (K - 1) / K of it.

    Returns:
        (C,) float64.

    Raises:
        ConfigError: shapes that disagree, negative or all-zero weights, or one draw with ``unbiased``.
        NonFinite: a NaN or an infinity, named by argument.
    """
    x, p = _distribution(completions, weights)
    draws = x.shape[1]
    if weights is None and unbiased and draws < 2:
        raise ConfigError("an unbiased variance needs K >= 2 completions of each context, got 1.")
    shifted = x - x[:, :1]
    spread = shifted - (p[..., None] * shifted).sum(1, keepdim=True)
    variance = (p * spread.square().sum(-1)).sum(1)
    return variance * draws / (draws - 1) if weights is None and unbiased else variance


def pairwise_variance(completions: Tensor, weights: Tensor | None = None) -> Tensor:
    """The same variance from distances alone: sum over i < j of p_i p_j |h_i - h_j|^2 (paper A, A1.5), (C,) float64.

    It equals ``conditional_variance(..., unbiased=False)``. Raises as that function.
    """
    x, p = _distribution(completions, weights)
    squared = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()
    return (p[:, :, None] * p[:, None, :] * squared).sum((1, 2)) / 2


def total_variance(x: Tensor) -> float:
    """Trace of the covariance of ``x`` (N, D), divided by N - 1.

    Raises:
        ConfigError: fewer than two rows. NonFinite: a NaN or an infinity.
    """
    x = centred(features("x", x))
    return float(x.square().sum() / (len(x) - 1))


def group_means(x: Tensor, groups: Tensor) -> Tensor:
    """Mean row of each group of ``x`` (N, D), (G, D) float64 in ascending order of the labels ``groups`` (N,)."""
    x = features("x", x, least=1)
    return _means(x, labels("groups", groups, x))[0]


def within_group_variance(x: Tensor, groups: Tensor) -> float:
    """Pooled variance of ``x`` (N, D) around the mean of its group in ``groups`` (N,), divided by N - G: unbiased.

    Raises:
        ConfigError: shapes that disagree, or no group with two rows. NonFinite: a NaN or an infinity.
    """
    x = features("x", x)
    groups = labels("groups", groups, x)
    means, member = _means(x, groups)
    if len(means) == len(x):
        raise ConfigError("no group has two rows, so there is no variance within a group; pass more rows or coarser groups.")
    return float((x - means[member]).square().sum() / (len(x) - len(means)))


def variance_by_group(x: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Variance of each group of ``x`` (N, D) by itself: labels (G,) in ascending order and variances (G,) float64, unbiased.

    Groups of one row have no variance and are left out. Raises as :func:`within_group_variance`.
    """
    x = features("x", x)
    groups = labels("groups", groups, x)
    means, member = _means(x, groups)
    sizes = torch.bincount(member)
    if not bool((sizes > 1).any()):
        raise ConfigError("no group has two rows, so there is no variance within a group; pass more rows or coarser groups.")
    squares = x.new_zeros(len(means)).index_add_(0, member, (x - means[member]).square().sum(1))
    kept = sizes > 1
    return groups.unique()[kept], squares[kept] / (sizes[kept] - 1)


def explained_by_groups(x: Tensor, groups: Tensor) -> float:
    """Share of the variance of ``x`` (N, D) that the group alone explains: 1 - within / total (an adjusted R^2).

    Labels without meaning give 0 on average, so small negative values occur; NaN where ``x`` has no variance at all.
    Raises as :func:`within_group_variance`.
    """
    return r2(within_group_variance(x, groups), total_variance(x))


def r2(loss: float, variance: float) -> float:
    """1 - ``loss`` / ``variance``, both summed over dimensions; NaN where the variance is 0, since nothing is to be explained.

    Raises:
        NonFinite: a NaN or an infinity. ConfigError: a negative variance.
    """
    for name, value in (("loss", loss), ("variance", variance)):
        if not math.isfinite(value):
            raise NonFinite(f"{name} is {value}; look for the step that produced it before measuring.")
    if variance < 0:
        raise ConfigError(f"variance cannot be negative, got {variance}.")
    return 1.0 - loss / variance if variance > 0 else math.nan


def _distribution(completions: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Completions (C, K, D) and probabilities (C, K), each row of which sums to 1."""
    x = features("completions", completions, axes=("C", "K", "D"), least=1)
    if weights is None:
        return x, torch.full(x.shape[:2], 1 / x.shape[1], dtype=x.dtype, device=x.device)
    p = features("weights", weights, axes=("C", "K"), least=1)
    if p.shape != x.shape[:2]:
        raise ConfigError(f"weights must have shape (C, K) = {tuple(x.shape[:2])}, got {tuple(p.shape)}.")
    total = p.sum(1, keepdim=True)
    if bool((p < 0).any()) or not bool((total > 0).all()):
        raise ConfigError("weights must not be negative and need a positive sum for each context; they are probabilities.")
    return x, p / total


def _means(x: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Group means (G, D) and each row's index into them (N,)."""
    names, member, sizes = groups.unique(return_inverse=True, return_counts=True)
    sums = x.new_zeros(len(names), x.shape[1]).index_add_(0, member, x)
    return sums / sizes[:, None], member
