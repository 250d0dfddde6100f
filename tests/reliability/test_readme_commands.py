"""Every command of the README is run. Those that take minutes, and the one that opens Lab, are run in a form that does not
do the work: make's own ``-n``, and Snakemake's dry run, which still reads all notebooks and plans all runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL) for line in block.splitlines() if line.strip()]
HEAVY = ("test", "lab", "data", "bench", "clean")  # make targets of which only `make -n` is run


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own, so that commands write into no reader's ledger, build or cache."""
    root = tmp_path_factory.mktemp("readme") / "checkout"
    shutil.copytree(PROJECT, root, ignore=shutil.ignore_patterns(".git", ".venv", "build", ".snakemake", "__pycache__", ".hypothesis"))
    return root


def run(command: list[str], root: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(root), "JEPA_NB_BUILD": str(root / "build"), "JEPA_NB_HOME": str(root / "home"),
                                "JUPYTER_PREFER_ENV_PATH": "1", "MAKEFLAGS": ""}
    environment.pop("JEPA_NB_TIER", None)
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=240)


def without_work(command: str) -> list[str]:
    """The command as it is, or its form that does not do minutes of work."""
    words = shlex.split(command)
    if words[0] == ".venv/bin/python":
        return [sys.executable, *words[1:]]
    if words[0] == ".venv/bin/papermill":
        return [sys.executable, "-m", "papermill", *words[1:], "-k", "python3"]
    assert words[0] == "make", f"no test knows how to run '{command}'"
    if words[1] in HEAVY:
        return ["make", "-n", *words[1:]]
    assert words[1] == "figures"
    options = dict(word.split("=", 1) for word in words[2:])
    return [sys.executable, "-m", "jepa_nb.workflow", "figures", "--tier", options.get("TIER", "laptop"), "--only",
            options.get("ONLY", ""), "--cores", options.get("CORES", "2"), *(["--all"] if "ALL" in options else []), "--", "--dry-run"]


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 12 and {"make figures", "make test", "make lab"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command: str, copy: Path):
    done = run(without_work(command), copy)
    allowed = {0, 1} if "doctor" in command else {0}  # in a bare copy doctor finds no data, and says so
    assert done.returncode in allowed, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    if "doctor" in command:
        assert all(line.startswith(("[ok]", "[fail]")) for line in done.stdout.splitlines())


def test_papermill_left_a_figure_with_what_it_was_asked_for(copy: Path):
    command = next(command for command in COMMANDS if "seeds" in command)
    assert run(without_work(command), copy).returncode == 0
    sidecar = json.loads((copy / "build/smoke/figures/paradox_fig2_mi_and_rank.json").read_text(encoding="utf-8"))
    assert sidecar["seeds"] == [7] and sidecar["overrides"] == {"ema": 0.9} and sidecar["tier"] == "smoke"
