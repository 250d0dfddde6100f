"""What is measured of a model along training: answers by greedy decoding, held-out loss, and the geometry of the two views."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from jepa_nb.experiments.llm_jepa.task import PUBLISHED, PairTask, Split
from jepa_nb.metrics import views
from jepa_nb.metrics.generation import greedy
from jepa_nb.objectives.language import view_states
from jepa_nb.training.llm_jepa import JEPATerms, forward, losses
from jepa_nb.training.loop import Row

CHUNK = 64  # pairs a forward pass
NTP_ONLY = JEPATerms(lam=0.0)


def rows(task: PairTask, model: nn.Module, step: int, epoch: float, *, answered: bool, last: bool) -> tuple[list[Row], dict[str, Tensor]]:
    """All measurements after ``step`` steps, and the test pairs' views (N, D) as ``text`` and ``code``.

    Args:
        answered: whether answers are generated, which is most of the time.
        last: also answer the validation pairs.
    """
    seen = {name: split for name, split in task.splits.items() if name != "val" or last}
    found = [(name, *value) for name, split in seen.items() if answered for value in _answers(task, model, split)]
    test = task.splits["test"]
    found += [("test", "ntp_loss", "label", label_loss(task, model, test))]
    text, code = states(task, model, test.head(task.config.n_views))
    found += [("test", *value) for value in geometry(text, code)]
    return ([{"step": step, "epoch": epoch, "split": split, "metric": metric, "variant": variant, "value": float(value)}
             for split, metric, variant, value in found], {"text": text, "code": code})


def _answers(task: PairTask, model: nn.Module, split: Split) -> Iterator[tuple[str, str, float]]:
    """Accuracy under the run's rule, by equality and by the first characters; empty answers; tokens a second."""
    prompts = task.prompts(split)
    started = time.perf_counter()
    ids = _generate(task, model, prompts)
    seconds = time.perf_counter() - started
    texts = task.texts(ids)
    for variant, rule in (("rule", task.config.rule), ("exact", "exact"), ("startswith", "startswith")):
        yield "accuracy", variant, task.accuracy(rule, split, texts)
    yield "empty_share", "answers", sum(not text for text in texts) / len(texts)
    yield "tokens_per_second", "greedy", sum(map(len, ids)) / seconds
    if task.config.rule in PUBLISHED:
        yield "accuracy", "published", task.accuracy(PUBLISHED[task.config.rule], split, texts)
    if task.config.rule == "gsm8k":
        half = task.config.max_new_tokens // 2
        yield "accuracy", "answers_cut", task.accuracy("gsm8k", split, task.texts([answer[:half] for answer in ids]))
        cut = [prompt[:max(map(len, prompts)) // 2] for prompt in prompts]
        yield "accuracy", "prompts_cut", task.accuracy("gsm8k", split, task.texts(_generate(task, model, cut)))


def _generate(task: PairTask, model: nn.Module, prompts: list[list[int]]) -> list[list[int]]:
    return greedy(model, prompts, stop_ids=task.frame.stop_ids, max_new_tokens=task.config.max_new_tokens, pad_id=task.frame.pad_id)


@torch.no_grad()
def label_loss(task: PairTask, model: nn.Module, split: Split) -> float:
    """Held-out next-token loss in nats a label."""
    parts = [losses(model, task.batch(part, jepa=False).to(model.device), NTP_ONLY) for part in _chunks(split.streams)]
    return sum(float(part.ntp) * part.labels for part in parts) / sum(part.labels for part in parts)


@torch.no_grad()
def states(task: PairTask, model: nn.Module, split: Split) -> tuple[Tensor, Tensor]:
    """States (N, D) of Text and Code of each pair, on the CPU in float32."""
    found = []
    for part in _chunks(split.streams):
        batch = task.batch(part, jepa=True).to(model.device)
        hidden = forward(model, batch, hidden=True).hidden
        found.append([view_states(hidden, index, task.config.pooling).float().cpu() for index in (batch.text_index, batch.code_index)])
    return tuple(torch.cat(each) for each in zip(*found))


def _chunks(items: list) -> Iterator[list]:
    return (items[start:start + CHUNK] for start in range(0, len(items), CHUNK))


def geometry(text: Tensor, code: Tensor) -> Iterator[tuple[str, str, float]]:
    """Paper C, Figure 4, and what the cosine alone does not show: retrieval, and the cosine of pairs that do not belong together."""
    paired, shuffled = views.paired_and_shuffled_cosine(text, code)
    yield "jepa_distance", "cosine", 1 - paired
    yield "cosine", "paired", paired
    yield "cosine", "shuffled", shuffled
    yield "retrieval_at_1", "cosine", views.retrieval_at_1(text, code)
    spectrum = views.difference_spectrum(text, code)
    yield "spectrum_mean", "raw", float(spectrum.raw.mean())
    yield "spectrum_mean", "normalised", float(spectrum.normalised.mean())
    yield "linear_residual", "held_out", views.linear_fit_residual(text, code, held_out=True)
