"""Paper A's diagnostics for a notebook: one call trains or reads the runs and returns them as one tidy table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from jepa_nb.experiments import registry
from jepa_nb.experiments.job import Job
from jepa_nb.provenance import RunContext
from jepa_nb.training import progress

COLUMNS = ["arm", "modality", "seed", "step", "epoch", "split", "network", "metric", "variant", "value"]


@dataclass(frozen=True)
class Study:
    """All runs of a notebook.

    Attributes:
        table: columns ``arm, modality, seed, step, epoch, split, network, metric, variant, value``.
        masked_lm: held-out loss and accuracy of the masked LM that proposes completions, and of token frequencies alone.
        data: what each modality was trained on, in words.
        standins: what differs from the paper's data and models, in words; empty at the paper's own protocol.
        time_share: share of a step's wall time per part, mean over runs, by modality.
    """

    table: pd.DataFrame
    masked_lm: dict[str, float]
    data: dict[str, str]
    standins: str
    time_share: pd.DataFrame

    def arm(self, name: str) -> pd.DataFrame:
        """Rows of one arm."""
        return self.table[self.table["arm"] == name]

    def select(self, metric: str, variant: str, *, arm: str = "scaled", modality: str | None = None, split: str = "val",
               network: str = "target") -> pd.DataFrame:
        """Rows of one quantity along training."""
        rows = self.arm(arm)
        keep = (rows["metric"] == metric) & (rows["variant"] == variant) & (rows["split"] == split) & (rows["network"] == network)
        return rows[keep & ((rows["modality"] == modality) if modality else True)]


def diagnostics(context: RunContext) -> Study:
    """The runs that ``context``'s notebook reads, trained if they are not in the store.

    Args:
        context: what :func:`jepa_nb.experiments.registry.context` resolved.
    """
    spec = registry.notebooks()[context.notebook]
    asked = context.parameters
    jobs = registry.jobs(spec, context.tier, seeds=asked["seeds"] or None, overrides=asked["overrides"], device=asked["device"],
                         source=asked["source"])
    finished = [jobs[index].run() for index in progress.steps(0, len(jobs), "runs")]
    table = pd.concat([_labelled(job, run.table) for job, run in zip(jobs, finished)], ignore_index=True)[COLUMNS]
    shares = pd.DataFrame([{"modality": run.spec["config"]["modality"], **run.notes["time_share"]} for run in finished])
    return Study(table, _masked_lm(jobs), {run.spec["config"]["modality"]: run.notes["data"] for run in finished},
                 _standins(context.tier, jobs), shares.groupby("modality").mean())


def _labelled(job: Job, table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(arm=job.arm, modality=job.spec.config["modality"], seed=job.seed)


def _masked_lm(jobs: list[Job]) -> dict[str, float]:
    """Final numbers of the masked LM, where one was trained."""
    needs: dict[str, Any] = {need.spec.key: need for job in jobs for need in job.needs}
    values: dict[str, float] = {}
    for need in needs.values():
        table = need.run().table
        last = table[table["step"] == table["step"].max()] if len(table) else table
        values |= dict(zip(last.get("metric", ()), last.get("value", ())))
    return values


def _standins(tier: str, jobs: list[Job]) -> str:
    if tier == "paper":
        return ""
    text = next(job.spec.config for job in jobs if job.spec.config["modality"] == "text")
    image = next((job.spec.config for job in jobs if job.spec.config["modality"] == "image"), None)
    words = {"imdb": "IMDB sentences for C4", "toy_sentences": "generated sentences for C4", "c4": "C4 as published"}
    pictures = {"imagenet": "ImageNet as published", "toy_pictures": "generated pictures for ImageNet"}
    shown = [words.get(text["recipes"][0], text["recipes"][0])]
    if image:
        shown.append(pictures.get(image["recipes"][0], "crops of photographs, textures, video frames and emoji for ImageNet"))
    return "; ".join([*shown, f"{text['depth']} layers of width {text['width']} for BERT-Large and ViT-H"])
