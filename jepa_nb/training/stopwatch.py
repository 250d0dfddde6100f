"""Where the time of a training step goes: seconds per named part, measured in every run."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator


class Stopwatch:
    """Adds up wall seconds under the names of parts (``forward``, ``backward``, ``optimiser`` ...)."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - started

    def shares(self) -> dict[str, float]:
        """Fraction of the measured time per part; they add up to 1."""
        total = sum(self.seconds.values())
        return {part: value / total for part, value in self.seconds.items()} if total else {}
