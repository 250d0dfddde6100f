"""What the runs say about each claim of Paper A's figures 2 to 4 and the cosine figure: one number a data seed.

Marks of time follow ``papers/paradox.toml``: ``early`` and ``event`` are the evaluations nearest to 2,000 and 9,340 of
15,000 steps of training, ``late`` is the mean over the evaluations in the last quarter. A measurement has the ``metric``
of its claim as name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from jepa_nb import ledger
from jepa_nb.ledger import Measurement, Verdict
from jepa_nb.provenance import RunContext

EARLY, EVENT, LAST_QUARTER = 2_000 / 15_000, 9_340 / 15_000, 0.75
RANK, TOKENS = "eigenvalue_entropy", "rank_tokens"


class Curves:
    """Quantities along training, one row a seed and one column an evaluation (fraction of training done)."""

    def __init__(self, table: pd.DataFrame):
        self.table = table.assign(done=table["step"] / table.groupby(["modality", "seed"])["step"].transform("max"))

    def __call__(self, metric: str, variant: str, modality: str, *, split: str = "val", network: str = "target") -> pd.DataFrame:
        rows = self.table
        keep = ((rows["metric"] == metric) & (rows["variant"] == variant) & (rows["modality"] == modality)
                & (rows["split"] == split) & (rows["network"] == network))
        return rows[keep].pivot(index="seed", columns="done", values="value").dropna(axis=1)


def at(curve: pd.DataFrame, mark: float) -> pd.Series:
    """Values at the evaluation nearest to a fraction of training."""
    return curve.iloc[:, int(np.abs(curve.columns.to_numpy() - mark).argmin())]


def late(curve: pd.DataFrame) -> pd.Series:
    """Mean over the last quarter of training."""
    return curve.loc[:, curve.columns >= LAST_QUARTER].mean(axis=1)


def between(curve: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """Evaluations from ``low`` to before ``high``."""
    return curve.loc[:, (curve.columns >= low) & (curve.columns < high)]


def largest_rise(loss: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Largest ratio of a loss to its smallest earlier value, and the fraction of training at which it stands."""
    later = between(loss, EARLY, np.inf)
    ratio = later / loss.cummin(axis=1).loc[:, later.columns]
    return ratio.max(axis=1), ratio.idxmax(axis=1)


def divergence(curves: Curves, modality: str) -> pd.Series:
    """Log of validation over train loss: mean from the event on minus mean from early to the event."""
    gap = np.log(curves("loss", "published", modality) / curves("loss", "published", modality, split="train"))
    return between(gap, EVENT, np.inf).mean(axis=1) - between(gap, EARLY, EVENT).mean(axis=1)


def roughness(curves: Curves, modality: str) -> pd.Series:
    """Sd of the change of the log train loss between logged batches, from the event on over early to the event."""
    change = np.log(curves("loss", "published", modality, split="batch", network="online")).diff(axis=1).iloc[:, 1:]
    return between(change, EVENT, np.inf).std(axis=1) / between(change, EARLY, EVENT).std(axis=1)


def _information(c: Curves) -> dict[str, Callable[[], pd.Series]]:
    def mi(modality: str, variant: str = "published") -> pd.DataFrame:
        return c("mi", variant, modality)

    return {
        "mi.published.val.text.max": lambda: mi("text").max(axis=1),
        "mi.published.val.image.last_quarter_minus_first_quarter":
            lambda: late(mi("image")) - between(mi("image"), 0, 1 - LAST_QUARTER).mean(axis=1),
        "mi.published.val.image_minus_text.late": lambda: late(mi("image")) - late(mi("text")),
        "mi.position_conditioned.val.image_minus_text.late":
            lambda: late(mi("image", "position_conditioned")) - late(mi("text", "position_conditioned"))}


def _rank(c: Curves) -> dict[str, Callable[[], pd.Series]]:
    def rank(modality: str, split: str = "val") -> pd.DataFrame:
        return c(TOKENS, RANK, modality, network="online", split=split)

    start = f"rank.{RANK}.tokens.online."
    found = {
        "val.text.late_over_early": lambda: late(rank("text")) / at(rank("text"), EARLY),
        "val.image.late_over_early": lambda: late(rank("image")) / at(rank("image"), EARLY),
        "val.text_over_image.late": lambda: late(rank("text")) / late(rank("image")),
        "train_over_val.text.late": lambda: late(rank("text", "train")) / late(rank("text")),
        "val.image_late_over_text_early": lambda: late(rank("image")) / at(rank("text"), EARLY),
        "val.text.early": lambda: at(rank("text"), EARLY), "val.text.late": lambda: late(rank("text")),
        "train.text.late": lambda: late(rank("text", "train")), "val.image.late": lambda: late(rank("image"))}
    return {start + name: value for name, value in found.items()}


def _loss(c: Curves) -> dict[str, Callable[[], pd.Series]]:
    def loss() -> pd.DataFrame:
        return c("loss", "published", "text")

    def cosine() -> pd.DataFrame:
        return c("cosine_mean", "published", "text", network="online")

    def steps() -> pd.Series:
        rows = c.table[c.table["modality"] == "text"]
        return largest_rise(loss())[1] * rows.groupby("seed")["step"].max()

    return {
        "loss.val.text.early_over_start": lambda: at(loss(), EARLY) / at(loss(), 0.0),
        "loss.val.text.largest_rise_from_a_minimum": lambda: largest_rise(loss())[0],
        "loss.log_val_over_train.text.after_event_minus_before": lambda: divergence(c, "text"),
        "loss.log_val_over_train.text_minus_image.after_event_minus_before": lambda: divergence(c, "text") - divergence(c, "image"),
        "loss.train.text.roughness.after_event_over_before": lambda: roughness(c, "text"),
        "cosine.mean.tokens.online.val.text.at_lowest_val_loss_minus_mean": lambda: pd.Series(
            {seed: cosine().loc[seed, done] for seed, done in loss().idxmin(axis=1).items()}) - cosine().mean(axis=1),
        "loss.val.text.step_of_largest_rise": steps}


def _cosine(c: Curves) -> dict[str, Callable[[], pd.Series]]:
    def cosine(modality: str, what: str = "mean") -> pd.DataFrame:
        return c(f"cosine_{what}", "published", modality, network="online")

    return {
        "cosine.mean.tokens.online.val.text.late": lambda: late(cosine("text")),
        "cosine.mean.tokens.online.val.text.late_minus_early": lambda: late(cosine("text")) - at(cosine("text"), EARLY),
        "cosine.sd.tokens.online.val.text.late": lambda: late(cosine("text", "sd")),
        "cosine.mean.tokens.online.val.text_minus_image.late": lambda: late(cosine("text")) - late(cosine("image")),
        "cosine.mean.tokens.online.val.image.late": lambda: late(cosine("image"))}


def _irreducible(c: Curves) -> dict[str, Callable[[], pd.Series]]:
    def raw(modality: str, variant: str = "published", split: str = "val") -> pd.DataFrame:
        return c("irreducible", variant, modality, split=split)

    def share(modality: str) -> pd.Series:
        return at(c("irreducible_share", "corrected", modality), EVENT)

    found: dict[str, Callable[[], pd.Series]] = {
        "irreducible.share.val.text_over_image.event": lambda: share("text") / share("image"),
        "irreducible.share.val.image.event": lambda: share("image"), "irreducible.share.val.text.event": lambda: share("text"),
        "irreducible.published.val.text.late_over_event": lambda: late(raw("text")) / at(raw("text"), EVENT),
        "irreducible.published.val.image.event_over_early": lambda: at(raw("image"), EVENT) / at(raw("image"), EARLY),
        "irreducible.published.val.image.late_over_event": lambda: late(raw("image")) / at(raw("image"), EVENT),
        "irreducible.noise_over_nearest.val.image.event":
            lambda: at(raw("image"), EVENT) / at(raw("image", "corrected"), EVENT),
        "irreducible.published.val.image.early": lambda: at(raw("image"), EARLY),
        "irreducible.published.val.image.late": lambda: late(raw("image")),
        "irreducible.published.val.text.late": lambda: late(raw("text"))}
    for split in ("train", "val"):
        found[f"irreducible.published.{split}.text_over_image.event"] = lambda split=split: (
            at(raw("text", split=split), EVENT) / at(raw("image", split=split), EVENT))
        for modality in ("text", "image"):
            found[f"irreducible.published.{split}.{modality}.event"] = lambda split=split, modality=modality: (
                at(raw(modality, split=split), EVENT))
    return found


def measure(table: pd.DataFrame) -> dict[str, Callable[[], pd.Series]]:
    """Every measurement by the ``metric`` of its claim, each a function that gives one number a seed of one arm's rows."""
    curves = Curves(table)
    return _information(curves) | _rank(curves) | _loss(curves) | _cosine(curves) | _irreducible(curves)


def verdicts(figure: str, table: pd.DataFrame, context: RunContext, standin: str) -> list[Verdict]:
    """All claims that a figure tests, judged on the rows of one arm and corrected for their number (Holm)."""
    known = measure(table)
    asked = [claim for claim in ledger.claims("paradox").values() if claim.figure == figure]
    judged = [ledger.judge(claim, Measurement(_per_seed(known[claim.metric](), claim.kind)), tier=context.tier, standin=standin)
              for claim in asked]
    return ledger.adjust(judged)


def _per_seed(values: pd.Series, kind: str) -> Sequence[float | None]:
    """One number a seed; ``None`` where there is none, as for a ratio of which one side has vanished."""
    usable = np.isfinite(values) & ((values > 0) | (kind != "ratio"))
    return [float(value) if kept else None for value, kept in zip(values.sort_index(), usable.sort_index())]
