"""Numbers as a sentence states them: a mean with its interval over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jepa_nb.metrics.statistics import t_interval


def interval(values: pd.Series, *, log: bool = False) -> str:
    """``mean [low, high]`` over seeds (95 % Student interval, of the logarithm where ``log``), the mean alone for one seed.

    Seeds without a number, as of a ratio of which one side has vanished, are left out and counted.
    """
    kept = values[np.isfinite(values) & ((values > 0) | (not log))]
    if kept.empty:
        return "not defined"
    missing = f" in {len(kept)} of {len(values)} seeds" if len(kept) < len(values) else ""
    if len(kept) < 2:
        return _number(float(kept.mean())) + missing
    numbers = np.log(kept.to_numpy()) if log else kept.to_numpy()
    mean, low, high = (np.exp(part) if log else part for part in t_interval(numbers.tolist())[:3])
    return f"{_number(mean)} [{_number(low)}, {_number(high)}]{missing}"


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
