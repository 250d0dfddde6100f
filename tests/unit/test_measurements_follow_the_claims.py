"""The numbers behind the verdicts, on small tables with known answers.

1. Every claim of the four figures has a measurement, and it is computed at the claim's marks of time: early, event, late.
2. Rise, divergence and roughness of losses. 3. A ratio of which one side has vanished is ``None``, not a crash and not a number.
4. The sentence of a finding holds the numbers of the table. 5. Seeds stay in order, arms and networks stay apart.

Evaluations stand at 0, 1, ... 15 of 15 epochs: early is number 2, event number 9, late the mean of 12 to 15.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from jepa_nb import ledger
from jepa_nb.device import Resolved
from jepa_nb.experiments.paradox import findings, measurements
from jepa_nb.experiments.paradox.measurements import measure
from jepa_nb.experiments.paradox.study import COLUMNS, Study
from jepa_nb.provenance import RunContext

FIGURES = ("paradox_fig2_mi_and_rank", "paradox_fig3_loss_divergence", "paradox_fig4_irreducible_variance",
           "paradox_cosine_similarity")
VAL_LOSS = [100, 50, 20, 18, 16, 14, 12, 10, 8, 4, 6, 12, 20, 30, 8, 8]
COSINE = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5]
TEXT = {
    ("mi", "published", "val", "target"): [0.01 * k for k in range(16)],
    ("mi", "position_conditioned", "val", "target"): [0.5] * 16,
    ("rank_tokens", "eigenvalue_entropy", "val", "online"): [9, 8, 6, 5, 5, 5, 5, 5, 5, 4, 3, 3, 2, 2, 1, 1],
    ("rank_tokens", "eigenvalue_entropy", "train", "online"): [9.0] * 12 + [30.0] * 4,
    ("loss", "published", "val", "target"): VAL_LOSS,
    ("loss", "published", "train", "target"): [value / (math.e if k >= 10 else 1) for k, value in enumerate(VAL_LOSS)],
    ("r2", "within_position", "val", "target"): [-0.25] * 16,
    ("cosine_mean", "published", "val", "online"): COSINE,
    ("cosine_sd", "published", "val", "online"): [0.2] * 12 + [0.1, 0.1, 0.0, 0.0]}
IMAGE = {
    ("mi", "published", "val", "target"): [1 + 0.1 * k for k in range(16)],
    ("mi", "position_conditioned", "val", "target"): [0.75] * 16,
    ("rank_tokens", "eigenvalue_entropy", "val", "online"): [2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3],
    ("loss", "published", "val", "target"): [10.0] * 16,
    ("loss", "published", "train", "target"): [5.0] * 16,
    ("r2", "within_position", "val", "target"): [0.5] * 16,
    ("cosine_mean", "published", "val", "online"): [0.25] * 16}
PROBES = (0, 3, 6, 9, 12, 15)
PROBED = {
    "text": {("irreducible", "published", "val"): [1, 2, 3, 8, 2, 6], ("irreducible", "published", "train"): [1, 2, 3, 16, 2, 6],
             ("irreducible_share", "corrected", "val"): [1, 1, 1, 0.6, 1, 1]},
    "image": {("irreducible", "published", "val"): [0.5, 1, 2, 4, 1, 3],
              ("irreducible", "published", "train"): [1, 1, 1, 2, 1, 1],
              ("irreducible", "corrected", "val"): [9, 9, 9, 16, 9, 9],
              ("irreducible_share", "corrected", "val"): [0, 0, 0, 0.2, 0, 0]}}
KNOWN = {
    "mi.published.val.text.max": 0.15,
    "mi.published.val.image.last_quarter_minus_first_quarter": 2.35 - 1.15,
    "mi.published.val.image_minus_text.late": 2.35 - 0.135,
    "mi.position_conditioned.val.image_minus_text.late": 0.25,
    "rank.eigenvalue_entropy.tokens.online.val.text.late_over_early": 1.5 / 6,
    "rank.eigenvalue_entropy.tokens.online.val.image.late_over_early": 3 / 4,
    "rank.eigenvalue_entropy.tokens.online.val.text_over_image.late": 1.5 / 3,
    "rank.eigenvalue_entropy.tokens.online.train_over_val.text.late": 30 / 1.5,
    "rank.eigenvalue_entropy.tokens.online.val.image_late_over_text_early": 3 / 6,
    "rank.eigenvalue_entropy.tokens.online.val.text.early": 6, "rank.eigenvalue_entropy.tokens.online.val.text.late": 1.5,
    "rank.eigenvalue_entropy.tokens.online.train.text.late": 30, "rank.eigenvalue_entropy.tokens.online.val.image.late": 3,
    "loss.val.text.early_over_start": 0.2, "loss.val.text.largest_rise_from_a_minimum": 30 / 4,
    "loss.val.text.step_of_largest_rise": 13_000,
    "loss.log_val_over_train.text.after_event_minus_before": 1.0,
    "loss.log_val_over_train.text_minus_image.after_event_minus_before": 1.0,
    "loss.train.text.roughness.after_event_over_before": 3 * math.sqrt((12 / 11) / (14 / 13)),
    "cosine.mean.tokens.online.val.text.at_lowest_val_loss_minus_mean": 0.9 - sum(COSINE) / 16,
    "cosine.mean.tokens.online.val.text.late": 0.5, "cosine.mean.tokens.online.val.text.late_minus_early": 0.3,
    "cosine.sd.tokens.online.val.text.late": 0.05, "cosine.mean.tokens.online.val.text_minus_image.late": 0.25,
    "cosine.mean.tokens.online.val.image.late": 0.25,
    "irreducible.share.val.text_over_image.event": 3, "irreducible.share.val.image.event": 0.2,
    "irreducible.share.val.text.event": 0.6, "irreducible.published.val.text.late_over_event": 0.5,
    "irreducible.published.val.image.event_over_early": 4, "irreducible.published.val.image.late_over_event": 0.5,
    "irreducible.noise_over_nearest.val.image.event": 0.25, "irreducible.published.val.image.early": 1,
    "irreducible.published.val.image.late": 2, "irreducible.published.val.text.late": 4,
    "irreducible.published.val.text_over_image.event": 2, "irreducible.published.train.text_over_image.event": 8,
    "irreducible.published.val.text.event": 8, "irreducible.published.train.text.event": 16,
    "irreducible.published.val.image.event": 4, "irreducible.published.train.image.event": 2}


def rows(modality, seed, metric, variant, split, network, steps, values):
    return [{"arm": "scaled", "modality": modality, "seed": seed, "step": step, "epoch": step / 1000, "split": split,
             "network": network, "metric": metric, "variant": variant, "value": float(value)}
            for step, value in zip(steps, values)]


def batch_losses(seed):
    """Logged from step 2,000 on each 500: the log of the loss goes up and down by 1 until the event, by 3 from it on."""
    steps = range(2000, 15_001, 500)
    size = [3 if step >= 9500 else 1 for step in steps]
    level, found = 0, []
    for index, step in enumerate(steps):
        level = level + (size[index] if index % 2 else -size[index]) if index else 0
        found.append(math.exp(level))
    return rows("text", seed, "loss", "published", "batch", "online", steps, found)


def table(seeds=(0,), change=lambda seed, row: row):
    found = []
    for seed in seeds:
        for modality, curves in (("text", TEXT), ("image", IMAGE)):
            for (metric, variant, split, network), values in curves.items():
                found += rows(modality, seed, metric, variant, split, network, range(0, 15_001, 1000), values)
            for (metric, variant, split), values in PROBED[modality].items():
                found += rows(modality, seed, metric, variant, split, "target", [1000 * k for k in PROBES], values)
        found += batch_losses(seed)
    return pd.DataFrame([change(row["seed"], row) for row in found])[COLUMNS]


def context(tier="laptop"):
    return RunContext("paradox/fig2_mi_and_rank", tier, (0, 1), Resolved("cpu", "float32", "sdpa", 1, ""))


def claims(figure):
    return {claim.id: claim for claim in ledger.claims("paradox").values() if claim.figure == figure}


@pytest.mark.parametrize("figure", FIGURES)
def test_every_claim_of_a_figure_has_a_measurement(figure):
    known = measure(table())
    assert claims(figure) and {claim.metric for claim in claims(figure).values()} <= set(known)


def test_every_measurement_belongs_to_a_claim_and_is_tested_here():
    asked = {claim.metric for figure in FIGURES for claim in claims(figure).values()}
    assert set(measure(table())) == asked == set(KNOWN)


@pytest.mark.parametrize(("metric", "value"), KNOWN.items())
def test_measurements_have_the_known_answers(metric, value):
    assert measure(table())[metric]().to_dict() == pytest.approx({0: value})


def test_seeds_are_measured_apart():
    def halved(seed, row):
        return row | {"value": row["value"] / 2} if (seed, row["metric"], row["modality"]) == (1, "rank_tokens", "text") else row

    found = measure(table((1, 0), halved))["rank.eigenvalue_entropy.tokens.online.val.text_over_image.late"]()
    assert found.to_dict() == pytest.approx({0: 0.5, 1: 0.25})


def test_a_loss_that_never_rises_has_a_largest_rise_of_at_most_one():
    loss = pd.DataFrame([[8.0, 4.0, 2.0, 1.0]], index=[0], columns=[0, 0.3, 0.6, 1.0])
    ratio, place = measurements.largest_rise(loss)
    assert ratio[0] == 1.0 and place[0] == 0.3


def test_a_rise_before_early_does_not_count():
    loss = pd.DataFrame([[1.0, 50.0, 2.0, 3.0]], index=[0], columns=[0, 0.1, 0.6, 1.0])
    ratio, place = measurements.largest_rise(loss)
    assert (ratio[0], place[0]) == (3.0, 1.0)


@pytest.mark.parametrize(("modality", "share"), [("text", 0.0), ("image", 0.0)])
def test_a_ratio_of_which_one_side_has_vanished_is_none(modality, share):
    def vanished(seed, row):
        gone = seed == 0 and row["metric"] == "irreducible_share" and row["modality"] == modality
        return row | {"value": share} if gone else row

    found = {verdict.claim.id: verdict for verdict in measurements.verdicts(FIGURES[2], table((0, 1), vanished), context(), "")}
    ratio = found["A.irreducible_share_text_above_image"]
    assert ratio.measurement.per_seed == [None, pytest.approx(3.0)]
    assert ratio.verdict == "inconclusive" and "1 of 2 seeds" in ratio.reason
    plain = found[f"A.irreducible_share_{'image_small' if modality == 'image' else 'text_large'}"]
    assert plain.measurement.per_seed[0] == 0.0


@pytest.mark.parametrize("figure", FIGURES)
def test_verdicts_cover_the_claims_and_know_stand_in_and_tier(figure):
    for tier in ("smoke", "laptop", "paper"):
        found = measurements.verdicts(figure, table((0, 1)), context(tier), "other data")
        assert {verdict.claim.id for verdict in found} == set(claims(figure))
        assert {(verdict.tier, verdict.standin) for verdict in found} == {(tier, "other data")}
        assert {len(verdict.measurement.per_seed) for verdict in found} == {2}
    assert {verdict.verdict for verdict in measurements.verdicts(figure, table((0, 1)), context("smoke"), "")} == {"none"}


def test_equal_seeds_are_judged_by_their_side():
    found = {verdict.claim.id: verdict.verdict for verdict in measurements.verdicts(FIGURES[0], table((0, 1)), context(), "")}
    assert found["A.mi_text_low"] == "supports" and found["A.rank_text_falls"] == "supports"
    assert found["A.value.rank_text_late"] == "not comparable"


def study(seeds, change=lambda seed, row: row):
    scaled = table(seeds, change)
    both = pd.concat([scaled, scaled.assign(arm="published", value=scaled["value"] * 2)], ignore_index=True)
    return Study(both, {}, {}, "", pd.DataFrame())


SENTENCES = {
    "paradox_fig2_mi_and_rank": ("from 6.00 early to 1.50 late", "I-JEPA's from 4.00 to 3.00",
                                 "0.50 nats for text and 0.75 for images", "under the unscaled recipe T-JEPA ends at rank 3.00"),
    "paradox_fig3_loss_divergence": ("rises to 7.50 times", "changes by 1.00", "is 1.25 times the target variance",
                                     "0.50 times for images", "unscaled recipe: 1.50 and not defined"),
    "paradox_fig4_irreducible_variance": ("0.60 for text and 0.20 for images", "is 2.00 times that of images", "reads 0.25 of"),
    "paradox_cosine_similarity": ("is 0.50 for T-JEPA (sd over pairs 0.05) and 0.25 for I-JEPA",
                                  "1.00 for T-JEPA under the unscaled")}


@pytest.mark.parametrize("figure", FIGURES)
def test_a_finding_is_one_sentence_with_the_tables_numbers(figure):
    sentence = findings.finding(figure, study((0,)))
    assert all(part in sentence for part in SENTENCES[figure]), sentence
    assert sentence.endswith(".") and "nan" not in sentence and "[" not in sentence


def test_intervals_are_students_and_of_the_logarithm_for_ratios():
    assert findings.interval(pd.Series([1.0, 3.0])) == "2.00 [-11, 15]"
    logs = pd.Series([math.exp(0.9), math.exp(1.1)])
    assert findings.interval(logs, log=True) == f"{math.e:.2f} [0.76, {math.exp(2.2706):.2f}]"
    assert findings.interval(pd.Series([0.5])) == "0.50"


def test_a_finding_survives_a_variance_that_has_vanished():
    def vanished(seed, row):
        return row | {"value": 0.0} if row["metric"].startswith("irreducible") and row["modality"] == "text" and seed else row

    sentence = findings.finding("paradox_fig4_irreducible_variance", study((0, 1), vanished))
    assert "0.60 in 1 of 2 seeds for text" in sentence
    gone = findings.finding("paradox_fig4_irreducible_variance", study((1,), vanished))
    assert "not defined for text" in gone
