"""What the runs say about each claim of Paper C: one number a seed, read from the claim's ``metric`` itself.

The grammar is ``quantity:arm``, ``quantity:arm-arm`` or ``quantity:arm/arm``, paired by seed. A quantity is
``metric[.variant][.split][@start]``; ``points`` is 100 times the accuracy. ``best(jepa)`` stands for the setting that a search of
:data:`jepa_nb.experiments.llm_jepa.arms.SEARCHES` chose on validation pairs, never on the test pairs that are reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from jepa_nb import ledger, papers
from jepa_nb.errors import ConfigError
from jepa_nb.experiments.llm_jepa.arms import SEARCHES
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.ledger import Measurement, Verdict
from jepa_nb.provenance import RunContext

PAPER = "llm_jepa"
SEARCHED = "sweep"  # the base at which settings are searched
VARIANTS = {"accuracy": "rule", "points": "rule", "empty_share": "answers", "ntp_loss": "label", "jepa_distance": "cosine",
            "cosine": "paired", "retrieval_at_1": "cosine", "spectrum_mean": "normalised", "linear_residual": "held_out",
            "pflops": "counted", "seconds": "training", "tokens": "forwarded", "tokens_per_second": "greedy", "weights": "trained"}
SPLITS = {"pflops": "train", "seconds": "train", "tokens": "train", "weights": "train"}
_NAME = r"(?:best\(\w+\)|\w+\.\w+)"
_METRIC = re.compile(rf"(?P<quantity>[\w.]+)(?P<start>@start)?:(?P<first>{_NAME})(?:(?P<sign>[-/])(?P<second>{_NAME}))?")


def parse(metric: str) -> re.Match:
    """The parts of a metric.

    Raises:
        ConfigError: it does not follow the grammar.
    """
    found = _METRIC.fullmatch(metric)
    if found is None:
        raise ConfigError(f"metric '{metric}' does not follow quantity:arm, quantity:arm-arm or quantity:arm/arm.")
    return found


def arms_of(metric: str) -> list[str]:
    """Arms that a metric reads, those of a search written out."""
    found = parse(metric)
    named = [name for name in (found["first"], found["second"]) if name]
    return [arm for name in named for arm in (searched(name[5:-1]) if name.startswith("best(") else [name])]


def searched(search: str) -> list[str]:
    """Arms of a search."""
    return [f"{SEARCHED}.{method}" for method in SEARCHES[search]]


def chosen(study: Study, search: str) -> str:
    """The arm of a search with the highest mean validation accuracy; the first one of equals."""
    scores = {arm: study.last(arm, "accuracy", "rule", "val").mean() for arm in searched(search)}
    return max(scores, key=scores.__getitem__)


def value(study: Study, metric: str) -> pd.Series:
    """The measurement of a metric by seed: the seeds that both sides have."""
    found = parse(metric)
    first = _quantity(study, found["quantity"], bool(found["start"]), found["first"])
    if not found["sign"]:
        return first
    second = _quantity(study, found["quantity"], bool(found["start"]), found["second"])
    return (first - second if found["sign"] == "-" else first / second).dropna()


def _quantity(study: Study, quantity: str, start: bool, arm: str) -> pd.Series:
    metric, variant, split = (quantity.split(".") + ["", ""])[:3]
    read = study.first if start else study.last
    name = chosen(study, arm[5:-1]) if arm.startswith("best(") else arm
    found = read(name, "accuracy" if metric == "points" else metric, variant or VARIANTS[metric], split or SPLITS.get(metric, "test"))
    return 100 * found if metric == "points" else found


def verdicts(figure: str, study: Study, context: RunContext) -> list[Verdict]:
    """All claims that a figure tests, corrected for their number (Holm); a claim whose arms this tier lacks was not attempted."""
    asked = [claim for claim in papers.claims(PAPER).values() if claim.figure == figure]
    return ledger.adjust(_judged(claim, study, context) for claim in asked)


def _judged(claim: papers.Claim, study: Study, context: RunContext) -> Verdict:
    missing = [arm for arm in arms_of(claim.metric) if arm not in study.arms]
    if missing:
        return ledger.judge(claim, None, tier=context.tier, standin=study.standins,
                            reason=f"the {context.tier} tier does not run {', '.join(missing[:2])}")
    found = value(study, claim.metric)
    if len(found) == 1 and context.tier == "laptop":
        return ledger.judge(claim, None, tier=context.tier, standin=study.standins,
                            reason=f"one seed is a demonstration: measured {found.iloc[0]:.3g} {claim.unit}".rstrip())
    return ledger.judge(claim, Measurement(_per_seed(found, claim.kind)), tier=context.tier, standin=study.standins)


def _per_seed(values: pd.Series, kind: str) -> Sequence[float | None]:
    """One number a seed; ``None`` where there is none, as for a ratio of which one side has vanished."""
    usable = np.isfinite(values) & ((values > 0) | (kind != "ratio"))
    return [float(number) if kept else None for number, kept in zip(values, usable)]
