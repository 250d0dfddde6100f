"""The gallery: one static page made from the sidecars of a tier, with the figures, their findings and the ledger.

``build/gallery`` holds everything the page shows, linked by relative paths, so that the folder can be moved or zipped. The
page has no script and loads nothing from the network.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jepa_nb import files, ledger, ledger_tables, papers, paths
from jepa_nb.config import resolve_tier
from jepa_nb.ledger import Verdict

CSS = Path(__file__).with_name("gallery.css")
COPIED = ("png", "svg", "pdf", "csv", "json", "md", "tex")
WORDS = {"csv": "CSV", "json": "sidecar", "svg": "SVG", "pdf": "PDF", "md": "Markdown", "tex": "LaTeX"}


def build(tier: str = "default") -> Path:
    """Write ``build/gallery`` for a tier and return its ``index.html``. The old folder is replaced when the new one is whole.

    Raises:
        UnknownName: unknown tier. DataError: a sidecar that cannot be read.
    """
    tier = resolve_tier(tier)
    source, target = paths.tier_build(tier) / "figures", paths.build() / "gallery"
    sidecars, verdicts = [ledger.read_sidecar(file) for file in sorted(source.glob("*.json"))], ledger.collect(source)
    ready = target.with_name(f".gallery.{os.getpid()}")
    try:
        for sidecar in sidecars:
            _copy_assets(sidecar, tier, ready)
        ledger.write(verdicts, ready / "assets")
        files.write_text(ready / "index.html", page(tier, sidecars, verdicts, ready))
        if target.exists():
            shutil.rmtree(target)
        os.replace(ready, target)
    finally:
        shutil.rmtree(ready, ignore_errors=True)  # gone already where the page was finished
    return target / "index.html"


def _copy_assets(sidecar: dict[str, Any], tier: str, target: Path) -> None:
    """Copy a figure's files, and the executed notebook as far as it exists (``.ipynb``, ``.html``)."""
    wanted = [(paths.tier_build(tier) / "figures" / f"{sidecar['name']}.{suffix}", target / "assets") for suffix in COPIED]
    executed = paths.tier_build(tier) / "notebooks" / sidecar["notebook"]
    wanted += [(executed.with_name(f"{executed.name}.{suffix}"), (target / "notebooks" / sidecar["notebook"]).parent)
               for suffix in ("ipynb", "html")]
    for file, folder in wanted:
        if file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file.name)


def page(tier: str, sidecars: Sequence[dict[str, Any]], verdicts: Sequence[Verdict], root: Path) -> str:
    """The page's HTML; ``root`` is the folder whose copied files it links to."""
    all_papers = [papers.paper(name) for name in papers.names()]
    sections = [_paper(paper, sidecars, verdicts, root) for paper in all_papers]
    others = [sidecar for sidecar in sidecars if not any(sidecar["name"] in paper.figures for paper in all_papers)]
    first = [_section("start", "Start here", "", _cards(others, verdicts, root))] if others else []
    hint = "" if sidecars else "<p>There is no figure at this tier yet: <code>make figures</code> makes them.</p>"
    links = "".join(f'<a href="#{escape(paper.name)}">{escape(paper.title)}</a>' for paper in all_papers)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>JEPA companion: figures and claims</title><style>{CSS.read_text(encoding="utf-8")}</style></head>
<body><header><h1>JEPA companion: figures and claims</h1>
<p class="soft">{escape(tier)} tier · {len(sidecars)} figure{"" if len(sidecars) == 1 else "s"} ·
{len(verdicts)} claims</p>{_summary(verdicts)}<nav>{links}<a href="#ledger">Ledger</a></nav>{hint}</header>
<main>{"".join(first + sections)}{_ledger(verdicts)}</main>
<footer>Verdicts are computed from the seeds' measurements: a claim is supported where the 95 % interval over seeds lies where the
claim is true, contradicted where it lies outside. Numbers of a smoke run get none.</footer></body></html>
"""


def _summary(verdicts: Sequence[Verdict]) -> str:
    items = "".join(f"<li>{ledger_tables.chip(name)}<span>{count}</span></li>"
                    for name, count in ledger_tables.summary(verdicts).items())
    return f'<ul class="summary" aria-label="verdicts">{items}</ul>'


def _paper(paper: papers.Paper, sidecars: Sequence[dict[str, Any]], verdicts: Sequence[Verdict], root: Path) -> str:
    own = {sidecar["name"]: sidecar for sidecar in sidecars if sidecar["name"] in paper.figures}
    ordered = [own[name] for name in paper.figures if name in own]
    waiting = [figure for name, figure in paper.figures.items() if name not in own]
    listed = "".join(f"<li>{escape(figure.title)} <span class='soft'>({escape(figure.item)})</span></li>" for figure in waiting)
    rest = f"<details><summary>{len(waiting)} not run at this tier</summary><ul>{listed}</ul></details>" if waiting else ""
    return _section(paper.name, paper.title, paper.reference, _cards(ordered, verdicts, root) + rest)


def _section(anchor: str, title: str, subtitle: str, body: str) -> str:
    return f'<section id="{escape(anchor)}"><h2>{escape(title)}</h2><p class="soft">{escape(subtitle)}</p>{body}</section>'


def _cards(sidecars: Sequence[dict[str, Any]], verdicts: Sequence[Verdict], root: Path) -> str:
    cards = "".join(_card(sidecar, [v for v in verdicts if v.claim.figure == sidecar["name"]], root) for sidecar in sidecars)
    return f'<div class="figures">{cards}</div>' if cards else ""


def _card(sidecar: dict[str, Any], verdicts: Sequence[Verdict], root: Path) -> str:
    name, seeds = escape(sidecar["name"]), len(sidecar["seeds"])
    about = [f"{sidecar['tier']} tier", f"{seeds} seed{'' if seeds == 1 else 's'}"]
    if not sidecar["paper_item"].startswith("none"):
        about.insert(0, sidecar["paper_item"])
    if sidecar["stand_ins"]:
        about.append("stand-ins: " + "; ".join(sidecar["stand_ins"]))
    parameters = {key: sidecar[key] for key in ("parameters", "overrides", "device", "data", "code", "versions")}
    return f"""<article class="figure" id="{name}"><div><h3>{escape(sidecar["title"])}</h3>
<div class="meta">{escape(" · ".join(about))}</div></div>
<a href="assets/{name}.png"><img src="assets/{name}.png" alt="{escape(sidecar["title"])}" loading="lazy"></a>
<p class="finding">{escape(sidecar["finding"])}</p>{_claims(verdicts)}
<details><summary>Parameters</summary><pre>{escape(json.dumps(parameters, indent=1, ensure_ascii=False))}</pre></details>
<div class="links">{_links(sidecar, root)}</div></article>"""


def _claims(verdicts: Sequence[Verdict]) -> str:
    """What was decided, then, folded, the numbers that mean nothing at this scale."""
    measured = [verdict for verdict in verdicts if verdict.measurement]
    decided, folded = ("".join(_claim(verdict) for verdict in measured if (verdict.verdict == "not comparable") is apart)
                       for apart in (False, True))
    text = f'<ul class="claims">{decided}</ul>' if decided else ""
    if folded:
        text += f'<details><summary>Numbers that depend on scale</summary><ul class="claims">{folded}</ul></details>'
    return text


def _claim(verdict: Verdict) -> str:
    values = ledger_tables.row(verdict)
    numbers = f"{values['measured']} {values['unit']}".strip()
    told = f"measured {numbers}; holds if {values['expected']}; reported {values['reported']} ({values['source']})"
    why = f"<br><span class='soft'>{escape(verdict.reason)}</span>" if verdict.reason else ""
    return (f"<li>{ledger_tables.chip(verdict.verdict)}<div>{escape(verdict.claim.statement)}<br>"
            f"<span class='soft'>{escape(told)}</span>{why}</div></li>")


def _links(sidecar: dict[str, Any], root: Path) -> str:
    """Links to the copied files that exist, the executed notebook first."""
    notebook = f"notebooks/{sidecar['notebook']}"
    wanted = [(f"{notebook}.html", "notebook"), (f"{notebook}.ipynb", "executed notebook (.ipynb)")]
    wanted += [(f"assets/{sidecar['name']}.{suffix}", word) for suffix, word in WORDS.items()]
    return "".join(f'<a href="{escape(quote(file))}">{word}</a>' for file, word in wanted if (root / file).exists())


def _ledger(verdicts: Sequence[Verdict]) -> str:
    tables = "".join(f"<h3>{escape(figure.title)}</h3><p class='soft'>{escape(figure.item)}</p>"
                     f'<div class="wide">{ledger_tables.html(members)}</div>'
                     for figure, members in ledger_tables.by_figure(verdict for verdict in verdicts if verdict.measurement))
    waiting = [verdict for verdict in verdicts if not verdict.measurement]
    rest = (f"<details><summary>{len(waiting)} claims not attempted</summary>"
            f'<div class="wide">{ledger_tables.html(waiting)}</div></details>' if waiting else "")
    links = " ".join(f'<a href="assets/ledger.{suffix}">{WORDS[suffix]}</a>' for suffix in ("md", "csv", "tex"))
    head = f'<h2>Ledger</h2><p class="soft">{escape(ledger_tables.summary_line(verdicts))}. {links}</p>'
    return f'<section id="ledger">{head}{tables}{rest}</section>'
