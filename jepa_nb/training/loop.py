"""The training loop: resume, step, measure, checkpoint. What a step and a measurement are is the experiment's business.

Everything random inside a step must come from a stream named after the step (see :mod:`jepa_nb.seeds`). Then a run that
is killed and resumed equals the uninterrupted one bit for bit on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from jepa_nb.training import checkpoint, progress

Row = dict[str, Any]


class Stateful(Protocol):
    """Anything with tensor state that must survive a restart (a feature queue, say)."""

    def state_dict(self) -> dict[str, torch.Tensor]: ...

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None: ...


@dataclass
class Loop:
    """State of one training.

    Attributes:
        label: shown in the progress line.
        steps: number of optimiser steps.
        modules: networks whose parameters are part of the state.
        optimizer: an Adam-like optimiser over (some of) them.
        stateful: other state by name.
        folder: where checkpoints go.
        checkpoint_every: steps between two checkpoints.
    """

    label: str
    steps: int
    modules: dict[str, nn.Module]
    optimizer: torch.optim.Optimizer
    stateful: dict[str, Stateful]
    folder: Path
    checkpoint_every: int

    def run(self, step: Callable[[int], list[Row]], measure: Callable[[int], list[Row]], measure_at: Collection[int]) -> list[Row]:
        """Train from the newest whole checkpoint, or from the start, and return all measured rows.

        Args:
            step: does optimiser step ``i`` (0 ... ``steps`` - 1) and returns what it logs of it.
            measure: rows that describe the networks after ``i`` steps.
            measure_at: numbers of steps done at which ``measure`` is called; 0 measures the untrained networks.
        """
        first, rows = self._resume()
        if first == 0 and 0 in measure_at:
            rows = measure(0)
        for index in progress.steps(first, self.steps, self.label):
            rows.extend(step(index))
            done = index + 1
            if done in measure_at:
                rows.extend(measure(done))
            if done % self.checkpoint_every == 0 and done < self.steps:
                checkpoint.save(self.folder, checkpoint.Checkpoint(done, self.tensors(), {"rows": rows}))
        return rows

    def tensors(self) -> dict[str, torch.Tensor]:
        """All state under flat names."""
        named = {f"module/{name}": value for name, value in checkpoint.module_tensors(self.modules).items()}
        named |= {f"optimizer/{name}": value for name, value in checkpoint.optimizer_tensors(self.optimizer).items()}
        for root, item in self.stateful.items():
            named |= {f"state/{root}:{name}": value for name, value in item.state_dict().items()}
        return named

    def _resume(self) -> tuple[int, list[Row]]:
        found = checkpoint.load_latest(self.folder)
        if found is None:
            return 0, []
        checkpoint.restore_modules(self.modules, _under("module/", found.tensors))
        checkpoint.restore_optimizer(self.optimizer, _under("optimizer/", found.tensors))
        for root, item in self.stateful.items():
            item.load_state_dict(_under(f"state/{root}:", found.tensors))
        return found.step, found.values["rows"]


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}
