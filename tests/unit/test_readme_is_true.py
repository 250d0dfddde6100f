"""The README says what is so.

1. every link and picture exists; 2. each committed figure is shown with the finding of its sidecar, word for word, and so
does its notebook's first cell; 3. the Python block prints what the README says it prints.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import nbformat
import pytest

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SIDECARS = sorted((PROJECT / "figures").glob("*.json"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) >= len(SIDECARS) and [target for target in targets if not (PROJECT / target).exists()] == []


def test_there_is_a_sidecar_for_each_notebook_that_saves_a_figure():
    named = {nbformat.read(path, 4).metadata["jepa_nb"]["figure"] for path in (PROJECT / "notebooks").rglob("*.ipynb")}
    assert {path.stem for path in SIDECARS} == named


@pytest.mark.parametrize("sidecar", SIDECARS, ids=lambda path: path.stem)
def test_each_finding_stands_in_the_readme_and_in_its_notebook(sidecar: Path):
    record = json.loads(sidecar.read_text(encoding="utf-8"))
    notebook = nbformat.read(PROJECT / "notebooks" / f"{record['notebook']}.ipynb", 4)
    assert record["tier"] == "laptop" and record["finding"]
    assert record["finding"] in README and record["finding"] in notebook.cells[0].source


def test_the_python_block_prints_what_the_readme_says():
    (program,), printed = blocks("python"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue().strip() and printed.getvalue().strip() in README
