"""Verdicts follow from the numbers, the kind of claim and the tier.

1. laptop: supports, contradicts, inconclusive from the 95 % interval. 2. A number that depends on scale is not comparable
there, and is judged at the paper's tier. 3. smoke gets none. 4. One seed decides nothing. 5. Ratios are judged in logs.
6. A missing event decides nothing. 7. Holm's correction stays within one figure.
"""

from __future__ import annotations

import math

import pytest
from scipy import stats

from jepa_nb import ledger, papers
from jepa_nb.errors import ConfigError, NonFinite, UnknownName
from jepa_nb.ledger import Measurement, judge


def verdict(claim_id, per_seed, tier="laptop"):
    return judge(papers.claim(claim_id), Measurement(per_seed), tier=tier)


@pytest.mark.parametrize(("per_seed", "expected"), [
    ([0.10, 0.12, 0.14], "supports"), ([0.60, 0.62, 0.61], "contradicts"), ([0.1, 0.5, 0.3], "inconclusive"),
    ([0.34, 0.34, 0.34], "supports"), ([0.1], "inconclusive")])
def test_a_threshold_is_judged_by_the_interval(per_seed, expected):
    assert verdict("A.mi_text_low", per_seed).verdict == expected


@pytest.mark.parametrize(("per_seed", "expected"), [
    ([0.9, 1.1, 1.0], "supports"), ([-0.9, -1.1, -1.0], "contradicts"), ([1.0, -1.0, 0.2], "inconclusive")])
def test_an_ordering_is_judged_by_the_paired_differences(per_seed, expected):
    assert verdict("A.mi_image_rises", per_seed).verdict == expected


def test_the_interval_is_students():
    values = [0.3, 0.7, 0.4, 0.9, 0.5]
    found = verdict("A.mi_image_rises", values)
    low, high = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high)) and found.interval == "t" and found.n == 5
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)


def test_from_eight_seeds_the_interval_is_a_bootstrap_that_does_not_change():
    values = [0.3, 0.7, 0.4, 0.9, 0.5, 0.6, 0.8, 0.2]
    assert verdict("A.mi_image_rises", values).interval == "bootstrap"
    assert verdict("A.mi_image_rises", values) == verdict("A.mi_image_rises", values)


def test_a_ratio_is_judged_on_the_log_scale():
    found = verdict("A.rank_text_falls", [0.25, 0.5, 0.125])
    assert found.mean == pytest.approx(0.25)
    assert math.log(found.high) - math.log(found.mean) == pytest.approx(math.log(found.mean) - math.log(found.low))
    with pytest.raises(ConfigError, match="must be positive"):
        verdict("A.rank_text_falls", [0.25, 0.0])


@pytest.mark.parametrize(("per_seed", "expected"), [
    ([1e-8, 2e-8, 0.0], "supports"), ([0.1, 0.11, 0.12], "contradicts"), ([0.0, 0.1, 0.05], "inconclusive")])
def test_an_equality_needs_the_interval_within_the_tolerance(per_seed, expected):
    assert verdict("A.theory_conditional_mean", per_seed).verdict == expected


def test_a_value_that_does_not_depend_on_scale_is_tested_at_the_laptop():
    assert verdict("A.downstream_tjepa_chance_sentiment", [49.8, 50.3, 50.1]).verdict == "supports"
    assert verdict("A.downstream_tjepa_chance_sentiment", [70.0, 71.0, 70.5]).verdict == "contradicts"


@pytest.mark.parametrize("tier", ["laptop", "gpu"])
def test_a_number_that_depends_on_scale_is_not_comparable_and_says_why(tier):
    found = verdict("A.value.rank_text_late", [1.5, 1.6, 1.55], tier)
    assert found.verdict == "not comparable" and "width" in found.reason and found.mean == pytest.approx(1.55)
    assert found.p is None


def test_the_paper_tier_compares_with_the_reported_value_and_its_spread():
    assert verdict("A.value.rank_text_late", [1.5, 1.6, 1.55], "paper").verdict == "reproduced"
    assert verdict("A.value.rank_text_late", [4.5, 4.6, 4.55], "paper").verdict == "not reproduced"
    assert verdict("A.tab2.bert_mlm.imdb_acc", [80.0, 80.5], "paper").verdict == "reproduced"
    assert verdict("A.tab2.bert_mlm.imdb_acc", [78.0, 78.5], "paper").verdict == "not reproduced"
    assert verdict("A.mi_text_low", [0.1, 0.12, 0.14], "paper").verdict == "reproduced"
    assert verdict("A.mi_text_low", [0.6, 0.62, 0.61], "paper").verdict == "not reproduced"
    assert verdict("A.value.rank_text_late", [1.57], "paper").verdict == "inconclusive"


def test_smoke_gets_no_verdict():
    found = verdict("A.mi_text_low", [0.1, 0.12, 0.14], "smoke")
    assert found.verdict == "none" and found.p is None


def test_an_event_that_some_seed_lacks_decides_nothing():
    found = verdict("A.chain_mi_before_rank", [100.0, None, 110.0, 105.0])
    assert found.verdict == "inconclusive" and found.reason == "the event occurred in 3 of 4 seeds"
    assert verdict("A.chain_mi_before_rank", [None, None]).verdict == "inconclusive"
    assert verdict("A.chain_mi_before_rank", [100.0, 110.0, 105.0]).verdict == "supports"


def test_without_a_measurement_the_reason_is_kept_and_required():
    claim = papers.claim("A.mi_text_low")
    found = judge(claim, None, tier="laptop", reason="the source is not installed")
    assert (found.verdict, found.reason, found.n) == ("not attempted", "the source is not installed", 0)
    with pytest.raises(ConfigError, match="give the reason"):
        judge(claim, None, tier="laptop")


def test_bad_measurements_are_refused():
    with pytest.raises(NonFinite):
        verdict("A.mi_text_low", [0.1, float("nan")])
    with pytest.raises(ConfigError, match="at least one seed"):
        verdict("A.mi_text_low", [])
    with pytest.raises(UnknownName, match="laptop"):
        verdict("A.mi_text_low", [0.1, 0.2], "labtop")


def test_holm_runs_within_a_figure_and_over_tested_claims_only():
    near = verdict("A.mi_image_rises", [0.05, 0.5, 0.4, 0.3])  # p = .047 alone
    sure = verdict("A.mi_text_low", [0.10, 0.11, 0.10, 0.10])
    open_ = verdict("A.mi_image_above_text", [0.3, -0.2, 0.1, 0.4])
    skipped = verdict("A.value.rank_text_late", [1.0, 1.1, 1.2])
    other = verdict("A.loss_divergence", [0.05, 0.5, 0.4, 0.3])
    found = ledger.adjust([near, sure, open_, skipped, other])
    assert near.verdict == "supports" and near.p < 0.05
    assert [verdict.survives_holm for verdict in found] == [False, True, None, None, True]
    assert found[0].p_holm == pytest.approx(2 * near.p) and found[4].p_holm == pytest.approx(other.p)


def test_a_record_gives_the_verdict_back():
    first = judge(papers.claim("A.mi_text_low"), Measurement([0.1, 0.2, 0.15], "max MI", "nats"), tier="gpu", standin="IMDB")
    record = ledger.adjust([first])[0].record()
    assert ledger.restore(record) == first
    assert (record["verdict"], record["n"], record["survives_holm"]) == ("supports", 3, True)
