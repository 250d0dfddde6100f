"""Every notebook keeps to one grammar: a reader, papermill, nbval and the workflow can each rely on it.

1. it describes itself to the workflow; a figure's name is ``<folder>_<stem>``, and the first cell shows the committed figure;
2. at most 14 cells, with unique ids, and no function longer than 10 lines;
3. papermill's own parser reads every line of the parameters cell: plain literals of plain types, each with its help;
4. only cells that nbval checks carry output, and a number, without which nbval fails them.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import nbformat
import papermill
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(path.relative_to(NOTEBOOKS).with_suffix("").as_posix() for path in NOTEBOOKS.rglob("*.ipynb"))
COMMON = {"tier", "seeds", "device", "source", "overrides", "output_dir"}
TYPES = {"int", "float", "str", "bool", "list", "dict"}
CHECKED = "NBVAL_CHECK_OUTPUT"
every_notebook = pytest.mark.parametrize("name", NAMES)


@lru_cache(maxsize=None)
def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def code(name: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(name).cells if cell.cell_type == "code"]


def parameters(name: str) -> nbformat.NotebookNode:
    tagged = [cell for cell in read(name).cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1, "one cell is tagged 'parameters'"
    return tagged[0]


def test_there_are_notebooks_and_the_first_page_is_one_of_them():
    assert "00_start_here" in NAMES


@every_notebook
def test_it_describes_itself_to_the_workflow(name: str):
    about = read(name).metadata["jepa_nb"]
    assert isinstance(about["headline"], bool) and {"smoke", "laptop"} <= set(about["seconds"])
    assert about.get("figure") in (None, "", name.replace("/", "_"))
    assert read(name).metadata["kernelspec"]["name"] == "python3"


@every_notebook
def test_its_first_cell_shows_the_committed_figure(name: str):
    figure = read(name).metadata["jepa_nb"].get("figure")
    first = read(name).cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    if figure:
        shown = re.findall(r"\(((?:\.\./)+figures/[\w.]+\.png)\)", first.source)
        folder = (NOTEBOOKS / f"{name}.ipynb").parent
        assert [folder.joinpath(link).resolve() for link in shown] == [NOTEBOOKS.parent / f"figures/{figure}.png"]


@every_notebook
def test_it_is_short_and_its_cells_have_ids(name: str):
    cells = read(name).cells
    assert len(cells) <= 14 and len({cell["id"] for cell in cells}) == len(cells)


@every_notebook
def test_no_function_is_longer_than_ten_lines(name: str):
    for cell in code(name):
        tree = ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.MULTILINE))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 10, f"{node.name} has {node.end_lineno - node.lineno + 1} lines"


@every_notebook
def test_papermill_reads_every_parameter(name: str):
    found = papermill.inspect_notebook(str(NOTEBOOKS / f"{name}.ipynb"))
    lines = [line for line in parameters(name).source.splitlines() if line.strip() and not line.startswith("#")]
    assert len(found) == len(lines) and set(found) >= COMMON
    for each in found.values():
        assert each["inferred_type_name"] in TYPES and each["help"], each
        ast.literal_eval(each["default"])
    assert ast.literal_eval(found["tier"]["default"]) == "default"


@every_notebook
def test_only_checked_cells_carry_output(name: str):
    assert [cell["id"] for cell in code(name) if (cell.outputs or cell.execution_count) and CHECKED not in cell.source] == []
    assert [cell["id"] for cell in code(name) if CHECKED in cell.source and not (cell.outputs and cell.execution_count)] == []
