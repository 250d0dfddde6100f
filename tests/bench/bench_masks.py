"""Time of multiblock masks, against a per-image Python loop, after checking that both mean the same."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
from fair_collator import collate  # noqa: E402

from jepa_nb import seeds  # noqa: E402
from jepa_nb.masking.blocks import POLICIES, multiblock  # noqa: E402

GRID, BATCH, GOAL_MS = (14, 14), 64, 0.05


def rows() -> list[dict]:
    """One row a policy: milliseconds an image of the loop and of :func:`multiblock`, medians of interleaved rounds.

    Raises:
        AssertionError: a mask is invalid, or the official policy's coverage differs from the loop's.
    """
    for policy in POLICIES:
        check_valid(policy)
    check_equal_statistics()
    generator = seeds.generator(0, "bench")
    found = []
    for policy in POLICIES:
        loop, ours = interleaved(lambda: collate(GRID, BATCH, generator),
                                 lambda: multiblock(GRID, BATCH, generator, policy=policy), rounds=15)
        found.append({"work": f"multiblock masks, {GRID[0]}x{GRID[1]}, batch {BATCH}, policy {policy}", "unit": "ms an image",
                      "loop": loop / BATCH, "ours": ours / BATCH, "ratio": loop / ours, "goal": GOAL_MS,
                      "met": ours / BATCH <= GOAL_MS})
    return found


def check_valid(policy: str) -> None:
    """Sorted, inside the grid, and no patch of a context in a target of the same image."""
    masks = multiblock(GRID, BATCH, seeds.generator(0, "valid"), policy=policy)
    for index in (masks.context, masks.targets):
        assert bool((index.diff(dim=-1) > 0).all()) and int(index.min()) >= 0 and int(index.max()) < GRID[0] * GRID[1]
    assert not bool((masks.context[:, :, None] == masks.targets.flatten(1)[:, None]).any())


def check_equal_statistics(batches: int = 30) -> None:
    """The share of images whose context, or whose block, holds each patch: largest deviation within 5 standard errors."""
    generator = seeds.generator(0, "statistics")

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        masks = multiblock(GRID, BATCH, generator, policy="official")
        return masks.context, masks.targets

    a, b = coverage(ours, batches), coverage(lambda: collate(GRID, BATCH, generator), batches)
    spread = ((a.var(0) + b.var(0)) / batches).sqrt().clamp(min=1e-3)
    worst = float(((a.mean(0) - b.mean(0)).abs() / spread).max())
    assert worst < 5, f"coverage differs by {worst:.1f} standard errors"


def coverage(draw: Callable[[], tuple[torch.Tensor, torch.Tensor]], batches: int) -> torch.Tensor:
    """(batches, 2 H W) coverage of each patch by contexts and by target blocks."""
    patches = GRID[0] * GRID[1]
    counted = []
    for _ in range(batches):
        context, targets = draw()
        counted.append(torch.cat([torch.bincount(index.flatten(), minlength=patches) for index in (context, targets)]) / BATCH)
    return torch.stack(counted)


def interleaved(a: Callable[[], object], b: Callable[[], object], *, rounds: int) -> tuple[float, float]:
    """Median milliseconds of two calls, run in turn (A B A B ...), after one unmeasured round."""
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for call, times in zip((a, b), spent):
            start = time.perf_counter()
            call()
            if turn:
                times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(spent[0]), statistics.median(spent[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    for row in rows():
        print(f"{row['work']}: loop {row['loop']:.3f}, ours {row['ours']:.4f} {row['unit']} (x{row['ratio']:.0f}; "
              f"goal {row['goal']}: {'met' if row['met'] else 'missed'})")
