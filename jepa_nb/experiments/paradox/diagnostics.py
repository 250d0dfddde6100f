"""Experiment ``paradox.diagnostics``: T-JEPA on text and I-JEPA on images under one matched protocol (paper A, A4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from jepa_nb import device as devices
from jepa_nb import seeds
from jepa_nb.data import weights
from jepa_nb.experiments.paradox import measure
from jepa_nb.experiments.paradox.config import Diagnostics
from jepa_nb.experiments.paradox.image_task import ImageAlternatives, ImageTask
from jepa_nb.experiments.paradox.text_task import TextCompletions, TextTask
from jepa_nb.metrics.information import FeatureQueue
from jepa_nb.models.masked_lm import MaskedLM
from jepa_nb.objectives.latent import latent_loss
from jepa_nb.training import checkpoint, ema, schedule
from jepa_nb.training.finite import require_finite
from jepa_nb.training.loop import Loop, Row
from jepa_nb.training.stopwatch import Stopwatch


class Training:
    """One run: a task (text or image), its optimiser, the feature queue and the diagnostics."""

    def __init__(self, config: Diagnostics, resolved: devices.Resolved):
        self.config, self.resolved = config, resolved
        device = devices.torch_device(resolved)
        kind = TextTask if config.modality == "text" else ImageTask
        self.task = kind(config, device, resolved.attention)
        self.jepa = self.task.jepa
        self.trained = [*self.jepa.context_encoder.parameters(), *self.jepa.predictor.parameters()]
        self.optimizer = torch.optim.AdamW(self.trained, lr=config.lr_start, weight_decay=config.wd_start)
        self.queue = FeatureQueue(config.queue, config.width, device=device)
        self._fill_queue()
        self.alternatives: dict[str, Any] = {}
        self.watch = Stopwatch()
        if config.pretrained:
            self.use_completer(MaskedLM.from_folder(weights.folder(config.pretrained, config.source)))
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def run(self, folder: Path, label: str) -> list[Row]:
        """Train, or go on from the checkpoints in ``folder``, and return every row."""
        modules = {"jepa": self.jepa}
        loop = Loop(label, self.config.steps, modules, self.optimizer, {"queue": self.queue}, folder,
                    checkpoint_every=self.config.steps_per_epoch)
        return loop.run(self.step, self.measure, {*self.config.eval_steps(), *self.config.probe_steps()})

    @torch.no_grad()
    def _fill_queue(self) -> None:
        """Start with a full queue of the untrained target's features, so that the proxy's cap is the same from step 0 on."""
        draw = seeds.generator(self.config.seed, "queue")
        first = torch.randperm(self.task.n_train, generator=draw)[:self.config.queue]
        for rows in first.split(self.config.batch):
            self.queue.push(self.task.predict(self.task.batch("train", rows, draw)).target_state, rows)

    def step(self, index: int) -> list[Row]:
        """Optimiser step ``index``: every random choice comes from a stream named after it."""
        config = self.config
        with self.watch("masks and batch"):
            rows = self._rows(index)
            batch = self.task.batch("train", rows, seeds.generator(config.seed, "masks", index))
            self._set_rates(index)
        with self.watch("forward"):
            loss, prediction = self._forward(batch, index)
        with self.watch("backward"):
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with self.watch("optimiser"):
            norm = torch.nn.utils.clip_grad_norm_(self.trained, config.clip)
            require_finite(index, {"loss": loss.detach(), "gradient norm": norm}, {"jepa": self.jepa},
                           lambda: self._forward(batch, index))
            self.optimizer.step()
        with self.watch("EMA"):
            ema.update(self.jepa.target_encoder, self.jepa.context_encoder, config.ema)
        with self.watch("logging"):
            self.queue.push(prediction.target_state, rows)
            return self._log(index, loss, norm)

    def _forward(self, batch: Any, index: int) -> tuple[torch.Tensor, Any]:
        with seeds.scoped(self.config.seed, "dropout", index), devices.autocast(self.resolved):
            self.jepa.train()
            prediction = self.task.predict(batch)
        loss = latent_loss(prediction.pred.float(), prediction.target.float(), reduction=self.config.latent_loss,
                           target_norm=self.config.target_norm)
        return loss, prediction

    def _rows(self, index: int) -> torch.Tensor:
        """Indices of the samples of a step: epochs are permutations from streams named after the epoch."""
        size, count = self.config.batch, self.task.n_train
        epoch, place = divmod(index, count // size)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, torch.randperm(count, generator=seeds.generator(self.config.seed, "order", epoch))
        return self._order[place * size:(place + 1) * size]

    def _set_rates(self, index: int) -> None:
        config = self.config
        rate = schedule.warmup_cosine(index, config.steps, config.warmup, config.lr_start, config.lr_peak, config.lr_final)
        decay = schedule.cosine(index, config.steps, config.wd_start, config.wd_final)
        for group in self.optimizer.param_groups:
            group["lr"], group["weight_decay"] = rate, decay

    def _log(self, index: int, loss: torch.Tensor, norm: torch.Tensor) -> list[Row]:
        if (index + 1) % self.config.log_every:
            return []
        row = {"step": index + 1, "epoch": (index + 1) / self.config.steps_per_epoch, "split": "batch", "network": "online"}
        return [{**row, "metric": "loss", "variant": "published", "value": float(loss.detach())},
                {**row, "metric": "gradient_norm", "variant": "before clipping", "value": float(norm)}]

    def measure(self, step: int) -> list[Row]:
        """All diagnostics after ``step`` steps on training and validation data."""
        self.jepa.eval()
        with self.watch("completions"):
            probed = measure.SPLITS if step in self.config.probe_steps() else ()
            alternatives = {split: self._alternatives(split) for split in probed}
        with self.watch("logging"), devices.autocast(self.resolved):
            return measure.evaluate(self.task, self.queue, step, alternatives)

    def _alternatives(self, split: str) -> Any:
        """Completions do not depend on the encoder being trained: drawn once per split."""
        if split not in self.alternatives:
            index = torch.arange(min(self.config.probe_contexts, self.config.eval_samples))
            batch = self.task.batch(split, index, seeds.generator(self.config.seed, "probe masks", split))
            self.alternatives[split] = self._draw(split, batch)
        return self.alternatives[split]

    def _draw(self, split: str, batch: Any) -> Any:
        if self.config.modality == "image":
            return ImageAlternatives(self.task, split, batch)
        return TextCompletions(self.task, split, batch, self.completer)

    def use_completer(self, model: torch.nn.Module) -> None:
        """Give a text run the masked LM that proposes completions; it is frozen."""
        self.completer = model.to(devices.torch_device(self.resolved)).eval().requires_grad_(False)

    def final_tensors(self) -> dict[str, torch.Tensor]:
        """The networks after training."""
        return checkpoint.module_tensors({"jepa": self.jepa})

    def notes(self) -> dict[str, Any]:
        """What belongs in the provenance: the data in words, and where the time of a step went."""
        return {"data": self.task.description, "time_share": self.watch.shares(), "steps": self.config.steps}
