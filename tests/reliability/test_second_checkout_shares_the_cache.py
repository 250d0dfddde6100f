"""A second checkout finds the data of the first in the shared cache, older than its own files, and still makes every figure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def planned(project: Path, home: Path, build: Path) -> str:
    """What Snakemake would run at the laptop tier."""
    environment = os.environ | {"JEPA_NB_HOME": str(home), "JEPA_NB_BUILD": str(build), "PYTHONPATH": str(project)}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--nolock", "--dry-run", "--rerun-triggers", "mtime", "params", "code",
               "--config", "tier=laptop", "only=paradox/*"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_everything_but_the_data_is_made(project: Path, tmp_path: Path):
    home = tmp_path / "home"
    first = planned(project, home, tmp_path / "one")
    markers = [Path(found) for found in re.findall(r"output: (\S+/fetched/\S+)", first)]
    assert markers and "publish" in first
    for marker in markers:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        os.utime(marker, (1e9, 1e9))
    second = planned(project, home, tmp_path / "two")
    assert "rule data_" not in second
    assert all(f"rule {name}" in second for name in ("notebook_paradox_fig2_mi_and_rank", "publish"))
