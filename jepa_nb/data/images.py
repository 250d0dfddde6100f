"""Crops of originals, drawn equally often from each kind and, within a kind, from each original."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from jepa_nb.data.originals import Original, load_originals
from jepa_nb.errors import ConfigError

__all__ = ["Original", "describe", "load_originals", "sample_crops"]

ZOOM = 4.0
ASPECT = (3 / 4, 4 / 3)


def describe(originals: Sequence[Original]) -> str:
    """Originals by kind and split in one line, for a figure's caption."""
    counts = {kind: [sum(o.kind == kind and o.split == split for o in originals) for split in ("train", "val")]
              for kind in dict.fromkeys(o.kind for o in originals)}
    total = [sum(count[side] for count in counts.values()) for side in (0, 1)]
    listed = ", ".join(f"{kind} {train} + {val}" for kind, (train, val) in counts.items())
    return (f"{total[0]} training + {total[1]} validation originals ({listed}); crops drawn equally from each kind, "
            "and within it from each original; split by original")


def sample_crops(originals: Sequence[Original], n: int, size: int, generator: np.random.Generator, *,
                 split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw ``n`` random crops.

    The numbers of crops of any two kinds differ by at most one, and within a kind those of any two originals too, so no
    original dominates. A crop is a square with a side between ``size`` and 4 ``size`` pixels (log-uniform, as far as the
    picture allows), or, for originals with an ``area``, a rectangle of that share of the picture and of aspect 3/4 to 4/3;
    it is resized to ``size`` by an antialiased bicubic filter.

    Args:
        originals: where to draw from.
        n: number of crops, N.
        size: their side S in pixels.
        generator: source of randomness.
        split: ``"train"`` or ``"val"``.

    Returns:
        ``images`` (N, 3, S, S) float32 in [-1, 1] and ``origin`` (N,) int64, the index into ``originals``.

    Raises:
        ConfigError: no original is in the split.
    """
    chosen = _quotas(originals, n, generator, split)
    crops = np.empty((n, size, size, 3), dtype=np.uint8)
    for row, index in enumerate(chosen):
        original = originals[index]
        picture = original.frames[int(generator.integers(len(original.frames)))]
        crops[row] = _crop(picture, size, original.area, generator)
    images = torch.from_numpy(crops).permute(0, 3, 1, 2).to(torch.float32).div_(127.5).sub_(1.0)
    return images.contiguous(), torch.from_numpy(chosen)


def _quotas(originals: Sequence[Original], n: int, generator: np.random.Generator, split: str) -> np.ndarray:
    """Index (N,) of the original of each crop, in random order."""
    kinds: dict[str, list[int]] = {}
    for index, original in enumerate(originals):
        if original.split == split:
            kinds.setdefault(original.kind, []).append(index)
    if not kinds:
        raise ConfigError(f"no original of split '{split}' among the {len(originals)} given; splits are 'train' and 'val'.")
    members = list(kinds.values())
    of_kind = _evenly(len(members), n, generator)
    chosen = np.empty(n, dtype=np.int64)
    for kind, indices in enumerate(members):
        rows = np.flatnonzero(of_kind == kind)
        chosen[rows] = np.asarray(indices)[_evenly(len(indices), len(rows), generator)]
    return chosen


def _evenly(choices: int, n: int, generator: np.random.Generator) -> np.ndarray:
    """``n`` numbers below ``choices``, each equally often give or take one, in random order."""
    whole = np.repeat(np.arange(choices), n // choices)
    rest = generator.permutation(choices)[:n % choices]
    return generator.permutation(np.concatenate([whole, rest]))


def _crop(picture: np.ndarray, size: int, area: tuple[float, float] | None, generator: np.random.Generator) -> np.ndarray:
    height, width = picture.shape[:2]
    tall, wide = _square(height, width, size, generator) if area is None else _rectangle(height, width, area, generator)
    top, left = (int(generator.integers(free + 1)) for free in (height - tall, width - wide))
    window = Image.fromarray(np.ascontiguousarray(picture[top:top + tall, left:left + wide]))
    return np.asarray(window.resize((size, size), Image.Resampling.BICUBIC))


def _square(height: int, width: int, size: int, generator: np.random.Generator) -> tuple[int, int]:
    most = min(height, width)
    low, high = min(size, most), min(ZOOM * size, most)
    side = round(math.exp(generator.uniform(math.log(low), math.log(high))))
    return side, side


def _rectangle(height: int, width: int, area: tuple[float, float], generator: np.random.Generator) -> tuple[int, int]:
    pixels = generator.uniform(*area) * height * width
    aspect = math.exp(generator.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
    # A rectangle that sticks out is clipped to the picture, instead of drawn again as torchvision does up to ten times.
    return max(1, min(height, round(math.sqrt(pixels / aspect)))), max(1, min(width, round(math.sqrt(pixels * aspect))))
