"""The numbers behind the verdicts of Paper C, on small tables with known answers.

1. A metric's grammar: quantity, variant, split, start, difference, ratio, and its refusal. 2. Values are paired by seed, whatever the order of
the rows; the last evaluation counts, also where it is NaN. 3. ``best`` chooses by validation and reports the test. 4. A claim whose arm
is not there was not attempted; one seed is a demonstration. 5. Every claim's metric is understood. 6. Findings hold the table's numbers.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from jepa_nb import ledger, papers
from jepa_nb.device import Resolved
from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.experiments.llm_jepa import findings, measurements
from jepa_nb.experiments.llm_jepa.arms import SEARCHES
from jepa_nb.experiments.llm_jepa.measurements import value
from jepa_nb.experiments.llm_jepa.study import COLUMNS, Study
from jepa_nb.provenance import RunContext


def rows(arm, values, metric="accuracy", variant="rule", split="test"):
    """``values`` by seed: one number, or one for each evaluation."""
    return [dict(zip(COLUMNS, (arm, seed, 10 * index, float(index), split, metric, variant, number)))
            for seed, curve in values.items() for index, number in enumerate(curve if isinstance(curve, list) else [curve])]


def study(*groups) -> Study:
    table = pd.DataFrame([row for group in groups for row in group], columns=COLUMNS)
    return Study(table, {"main": {}, "sweep": {}}, {}, "stand-in")


TWO = (rows("main.ntp", {0: [0.1, 0.5], 1: [0.2, 0.6], 2: [0.0, 0.7]}), rows("main.jepa", {2: 0.8, 0: 0.4, 1: 0.65}))


def test_differences_and_ratios_are_paired_by_seed():
    found = study(*TWO)
    assert value(found, "points:main.jepa-main.ntp").to_dict() == pytest.approx({0: -10, 1: 5, 2: 10})
    assert value(found, "accuracy:main.jepa/main.ntp").to_dict() == pytest.approx({0: 0.8, 1: 0.65 / 0.6, 2: 0.8 / 0.7})
    assert value(found, "accuracy@start:main.ntp").to_dict() == {0: 0.1, 1: 0.2, 2: 0.0}


def test_seeds_that_one_side_lacks_are_left_out():
    found = study(rows("main.ntp", {0: 0.5, 1: 0.6}), rows("main.jepa", {1: 0.7, 2: 0.9}))
    assert value(found, "points:main.jepa-main.ntp").to_dict() == pytest.approx({1: 10})


def test_the_last_evaluation_counts_even_if_it_is_no_number():
    found = study(rows("main.ntp", {0: [0.5, math.nan], 1: [0.5, 0.6]}))
    assert math.isnan(found.last("main.ntp", "accuracy")[0]) and found.last("main.ntp", "accuracy")[1] == 0.6
    claim = papers.claim(next(id for id in papers.claims("llm_jepa")))
    assert measurements._per_seed(pd.Series([math.nan, 0.0, 2.0]), "ratio") == [None, None, 2.0] and claim.paper == "llm_jepa"


def test_variant_and_split_are_read_from_the_metric():
    found = study(rows("main.ntp", {0: 0.5}), rows("main.ntp", {0: 0.9}, variant="startswith"), rows("main.ntp", {0: 0.3}, split="val"),
                  rows("main.ntp", {0: 2.0}, "pflops", "counted", "train"))
    assert [value(found, metric)[0] for metric in ("accuracy:main.ntp", "accuracy.startswith:main.ntp", "accuracy.rule.val:main.ntp",
                                                   "pflops:main.ntp")] == [0.5, 0.9, 0.3, 2.0]


@pytest.mark.parametrize("metric", ["accuracy", "accuracy:main", "accuracy:main.ntp+main.jepa", "accuracy:main.ntp-", ""])
def test_a_metric_outside_the_grammar_is_refused(metric):
    with pytest.raises(ConfigError, match="quantity:arm"):
        measurements.parse(metric)


def test_the_best_setting_is_chosen_on_validation_and_reported_on_the_test():
    groups = []
    for search in SEARCHES:
        for place, arm in enumerate(measurements.searched(search)):
            groups += [rows(arm, {0: 0.1 * place, 1: 0.1 * place}, split="val"), rows(arm, {0: 0.9 - 0.1 * place, 1: 0.8})]
    found = study(*groups)
    assert measurements.chosen(found, "jepa") == measurements.searched("jepa")[-1]
    assert value(found, "accuracy:best(jepa)").to_dict() == pytest.approx({0: 0.4, 1: 0.8})
    assert set(measurements.arms_of("points:best(jepa)-main.ntp")) == {*measurements.searched("jepa"), "main.ntp"}


def context(tier: str = "laptop") -> RunContext:
    return RunContext("llm_jepa/fig1_accuracy", tier, (0, 1, 2), Resolved("cpu", "float32", "sdpa", 1, ""))


def test_claims_are_judged_on_what_was_run_and_say_what_was_not():
    judged = {verdict.claim.id: verdict for verdict in measurements.verdicts("llm_jepa_fig1_accuracy", study(*TWO), context())}
    assert {verdict.verdict for verdict in judged.values()} >= {"not attempted"}
    measured = [verdict for verdict in judged.values() if verdict.measurement]
    assert measured and all(verdict.claim.metric.count("main") for verdict in measured)
    main = next(verdict for verdict in measured if verdict.claim.metric == "points:main.jepa-main.ntp")
    assert main.measurement.per_seed == pytest.approx([-10, 5, 10]) and main.verdict == "inconclusive"
    assert all("does not run" in verdict.reason for verdict in judged.values() if verdict.verdict == "not attempted")


def test_one_seed_is_a_demonstration_without_verdict():
    found = study(rows("smol.ntp", {0: 0.1}), rows("smol.jepa", {0: 0.2}))
    judged = [verdict for verdict in measurements.verdicts("llm_jepa_tab4_qa_reasoning", found, context()) if "demonstration" in verdict.reason]
    assert judged and all(verdict.verdict == "not attempted" for verdict in judged)


def test_every_claim_of_the_paper_is_understood():
    for claim in papers.claims("llm_jepa").values():
        assert measurements.arms_of(claim.metric)
        quantity = measurements.parse(claim.metric)["quantity"].split(".")
        assert len(quantity) > 1 or quantity[0] in measurements.VARIANTS
    assert ledger.claims("llm_jepa")


def test_an_arm_that_was_not_run_is_refused_by_name():
    with pytest.raises(UnknownName, match=r"main\.ntp"):
        value(study(*TWO), "accuracy:main.nttp")


def test_the_one_sided_test_is_the_papers():
    from scipy import stats

    found = study(*TWO)
    expected = stats.ttest_rel([0.4, 0.65, 0.8], [0.5, 0.6, 0.7], alternative="greater").pvalue
    assert findings.one_sided(found, "main.jepa", "main.ntp") == f"{expected:.2f}"
    assert findings.points(found, "main.ntp").startswith("60 [")
