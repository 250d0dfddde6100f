"""The options that `make test` gives to nbval: a wrong checked line and an exception fail, an unchecked output may differ."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

CELLS = {
    "checked_and_right": ("# NBVAL_CHECK_OUTPUT\nprint('ok')", "ok\n"),
    "unchecked_may_differ": ("import os\nprint(os.getpid())", "1\n"),
    "smoke_tier": ("# NBVAL_CHECK_OUTPUT\nimport os\nprint(os.environ['JEPA_NB_TIER'])", "smoke\n"),
    "checked_and_wrong": ("# NBVAL_CHECK_OUTPUT\nprint('ok')", "off by 2\n"),
    "raises": ("raise ValueError('planted')", ""),
}


def test_a_wrong_line_and_an_exception_fail_and_nothing_else(tmp_path: Path, project: Path):
    cells = [new_code_cell(source, id=name, execution_count=1 if text else None,  # nbval fails an output of a cell that never ran
                           outputs=[new_output("stream", name="stdout", text=text)] if text else [])
             for name, (source, text) in CELLS.items()]
    kernel = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), tmp_path / "five_cells.ipynb")
    options = re.findall(r"--nbval-\S+(?: \d+)?", (project / "Makefile").read_text())
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rA", *" ".join(options).split(), str(tmp_path)],
                          cwd=tmp_path, capture_output=True, text=True)
    outcome = re.findall(r"^(PASSED|FAILED) \S*::Cell (\d)", done.stdout, flags=re.MULTILINE)
    expected = {0: "PASSED", 1: "PASSED", 2: "PASSED", 3: "FAILED", 4: "FAILED"}
    assert {int(cell): result for result, cell in outcome} == expected, done.stdout
