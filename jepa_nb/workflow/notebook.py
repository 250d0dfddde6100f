"""One notebook executed by papermill in a process of its own, with a wall limit, a log, and a partial notebook on failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from jepa_nb import paths
from jepa_nb.errors import JepaError
from jepa_nb.experiments import registry

KERNEL_START = 120  # seconds: parallel kernel starts on a busy machine
GRACE = 20  # seconds that an interrupted papermill gets to write the partial notebook


class NotebookFailed(JepaError):
    """A notebook that raised, hung or lost its kernel."""


def executed(name: str, tier: str) -> Path:
    """Where the executed copy of a notebook lies, also after a failure."""
    return paths.tier_build(tier) / "notebooks" / f"{name}.ipynb"


def log_file(name: str, tier: str) -> Path:
    """The log of a notebook's last execution."""
    return paths.tier_build(tier) / "logs" / f"{name.replace('/', '_')}.log"


def execute(name: str, tier: str, limit: float) -> Path:
    """Execute a notebook at a tier and return the executed copy.

    Args:
        name: ``"<folder>/<stem>"``.
        tier: tier to run at.
        limit: seconds after which the execution is interrupted.

    Raises:
        NotebookFailed: it raised, ran over its limit (the text names the partial notebook and the log), or saved no figure.
    """
    target, log = executed(name, tier), log_file(name, tier)
    for file in (target, log):
        file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "papermill", str(paths.notebooks() / f"{name}.ipynb"), str(target), "-p", "tier", tier,
               "-k", "python3", "--start-timeout", str(KERNEL_START), "--no-progress-bar", "--log-output", "--log-level", "INFO"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        status = _wait(process, limit)
    if status != 0:
        reason = f"ran over its limit of {limit:.0f} s" if status is None else f"failed: {last_error(log)}"
        raise NotebookFailed(f"notebook {name} {reason}\n  as far as it came: {target}\n  log: {log}")
    _require_figure(name, tier)
    return target


def _require_figure(name: str, tier: str) -> None:
    figure = registry.notebooks()[name].figure
    sidecar = paths.tier_build(tier) / "figures" / f"{figure}.json"
    if figure and not sidecar.exists():
        raise NotebookFailed(f"notebook {name} ended without saving its figure: {sidecar} is missing; "
                             f"its figure cell must save '{figure}'.")


def _wait(process: subprocess.Popen, limit: float) -> int | None:
    """Exit status, or ``None`` after the limit; an interrupted papermill gets time to write what it has."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        _stop(process)
        return None
    except KeyboardInterrupt:
        _stop(process)
        raise


def _stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_error(log: Path) -> str:
    """The last line of a log that holds text: papermill ends with the exception of the failing cell."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "papermill wrote nothing"
