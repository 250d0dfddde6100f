"""Paper A's runs as jobs of the store: what is asked, what it builds on, how long it takes. torch loads when one is trained."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from jepa_nb.device import Resolved, resolve
from jepa_nb.experiments.job import Job, code, data
from jepa_nb.experiments.paradox import config as configs
from jepa_nb.training import store

TRAINING = {configs.EXPERIMENT: "jepa_nb.experiments.paradox.diagnostics", configs.MASKED_LM: "jepa_nb.experiments.paradox.masked_lm"}
TRAINER = "jepa_nb.experiments.paradox.execute"
NOTEBOOK_MODULES = ("jepa_nb.experiments.paradox.study", "jepa_nb.experiments.paradox.plots",
                    "jepa_nb.experiments.paradox.findings")
# planned seconds of one run: T-JEPA, I-JEPA, masked LM; measured on one core, for gpu and paper guessed for one GPU
SECONDS = {"smoke": (1, 1, 1), "laptop": (55, 50, 110), "gpu": (3_600, 3_600, 0), "paper": (40_000, 90_000, 0)}


def jobs(tier: str, arms: list[str], *, seeds: list[int] | None = None, overrides: dict[str, Any] | None = None,
         device: str = "auto", source: str = "embedded") -> list[Job]:
    """Jobs of some arms at a tier, text and image of each seed side by side.

    ``source`` other than ``"embedded"`` replaces the tier's own source of data.
    """
    resolved = resolve(device)
    changed = dict(overrides or {}) | ({"source": source} if source != "embedded" else {})
    return [_diagnostics(tier, member, resolved) for member in configs.members(tier, arms, seeds=seeds, overrides=changed)]


def _masked_lm(tier: str, text: configs.Diagnostics, resolved: Resolved) -> tuple[Job, ...]:
    """The masked LM that a text run builds on, with its data, vocabulary and length; none where it is pretrained."""
    sizes = configs.TIERS[tier].masked_lm
    if sizes is None or text.pretrained:
        return ()
    asked = replace(sizes, recipe=text.recipes[0], source=text.source, vocab_size=text.vocab_size, length=text.length)
    read = ((asked.recipe, asked.source),)
    spec = store.RunSpec(configs.MASKED_LM, asdict(asked), resolved.key(), data(read), code(TRAINING[configs.MASKED_LM]))
    return (Job("masked LM", "masked_lm", asked.seed, spec, resolved, SECONDS[tier][2], read, TRAINER),)


def _diagnostics(tier: str, member: configs.Member, resolved: Resolved) -> Job:
    asked = member.config
    text = asked.modality == "text"
    read = tuple((name, asked.source) for name in (*asked.recipes, asked.pretrained) if name)
    needs = _masked_lm(tier, asked, resolved) if text else ()
    spec = store.RunSpec(configs.EXPERIMENT, asdict(asked), resolved.key(), data(read), code(TRAINING[configs.EXPERIMENT]),
                         tuple(need.spec.key for need in needs))
    label = f"{'T-JEPA' if text else 'I-JEPA'} {member.arm} seed {asked.seed}"
    return Job(label, member.arm, asked.seed, spec, resolved, SECONDS[tier][0 if text else 1], read, TRAINER, needs)
