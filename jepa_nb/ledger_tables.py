"""Verdicts as tables: reported beside measured, in Markdown, CSV, LaTeX and HTML. Text only; no verdict is computed here."""

from __future__ import annotations

import csv
import html as htmllib
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jepa_nb import papers

if TYPE_CHECKING:
    import pandas as pd

    from jepa_nb.ledger import Verdict

COLUMNS = ("claim", "statement", "figure", "item", "origin", "kind", "measure", "reported", "source", "expected", "measured",
           "mean", "low", "high", "interval", "seeds", "unit", "tier", "verdict", "survives_holm", "p", "p_holm", "stand_in",
           "reason")
SHOWN = {"claim": "Claim", "statement": "Statement", "reported": "Reported (source)", "expected": "Holds if",
         "measured": "Measured [95 %]", "seeds": "Seeds", "tier": "Tier", "verdict": "Verdict", "holm": "After Holm"}
_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
          "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "–": "--", "—": "---"}


def number(value: float | None) -> str:
    """Three significant digits without an exponent where that reads well; ``-`` for none."""
    if value is None:
        return "-"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        digits = 0 if value == 0 else 2 - math.floor(math.log10(abs(value)))
        return f"{value:.{max(digits, 0)}f}"
    return f"{value:.2e}"


def given(value: float) -> str:
    """A number as a paper prints it or a claim sets it."""
    return f"{value:.6g}"


def row(verdict: Verdict) -> dict[str, object]:
    """All columns of the CSV (:data:`COLUMNS`) and the two that the readable tables add (``holm``, ``note``)."""
    claim, reported = verdict.claim, verdict.claim.reported
    source = ", ".join(reported.source) + (", second-hand" if reported.second_hand else "")
    holm = {None: "-", True: "survives", False: "does not survive"}[verdict.survives_holm]
    notes = [verdict.reason, f"stand-in: {verdict.standin}" if verdict.standin else ""]
    return {
        "claim": claim.id, "statement": claim.statement, "figure": claim.figure, "item": claim.item, "origin": claim.origin,
        "kind": claim.kind, "measure": (verdict.measurement and verdict.measurement.description) or claim.measure,
        "reported": reported_text(claim), "source": source, "expected": expected(claim), "measured": measured(verdict),
        "mean": verdict.mean, "low": verdict.low, "high": verdict.high, "interval": verdict.interval, "seeds": verdict.n,
        "unit": (verdict.measurement and verdict.measurement.unit) or claim.unit,
        "tier": verdict.tier if verdict.measurement else "-", "verdict": verdict.verdict,
        "survives_holm": {None: "", True: "yes", False: "no"}[verdict.survives_holm], "p": verdict.p, "p_holm": verdict.p_holm,
        "stand_in": verdict.standin, "reason": verdict.reason, "holm": holm, "note": "; ".join(filter(None, notes))}


def reported_text(claim: papers.Claim) -> str:
    """The reported number with its spread, or ``in words`` where the paper gives none."""
    reported = claim.reported
    if reported.low is not None:
        text = f"{given(reported.low)} to {given(reported.high)}"
    elif reported.value is None:
        return "in words" if claim.origin == "paper" else "-"
    else:
        text = given(reported.value) + (f" ± {given(reported.sd)}" if reported.sd is not None else "")
    return text + (f" (n = {reported.n})" if reported.n and reported.n > 1 else "")


def expected(claim: papers.Claim) -> str:
    """The region in which the claim is true."""
    low, high = claim.region()
    if math.isinf(high):
        return f"> {given(low)}"
    if math.isinf(low):
        return f"< {given(high)}"
    return f"{given(low)} to {given(high)}" if low < high else f"= {given(low)}"


def measured(verdict: Verdict) -> str:
    """Mean and interval over seeds."""
    if verdict.mean is None:
        return "-"
    return number(verdict.mean) + (f" [{number(verdict.low)}, {number(verdict.high)}]" if verdict.low is not None else "")


def summary(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many claims got each verdict, in the order of :data:`jepa_nb.ledger.VERDICTS`."""
    from jepa_nb.ledger import VERDICTS

    counts = Counter(verdict.verdict for verdict in verdicts)
    return {name: counts[name] for name in VERDICTS if counts[name]}


def summary_line(verdicts: Sequence[Verdict]) -> str:
    """``142 claims: 9 supports, 2 contradicts, ...``."""
    return f"{len(verdicts)} claims: " + ", ".join(f"{count} {name}" for name, count in summary(verdicts).items())


def by_figure(verdicts: Iterable[Verdict]) -> list[tuple[papers.PaperFigure, list[Verdict]]]:
    """Verdicts grouped by the figure that tests them, in the order in which the figures come up."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.claim.paper, verdict.claim.figure), []).append(verdict)
    return [(papers.paper(paper).figures[figure], members) for (paper, figure), members in groups.items()]


def markdown(verdicts: Sequence[Verdict]) -> str:
    """A page with one table a figure."""
    parts = ["# Claims and verdicts", "", summary_line(verdicts) + ".", ""]
    for figure, members in by_figure(verdicts):
        parts += [f"## {figure.title}", "", f"{figure.item} · `{figure.name}`", "", _markdown_row(SHOWN.values()),
                  _markdown_row(["---"] * len(SHOWN))]
        parts += [_markdown_row(_cells(verdict).values()) for verdict in members] + [""]
    return "\n".join(parts)


def _cells(verdict: Verdict) -> dict[str, str]:
    """The readable columns: the source joins the reported number, the reason and stand-in join the verdict."""
    values = row(verdict)
    cells = {name: str(values[name]) for name in SHOWN}
    cells["reported"] = f"{values['reported']} ({values['source']})"
    cells["statement"] += " (companion's control)" if values["origin"] == "control" else ""
    cells["measured"] += f" {values['unit']}" if values["unit"] and verdict.mean is not None else ""
    cells["verdict"] += f" ({values['note']})" if values["note"] else ""
    return cells


def _markdown_row(cells: Iterable[str]) -> str:
    escaped = (re.sub(r"([\\|*_<>`])", r"\\\1", cell) if cell != "---" else cell for cell in cells)
    return "| " + " | ".join(escaped) + " |"


def csv_text(verdicts: Iterable[Verdict]) -> str:
    """One line a claim with every column; numbers with eight significant digits."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for verdict in verdicts:
        values = row(verdict)
        writer.writerow({key: f"{value:.8g}" if isinstance(value, float) else value for key, value in values.items()})
    return stream.getvalue()


def latex(verdicts: Sequence[Verdict]) -> str:
    """A ``longtable`` for a document that loads booktabs, longtable and array."""
    widths = (.14, .25, .13, .09, .13, .04, .06, .14, .07)
    shape = "".join(rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}" for width in widths)
    lines = ["% needs \\usepackage{booktabs,longtable,array}", rf"\begin{{longtable}}{{{shape}}}", r"\toprule",
             " & ".join(map(latex_escape, SHOWN.values())) + r" \\", r"\midrule", r"\endhead"]
    for figure, members in by_figure(verdicts):
        title = rf"\textbf{{{latex_escape(figure.title)}}} ({latex_escape(figure.item)})"
        lines.append(rf"\multicolumn{{{len(SHOWN)}}}{{l}}{{{title}}} \\")
        lines += [" & ".join(map(latex_escape, _cells(verdict).values())) + r" \\" for verdict in members]
        lines.append(r"\midrule")
    return "\n".join(lines[:-1] + [r"\bottomrule", r"\end{longtable}", ""])


def latex_escape(text: str) -> str:
    """Text in which no character is a command; identifiers may break after a dot or an underscore."""
    escaped = "".join(_LATEX.get(character, character) for character in text)
    return escaped.replace(r"\_", r"\_\allowbreak{}")


def html(verdicts: Sequence[Verdict]) -> str:
    """A table whose cells are escaped; each verdict carries a class for colouring (``v-supports``)."""
    head = "".join(f"<th>{htmllib.escape(title)}</th>" for title in SHOWN.values())
    body = "".join(_html_row(verdict) for verdict in verdicts)
    return f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def chip(verdict: str) -> str:
    """A verdict as a coloured word."""
    return f'<span class="chip v-{verdict.replace(" ", "-")}">{htmllib.escape(verdict)}</span>'


def _html_row(verdict: Verdict) -> str:
    values, cells = row(verdict), {name: htmllib.escape(text) for name, text in _cells(verdict).items()}
    note = f' <small>{htmllib.escape(str(values["note"]))}</small>' if values["note"] else ""
    cells["claim"] = "<code>" + re.sub("([._])", r"\1<wbr>", cells["claim"]) + "</code>"
    cells["verdict"] = chip(verdict.verdict) + note
    titles = {"measured": f' title="{htmllib.escape(str(values["measure"]))}"'}
    inside = "".join(f"<td{titles.get(name, '')}>{text}</td>" for name, text in cells.items())
    return f"<tr>{inside}</tr>"


@dataclass(frozen=True)
class VerdictTable:
    """The table of a notebook's last cell: HTML in Lab, Markdown elsewhere, a DataFrame as ``.frame``."""

    verdicts: Sequence[Verdict]

    def _repr_html_(self) -> str:
        return html(self.verdicts)

    def __repr__(self) -> str:
        return markdown(self.verdicts)

    @property
    def frame(self) -> pd.DataFrame:
        """All columns of the CSV, one row a claim."""
        import pandas as pd

        return pd.DataFrame([row(verdict) for verdict in self.verdicts], columns=COLUMNS)
