"""Set-up stops with one sentence that holds the remedy: no Python, one too old, one without venv, a full disk, a failing pip."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = ("sh", "grep", "awk", "df", "cut", "du", "cat", "tail", "sleep", "cp", "mkdir", "rm", "chmod", "kill")


@pytest.fixture
def setup(tmp_path: Path, project: Path):
    """Run the script in an empty folder whose PATH holds the usual tools and the given fake interpreters."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    (tmp_path / "work").mkdir()
    (tmp_path / "work/requirements.lock").write_text("a==1\n")

    def run(pythons: dict[str, str], **environment: str) -> subprocess.CompletedProcess:
        for name, script in pythons.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        clean = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/")} | environment
        command = ["sh", str(project / "tools/setup.sh")]
        return subprocess.run(command, cwd=tmp_path / "work", env=clean, capture_output=True, text=True)

    return run


def test_without_python_it_says_which_to_install(setup):
    done = setup({})
    assert done.returncode == 1 and "Python 3.11, 3.12 or 3.13 is needed and no python3 was found" in done.stderr


def test_an_old_python_is_named(setup):
    done = setup({"python3": 'if [ "$1" = --version ]; then echo "Python 3.9.2"; else exit 1; fi'})
    assert done.returncode == 1 and "Python 3.9.2 was found" in done.stderr and "PYTHON=" in done.stderr


def test_a_chosen_python_that_does_not_fit_is_named(setup):
    done = setup({"python3": "exit 0"}, PYTHON="/nowhere/python")
    assert done.returncode == 1 and "PYTHON=/nowhere/python" in done.stderr


def test_a_python_without_venv_is_named(setup):
    done = setup({"python3.11": 'case "$2" in *ensurepip*) exit 1;; esac'}, NEED_MB="0")
    assert done.returncode == 1 and "python3-venv" in done.stderr


def test_a_full_disk_is_told_with_what_is_needed(setup, tmp_path: Path):
    done = setup({"python3": "exit 0"}, NEED_MB="999999999")
    assert done.returncode == 1 and "need 999999999 MB" in done.stderr and not (tmp_path / "work/.venv").exists()


def test_a_failing_pip_is_shown_and_leaves_no_stamp(setup, tmp_path: Path):
    venv = tmp_path / "work/.venv/bin"
    venv.mkdir(parents=True)
    (venv / "python").write_text('#!/bin/sh\ncase "$*" in *install*) echo "no network"; exit 1;; esac\n')
    (venv / "python").chmod(0o755)
    done = setup({"python3": "exit 0"})
    assert done.returncode == 1 and "no network" in done.stderr and "it resumes" in done.stderr
    assert not (tmp_path / "work/.venv/ready").exists()


@pytest.mark.parametrize("target", ["figures", "test", "lab", "data", "bench"])
def test_every_target_sets_up_first(project: Path, tmp_path: Path, target: str):
    (tmp_path / "requirements.lock").touch()
    alone = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}  # `make test` calls this
    command = ["make", "-n", "-f", str(project / "Makefile"), target]
    plan = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True)
    lines = plan.stdout.splitlines()
    assert plan.returncode == 0 and "tools/setup.sh" in lines[0] and len(lines) > 1
