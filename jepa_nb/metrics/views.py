"""How near the two views of a pair lie: states of Text and Code (N, D) of one model, row by row (Paper C, Figure 4).

The cosine of a pair says little alone: in a narrow cone every two states have a large one. So it stands beside the cosine of pairs
that do not belong together, and beside retrieval, which only counts which Code is the nearest.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jepa_nb.metrics.inputs import features, require_same_shape, unit

TIE = 1e-12  # cosines nearer than this are equal: rounding must not decide between two copies of one Code


class Spectrum(NamedTuple):
    """Largest singular values of a difference of views, in falling order.

    Attributes:
        raw: in the states' own unit; shrinks with the states.
        normalised: divided by the mean norm of all 2N states, so that a smaller scale alone does not look like agreement.
    """

    raw: Tensor
    normalised: Tensor


def difference_spectrum(text: Tensor, code: Tensor, top: int = 100) -> Spectrum:
    """The ``top`` largest singular values of Enc(Text) - Enc(Code), at most min(N, D) (Paper C, Figure 4).

    They grow with the square root of N: compare only equal numbers of pairs. States that are all zero have a spectrum of zeros.

    Raises:
        ConfigError: no matrices of one shape, or no row.
        NonFinite: a NaN or an infinity.
    """
    text, code = _views(text, code, least=1)
    raw = torch.linalg.svdvals(text - code)[:top]
    norm = torch.linalg.vector_norm(torch.cat([text, code]), dim=1).mean()
    return Spectrum(raw, raw / norm.where(norm > 0, 1.0))


def linear_fit_residual(text: Tensor, code: Tensor, *, held_out: bool = False) -> float:
    """What the best linear map leaves: ||Enc(Text) W - Enc(Code)|| / ||Enc(Code)|| in Frobenius norm; 0 is a perfect map.

    W is the least-squares map, without intercept, the smallest of equals where D exceeds the number of rows. The paper does not say
    how it regularises; with D >= N a fit to all rows leaves nothing and says nothing.

    Args:
        held_out: fit on the first half of the rows (the larger one) and measure on the others, where 1 is what W = 0 would leave
            and a poor map may leave more.

    Raises:
        ConfigError: no matrices of one shape, or fewer than two rows.
        NonFinite: a NaN or an infinity.
    """
    text, code = _views(text, code)
    half = (len(text) + 1) // 2
    seen, measured = (slice(half), slice(half, None)) if held_out else (slice(None), slice(None))
    left = text[measured] @ (torch.linalg.pinv(text[seen]) @ code[seen]) - code[measured]
    norm = torch.linalg.matrix_norm(code[measured])
    return float(torch.linalg.matrix_norm(left) / norm.where(norm > 0, 1.0))


def retrieval_at_1(text: Tensor, code: Tensor) -> float:
    """Share of the N Texts whose own Code has the largest cosine with it; the first of equal Codes is taken. Chance is 1 / N.

    Raises:
        ConfigError: no matrices of one shape, or fewer than two rows.
        NonFinite: a NaN or an infinity.
    """
    text, code = _views(text, code)
    cosines = unit(text) @ unit(code).T
    nearest = (cosines >= cosines.amax(1, keepdim=True) - TIE).int().argmax(1)
    return float((nearest == torch.arange(len(text), device=text.device)).double().mean())


def paired_and_shuffled_cosine(text: Tensor, code: Tensor) -> tuple[float, float]:
    """Mean cosine of the N pairs, and of all N (N - 1) pairings of a Text with another pair's Code.

    Raises:
        ConfigError: no matrices of one shape, or fewer than two rows.
        NonFinite: a NaN or an infinity.
    """
    text, code = (unit(each) for each in _views(text, code))
    count = len(text)
    own, every = (text * code).sum(), text.sum(0) @ code.sum(0)
    return float((own / count).clamp(-1, 1)), float(((every - own) / (count * (count - 1))).clamp(-1, 1))


def _views(text: Tensor, code: Tensor, least: int = 2) -> tuple[Tensor, Tensor]:
    """Both views in float64, of one shape."""
    text, code = features("text", text, least=least), features("code", code, least=least)
    require_same_shape("text", text, "code", code)
    return text, code
