"""The comparisons behind Paper C's figures, on made-up numbers (``llm_jepa_drawn``: test data).

1. Every compared arm exists, and every figure's notebook holds at least one comparison. 2. Differences, intervals and both p-values agree
with scipy, are paired by seed whatever the order of the rows, follow the searches' choice by validation, and are Holm-corrected. 3. One
pair of seeds gives a difference and no test. 4. The intervals that are drawn are Student's.
"""

from __future__ import annotations

from dataclasses import replace

import llm_jepa_drawn as drawn
import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

from jepa_nb.experiments.llm_jepa import comparisons, plots_parts
from jepa_nb.experiments.llm_jepa.arms import METHODS, SEARCHES, base_of
from jepa_nb.experiments.llm_jepa.config import TIERS
from jepa_nb.experiments.llm_jepa.measurements import arms_of


def test_every_compared_arm_exists():
    bases = {base for tier in TIERS.values() for base in tier.bases}
    for name in comparisons.PAIRS:
        for pair in comparisons.pairs(name):
            for arm in arms_of(f"points:{pair[0]}-{pair[1]}"):
                assert base_of(arm) in bases and arm.partition(".")[2] in METHODS
        assert len(set(comparisons.pairs(name))) == len(comparisons.pairs(name))
        assert comparisons.made(name, drawn.study(drawn.NOTEBOOKS[name.removeprefix("llm_jepa_")], seeds=(0,)))


@pytest.mark.parametrize("name", ["llm_jepa_tab3_ablation", "llm_jepa_ext_audit", "llm_jepa_tab2_pretraining"])
def test_comparisons_agree_with_scipy(name):
    study = drawn.study(drawn.NOTEBOOKS[name.removeprefix("llm_jepa_")])
    mixed = replace(study, table=study.table.sample(frac=1, random_state=0))
    table = comparisons.table(name, mixed)
    assert list(table.columns) == comparisons.COLUMNS
    assert len(table) == len(comparisons.pairs(name)) - ("tab2" in name)  # a laptop lacks 'scratch'
    for row, (arm, baseline) in zip(table.itertuples(index=False), comparisons.made(name, study)):
        variant = "startswith" if comparisons.quantity(name, arm) == "points.startswith" else "rule"
        both = [100 * study.last(_best(study, each), "accuracy", variant) for each in (arm, baseline)]
        two, one = ttest_rel(*both), ttest_rel(*both, alternative="greater")
        interval = two.confidence_interval(0.95)
        assert row[0] == f"{arm} − {baseline}" and row[1] == 3
        assert row[2:7] == pytest.approx(((both[0] - both[1]).mean(), interval.low, interval.high, two.pvalue, one.pvalue), rel=1e-9)
    p = table["p two-sided"].to_numpy()
    by_hand = [max(min(1.0, (len(p) - rank) * each) for rank, each in enumerate(sorted(p)) if each <= own) for own in p]
    assert table["p Holm"].to_numpy() == pytest.approx(by_hand)


def _best(study, arm: str) -> str:
    """The searched arm with the best validation accuracy."""
    if not arm.startswith("best("):
        return arm
    rows = study.table[(study.table["split"] == "val") & study.table["arm"].isin([f"sweep.{name}" for name in SEARCHES[arm[5:-1]]])]
    return rows.groupby("arm")["value"].mean().idxmax()


def test_one_pair_of_seeds_gives_a_difference_and_no_test():
    table = comparisons.table("llm_jepa_tab4_qa_reasoning", drawn.study(drawn.NOTEBOOKS["tab4_qa_reasoning"]))
    one, three = table.iloc[0], table.iloc[1]
    assert one["n"] == 1 and np.isfinite(one["difference (points)"]) and one[["low", "high", "p two-sided", "p Holm"]].isna().all()
    assert three["n"] == 3 and three["p Holm"] == pytest.approx(three["p two-sided"])  # the only test of the figure


def test_drawn_intervals_are_students():
    half = student.ppf(0.975, 2) * np.std([1, 2, 4], ddof=1) / 3 ** 0.5
    assert plots_parts.spread([1.0, 2.0, 4.0]) == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half))
    assert plots_parts.spread([5.0]) == (5.0, 5.0, 5.0)
