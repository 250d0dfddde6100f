"""A job: one run of the store with what is needed to plan it and to train it. torch loads when one is trained."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jepa_nb import provenance
from jepa_nb.data import recipes
from jepa_nb.device import Resolved
from jepa_nb.training import store

Reads = tuple[tuple[str, str], ...]
"""(recipe, source) pairs."""


@dataclass(frozen=True)
class Job:
    """One run of the store.

    Attributes:
        label: readable name, unique within a tier.
        arm: arm of the experiment.
        seed: data seed.
        spec: what determines the result.
        resolved: device, dtype and threads.
        seconds: planned seconds.
        recipes: what it reads.
        trainer: module with ``train(spec, folder, resolved, built_on, label)``.
        needs: jobs whose runs it builds on.
    """

    label: str
    arm: str
    seed: int
    spec: store.RunSpec
    resolved: Resolved
    seconds: float
    recipes: Reads
    trainer: str
    needs: tuple[Job, ...] = ()

    @property
    def data(self) -> dict[str, str]:
        """Fingerprint of each recipe that the run reads."""
        return {name: recipes.fingerprint(name, source) for name, source in self.recipes}

    def run(self) -> store.Run:
        """The finished run; what it builds on is trained first."""
        return store.run(self.spec, self._train, label=self.label)

    def _train(self, spec: store.RunSpec, folder: Path) -> store.Outcome:
        built_on = [need.run() for need in self.needs]
        return importlib.import_module(self.trainer).train(spec, folder, self.resolved, built_on, self.label)


def data(read: Reads) -> str:
    """Fingerprint of all that a run reads."""
    return "+".join(f"{name}:{recipes.fingerprint(name, source)}" for name, source in read)


@lru_cache(maxsize=None)
def code(module: str) -> str:
    """Fingerprint of the code that a run executes."""
    return provenance.code_fingerprint([module])
