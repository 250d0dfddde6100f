"""The five diagnostics of paper A on one split, as published and as corrected, for both networks (A5, A7).

A row is (step, epoch, split, network, metric, variant, value). ``variant`` names the definition: ``published`` or a
correction of it. Nothing here changes the networks or draws from a global generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from jepa_nb import seeds
from jepa_nb.experiments.paradox.config import Diagnostics
from jepa_nb.metrics import geometry, information, variance
from jepa_nb.metrics.information import FeatureQueue
from jepa_nb.objectives.latent import latent_loss

Row = dict[str, Any]
NETWORKS = ("online", "target")
SPLITS = ("train", "val")


@dataclass
class Collected:
    """Everything that the diagnostics of one split read. N predicted tokens, M real tokens, B samples, D width."""

    prediction: torch.Tensor  # (N, D)
    target: torch.Tensor  # (N, D)
    position: torch.Tensor  # (N,)
    sample: torch.Tensor  # (N,)
    z_context: torch.Tensor  # (B, D)
    z_target: torch.Tensor  # (B, D)
    tokens: dict[str, torch.Tensor]  # network -> (M, D)
    pooled: dict[str, torch.Tensor]  # network -> (B, D)
    token_position: torch.Tensor  # (M,)


def eval_batches(task: Any, split: str) -> Iterator[Any]:
    """The fixed evaluation samples of a split under fixed masks, in batches."""
    config: Diagnostics = task.config
    draw = seeds.generator(config.seed, "evaluation masks", split)
    available = min(config.eval_samples, task.n_train if split == "train" else config.n_val)
    for index in torch.arange(available).split(config.batch):
        yield task.batch(split, index, draw)


@torch.no_grad()
def collect(task: Any, split: str) -> Collected:
    """Run both networks and the predictor over the evaluation samples of a split."""
    parts: dict[str, list[torch.Tensor]] = {}
    seen = 0
    for batch in eval_batches(task, split):
        predicted = task.predict(batch)
        found = {"prediction": predicted.pred, "target": predicted.target, "position": predicted.position,
                 "sample": predicted.sample + seen, "z_target": predicted.target_state, "token_position": task.positions(batch)}
        for network in NETWORKS:
            found[f"tokens {network}"], found[f"pooled {network}"] = task.states(network, batch, predicted)
        found["z_context"] = task.published_context(predicted, found["pooled online"])
        seen += len(predicted.target_state)
        for name, value in found.items():
            parts.setdefault(name, []).append(value.float() if value.is_floating_point() else value)
    whole = {name: torch.cat(values) for name, values in parts.items()}
    networks = {kind: {network: whole.pop(f"{kind} {network}") for network in NETWORKS} for kind in ("tokens", "pooled")}
    return Collected(**whole, **networks)


def evaluate(task: Any, queue: FeatureQueue, step: int, alternatives: dict[str, Any]) -> list[Row]:
    """All rows of both splits after ``step`` steps; ``alternatives`` by split add the irreducible variance."""
    found = {split: collect(task, split) for split in SPLITS}
    temperature = fit_temperature(task.config, found["train"])
    return [row for split in SPLITS for row in _rows(task.config, split, found[split], queue, step, temperature,
                                                     alternatives.get(split))]


def _rows(config: Diagnostics, split: str, found: Collected, queue: FeatureQueue, step: int, temperature: float,
          alternatives: Any | None) -> Iterator[Row]:
    values = [*_loss(config, found), *_information(config, split, found, queue, temperature)]
    for network in NETWORKS:
        values += _geometry(config, found.tokens[network], found.pooled[network], network)
    if alternatives is not None:
        values += _irreducible(found, alternatives)
    for network, metric, variant, value in values:
        yield {"step": step, "epoch": step / config.steps_per_epoch, "split": split, "network": network, "metric": metric,
               "variant": variant, "value": float(value)}


def _loss(config: Diagnostics, found: Collected) -> Iterator[tuple[str, str, str, float]]:
    """Diagnostic 4: the loss, and what of the target variance it explains (R^2), in all and given the position."""
    summed = float(latent_loss(found.prediction, found.target, reduction="sum", target_norm=config.target_norm))
    total = variance.total_variance(found.target)
    within = variance.within_group_variance(found.target, found.position)
    trained = float(latent_loss(found.prediction, found.target, reduction=config.latent_loss, target_norm=config.target_norm))
    yield "target", "loss", "published", trained
    yield "target", "loss", "summed", summed
    yield "target", "predicted_variance", "total", total
    yield "target", "predicted_variance", "within_position", within
    yield "target", "r2", "total", variance.r2(summed, total)
    yield "target", "r2", "within_position", variance.r2(summed, within)
    yield "target", "position_share", "total", variance.explained_by_groups(found.target, found.position)


def _information(config: Diagnostics, split: str, found: Collected, queue: FeatureQueue,
                 temperature: float) -> Iterator[tuple[str, str, str, float]]:
    """Diagnostic 1: the MI proxy in nats. Validation samples are numbered apart from the training samples in the queue."""
    ids = torch.arange(len(found.z_context), device=found.z_context.device)
    published = information.published_mi(found.z_context, found.z_target, queue, ids if split == "train" else -1 - ids,
                                         temperature=config.temperature)
    kept = _equal_groups(config, found)
    uncontrolled = information.infonce_mi(found.prediction[kept], found.target[kept], temperature=config.temperature,
                                          exclude=found.sample[kept])
    for variant, measured in (("published", published), ("uncontrolled", uncontrolled),
                              ("position_conditioned", _conditioned(found, kept, temperature))):
        yield "target", "mi", variant, measured.nats
        yield "target", "mi_cap", variant, measured.cap


def _conditioned(found: Collected, kept: torch.Tensor, temperature: float) -> information.MI:
    return information.position_conditioned_mi(found.prediction[kept], found.target[kept], found.position[kept],
                                               sample=found.sample[kept], temperature=temperature)


def fit_temperature(config: Diagnostics, found: Collected) -> float:
    """The critic's temperature under which training data give the tightest bound, for use on both splits."""
    kept = _equal_groups(config, found)
    return information.tightest_temperature(found.prediction[kept], found.target[kept], found.position[kept],
                                            sample=found.sample[kept])


def _equal_groups(config: Diagnostics, found: Collected) -> torch.Tensor:
    """Rows of positions that enough samples predict, equally many each, so that text and images share one cap."""
    pair = found.sample * (int(found.position.max()) + 1) + found.position
    order = torch.argsort(pair, stable=True)
    first = torch.ones(len(pair), dtype=torch.bool, device=pair.device)
    first[1:] = pair[order][1:] != pair[order][:-1]
    distinct = order[first].sort().values
    chosen = information.equal_groups(found.position[distinct], config.mi_group, seeds.generator(config.seed, "mi groups"))
    return distinct[chosen.to(distinct.device)]


def _geometry(config: Diagnostics, tokens: torch.Tensor, pooled: torch.Tensor, network: str) -> Iterator[tuple[str, str, str, float]]:
    """Diagnostics 0, 2 and 3: total variance, effective rank of tokens and of pooled vectors, pairwise cosine."""
    for name, rows in (("tokens", tokens), ("pooled", pooled)):
        yield network, "total_variance", name, variance.total_variance(rows)
        for kind in ("eigenvalue_entropy", "rankme", "participation"):
            rank = geometry.effective_rank(rows, kind=kind)
            yield network, f"rank_{name}", kind, rank
            yield network, f"rank_share_{name}", kind, rank / geometry.rank_limit(*rows.shape, kind)
    drawn = torch.randperm(len(tokens), generator=seeds.generator(config.seed, "cosine tokens"))[:config.cosine_tokens]
    for variant, rows in (("published", tokens[drawn.to(tokens.device)]), ("centred", (tokens - tokens.mean(0))[drawn.to(tokens.device)])):
        stats = geometry.cosine_stats(rows)
        yield network, "cosine_mean", variant, stats.mean
        yield network, "cosine_sd", variant, stats.sd
        yield network, "cosine_p95", variant, stats.p95
        for place, share in enumerate(stats.histogram):
            yield network, f"cosine_bin_{place:02d}", variant, float(share)


def _irreducible(found: Collected, alternatives: Any) -> Iterator[tuple[str, str, str, float]]:
    """Diagnostic 5: Var(z_T | context), raw and as a share of the variance that targets have at the probed positions."""
    places, spread = variance.variance_by_group(found.tokens["target"], found.token_position)
    probed = alternatives.positions.flatten()
    within = float(torch.cat([spread[places == place] for place in probed]).mean())
    yield "target", "token_variance", "probed_positions", within
    for variant in alternatives.variants:
        raw = float(alternatives.variance(variant).mean())
        yield "target", "irreducible", variant, raw
        if within > 0:
            yield "target", "irreducible_share", variant, raw / within
