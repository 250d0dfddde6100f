"""Progress of long work: a bar where a person watches (Lab, a terminal), one line per 10 % in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator


def in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def steps(first: int, total: int, label: str) -> Iterator[int]:
    """Yield ``first`` ... ``total`` - 1, showing how far the work is and about how long the rest takes."""
    return _bar(first, total, label) if in_notebook() else _lines(first, total, label)


def _bar(first: int, total: int, label: str) -> Iterator[int]:
    from tqdm.auto import tqdm

    with tqdm(initial=first, total=total, desc=label, leave=False) as bar:
        for step in range(first, total):
            yield step
            bar.update(1)


def _lines(first: int, total: int, label: str) -> Iterator[int]:
    started, shown = time.monotonic(), 10 * first // max(total, 1)
    for step in range(first, total):
        yield step
        done = 10 * (step + 1) // total
        if done > shown:
            shown = done
            elapsed = time.monotonic() - started
            left = elapsed / (step + 1 - first) * (total - step - 1)
            print(f"{label}: {10 * done} % ({step + 1}/{total} steps), about {left:.0f} s left", flush=True)
