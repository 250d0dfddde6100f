"""The claims file of paper A is complete and well-formed, and a broken one is refused with its remedy.

1. Every cell of Table 2 is a claim. 2. Each claim names a figure of the file and can be judged. 3. Second-hand numbers say so.
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


def test_table_2_is_complete():
    cells = [claim for claim in papers.claims("paradox").values() if claim.id.startswith("A.tab2.")]
    assert len(cells) == 8 * 6
    assert papers.claim("A.tab2.bert_mlm.msmarco_r100").reported.value == 33.672
    assert papers.claim("A.tab2.t_jepa.imdb_acc").reported.sd == 0.13
    assert all(claim.reported.n == 5 and claim.reported.second_hand and claim.scale_dependent for claim in cells)


def test_each_claim_belongs_to_a_figure_of_the_paper_and_has_a_region():
    paper = papers.paper("paradox")
    for claim in paper.claims.values():
        low, high = claim.region()
        assert claim.figure in paper.figures and claim.figure.startswith("paradox_")
        assert low <= high and claim.statement.endswith(".") and "{" not in claim.statement


def test_each_figure_tests_some_claim():
    paper = papers.paper("paradox")
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
