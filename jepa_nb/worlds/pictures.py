"""Smooth random textures with shapes on them, as RGB originals of the smoke tier: tests need images without a download."""

from __future__ import annotations

import numpy as np

from jepa_nb import seeds


def pictures(*, seed: int, count: int, side: int = 96, shapes: tuple[int, int] = (2, 5)) -> list[np.ndarray]:
    """``count`` pictures (side, side, 3) uint8, each a smooth texture of its own colours under a few discs and boxes."""
    generator = seeds.numpy_generator(seed, "worlds", "pictures")
    return [_picture(generator, side, int(generator.integers(shapes[0], shapes[1] + 1))) for _ in range(count)]


def _picture(generator: np.random.Generator, side: int, shapes: int) -> np.ndarray:
    low, high = generator.uniform(0, 255, size=(2, 3))
    values = _texture(generator, side)[..., None] * (high - low) + low
    for _ in range(shapes):
        values[_shape(generator, side)] = generator.uniform(0, 255, size=3)
    return values.round().astype(np.uint8)


def _texture(generator: np.random.Generator, side: int) -> np.ndarray:
    """Noise with a power-law spectrum of random steepness, scaled to [0, 1]."""
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(generator.standard_normal((side, side))) * frequency ** -generator.uniform(1.0, 2.0)
    field = np.fft.irfft2(spectrum, s=(side, side))
    return (field - field.min()) / np.ptp(field)


def _shape(generator: np.random.Generator, side: int) -> np.ndarray:
    """Mask (side, side) of a disc or an upright box."""
    row, column = generator.uniform(0, side, size=2)
    radius = generator.uniform(side / 16, side / 5)
    rows, columns = np.mgrid[:side, :side]
    if generator.random() < 0.5:
        return np.hypot(rows - row, columns - column) < radius
    return (np.abs(rows - row) < radius) & (np.abs(columns - column) < radius * generator.uniform(0.5, 1.5))
