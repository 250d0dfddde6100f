"""Shape of a cloud of features: effective rank (three definitions) and pairwise cosine; paper A, figures 2, 3 and cosine.

Public code disagrees about the name "effective rank" (centring, squared or plain singular values, an added epsilon), so
each definition has a name here, and a number is only comparable under the same one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from jepa_nb.errors import ConfigError, require_known
from jepa_nb.metrics.inputs import centred, features, unit

RANK_KINDS = ("eigenvalue_entropy", "rankme", "participation")
RANKME_EPSILON = 1e-5  # RankMe, eq. 1: added to each normalised singular value, after normalising


class CosineStats(NamedTuple):
    """Cosine over all N(N-1)/2 pairs of rows.

    Attributes:
        mean: mean cosine.
        sd: standard deviation over the pairs (divided by their number).
        p95: 95th percentile, linearly interpolated.
        histogram: fraction of pairs in each bin; sums to 1.
        edges: the ``bins + 1`` edges of equal bins on [-1, 1]; the last bin is closed.
        zero_rows: rows of length zero, whose cosine is counted as 0: read the other numbers with care unless it is 0.
    """

    mean: float
    sd: float
    p95: float
    histogram: tuple[float, ...]
    edges: tuple[float, ...]
    zero_rows: int


def effective_rank(x: Tensor, kind: str = "eigenvalue_entropy") -> float:
    """Effective number of dimensions that ``x`` (N, D) spreads over.

    - ``eigenvalue_entropy``: exp(-sum p ln p) with p the normalised eigenvalues of the centred covariance (paper A, A5).
    - ``participation``: (sum l)^2 / sum l^2 of the same eigenvalues.
    - ``rankme``: exp(-sum p ln p) with p the normalised singular values of the matrix itself, not centred, plus 1e-5 each,
      not normalised again (RankMe, eq. 1). The epsilon alone lifts rank 1 in 2,048 dimensions to 1.27.

    The first two do not change under rotation, scaling, shifting or reordering of rows and lie in [1, min(N - 1, D)];
    ``rankme`` changes with a shift, and its epsilon lets it exceed min(N, D) by some per cent.
    Features without any variance (for ``rankme``: all zero) have rank 1.0 by definition: the limit of a shrinking line.

    Raises:
        UnknownName: unknown ``kind``.
        ConfigError: fewer than two rows, or no matrix.
        NonFinite: a NaN or an infinity in ``x``.
    """
    require_known("kind of effective rank", kind, RANK_KINDS)
    x = features("x", x)
    x = x if kind == "rankme" else centred(x)
    scale = x.abs().amax()
    if scale == 0:
        return 1.0
    energy = _squared_singular_values(x / scale)
    if kind == "participation":
        return float(energy.sum().square() / energy.square().sum())
    if kind == "rankme":
        singular = energy.sqrt()
        share = singular / singular.sum() + RANKME_EPSILON
    else:
        share = energy / energy.sum()
    return float(torch.special.entr(share).sum().exp())


def participation_ratio(x: Tensor) -> float:
    """``effective_rank(x, "participation")``."""
    return effective_rank(x, "participation")


def rank_limit(rows: int, width: int, kind: str = "eigenvalue_entropy") -> int:
    """Largest rank that ``rows`` points in ``width`` dimensions can have; centring costs one row."""
    require_known("kind of effective rank", kind, RANK_KINDS)
    return min(rows if kind == "rankme" else rows - 1, width)


def rank_share(x: Tensor, kind: str = "eigenvalue_entropy") -> float:
    """Effective rank of ``x`` (N, D) as a share of :func:`rank_limit`. Raises as :func:`effective_rank`."""
    return effective_rank(x, kind) / rank_limit(*x.shape, kind)


def cosine_stats(x: Tensor, *, bins: int = 10) -> CosineStats:
    """Cosine between the rows of ``x`` (N, D), exactly over all pairs (paper A, A5: at most 2,048 tokens, 10 bins).

    Memory is about 20 N^2 bytes: draw a few thousand rows first where N is larger. A zero row has cosine 0 with every
    other and is counted in ``zero_rows``.

    Raises:
        ConfigError: fewer than two rows, no matrix, or ``bins`` below 1.
        NonFinite: a NaN or an infinity in ``x``.
    """
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins}.")
    x = features("x", x)
    directions = unit(x)
    cosines = (directions @ directions.T).clamp_(-1.0, 1.0).cpu().numpy()
    pairs = cosines[~np.tri(len(x), dtype=bool)]
    counts, edges = np.histogram(pairs, bins=bins, range=(-1.0, 1.0))
    return CosineStats(
        mean=float(pairs.mean()), sd=float(pairs.std()), p95=float(np.quantile(pairs, 0.95)),
        histogram=tuple((counts / pairs.size).tolist()), edges=tuple(edges.tolist()),
        zero_rows=int((directions == 0).all(1).sum()),
    )


def _squared_singular_values(x: Tensor) -> Tensor:
    """The min(N, D) squared singular values of ``x`` (N, D), from the smaller of its two Gram matrices."""
    gram = x.T @ x if x.shape[0] > x.shape[1] else x @ x.T
    return torch.linalg.eigvalsh(gram).clamp(min=0.0)
