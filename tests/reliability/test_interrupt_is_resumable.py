"""Ctrl-C ends a run without losing it.

1. ``python -m jepa_nb run`` ends with status 130 and says that it can be called again; called again it finishes, and all runs
equal uninterrupted ones. 2. An interrupted papermill leaves a readable notebook, and the run goes on from the checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest
import small_runs

from jepa_nb import cli, paths
from jepa_nb.experiments import registry
from jepa_nb.training import checkpoint, store

NOTEBOOK = "paradox/cosine_similarity"


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path / "build"))
    return tmp_path


def start(command: list[str], project, log) -> subprocess.Popen:
    """A command in a session of its own that answers to SIGINT, whatever this process was told to ignore."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    return subprocess.Popen([sys.executable, "-m", *command], cwd=project, env=environment, stdout=log, stderr=subprocess.STDOUT,
                            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def test_the_command_line_is_interrupted_and_called_again(build, project, monkeypatch, capsys):
    keys = [run.key for run in registry.plan(NOTEBOOK, "smoke")][:3]  # the masked LM, text and image of one seed
    command = ["jepa_nb", "run", *keys, "--tier", "smoke"]
    with (build / "log").open("w") as log:
        process = start(command, project, log)
        while process.poll() is None and "10 % (1/6 steps)" not in (build / "log").read_text():
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == cli.INTERRUPTED == 130
    printed = (build / "log").read_text()
    assert cli.RESUMABLE in printed and "Traceback" not in printed
    finished = [key for key in keys if store.is_finished(key)]
    assert 1 <= len(finished) < len(keys)

    assert cli.main(command[1:]) == 0
    assert "masked LM" not in capsys.readouterr().out  # it was finished
    found = [store.find(key) for key in keys]
    monkeypatch.setenv("JEPA_NB_BUILD", str(build / "whole"))
    for one, other in zip(found, registry.run(keys, "smoke"), strict=True):
        small_runs.same(one, other)


def test_an_interrupted_notebook_is_readable_and_its_run_goes_on(build, project, monkeypatch):
    overrides = {"epochs": 60, "warmup_epochs": 40, "eval_epochs": 30.0, "probe_epochs": 60.0}
    spec = registry.notebooks()[NOTEBOOK]
    job = registry.jobs(spec, "smoke", seeds=[0], overrides=overrides)[0]
    out, partial = build / "partial.ipynb", paths.runs() / f"{job.spec.key}.partial"
    command = ["papermill", str(spec.path), str(out), "-y", json.dumps({"tier": "smoke", "seeds": [0], "overrides": overrides}),
               "-k", "python3", "--no-progress-bar", "--log-output"]
    with (build / "log").open("w") as log:
        process = start(command, project, log)
        while process.poll() is None and not list(partial.glob("step-*.json")):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
    cells = nbformat.read(out, as_version=4).cells
    assert "tier     smoke" in str([cell.get("outputs") for cell in cells])
    assert not all(cell.get("execution_count") for cell in cells if cell.cell_type == "code")

    kept = checkpoint.load_latest(partial)
    assert 0 < kept.step < 180 and not store.is_finished(job.spec.key)
    resumed = []
    restore = small_runs.at_call(1, lambda: resumed.append(1), checkpoint.restore_optimizer)
    monkeypatch.setattr(checkpoint, "restore_optimizer", restore)
    assert job.run().table["step"].max() == 180 and resumed
