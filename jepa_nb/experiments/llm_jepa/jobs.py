"""Paper C's runs as jobs of the store: what is asked, what it builds on, how long it takes. torch loads when one is trained."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from jepa_nb import config as configuration
from jepa_nb.data import recipes
from jepa_nb.device import Resolved, resolve
from jepa_nb.experiments.job import Job, code, data
from jepa_nb.experiments.llm_jepa import arms as arm_table
from jepa_nb.experiments.llm_jepa.config import EXPERIMENT, Finetune
from jepa_nb.training import store

TRAINER = "jepa_nb.experiments.llm_jepa.finetune"
NOTEBOOK_MODULES = ("jepa_nb.experiments.llm_jepa.study", "jepa_nb.experiments.llm_jepa.plots", "jepa_nb.experiments.llm_jepa.findings")
REAL = {"sql_world": "spider", "word_problems": "gsm8k"}  # the public data that a generated recipe stands in for
# seconds: of set-up and evaluation, and of 1e9 multiply-adds of training; measured on one core, for gpu and paper guessed for one GPU
SECONDS = {"smoke": (0.5, 0.0), "laptop": (4.0, 0.033), "gpu": (120.0, 4e-5), "paper": (120.0, 4e-5)}


def jobs(tier: str, arms: list[str], *, seeds: list[int] | None = None, overrides: dict[str, Any] | None = None,
         device: str = "auto", source: str = "embedded") -> list[Job]:
    """Jobs of some arms at a tier, those of one seed side by side.

    ``source`` other than ``"embedded"`` replaces the tier's own source wherever the recipe, or the public data that it stands in for,
    offers it.
    """
    resolved = resolve(device)
    found = arm_table.members(tier, arms, seeds=seeds, overrides=overrides)
    return [_job(tier, member, resolved, source, overrides or {}) for member in found]


def _job(tier: str, member: arm_table.Member, resolved: Resolved, source: str, overrides: dict[str, Any]) -> Job:
    asked = _from_source(member.config, source)
    needs: tuple[Job, ...] = ()
    if asked.start:
        before = arm_table.configured(configuration.resolve_tier(tier), asked.start, asked.seed, overrides)
        needs = (_job(tier, arm_table.Member(asked.start, before), resolved, source, overrides),)
    read = tuple(dict.fromkeys((name, recipes.offered(name, asked.source)) for name in (asked.recipe, *asked.vocab_recipes, asked.pretrained) if name))
    spec = store.RunSpec(EXPERIMENT, asdict(asked), resolved.key(), data(read), code(TRAINER), tuple(need.spec.key for need in needs))
    return Job(f"{member.arm} seed {asked.seed}", member.arm, asked.seed, spec, resolved, seconds(tier, asked), read, TRAINER, needs)


def _from_source(asked: Finetune, source: str) -> Finetune:
    """``asked`` with its data from ``source``, where that is not the tier's own."""
    if source == "embedded":
        return asked
    recipe = REAL.get(asked.recipe, asked.recipe)
    return replace(asked, recipe=recipe, source=source) if source in recipes.load(recipe).sources else asked


def seconds(tier: str, asked: Finetune) -> float:
    """Planned seconds: pairs seen, times the tokens of a pair with its views, times the weights that each token meets."""
    fixed, rate = SECONDS[tier]
    tokens = (1.5 - 0.5 * asked.loss_dropout) * 60 if asked.lam else 60
    weights = 12 * asked.depth * asked.width ** 2 + asked.vocab_size * asked.width if not asked.pretrained else 1.3e8
    return fixed + rate * 3 * asked.steps * asked.batch * tokens * weights / 1e9
