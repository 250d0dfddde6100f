"""The ledger lists every claim and reads as text.

1. Claims without a run are there, with the reason. 2. A verdict comes from the stored measurement, not from the stored word.
3. Markdown, CSV and LaTeX are escaped. 4. A damaged sidecar is named, with the remedy.
"""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from jepa_nb import ledger, ledger_tables, papers
from jepa_nb.errors import DataError, UnknownName
from jepa_nb.ledger import Measurement, judge


@pytest.fixture
def folder(tmp_path):
    verdict = judge(papers.claim("A.mi_text_low"), Measurement([0.1, 0.12, 0.14]), tier="laptop", standin="IMDB_small & co")
    record = {"name": "paradox_fig2_mi_and_rank", "tier": "laptop", "verdicts": [verdict.record()]}
    (tmp_path / "paradox_fig2_mi_and_rank.json").write_text(json.dumps(record))
    return tmp_path


def edit(folder, **changes):
    file = folder / "paradox_fig2_mi_and_rank.json"
    record = json.loads(file.read_text())
    record["verdicts"][0] |= changes
    file.write_text(json.dumps(record))


def test_every_claim_of_every_paper_has_a_row(folder):
    found = {verdict.claim.id: verdict for verdict in ledger.collect(folder)}
    assert set(found) == {claim for name in papers.names() for claim in papers.claims(name)}
    assert found["A.mi_text_low"].verdict == "supports" and found["A.mi_text_low"].survives_holm
    assert found["A.mi_image_rises"].reason == "the run of paradox_fig2_mi_and_rank did not measure it"
    assert found["A.loss_divergence"].reason == "no run of paradox_fig3_loss_divergence yet"
    assert {verdict.verdict for verdict in found.values()} == {"supports", "not attempted"}


def test_a_typed_verdict_is_ignored(folder):
    edit(folder, verdict="contradicts", low=9.0, high=10.0)
    assert next(v for v in ledger.collect(folder) if v.claim.id == "A.mi_text_low").verdict == "supports"


def test_the_written_files_hold_the_same_rows_and_are_stable(folder):
    verdicts = ledger.collect(folder)
    text = ledger.write(verdicts, folder)
    assert (folder / "ledger.md").read_text() == text
    rows = list(csv.DictReader(io.StringIO((folder / "ledger.csv").read_text())))
    assert [row["claim"] for row in rows] == [verdict.claim.id for verdict in verdicts]
    first = next(row for row in rows if row["claim"] == "A.mi_text_low")
    assert (float(first["mean"]), first["seeds"], first["stand_in"]) == (pytest.approx(0.12), "3", "IMDB_small & co")
    before = {suffix: (folder / f"ledger.{suffix}").read_bytes() for suffix in ("md", "csv", "tex")}
    ledger.write(ledger.collect(folder), folder)
    assert before == {suffix: (folder / f"ledger.{suffix}").read_bytes() for suffix in ("md", "csv", "tex")}
    assert sorted(file.name for file in folder.iterdir()) == [
        "ledger.csv", "ledger.md", "ledger.tex", "paradox_fig2_mi_and_rank.json"]


def test_markdown_rows_have_one_cell_a_column(folder):
    lines = [line for line in ledger_tables.markdown(ledger.collect(folder)).splitlines() if line.startswith("|")]
    cells = {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines}
    assert cells == {len(ledger_tables.SHOWN)}


def test_latex_has_no_bare_command_character(folder):
    lines = ledger_tables.latex(ledger.collect(folder)).splitlines()
    rows = [line for line in lines if line.startswith("A.")]
    assert rows and all(line.endswith(r" \\") for line in rows)
    for line in rows:
        cells = re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
        assert len(cells) == len(ledger_tables.SHOWN)
        assert not re.search(r"(?<!\\)[%$#_^~]", line.replace(r"$\pm$", "").replace(r"$\leq$", "").replace(r"$\geq$", ""))


def test_latex_escapes_each_special_character_once():
    assert ledger_tables.latex_escape("a_b & 5 % <{\\}>") == (
        r"a\_\allowbreak{}b \& 5 \% \textless{}\{\textbackslash{}\}\textgreater{}")


def test_html_is_escaped():
    measured = Measurement([0.1, 0.2, 0.15])
    verdict = judge(papers.claim("A.mi_text_low"), measured, tier="laptop", standin="<script>alert(1)</script>")
    assert "<script>" not in ledger_tables.html([verdict]) and "&lt;script&gt;" in ledger_tables.html([verdict])


def test_numbers_read_well():
    shown = {0.0: "0", 4.657: "4.66", 0.00012345: "0.000123", 12345.6: "12346", 331.2: "331", 1.2e-7: "1.20e-07", -0.5: "-0.500"}
    assert {value: ledger_tables.number(value) for value in shown} == shown
    assert ledger_tables.number(None) == "-"


def test_a_damaged_sidecar_is_named_with_the_remedy(folder):
    file = folder / "paradox_fig2_mi_and_rank.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(DataError, match=r"paradox_fig2_mi_and_rank\.json cannot be read .*run its notebook again"):
        ledger.collect(folder)
    file.write_text('{"name": "x"}')
    with pytest.raises(DataError, match="lacks tier, verdicts"):
        ledger.collect(folder)


def test_a_sidecar_of_a_removed_claim_offers_the_nearest(folder):
    edit(folder, claim="A.mi_text_lowest")
    with pytest.raises(UnknownName, match="did you mean 'A.mi_text_low'"):
        ledger.collect(folder)


def test_the_notebook_table_shows_reported_beside_measured(folder):
    table = ledger.verdict_table(verdict for verdict in ledger.collect(folder) if verdict.measurement)
    assert "0 to 0.35 (summary, note)" in table._repr_html_() and "v-supports" in table._repr_html_()
    assert table.frame.loc[0, ["claim", "verdict", "seeds"]].tolist() == ["A.mi_text_low", "supports", 3]
    assert "supports" in repr(table)
