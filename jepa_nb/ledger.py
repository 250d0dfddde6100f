"""Verdicts: what a run says about a paper's claim, computed from per-seed measurements and never typed.

* ``paper`` tier: ``reproduced`` or ``not reproduced``, against the reported value and its spread.
* ``laptop``, ``gpu``: ``supports`` where the 95 % interval lies inside the region in which the claim is true,
  ``contradicts`` where it lies outside, ``inconclusive`` otherwise; ``not comparable`` where the number depends on scale.
* ``smoke``: ``none``. Without a measurement: ``not attempted``, with the reason.

Intervals are Student's over seeds (over paired seed differences where two arms are compared), a bootstrap over seeds from
eight up; ratios are judged on the log scale. :func:`adjust` applies Holm's correction within each figure's notebook.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jepa_nb import files, ledger_tables, papers
from jepa_nb.config import TIERS
from jepa_nb.errors import ConfigError, DataError, NonFinite, require_known
from jepa_nb.ledger_tables import VerdictTable
from jepa_nb.papers import DIRECTED, Claim, claim, claims
from jepa_nb.seeds import numpy_generator

__all__ = ["Claim", "Measurement", "Verdict", "adjust", "claim", "claims", "collect", "judge", "read_sidecar", "restore",
           "verdict_table", "write"]

VERDICTS = ("reproduced", "not reproduced", "supports", "contradicts", "inconclusive", "not comparable", "not attempted", "none")
LEVEL, BOOTSTRAP_FROM = 0.95, 8


@dataclass(frozen=True)
class Measurement:
    """What the claim's ``measure`` came out as, one number a data seed.

    Attributes:
        per_seed: the numbers; ``None`` for a seed in which the measured event did not occur.
        description: what was measured, in words, where it differs from the claim's ``measure``.
        unit: unit of the numbers.
    """

    per_seed: Sequence[float | None]
    description: str = ""
    unit: str = ""

    def values(self) -> list[float]:
        """The numbers of the seeds that have one.

        Raises:
            ConfigError: no seed at all. NonFinite: a NaN or an infinity.
        """
        if not self.per_seed:
            raise ConfigError("a measurement needs a number for at least one seed; without one give the reason instead.")
        found = [float(value) for value in self.per_seed if value is not None]
        if not all(map(math.isfinite, found)):
            raise NonFinite(f"per_seed {list(self.per_seed)} holds a NaN or an infinity; use None where an event did not occur.")
        return found


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured, and what follows.

    Attributes:
        verdict: one of :data:`VERDICTS`.
        reason: why, where the numbers alone don't say it.
        mean, low, high: mean over seeds (geometric for a ratio) and its 95 % interval; ``None`` where there is none.
        p: two-sided p-value of Student's test against the nearest edge of the region in which the claim is true.
        p_holm: the same after Holm's correction (:func:`adjust`).
        standin: other data or weights than the paper's.
    """

    claim: Claim
    verdict: str
    tier: str
    reason: str = ""
    measurement: Measurement | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    p: float | None = None
    p_holm: float | None = None
    standin: str = ""

    @property
    def n(self) -> int:
        """Seeds with a number."""
        return len(self.measurement.values()) if self.measurement else 0

    @property
    def survives_holm(self) -> bool | None:
        """Whether the verdict outlives the correction; ``None`` where nothing was decided."""
        return None if self.p_holm is None or self.verdict == "inconclusive" else self.p_holm <= 1 - LEVEL

    def record(self) -> dict[str, Any]:
        """Plain values for a sidecar, from which :func:`restore` computes the verdict again."""
        values = asdict(replace(self, measurement=None))
        values |= {"claim": self.claim.id, "n": self.n, "survives_holm": self.survives_holm}
        if self.measurement is not None:
            per_seed = [None if value is None else float(value) for value in self.measurement.per_seed]
            values["measurement"] = asdict(self.measurement) | {"per_seed": per_seed}
        return values


def judge(claim: Claim, measurement: Measurement | None, *, tier: str, standin: str = "", reason: str = "") -> Verdict:
    """The verdict on one claim, before Holm's correction. Without a measurement ``reason`` says why it was not attempted.

    Raises:
        UnknownName: unknown tier.
        ConfigError: neither measurement nor reason, or a ratio that is not positive.
        NonFinite: a NaN or an infinity among the measurements.
    """
    require_known("tier", tier, TIERS)
    if measurement is None:
        if not reason:
            raise ConfigError(f"claim '{claim.id}' has no measurement; give the reason why it was not attempted.")
        return Verdict(claim, "not attempted", tier, reason, standin=standin)
    measured = _measured(claim, measurement, Verdict(claim, "inconclusive", tier, measurement=measurement, standin=standin))
    if tier == "smoke":
        return replace(measured, verdict="none", reason="a smoke run is too small to mean anything", p=None)
    if tier != "paper" and claim.scale_dependent:
        return replace(measured, verdict="not comparable", reason=claim.reason, p=None)
    return _decided(measured)


def _measured(claim: Claim, measurement: Measurement, verdict: Verdict) -> Verdict:
    """``verdict`` with mean, interval and p-value as far as the number of seeds allows."""
    to_scale, from_scale = _scale(claim, measurement)
    values = [to_scale(value) for value in measurement.values()]
    if not values:
        return verdict
    if len(values) == 1:
        return replace(verdict, mean=from_scale(values[0]))
    from jepa_nb.metrics import statistics

    if len(values) >= BOOTSTRAP_FROM:
        found, kind = statistics.bootstrap_ci(values, generator=numpy_generator(0, "ledger", claim.id), level=LEVEL), "bootstrap"
    else:
        found, kind = statistics.t_interval(values, LEVEL), "t"
    edges = [to_scale(edge) for edge in claim.region() if math.isfinite(edge)]
    nearest = min(edges, key=lambda edge: abs(edge - found.mean))
    p = statistics.paired_test(values, [nearest] * len(values)).p
    mean, low, high = map(from_scale, found[:3])
    return replace(verdict, mean=mean, low=low, high=high, interval=kind, p=p)


def _scale(claim: Claim, measurement: Measurement) -> tuple[Callable, Callable]:
    if claim.kind != "ratio":
        return float, float
    if any(value <= 0 for value in measurement.values()):
        raise ConfigError(f"claim '{claim.id}' is judged by a ratio, which must be positive; got {list(measurement.per_seed)}.")
    return math.log, math.exp


def _decided(measured: Verdict) -> Verdict:
    true, false = ("reproduced", "not reproduced") if measured.tier == "paper" else ("supports", "contradicts")
    tried = len(measured.measurement.per_seed)
    if measured.n < tried:
        return replace(measured, verdict="inconclusive", p=None, reason=f"the event occurred in {measured.n} of {tried} seeds")
    if measured.n == 1:
        return replace(measured, verdict="inconclusive", reason="one seed gives no interval")
    low, high = measured.claim.region()
    if measured.tier == "paper" and measured.claim.kind not in DIRECTED:
        return replace(measured, verdict=true if low <= measured.mean <= high else false, p=None)
    if low <= measured.low and measured.high <= high:
        return replace(measured, verdict=true)
    if measured.high < low or high < measured.low:
        return replace(measured, verdict=false)
    return replace(measured, verdict="inconclusive")


def adjust(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The same verdicts in the same order with Holm's correction over the tested claims of each figure's notebook."""
    verdicts = list(verdicts)
    families: dict[str, list[int]] = defaultdict(list)
    for index, verdict in enumerate(verdicts):
        if verdict.p is not None:
            families[verdict.claim.figure].append(index)
    for members in families.values():
        from jepa_nb.metrics import statistics

        adjusted = statistics.holm([verdicts[index].p for index in members])
        for index, p in zip(members, adjusted, strict=True):
            verdicts[index] = replace(verdicts[index], p_holm=float(p))
    return verdicts


def restore(record: dict[str, Any]) -> Verdict:
    """The verdict of a sidecar's record, computed again from its measurement and the claim as it stands now.

    Raises:
        UnknownName: the claim no longer exists.
    """
    stored = record["measurement"]
    measurement = None if stored is None else Measurement(**stored)
    return judge(papers.claim(record["claim"]), measurement, tier=record["tier"], standin=record["standin"],
                 reason=record["reason"] if measurement is None else "")


def verdict_table(verdicts: Iterable[Verdict]) -> VerdictTable:
    """The readable table of a notebook's last cell, reported beside measured."""
    return VerdictTable(tuple(verdicts))


def collect(folder: Path) -> list[Verdict]:
    """A verdict for every claim of every paper: from the sidecars (``*.json``) of a figures folder, and ``not attempted``
    where there is none. Verdicts are computed again from the stored measurements.

    Raises:
        DataError: a sidecar that cannot be read. UnknownName: a sidecar names a claim that no longer exists.
    """
    sidecars = [read_sidecar(file) for file in sorted(folder.glob("*.json"))]
    found = {record["claim"]: restore(record) for sidecar in sidecars for record in sidecar["verdicts"]}
    saved = {sidecar["name"]: sidecar["tier"] for sidecar in sidecars}
    every = [claim for name in papers.names() for claim in papers.claims(name).values()]
    return adjust(found.get(claim.id) or _absent(claim, saved) for claim in every)


def _absent(claim: Claim, saved: dict[str, str]) -> Verdict:
    tier = saved.get(claim.figure)
    if tier is None:
        return judge(claim, None, tier="laptop", reason=f"no run of {claim.figure} yet")
    return judge(claim, None, tier=tier, reason=f"the run of {claim.figure} did not measure it")


def read_sidecar(file: Path) -> dict[str, Any]:
    """The record beside a figure.

    Raises:
        DataError: it is not JSON, or lacks what every sidecar has.
    """
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        missing = {"name", "tier", "verdicts"} - set(record)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"sidecar {file} cannot be read ({error}); delete it and run its notebook again.") from error
    if missing:
        raise DataError(f"sidecar {file} lacks {', '.join(sorted(missing))}; delete it and run its notebook again.")
    return record


def write(verdicts: Sequence[Verdict], folder: Path) -> str:
    """Write ``ledger.md``, ``ledger.csv`` and ``ledger.tex``, each whole or not at all; the Markdown is returned."""
    text = ledger_tables.markdown(verdicts)
    for suffix, content in (("md", text), ("csv", ledger_tables.csv_text(verdicts)), ("tex", ledger_tables.latex(verdicts))):
        files.write_text(folder / f"ledger.{suffix}", content)
    return text
