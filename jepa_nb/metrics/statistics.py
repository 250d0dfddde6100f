"""Intervals and tests behind a verdict: Student t over seeds, paired differences, bootstrap over items, Holm's correction.

Plain numpy and scipy, without torch, so that the ledger loads fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from jepa_nb.errors import ConfigError, NonFinite, require_known

ALTERNATIVES = ("two-sided", "greater", "less")


class Interval(NamedTuple):
    """A value (the mean, or the statistic that was bootstrapped), its interval, and the number of observations."""

    mean: float
    low: float
    high: float
    n: int


class PairedTest(NamedTuple):
    """Mean of a - b, its two-sided interval, the p-value under the alternative that was asked for, and the number of pairs."""

    difference: float
    low: float
    high: float
    p: float
    n: int


def t_interval(x: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
    """Mean of ``x`` (n,) with Student's interval, n - 1 degrees of freedom.

    Raises:
        ConfigError: fewer than two values, or a level outside (0, 1). NonFinite: a NaN or an infinity.
    """
    values = _vector("x", x)
    half = _t_quantile(len(values) - 1, level) * _standard_error(values)
    mean = float(values.mean())
    return Interval(mean, mean - half, mean + half, len(values))


def bootstrap_ci(x: Sequence[float] | np.ndarray, *, statistic: Callable[[np.ndarray], float] = np.mean,
                 generator: np.random.Generator, n: int = 2000, level: float = 0.95) -> Interval:
    """Percentile bootstrap of ``statistic`` over the items (first axis) of ``x`` (N, ...), with ``n`` resamples.

    Over items within a seed, or over eight seeds and more: with fewer the interval is too narrow.

    Raises:
        ConfigError: fewer than two items, ``n`` below 1, or a level outside (0, 1).
        NonFinite: a NaN or an infinity in ``x`` or in a resampled statistic.
    """
    items = _items("x", x)
    _require_level(level)
    if n < 1:
        raise ConfigError(f"n must be at least 1 resample, got {n}.")
    draws = (items[generator.integers(0, len(items), len(items))] for _ in range(n))
    resampled = np.array([float(statistic(draw)) for draw in draws])
    if not np.isfinite(resampled).all():
        raise NonFinite("the statistic is not finite on some resamples; choose one that is defined for repeated items.")
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(statistic(items)), float(low), float(high), len(items))


def paired_test(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray, *, alternative: str = "two-sided",
                level: float = 0.95) -> PairedTest:
    """Student's paired t-test of ``a`` (n,) against ``b`` (n,), seed by seed.

    ``greater`` asks whether a exceeds b. The interval is two-sided under each alternative. Equal differences have no spread:
    the p-value is then that of t = 0 where they are zero, and of an infinite t otherwise.

    Raises:
        ConfigError: lengths that disagree, fewer than two pairs, or a level outside (0, 1).
        UnknownName: unknown alternative. NonFinite: a NaN or an infinity, named by argument.
    """
    require_known("alternative", alternative, ALTERNATIVES)
    first, second = _vector("a", a), _vector("b", b)
    if len(first) != len(second):
        raise ConfigError(f"a and b are compared pair by pair but hold {len(first)} and {len(second)} values.")
    difference, low, high, n = t_interval(first - second, level)
    error = _standard_error(first - second)
    t = difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0
    tail = {"greater": float(stdtr(n - 1, -t)), "less": float(stdtr(n - 1, t)),
            "two-sided": min(1.0, 2 * float(stdtr(n - 1, -abs(t))))}
    return PairedTest(difference, low, high, tail[alternative], n)


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values of ``p`` (m,), in the given order: reject where they are at most the level.

    Raises:
        ConfigError: no vector, or a value outside [0, 1]. NonFinite: a NaN or an infinity.
    """
    values = np.asarray(p, dtype=float)
    if values.ndim != 1:
        raise ConfigError(f"p must be a vector, got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise NonFinite("p holds a NaN or an infinity; leave tests that were not run out of the correction.")
    if ((values < 0) | (values > 1)).any():
        raise ConfigError(f"p-values must lie in [0, 1], got {values.min()} to {values.max()}.")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return adjusted


def _items(name: str, x: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(x, dtype=float)
    if values.ndim < 1 or len(values) < 2:
        raise ConfigError(f"{name} needs at least two values for an interval, got {values.size}; run more seeds.")
    if not np.isfinite(values).all():
        raise NonFinite(f"{name} holds a NaN or an infinity; look for the run that produced it.")
    return values


def _vector(name: str, x: Sequence[float] | np.ndarray) -> np.ndarray:
    values = _items(name, x)
    if values.ndim != 1:
        raise ConfigError(f"{name} must be a vector, got shape {values.shape}.")
    return values


def _standard_error(values: np.ndarray) -> float:
    # Exactly equal values have no spread; their computed mean may be off by one rounding and would fake some.
    return float((values - values[0]).std(ddof=1) / math.sqrt(len(values)))


def _t_quantile(degrees: int, level: float) -> float:
    _require_level(level)
    return float(stdtrit(degrees, (1 + level) / 2))


def _require_level(level: float) -> None:
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, got {level}.")
