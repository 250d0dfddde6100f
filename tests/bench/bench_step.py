"""Time of one T-JEPA and one I-JEPA step at the laptop tier's sizes and where it goes, and of I-JEPA with a ViT-Tiny at 224.

Before anything is timed, the loss of a step is computed again from the networks themselves and must be the same. ``logging``
holds everything that is not training: the rows of each step, and the full evaluations and probes of a whole run, measured
here once each and spread over the run's steps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from jepa_nb import device as devices
from jepa_nb import seeds
from jepa_nb.experiments.paradox import masked_lm
from jepa_nb.experiments.paradox.config import TIERS, Diagnostics, MaskedLM, scaled
from jepa_nb.experiments.paradox.diagnostics import Training

PARTS = ("masks and batch", "forward", "backward", "optimiser", "EMA", "logging")
LOGGING_GOAL, TINY_GOAL_S = 0.10, 0.30
TINY = dict(image_size=224, patch=16, width=192, depth=12, heads=3, pred_width=96, pred_depth=6, pred_heads=3, batch=8, min_keep=10,
            n_train=64, n_val=16, eval_samples=8, mi_group=2, queue=16, probe_contexts=2)


def prepared(config: Diagnostics, completer: MaskedLM) -> Training:
    """A run that is ready to step; a text run completes with an untrained masked LM, which costs the same."""
    training = Training(config, devices.resolve("cpu"))
    if config.modality == "text":
        training.use_completer(masked_lm.build(completer, training.task.tokenizer.get_vocab_size()))
    return training


def check_equal(training: Training) -> None:
    """The loss of step 0 equals the squared error computed from the three networks by hand."""
    batch = training.task.batch("train", training._rows(0), seeds.generator(training.config.seed, "masks", 0))
    with torch.no_grad():
        loss, found = training._forward(batch, 0)
        by_hand = by_networks(training, batch)
    assert torch.allclose(loss, by_hand, rtol=1e-5), f"step computes {loss}, its networks {by_hand}"
    assert len(found.pred) == len(found.target)


def by_networks(training: Training, batch: object) -> torch.Tensor:
    """Mean over predicted tokens of the squared error summed over dimensions, without the JEPA's own code."""
    jepa, task = training.jepa, training.task
    if training.config.modality == "text":
        context = jepa.context_encoder(batch.ids.masked_fill(batch.mask, task.mask_id), batch.attention)
        error = jepa.predictor(context, batch.attention) - jepa.target_encoder(batch.ids, batch.attention)
        return error.square().sum(-1)[batch.mask].mean()
    context = jepa.context_encoder(batch.images, batch.masks.context)
    pred = jepa.predictor(context, batch.masks.context, batch.masks.targets)
    states = jepa.target_encoder(batch.images)
    rows = torch.arange(len(states))[:, None, None]
    return (pred - states[rows, batch.masks.targets]).square().sum(-1).mean()


def step_seconds(training: Training, steps: int) -> dict[str, float]:
    """Median seconds a step of each part."""
    spent: dict[str, list[float]] = {part: [] for part in PARTS}
    for index in range(steps + 3):
        training.watch.seconds.clear()
        training.step(index)
        if index >= 3:
            for part in PARTS:
                spent[part].append(training.watch.seconds[part])
    return {part: statistics.median(times) for part, times in spent.items()}


def measured_seconds(training: Training) -> float:
    """Seconds that all evaluations and probes of a run take; completions, drawn once, are set-up and not counted."""
    config = training.config
    probes, every = set(config.probe_steps()), {*config.eval_steps(), *config.probe_steps()}
    training.measure(0)  # draws the completions
    plain = seconds(lambda: training.measure(next(iter(every - probes)))) if every - probes else 0.0
    return plain * len(every - probes) + seconds(lambda: training.measure(0)) * len(probes)


def seconds(call: Callable[[], object]) -> float:
    """Median of three calls."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def row(name: str, config: Diagnostics, completer: MaskedLM, *, steps: int) -> dict:
    """Milliseconds a step and the share of each part."""
    training = prepared(config, completer)
    check_equal(training)
    parts = step_seconds(training, steps)
    parts["logging"] += measured_seconds(training) / config.steps
    total = sum(parts.values())
    return {"work": name, "ms": 1e3 * total, "train_ms": 1e3 * (total - parts["logging"]),
            "share": {part: value / total for part, value in parts.items()}}


def rows(tier: str = "laptop", *, steps: int = 30) -> list[dict]:
    """One row a modality at the sizes of a tier."""
    sizes = TIERS[tier]
    return [row(name, scaled(config), sizes.masked_lm, steps=steps)
            for name, config in (("T-JEPA", sizes.text), ("I-JEPA", sizes.image))]


def tiny() -> dict:
    """I-JEPA, ViT-Tiny/16 at 224, batch 8: seconds a training step, with both cores."""
    config = scaled(replace(TIERS["laptop"].image, **TINY))
    with devices.threads(2):
        training = prepared(config, TIERS["laptop"].masked_lm)
        check_equal(training)
        parts = step_seconds(training, 8)
    return {"work": "I-JEPA, ViT-Tiny/16 at 224, batch 8, 2 threads", "seconds": sum(parts.values()), "goal": TINY_GOAL_S}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for found in rows():
        shares = ", ".join(f"{part} {share:.1%}" for part, share in found["share"].items())
        met = "met" if found["share"]["logging"] <= LOGGING_GOAL else "missed"
        print(f"{found['work']} step, laptop sizes, 1 thread: {found['train_ms']:.0f} ms + logging = {found['ms']:.0f} ms ({shares}; "
              f"goal logging <= {LOGGING_GOAL:.0%}: {met})")
    found = tiny()
    print(f"{found['work']}: {found['seconds']:.3f} s a step (goal {found['goal']}: {'met' if found['seconds'] <= found['goal'] else 'missed'})")
