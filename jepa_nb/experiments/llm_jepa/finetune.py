"""Experiment ``llm_jepa.finetune``: next-token prediction with or without the JEPA term on (Text, Code) pairs (Paper C, C1 and C4)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from jepa_nb import device as devices
from jepa_nb import seeds
from jepa_nb.device import Resolved
from jepa_nb.experiments.llm_jepa import evaluation, networks
from jepa_nb.experiments.llm_jepa.config import Finetune
from jepa_nb.experiments.llm_jepa.costs import padded_tokens, step_flops
from jepa_nb.experiments.llm_jepa.task import PairTask
from jepa_nb.masking.streams import StreamBatch
from jepa_nb.training import schedule, store
from jepa_nb.training.finite import require_finite
from jepa_nb.training.llm_jepa import JEPATerms, Losses, losses
from jepa_nb.training.loop import Loop, Row
from jepa_nb.training.stopwatch import Stopwatch


class Costs:
    """What training has cost so far; part of the state that survives a restart."""

    NAMES = ("pflops", "seconds", "forwarded", "labels")

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The sums."""
        return {"spent": torch.tensor([self.spent[name] for name in self.NAMES], dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Inverse of :meth:`state_dict`."""
        self.spent = defaultdict(float, zip(self.NAMES, state["spent"].tolist()))


class Training:
    """One run: pairs, networks, optimiser, and what they cost."""

    def __init__(self, config: Finetune, resolved: Resolved, built_on: dict[str, torch.Tensor] | None = None):
        self.resolved, self.device = resolved, devices.torch_device(resolved)
        self.networks = networks.build(config, self.device, resolved.attention, built_on)
        self.task = PairTask(config, self.networks.tokenizer)
        self.config = config = replace(config, n_train=len(self.task.train.streams))
        self.terms = JEPATerms(lam=config.lam, gamma=config.gamma, distance=config.distance, pooling=config.pooling,
                               loss_dropout=config.loss_dropout, layout=config.layout, linear_predictor=config.linear_predictor)
        self.trained = self.networks.trained()
        self.optimizer = torch.optim.AdamW(self.trained, lr=config.lr, weight_decay=0.0)
        self.costs, self.watch = Costs(), Stopwatch()
        self.views: dict[str, torch.Tensor] = {}

    def run(self, folder: Path, label: str) -> list[Row]:
        """Train, or go on from the checkpoints in ``folder``, and return every row."""
        loop = Loop(label, self.config.steps, networks.trained_parts(self.networks), self.optimizer, {"costs": self.costs}, folder,
                    checkpoint_every=self.config.steps_per_epoch)
        return loop.run(self.step, self.measure, self.config.eval_steps())

    def step(self, index: int) -> list[Row]:
        """Optimiser step ``index``: every random choice comes from a stream named after it."""
        with self.watch("batch"):
            batches = self._micro_batches(index)
            self._set_rate(index)
        labels = sum(int((batch.labels != -100).sum()) for batch in batches)
        with self.watch("forward and backward"):
            self.optimizer.zero_grad(set_to_none=True)
            parts = [self._backward(batch, labels, index, place) for place, batch in enumerate(batches)]
        with self.watch("optimiser"):
            norm = torch.nn.utils.clip_grad_norm_(self.trained, self.config.clip)
            total = torch.stack([part.total for part in parts]).sum()
            require_finite(index, {"loss": total, "gradient norm": norm}, self.networks.modules(),
                           lambda: self._losses(batches[0], labels, index, 0))
            self.optimizer.step()
        self._count(batches, labels)
        return self._log(index, parts)

    def _micro_batches(self, index: int) -> list[StreamBatch]:
        rows, config = self.task.rows(index), self.config
        size = config.batch // config.accumulate
        streams = [self.task.train.streams[row] for row in rows]
        return [self.task.batch(streams[start:start + size], jepa=self._with_jepa(index, start // size),
                                shuffled=config.shuffled).to(self.device) for start in range(0, config.batch, size)]

    def _with_jepa(self, index: int, place: int) -> bool:
        """Whether a micro-batch has the JEPA term: a coin, as published, where some of them are dropped."""
        if not self.config.loss_dropout or not self.config.lam:
            return bool(self.config.lam)
        draw = seeds.generator(self.config.seed, "loss dropout", index, place)
        return float(torch.rand((), generator=draw)) >= self.config.loss_dropout

    def _losses(self, batch: StreamBatch, labels: int, index: int, place: int) -> Losses:
        normalised = self.config.accumulation == "normalised"
        with seeds.scoped(self.config.seed, "dropout", index, place), devices.autocast(self.resolved):
            self.networks.model.train()
            return losses(self.networks.model, batch, self.terms, predictor=self.networks.predictor, num_labels=labels if normalised else None)

    def _backward(self, batch: StreamBatch, labels: int, index: int, place: int) -> Losses:
        """Add a micro-batch's gradient. Normalised, the sum over micro-batches equals the gradient of the whole batch; the published
        code does not divide, which makes it ``accumulate`` times as large."""
        found = self._losses(batch, labels, index, place)
        share = self.config.accumulate if self.config.accumulation == "normalised" else 1
        total = self.config.gamma * found.ntp + self.config.lam * found.jepa / share
        total.backward()
        return replace(found, total=total.detach(), ntp=found.ntp.detach(), jepa=found.jepa.detach() / share)

    def _set_rate(self, index: int) -> None:
        config = self.config
        warmup = round(config.warmup * config.steps)
        rate = config.lr * (index + 1) / warmup if index < warmup else schedule.linear(index - warmup, config.steps - warmup + 1, config.lr, 0.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _count(self, batches: list[StreamBatch], labels: int) -> None:
        spent = self.costs.spent
        spent["pflops"] += sum(step_flops(self.networks.model.config, batch) for batch in batches) / 1e15
        spent["forwarded"] += sum(map(padded_tokens, batches))
        spent["labels"] += labels
        spent["seconds"] += sum(self.watch.seconds.values())
        self.watch.seconds.clear()

    def _log(self, index: int, parts: list[Losses]) -> list[Row]:
        if (index + 1) % self.config.log_every:
            return []
        row = {"step": index + 1, "epoch": (index + 1) / self.config.steps_per_epoch, "split": "batch", "metric": "loss"}
        found = [{**row, "variant": "ntp", "value": float(sum(part.ntp for part in parts))}]
        with_jepa = [part for part in parts if part.with_jepa]
        return found + [{**row, "variant": "jepa", "value": float(sum(part.jepa for part in with_jepa))} for _ in with_jepa[:1]]

    def measure(self, step: int) -> list[Row]:
        """Everything that is measured after ``step`` steps; an untrained small model is not asked for answers."""
        self.networks.model.eval()
        last, epoch = step == self.config.steps, step / self.config.steps_per_epoch
        with devices.autocast(self.resolved):
            found, self.views = evaluation.rows(self.task, self.networks.model, step, epoch, last=last,
                                                answered=step > 0 or bool(self.config.pretrained))
        return found + (self._costs(step, epoch) if last else [])

    def _costs(self, step: int, epoch: float) -> list[Row]:
        spent = self.costs.spent
        values = {("pflops", "counted"): spent["pflops"], ("seconds", "training"): spent["seconds"],
                  ("tokens", "forwarded"): spent["forwarded"], ("tokens", "labels"): spent["labels"],
                  ("dropped", "pairs"): float(sum(self.task.frame.dropped.values())),
                  ("weights", "trained"): float(sum(value.numel() for value in self.trained))}
        return [{"step": step, "epoch": epoch, "split": "train", "metric": metric, "variant": variant, "value": float(value)}
                for (metric, variant), value in values.items()]

    def final_tensors(self) -> dict[str, torch.Tensor]:
        """Trained weights, and the views of the test pairs."""
        return networks.final_tensors(self.networks) | {f"views:{name}": value for name, value in self.views.items()}

    def notes(self) -> dict[str, Any]:
        """What belongs in the provenance."""
        return {"data": self.task.description, "standin": self.task.standin, "steps": self.config.steps}


def train(spec: store.RunSpec, folder: Path, resolved: Resolved, built_on: list[store.Run], label: str) -> store.Outcome:
    """Train the run that ``spec`` describes, going on from what ``folder`` holds.

    Args:
        spec: experiment and configuration.
        folder: checkpoints of an unfinished attempt.
        resolved: device, dtype and threads.
        built_on: finished runs that it needs (one whose weights it goes on from).
        label: shown in the progress line.
    """
    with devices.threads(resolved.threads):
        training = Training(Finetune(**spec.config), resolved, built_on[0].tensors if built_on else None)
        rows = training.run(folder, label)
    return store.Outcome(pd.DataFrame(rows), training.final_tensors(), training.notes())
