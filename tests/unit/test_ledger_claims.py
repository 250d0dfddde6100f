"""The claims files are complete and well-formed, and a broken one is refused with its remedy.

1. Every cell of Paper A's Table 2, and of Paper C's Tables 2, 3, 4, 10, 12 and that on LoRA, is a claim with the published number.
2. Each claim names a figure of its file and can be judged. 3. Second-hand numbers say so.
4. Unknown fields, kinds, sources, directions and figures are refused with the nearest valid name. 5. Ids are unique.
"""

from __future__ import annotations

import pytest

from jepa_nb import ledger_tables, papers
from jepa_nb.errors import ConfigError, UnknownName

PAPER = """
[paper]
title = "T"
reference = "R"
[figures.toy_fig1]
title = "F"
item = "Fig. 1"
known_from = "note"
[[claim]]
id = "T.one"
statement = "One."
item = "Fig. 1"
figure = "toy_fig1"
kind = "threshold"
metric = "m"
measure = "m"
direction = "below"
threshold = 1.0
reported = { value = 0.5, source = ["note"] }
"""

LLM_JEPA = {
    "tab12": {"synth_ntp": (57.29, 5.32), "synth_jepa": (71.46, 1.34), "turk_ntp": (22.5, None), "turk_jepa": (30.9, None),
              "gsm8k_ntp": (32.36, None), "gsm8k_jepa": (36.36, None), "spider_ntp": (47.52, None), "spider_jepa": (50.55, None),
              "gemma_synth_ntp": (33.65, None), "gemma_synth_jepa": (43.12, None)},
    "tab2": {"scratch_ntp": (54.38, 1.70), "scratch_jepa": (60.59, 1.01), "rotten_tomatoes_ntp": (56.6, None),
             "rotten_tomatoes_jepa": (57.8, None), "yelp_ntp": (26.5, None), "yelp_jepa": (27.2, None)},
    "tab3": {"l2": (2.22, 0.07), "mse": (70.64, 2.05), "prepend": (68.07, 2.57), "reverse": (65.70, 2.63), "infonce": (34.40, 6.10),
             "mean_pool": (65.46, 3.51), "linear_predictor": (70.16, 1.87)},
    "tab4": {"nq_open_ntp": (20.12, 0.41), "nq_open_jepa": (21.59, 0.40), "hellaswag_ntp": (69.40, 0.99), "hellaswag_jepa": (70.51, 1.20),
             "qwen_gsm8k_ntp": (44.32, 0.39), "qwen_gsm8k_jepa": (45.00, 0.40), "distill_gsm8k_ntp": (13.87, 1.01),
             "distill_gsm8k_jepa": (15.04, 0.15)},
    "tab10": {"gamma0": (0.0, None), "gamma01": (45.80, None), "gamma_lam": (70.42, None)},
    "lora": {"r64_ntp": (21.09, None), "r64_jepa": (32.46, None), "r128_ntp": (34.21, None), "r128_jepa": (48.45, None),
             "r256_ntp": (45.57, None), "r256_jepa": (60.80, None), "r512_ntp": (50.18, None), "r512_jepa": (72.41, None)}}


def test_table_2_is_complete():
    cells = [claim for claim in papers.claims("paradox").values() if claim.id.startswith("A.tab2.")]
    assert len(cells) == 8 * 6
    assert papers.claim("A.tab2.bert_mlm.msmarco_r100").reported.value == 33.672
    assert papers.claim("A.tab2.t_jepa.imdb_acc").reported.sd == 0.13
    assert all(claim.reported.n == 5 and claim.reported.second_hand and claim.scale_dependent for claim in cells)


@pytest.mark.parametrize(("table", "numbers"), LLM_JEPA.items())
def test_the_tables_of_llm_jepa_are_complete(table, numbers):
    found = {claim.id.removeprefix(f"C.{table}."): claim.reported for claim in papers.claims("llm_jepa").values()
             if claim.id.startswith(f"C.{table}.")}
    assert {key: (said.value, said.sd) for key, said in found.items()} == numbers
    assert all(said.n == 5 for said in found.values())


def test_an_accuracy_of_llm_jepa_without_a_spread_is_given_two_points():
    assert papers.claim("C.lora.r64_ntp").region() == pytest.approx((19.09, 23.09))
    assert papers.claim("C.tab12.synth_ntp").region() == pytest.approx((57.29 - 10.64, 57.29 + 10.64))


@pytest.mark.parametrize("name", papers.names())
def test_each_claim_belongs_to_a_figure_of_the_paper_and_has_a_region(name):
    paper = papers.paper(name)
    for claim in paper.claims.values():
        low, high = claim.region()
        assert claim.figure in paper.figures and claim.figure.startswith(f"{name}_")
        assert low <= high and claim.statement.endswith(".") and "{" not in claim.statement


@pytest.mark.parametrize("name", papers.names())
def test_each_figure_tests_some_claim(name):
    paper = papers.paper(name)
    assert {claim.figure for claim in paper.claims.values()} == set(paper.figures)


def test_arithmetic_on_second_hand_numbers_stays_second_hand():
    assert papers.Reported(("computed", "note"), 1.0).second_hand
    assert not papers.Reported(("computed",), 1.0).second_hand
    assert not papers.Reported(("summary", "note"), 1.0).second_hand
    assert "second-hand" in ledger_tables.row(_absent("A.rank_image_stays"))["source"]


def test_a_reported_number_is_shown_with_its_spread():
    assert ledger_tables.reported_text(papers.claim("A.tab2.bert_mlm.imdb_acc")) == "81.91 ± 1.35 (n = 5)"
    assert ledger_tables.reported_text(papers.claim("A.value.rank_image")) == "4.7 to 4.85"
    assert ledger_tables.reported_text(papers.claim("A.mi_image_rises")) == "in words"


def _absent(claim_id):
    from jepa_nb import ledger

    return ledger.judge(papers.claim(claim_id), None, tier="laptop", reason="no run yet")


def test_a_small_valid_file_is_read():
    claim = papers.parse(PAPER, "toy").claims["T.one"]
    assert claim.paper == "toy" and claim.reported.value == 0.5 and claim.region()[1] == 1.0


@pytest.mark.parametrize(("before", "after", "nearest"), [
    ('kind = "threshold"', 'kind = "treshold"', "threshold"),
    ('direction = "below"', 'direction = "belov"', "below"),
    ("threshold = 1.0", "treshold = 1.0", "threshold"),
    ('figure = "toy_fig1"', 'figure = "toy_fig2"', "toy_fig1"),
    ('source = ["note"]', 'source = ["not"]', "note"),
    ("value = 0.5", "valu = 0.5", "value"),
    ("[paper]", "[papers]", "paper"),
])
def test_an_unknown_name_is_refused_with_the_nearest_valid_one(before, after, nearest):
    with pytest.raises(UnknownName) as caught:
        papers.parse(PAPER.replace(before, after, 1), "toy")
    assert caught.value.nearest == nearest


@pytest.mark.parametrize(("before", "after", "word"), [
    ("threshold = 1.0\n", "", "needs a threshold"),
    ('statement = "One."\n', "", "lacks statement"),
    ('kind = "threshold"', 'kind = "value"', "needs a tolerance"),
    ('kind = "threshold"', 'kind = "ratio"\nscale_dependent = true', "say why"),
    ('source = ["note"]', "source = []", "names no source"),
    ("value = 0.5", "low = 0.5", "half a range"),
    ("title =", "title", "no valid TOML"),
    ('[paper]\ntitle = "T"\nreference = "R"\n', "", "lacks the table 'paper'"),
])
def test_a_claim_that_could_not_be_judged_is_refused(before, after, word):
    with pytest.raises(ConfigError, match=word):
        papers.parse(PAPER.replace(before, after, 1), "toy")


def test_an_id_given_twice_is_refused():
    with pytest.raises(ConfigError, match="stands twice"):
        papers.parse(PAPER + PAPER[PAPER.index("[[claim]]"):], "toy")


def test_an_unknown_claim_and_paper_offer_the_nearest():
    with pytest.raises(UnknownName, match=r"A\.mi_text_low"):
        papers.claim("A.mi_text_lo")
    with pytest.raises(UnknownName, match="paradox"):
        papers.claims("paradoxes")
