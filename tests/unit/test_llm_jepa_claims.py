"""The claims file of Paper C can be measured: metrics follow the grammar and name what exists.

1. Each metric parses, and its quantity is one that a run records. 2. Each arm has a base of some tier and a known method, but for a
data set that no tier runs, which is named here. 3. A claim reads arms that its figure compares, or that only the larger tiers have.
4. Published accuracies depend on scale; a claim of order does not, and states a gain that agrees with the accuracies. 5. Each figure
tests some claim on a laptop, and no figure asks one question twice. 6. Second-hand numbers and controls say so.
"""

from __future__ import annotations

from collections import Counter

import pytest

from jepa_nb import papers
from jepa_nb.experiments.llm_jepa import comparisons, findings, measurements
from jepa_nb.experiments.llm_jepa.arms import METHODS, SEARCHES, base_of
from jepa_nb.experiments.llm_jepa.config import TIERS

CLAIMS = papers.claims("llm_jepa")
LARGER = {"llm_jepa_fig1_accuracy": {"turk", "gemma", "small"}, "llm_jepa_tab2_pretraining": {"scratch", "yelp"},
          "llm_jepa_tab4_qa_reasoning": {"choice", "qwen", "distill"}, "llm_jepa_tab12_models_datasets": {"turk", "gemma", "olmo"},
          "llm_jepa_lora_ranks": {"adapters"}}
BASES = {base for tier in TIERS.values() for base in tier.bases}
RECORDED = {"accuracy", "points", "empty_share", "ntp_loss", "jepa_distance", "cosine", "retrieval_at_1", "spectrum_mean",
            "linear_residual", "tokens_per_second", "loss", "pflops", "weights"}
every_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)


def read_by(figure: str) -> set[str]:
    """Arms of a figure's comparisons, and all that a search at the sweep's base trains where it shows one."""
    found = {arm for a, b in comparisons.pairs(figure) for arm in measurements.arms_of(f"points:{a}-{b}")}
    searched = {arm for search in SEARCHES for arm in measurements.searched(search)}
    return found | searched if found & searched - {"sweep.ntp"} else found


def reported(metric: str) -> papers.Reported:
    """What the paper reports for an accuracy."""
    return next(claim.reported for claim in CLAIMS.values() if claim.metric == metric and claim.origin == "paper")


@every_claim
def test_its_metric_is_a_quantity_that_runs_record_of_arms_that_exist(claim):
    quantity = measurements.parse(claim.metric)["quantity"].split(".")
    assert quantity[0] in RECORDED and (len(quantity) > 1 or quantity[0] in measurements.VARIANTS)
    for arm in measurements.arms_of(claim.metric):
        assert base_of(arm) in BASES and arm.partition(".")[2] in METHODS


@every_claim
def test_its_figure_reads_its_arms(claim):
    extra = LARGER.get(claim.figure, set())
    unread = {arm for arm in measurements.arms_of(claim.metric) if arm not in read_by(claim.figure) and base_of(arm) not in extra}
    assert not unread


def test_the_figures_are_those_that_have_findings_and_comparisons():
    assert set(papers.paper("llm_jepa").figures) == set(findings.FINDINGS) == set(comparisons.PAIRS)


@every_claim
def test_an_accuracy_depends_on_scale_and_an_order_does_not(claim):
    if claim.kind == "value":
        assert claim.scale_dependent and claim.unit == "per cent" and 0 <= claim.reported.value <= 100
    if claim.kind == "ordering":
        assert not claim.scale_dependent and "-" in claim.metric
    assert claim.id.startswith("C.") and claim.measure and claim.statement[0].isupper()


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS.values() if claim.unit == "points" and claim.reported.value is not None
                                   and claim.origin == "paper"], ids=lambda claim: claim.id)
def test_a_stated_gain_is_the_difference_of_the_stated_accuracies(claim):
    found = measurements.parse(claim.metric)
    same = {"sweep.jepa": "main.jepa", "adapters.jepa": "main.jepa", "adapters.ntp": "main.ntp"}
    first, second = (reported(f"{found['quantity']}:{same.get(found[side], found[side])}") for side in ("first", "second"))
    expected = first.value - (63.57 if claim.id == "C.dropout75_above_full" else second.value)
    assert claim.reported.value == pytest.approx(expected, abs=1e-9) and "computed" in claim.reported.source


def test_each_figure_tests_something_on_a_laptop_and_asks_nothing_twice():
    laptop = TIERS["laptop"].bases
    tested = {claim.figure for claim in CLAIMS.values() if not claim.scale_dependent
              and all(base_of(arm) in laptop for arm in measurements.arms_of(claim.metric))}
    assert tested == set(findings.FINDINGS) - {"llm_jepa_tab12_models_datasets"}  # whose orders of tasks stand in Figure 1
    asked = Counter((claim.figure, claim.metric, claim.kind, claim.threshold) for claim in CLAIMS.values())
    assert max(asked.values()) == 1


def test_what_the_paper_does_not_claim_is_a_control():
    for claim in CLAIMS.values():
        extension = claim.figure.startswith("llm_jepa_ext_") or claim.reported.source == ("inferred",) and claim.reported.note == ""
        assert not extension or claim.origin == "control", claim.id
    assert sum(claim.origin == "control" for claim in CLAIMS.values()) >= 20


def test_numbers_known_from_notes_alone_are_second_hand():
    assert papers.claim("C.tab12.turk_jepa").reported.second_hand and papers.claim("C.tab3.l2").reported.second_hand
    assert not papers.claim("C.tab12.synth_jepa").reported.second_hand and not papers.claim("C.gain_synth").reported.second_hand
