"""Properties of verdicts over arbitrary measurements."""

from __future__ import annotations

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb import ledger, papers
from jepa_nb.ledger import Measurement, judge

SETTINGS = settings(deadline=None, max_examples=40)
NUMBERS = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=2, max_size=7)
POSITIVE = st.lists(st.floats(0.01, 50), min_size=2, max_size=7)
DIRECTED = [claim for claim in papers.claims("paradox").values() if claim.kind in ("ordering", "threshold", "event_order")
            and not claim.scale_dependent]
OPPOSITE = {"supports": "contradicts", "contradicts": "supports", "inconclusive": "inconclusive"}


@SETTINGS
@given(st.sampled_from(DIRECTED), NUMBERS)
def test_a_decided_verdict_has_its_whole_interval_on_one_side(claim, values):
    found = judge(claim, Measurement(values), tier="laptop")
    low, high = claim.region()
    assert found.low <= found.mean <= found.high
    assert (found.verdict == "supports") == (low <= found.low and found.high <= high)
    if found.verdict != "inconclusive" and found.low != found.high:
        assert found.p <= 0.05 + 1e-9


@SETTINGS
@given(NUMBERS)
def test_swapping_the_two_arms_swaps_the_verdict(values):
    claim = papers.claim("A.mi_image_above_text")
    one, other = (judge(claim, Measurement(x), tier="laptop") for x in (values, [-value for value in values]))
    if any(values):  # all differences exactly 0 lie on the edge of both
        assert other.verdict == OPPOSITE[one.verdict]


@SETTINGS
@given(st.sampled_from(DIRECTED), NUMBERS, st.randoms())
def test_the_order_of_seeds_does_not_matter(claim, values, random):
    shuffled = random.sample(values, len(values))
    one, other = (judge(claim, Measurement(x), tier="laptop") for x in (values, shuffled))
    assert math.isclose(one.low, other.low, abs_tol=1e-9) and math.isclose(one.high, other.high, abs_tol=1e-9)


@SETTINGS
@given(POSITIVE)
def test_a_ratio_and_its_inverse_disagree(values):
    below, above = papers.claim("A.rank_text_below_image"), papers.claim("A.irreducible_text_above_image")
    one = judge(below, Measurement(values), tier="laptop")
    other = judge(above, Measurement([1 / value for value in values]), tier="laptop")
    assert one.verdict == other.verdict
    assert math.isclose(one.mean * other.mean, 1, rel_tol=1e-9)


@SETTINGS
@given(st.lists(st.tuples(st.sampled_from(DIRECTED), NUMBERS), min_size=1, max_size=12, unique_by=lambda pair: pair[0].id))
def test_holm_never_lowers_a_p_value_nor_changes_a_verdict(pairs):
    before = [judge(claim, Measurement(values), tier="laptop") for claim, values in pairs]
    after = ledger.adjust(before)
    for one, other in zip(before, after, strict=True):
        assert one.verdict == other.verdict and other.p_holm >= one.p
    assert ledger.adjust(after) == after


@SETTINGS
@given(st.sampled_from(DIRECTED), st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=7),
       st.sampled_from(["smoke", "laptop", "gpu", "paper"]))
def test_a_record_survives_json(claim, values, tier):
    found = judge(claim, Measurement(values), tier=tier, standin="other data")
    assert ledger.restore(json.loads(json.dumps(found.record(), allow_nan=False))) == found
