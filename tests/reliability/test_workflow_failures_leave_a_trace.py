"""What a reader finds after a fault of `make figures`.

1. a notebook that raises is reported with its error, its partial copy is readable and shows it, other notebooks still run;
2. a notebook over its limit is stopped, and what it had done is readable;
3. Ctrl-C leaves a readable partial notebook and no process, and the next call finishes the job; a job that missed the
   signal gets it again;
4. a second call in the same build folder is refused while the first one works;
5. a notebook that ends without its figure is a failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import toy_project
from filelock import FileLock
from toy_project import Toy

from jepa_nb import cli, paths
from jepa_nb.workflow import __main__ as workflow
from jepa_nb.workflow import notebook


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write one notebook into a folder of its own and return its name."""
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(paths, "notebooks", lambda: tmp_path / "notebooks")

    def write(body: str, figure: str = "") -> str:
        (tmp_path / "notebooks").mkdir()
        nbformat.write(toy_project.notebook([], body, figure=figure), tmp_path / "notebooks/broken.ipynb")
        return "broken"

    return write


def outputs(name: str) -> str:
    """All text that the executed copy shows."""
    return str([cell.get("outputs") for cell in nbformat.read(notebook.executed(name, "smoke"), as_version=4).cells])


def test_a_notebook_that_raises_leaves_a_copy_that_shows_the_error(alone):
    name = alone("print('so far')\nraise ValueError('planted')")
    with pytest.raises(notebook.NotebookFailed, match="ValueError: planted") as failure:
        notebook.execute(name, "smoke", 60)
    assert all(str(place(name, "smoke")) in str(failure.value) for place in (notebook.executed, notebook.log_file))
    assert "so far" in outputs(name) and "planted" in outputs(name)


def test_a_notebook_over_its_limit_is_stopped_and_readable(alone, monkeypatch):
    name = alone("import time\nprint('so far', flush=True)\ntime.sleep(120)")
    wait = notebook._wait

    def wait_from_its_start(process: subprocess.Popen, limit: float) -> int | None:
        wait_until(lambda: notebook.executed(name, "smoke").exists())
        return wait(process, limit)

    monkeypatch.setattr(notebook, "_wait", wait_from_its_start)
    started = time.monotonic()
    with pytest.raises(notebook.NotebookFailed, match="over its limit of 1 s"):
        notebook.execute(name, "smoke", 1)
    assert time.monotonic() - started < 100
    assert len(nbformat.read(notebook.executed(name, "smoke"), as_version=4).cells) >= 2


def test_a_notebook_without_its_figure_fails(alone, monkeypatch):
    name = alone("", figure="promised")
    monkeypatch.setattr(notebook.subprocess, "Popen", lambda *a, **k: subprocess_that_succeeds())
    with pytest.raises(notebook.NotebookFailed, match="without saving its figure.*promised"):
        notebook.execute(name, "smoke", 60)


def subprocess_that_succeeds() -> subprocess.CompletedProcess:
    done = subprocess.CompletedProcess([], 0)
    done.wait = lambda limit: 0
    return done


def test_ctrl_c_leaves_a_readable_notebook_and_the_next_call_goes_on(tmp_path: Path, project: Path):
    toy = Toy.make(project, tmp_path)
    toy.write("toy/one", ["a"], extra=_sleep_until(tmp_path / "go"))
    process = subprocess.Popen([sys.executable, "-m", "jepa_nb.workflow", "figures", "--only", "toy/one"], cwd=toy.root,
                               env=toy.environment(), start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: toy.executed() == ["toy/one"])
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=180)[1]
    assert process.returncode == cli.INTERRUPTED and "goes on from there" in error
    partial = nbformat.read(toy.root / "build/laptop/notebooks/toy/one.ipynb", as_version=4)
    assert "parameters" in str(partial.cells[0].metadata) and not (toy.root / "build/laptop/notebooks/toy/one.done").exists()
    (tmp_path / "go").touch()
    assert toy.figures("--only", "toy/one").returncode == 0
    assert toy.trained() == ["a"] and toy.executed() == ["toy/one"]


def test_a_job_that_missed_the_signal_gets_it_again(monkeypatch):
    """A retry that starts after Ctrl-C would otherwise be waited for as long as it runs."""
    job = "import subprocess, sys; subprocess.call([sys.executable, '-c', 'import time; time.sleep(600)'])"
    process = subprocess.Popen([sys.executable, "-c", job], stderr=subprocess.DEVNULL)
    waits = iter([KeyboardInterrupt])
    wait = process.wait

    def interrupted_once(timeout: float | None = None) -> int:
        for fault in waits:
            raise fault
        return wait(timeout)

    monkeypatch.setattr(process, "wait", interrupted_once)
    monkeypatch.setattr(workflow, "PATIENCE", 2.0)
    started = time.monotonic()
    assert workflow._wait(process) == cli.INTERRUPTED and time.monotonic() - started < 60


def _sleep_until(file: Path) -> str:
    return f"import os, time\nwhile not os.path.exists({str(file)!r}):\n    time.sleep(0.1)\n"


def wait_until(condition, limit: float = 60.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_a_failing_notebook_does_not_stop_the_others_and_is_tried_twice(tmp_path: Path, project: Path):
    toy = Toy.make(project, tmp_path)
    toy.write("toy/one", ["a"], extra="raise ValueError('planted')\n")
    done = toy.figures("--only", "toy/*")
    assert done.returncode != 0 and "[failed] toy/one" in done.stderr and "ValueError: planted" in done.stderr
    assert toy.executed() == ["toy/one", "toy/one", "toy/two"] and "Traceback" not in done.stderr


def test_a_second_call_is_refused_while_the_first_one_works(tmp_path: Path, project: Path):
    toy = Toy.make(project, tmp_path)
    (toy.root / "build").mkdir()
    with FileLock(toy.root / "build/figures.lock"):
        refused = toy.figures()
    assert refused.returncode == 1 and "another `make figures`" in refused.stderr and len(refused.stderr.splitlines()) == 1
