"""Content-addressed store of finished runs: the same question is trained once and read from then on.

A run's key is the hash of its configuration, the resolved device, dtype and threads, the fingerprint of its data, the
fingerprint of the code it runs, and the keys of the runs it builds on. A finished run is a folder with

    metrics.parquet      tidy table of everything that was measured
    checkpoint.safetensors   final networks
    provenance.json      configuration, seconds, versions, SHA-256 of the two files

Two processes that ask for one run wait on a file lock: one trains, the other reads.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from jepa_nb import config as configuration
from jepa_nb import files, paths, provenance

if TYPE_CHECKING:
    import pandas as pd
    import torch

log = logging.getLogger(__name__)
TABLE, WEIGHTS, RECORD = "metrics.parquet", "checkpoint.safetensors", "provenance.json"


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a run's result.

    Attributes:
        experiment: which function trains it (``"paradox.diagnostics"``).
        config: its configuration as plain values.
        device: device, dtype, attention and threads (:meth:`jepa_nb.device.Resolved.key`).
        data: fingerprint of the data it reads.
        code: fingerprint of the modules it runs.
        needs: keys of the runs it builds on.
    """

    experiment: str
    config: dict[str, Any]
    device: dict[str, Any]
    data: str
    code: str
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """16 hex digits that name the run."""
        return configuration.fingerprint(asdict(self))


@dataclass(frozen=True)
class Outcome:
    """What training hands to the store."""

    table: pd.DataFrame
    tensors: dict[str, torch.Tensor]
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A finished run."""

    key: str
    folder: Path
    spec: dict[str, Any]
    notes: dict[str, Any]
    seconds: float

    @property
    def table(self) -> pd.DataFrame:
        """The measured rows."""
        import pandas as pd

        return pd.read_parquet(self.folder / TABLE)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The final networks' tensors by name."""
        from safetensors.torch import load_file

        return load_file(self.folder / WEIGHTS)


def find(key: str) -> Run | None:
    """The finished run of that key, or ``None``. A damaged one is set aside with a warning and counts as missing."""
    folder = paths.runs() / key
    if not folder.is_dir():
        return None
    name = RECORD
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        found = Run(key, folder, record["spec"], record["notes"], record["seconds"])
        for name in (TABLE, WEIGHTS):
            if files.sha256(folder / name) != record["sha256"][name]:
                raise ValueError("its SHA-256 does not match")
    except (OSError, ValueError, KeyError, TypeError) as error:
        aside = folder.with_name(f"{key}.damaged-{time.time_ns()}")
        log.warning("run %s: %s is damaged (%s); the folder is set aside as %s and the run is trained again.", key, name, error,
                    aside.name)
        folder.rename(aside)
        return None
    return found


def is_finished(key: str) -> bool:
    """Whether a run of that key is there (without checking its files)."""
    return (paths.runs() / key / RECORD).exists()


def run(spec: RunSpec, train: Callable[[RunSpec, Path], Outcome], *, label: str = "") -> Run:
    """Return the finished run of ``spec``, training it if it is missing.

    Args:
        spec: what to run.
        train: called with the spec and a folder for checkpoints that survives a crash; returns the outcome.
        label: a readable name for messages.
    """
    key = spec.key
    paths.runs().mkdir(parents=True, exist_ok=True)
    with _lock(key, label):
        finished = find(key)
        if finished is None:
            finished = _train(spec, train)
    return finished


def _train(spec: RunSpec, train: Callable[[RunSpec, Path], Outcome]) -> Run:
    key = spec.key
    partial = paths.runs() / f"{key}.partial"
    partial.mkdir(exist_ok=True)
    started = time.monotonic()
    outcome = train(spec, partial)
    seconds = time.monotonic() - started
    _publish(spec, outcome, seconds)
    shutil.rmtree(partial)
    return Run(key, paths.runs() / key, asdict(spec), outcome.notes, seconds)


def _publish(spec: RunSpec, outcome: Outcome, seconds: float) -> None:
    from safetensors.torch import save_file

    ready = paths.runs() / f"{spec.key}.ready-{os.getpid()}"
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir()
    outcome.table.to_parquet(ready / TABLE, index=False)
    save_file({name: value.detach().cpu().contiguous() for name, value in outcome.tensors.items()}, ready / WEIGHTS)
    record = {"spec": asdict(spec), "notes": outcome.notes, "seconds": seconds, "versions": provenance.versions(),
              "commit": provenance.commit(), "sha256": {name: files.sha256(ready / name) for name in (TABLE, WEIGHTS)}}
    (ready / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
    for name in (TABLE, WEIGHTS, RECORD):
        files.sync(ready / name)
    os.replace(ready, paths.runs() / spec.key)
    files.sync(paths.runs())


def _lock(key: str, label: str) -> AcquireReturnProxy:
    lock = FileLock(paths.runs() / f"{key}.lock")
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        print(f"run {key} {label} is being trained by another process; waiting for it.", flush=True)
        return lock.acquire()
