"""Paper C: the arms of every comparison as ``<base>.<method>``, and the runs that a tier makes of them. No torch.

A method is a change of a base's objective and nothing else, so that two arms of one base differ in what their names say. Baselines
are shared: ``sweep.ntp`` stands in every comparison at that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jepa_nb import config as configuration
from jepa_nb.errors import ConfigError, require_known
from jepa_nb.experiments.llm_jepa.config import HEADLINE, SINGLE, TIERS, Finetune

JEPA: dict[str, Any] = {"lam": 1.0, "k": 1}  # the published choice for NL-RX-SYNTH
RATES = {"quarter": 0.25, "half": 0.5, "double": 2.0, "triple": 3.0, "five": 5.0}
GRID = {f"lam{str(lam).replace('.', '')}_k{k}": {"lam": lam, "k": k} for lam in (0.5, 2.0) for k in (0, 1, 3)}
FULL_GRID = {f"lam{str(lam).replace('.', '')}_k{k}": {"lam": lam, "k": k} for lam in (0.5, 1.0, 2.0, 4.0) for k in range(5)}

METHODS: dict[str, dict[str, Any] | Callable[[Finetune], Finetune]] = {
    "ntp": {},
    "jepa": JEPA,
    # controls
    "shuffled": JEPA | {"shuffled": True},
    "ntp_flops": lambda base: replace(base, epochs=equal_cost_epochs(base)),
    # Table 3: one thing at a time
    "l2": JEPA | {"distance": "l2"}, "mse": JEPA | {"distance": "mse"}, "infonce": JEPA | {"distance": "infonce"},
    "prepend": JEPA | {"placement": "prepend"}, "reverse": JEPA | {"direction": "code_to_text"}, "mean_pool": JEPA | {"pooling": "mean"},
    "linear_predictor": {"lam": 0.5, "k": 0, "linear_predictor": True}, "identical": {"lam": 2.0, "k": 3, "identical": True},
    # Table 10
    "gamma0": JEPA | {"gamma": 0.0}, "gamma01": JEPA | {"gamma": 0.1}, "gamma_lam": {"lam": 2.0, "gamma": 2.0, "k": 1},
    # Figure 5: lambda (1 - alpha) constant
    "dropout50": {"lam": 2.0, "k": 1, "loss_dropout": 0.5}, "dropout75": {"lam": 4.0, "k": 1, "loss_dropout": 0.75},
    # LoRA table
    **{f"lora{rank}_{name}": terms | {"lora_rank": rank} for rank in (8, 32, 64, 128, 256, 512) for name, terms in (("ntp", {}), ("jepa", JEPA))},
    # faults of the public code
    "all_labels_ntp": {"label_policy": "paper_v1"}, "all_labels_jepa": JEPA | {"label_policy": "paper_v1"},
    "accumulated_jepa": JEPA | {"accumulate": 4}, "undivided_jepa": JEPA | {"accumulate": 4, "accumulation": "paper_v1"},
    # searches: as many settings for next-token prediction as for LLM-JEPA
    **FULL_GRID,
    **{f"rate_{name}": (lambda base, factor=factor: replace(base, lr=base.lr * factor)) for name, factor in RATES.items()},
}
SEARCHES = {"jepa": tuple(GRID), "ntp": ("ntp", *(f"rate_{name}" for name in RATES))}
STARTS = {"adapters": "grounds.ntp"} | {
    f"{base}.from_{method}": f"verses.{method}" for base in ("sentiment", "yelp") for method in ("ntp", "jepa")}
METHODS |= {"from_ntp": {}, "from_jepa": {}}


def equal_cost_epochs(base: Finetune) -> int:
    """Epochs of next-token prediction that cost about what ``base``'s epochs cost with the JEPA term in the shared-prefix layout, whose
    rows are about half as long again; the measured ratio stands in the figure."""
    return round(1.5 * base.epochs)


@dataclass(frozen=True)
class Member:
    """One run of an arm, before anything about the machine is known."""

    arm: str
    config: Finetune


def base_of(arm: str) -> str:
    """``"sweep"`` of ``"sweep.jepa"``."""
    return arm.partition(".")[0]


def start_of(arm: str) -> str:
    """The arm whose final weights ``arm`` goes on from, or ``""``."""
    return STARTS.get(arm, STARTS.get(base_of(arm), ""))


def known(tier: str, arms: list[str]) -> list[str]:
    """Those of some arms whose base the tier has: a tier of small models has no Gemma, and the paper's no SmolLM2 stand-in.

    Raises:
        UnknownName: a method that does not exist, or a base that no tier has.
    """
    every = {base for sizes in TIERS.values() for base in sizes.bases}
    for arm in arms:
        require_known("base of an arm", base_of(arm), every)
        require_known("method of an arm", arm.partition(".")[2], METHODS)
    return [arm for arm in arms if base_of(arm) in TIERS[tier].bases]


def members(tier: str, arms: list[str], *, seeds: list[int] | None = None, overrides: dict | None = None) -> list[Member]:
    """The runs of some arms at a tier, paired by seed; overrides apply to the base, before the method's own change.

    Raises:
        UnknownName: unknown tier, arm or field.
        ConfigError: a value of the wrong type, or another seed, which would train one run under several names.
    """
    tier = configuration.resolve_tier(tier)
    return [Member(arm, configured(tier, arm, seed, overrides or {}))
            for arm in known(tier, arms) for seed in seeds or _seeds(tier, base_of(arm))]


def configured(tier: str, arm: str, seed: int, overrides: dict[str, Any]) -> Finetune:
    """The configuration of one run."""
    base = configuration.override(replace(TIERS[tier].bases[base_of(arm)], seed=seed), overrides)
    if base.seed != seed:
        raise ConfigError("'seed' cannot be overridden, since it is set for each run; choose the seeds with the parameter 'seeds'.")
    change = METHODS[arm.partition(".")[2]]
    changed = change(base) if callable(change) else replace(base, **change)
    return replace(changed, start=start_of(arm))


def _seeds(tier: str, base: str) -> tuple[int, ...]:
    sizes = TIERS[tier]
    if base == SINGLE and tier in ("smoke", "laptop"):
        return sizes.seeds[:1]
    return sizes.headline_seeds if base == HEADLINE else sizes.seeds
