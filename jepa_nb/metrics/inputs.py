"""What every tensor metric asks of its arguments, and the three small operations that they share.

All metrics compute in float64, whatever dtype comes in: a collapsed encoder differs from a constant one by less than float32
resolves, and float64 is left alone by autocast. They keep the tensor's device and never track gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jepa_nb.errors import ConfigError, NonFinite


def features(name: str, x: Tensor, *, axes: tuple[str, ...] = ("N", "D"), least: int = 2) -> Tensor:
    """``x`` as a detached float64 tensor without NaN or infinity. Raises as :func:`real`, and :class:`NonFinite`."""
    x = real(name, x, axes=axes, least=least)
    require_finite(name, x)
    return x


def real(name: str, x: Tensor, *, axes: tuple[str, ...], least: int) -> Tensor:
    """``x`` as a detached float64 tensor of the wanted shape.

    Args:
        name: the caller's name of the argument, for the error.
        axes: names of the expected axes.
        least: smallest accepted length of the first axis; the others must not be empty.

    Raises:
        ConfigError: no real tensor, another number of axes, or too few rows.
    """
    wanted = f"{name} must be a real tensor of shape ({', '.join(axes)})"
    if not isinstance(x, Tensor):
        raise ConfigError(f"{wanted}, got {type(x).__name__}; convert it with torch.as_tensor.")
    if x.ndim != len(axes) or x.is_complex() or 0 in x.shape[1:]:
        raise ConfigError(f"{wanted} without empty axes, got shape {tuple(x.shape)} and dtype {x.dtype}.")
    if len(x) < least:
        raise ConfigError(f"{name} needs at least {least} rows ({axes[0]}), got {len(x)}; pass more samples.")
    return x.detach().double()


def require_finite(name: str, x: Tensor) -> None:
    """Raise :class:`NonFinite` with the number of bad values and the first bad row."""
    if bool(torch.isfinite(x).all()):
        return
    bad = ~torch.isfinite(x)
    raise NonFinite(f"{name} holds {int(bad.sum())} NaN or infinite values, the first in row {int(bad.nonzero()[0, 0])}; "
                    "look for the step that produced them before measuring.")


def labels(name: str, x: Tensor, like: Tensor) -> Tensor:
    """``x`` as int64 labels of the rows of ``like`` (a group, a position or a sample id each), on its device.

    Raises:
        ConfigError: no integer tensor of that shape.
    """
    if not isinstance(x, Tensor) or x.is_floating_point() or x.is_complex():
        got = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ConfigError(f"{name} must be an integer tensor, got {got}; convert it with .long().")
    if x.ndim != 1 or len(x) == 0 or len(x) != len(like):
        wanted = f"one label for each of the {len(like)} rows" if like is not x else "labels of one or more rows"
        raise ConfigError(f"{name} must hold {wanted}, got shape {tuple(x.shape)}.")
    return x.detach().to(like.device, torch.long)


def require_same_shape(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """Raise :class:`ConfigError` where two tensors that are compared row by row disagree."""
    if x.shape != other.shape:
        raise ConfigError(f"{name} and {other_name} must have one shape, got {tuple(x.shape)} and {tuple(other.shape)}.")


def centred(x: Tensor) -> Tensor:
    """``x`` (N, D) minus its mean over rows; equal rows give exact zeros, which a plain mean does not promise."""
    shifted = x - x[:1]
    return shifted - shifted.mean(0)


def unit(x: Tensor) -> Tensor:
    """Rows of ``x`` (..., D) scaled to length one; a zero row stays zero, so its cosine with anything is 0."""
    largest = x.abs().amax(-1, keepdim=True)
    scaled = x / largest.where(largest > 0, 1.0)  # squares of very small or large entries would leave float64's range
    length = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return scaled / length.where(length > 0, 1.0)
