"""Paper C's runs for a notebook: one call trains or reads them and returns them as one tidy table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from jepa_nb.errors import require_known
from jepa_nb.experiments import registry
from jepa_nb.experiments.job import Job
from jepa_nb.experiments.llm_jepa.arms import base_of
from jepa_nb.provenance import RunContext
from jepa_nb.training import progress, store

COLUMNS = ["arm", "seed", "step", "epoch", "split", "metric", "variant", "value"]
SHOWN = ("width", "depth", "n_train", "recipe", "source", "batch", "epochs", "pretrained", "lora_rank", "n_test")


@dataclass(frozen=True)
class Study:
    """All runs of a notebook.

    Attributes:
        table: columns ``arm, seed, step, epoch, split, metric, variant, value``.
        sizes: of each base: width, depth, number of training pairs, recipe, batch, epochs, pretrained weights.
        description: of each base: its data in words.
        standins: what differs from the paper's data and models, in words; empty at the paper's own protocol.
        runs: finished run of each (arm, seed).
    """

    table: pd.DataFrame
    sizes: dict[str, dict[str, Any]]
    description: dict[str, str]
    standins: str
    runs: dict[tuple[str, int], store.Run] = field(default_factory=dict, repr=False)

    @property
    def arms(self) -> list[str]:
        """Arms in the order in which they were asked for."""
        return list(dict.fromkeys(self.table["arm"]))

    def select(self, arm: str, metric: str, variant: str, split: str = "test") -> pd.DataFrame:
        """Rows of one quantity of an arm along training.

        Raises:
            UnknownName: the arm was not run.
        """
        rows = self.table[self.table["arm"] == require_known("arm of this run", arm, self.arms)]
        return rows[(rows["metric"] == metric) & (rows["variant"] == variant) & (rows["split"] == split)]

    def last(self, arm: str, metric: str, variant: str = "rule", split: str = "test") -> pd.Series:
        """Final value of a quantity by seed."""
        rows = self.select(arm, metric, variant, split).sort_values("step")
        return rows.drop_duplicates("seed", keep="last").set_index("seed")["value"].sort_index()

    def first(self, arm: str, metric: str, variant: str = "rule", split: str = "test") -> pd.Series:
        """Value of a quantity at its first evaluation, by seed."""
        rows = self.select(arm, metric, variant, split).sort_values("step")
        return rows.drop_duplicates("seed", keep="first").set_index("seed")["value"].sort_index()

    def views(self, arm: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """States (N, D) of Text and of Code of the test pairs after training."""
        tensors = self.runs[arm, seed].tensors
        return tensors["views:text"].numpy(), tensors["views:code"].numpy()


def finetuning(context: RunContext) -> Study:
    """The runs that ``context``'s notebook reads, trained if they are not in the store.

    Args:
        context: what :func:`jepa_nb.experiments.registry.context` resolved.
    """
    asked = context.parameters
    jobs = registry.jobs(registry.notebooks()[context.notebook], context.tier, seeds=asked["seeds"] or None,
                         overrides=asked["overrides"], device=asked["device"], source=asked["source"])
    finished = [jobs[index].run() for index in progress.steps(0, len(jobs), "runs")]
    table = pd.concat([run.table.assign(arm=job.arm, seed=job.seed) for job, run in zip(jobs, finished)], ignore_index=True)
    bases = {base_of(job.arm): (job, run) for job, run in reversed(list(zip(jobs, finished)))}
    return Study(table[COLUMNS], {base: {name: job.spec.config[name] for name in SHOWN} for base, (job, _) in bases.items()},
                 {base: run.notes["data"] for base, (_, run) in bases.items()}, _standins(context.tier, bases),
                 {(job.arm, job.seed): run for job, run in zip(jobs, finished)})


def _standins(tier: str, bases: dict[str, tuple[Job, store.Run]]) -> str:
    """Data and model of each base in words, where they are not the paper's."""
    if tier == "paper":
        return ""
    words = [run.notes["standin"] for _, run in bases.values()]
    models = [_model(job.spec.config) for job, _ in bases.values()]
    return "; ".join(dict.fromkeys(part for part in (*words, *models) if part))


def _model(config: dict[str, Any]) -> str:
    if config["pretrained"]:
        return {"smollm2": "SmolLM2-135M-Instruct for the paper's models of 1B and more"}.get(config["pretrained"], "")
    return f"Llama of {config['depth']} layers and width {config['width']} from scratch for Llama-3.2-1B-Instruct"
