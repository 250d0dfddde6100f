"""Checkpoints of an unfinished run: tensors in safetensors, plain values in JSON, both verified when read back.

The JSON is written last and holds a SHA-256 over the tensor file and its own values: a pair that was cut off by a crash, or
damaged later, does not count, and the one before it is used. Two are kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from jepa_nb import files
from jepa_nb.errors import CheckpointError

KEEP = 2
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """What a run needs to go on: the number of steps done, named tensors, and plain JSON values."""

    step: int
    tensors: dict[str, torch.Tensor]
    values: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write one checkpoint and drop all but the newest :data:`KEEP`."""
    stem = folder / f"step-{checkpoint.step:08d}"
    tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}
    with files.atomic(stem.with_suffix(".safetensors")) as temporary:
        save_file(tensors, temporary)
    digest = _digest(stem.with_suffix(".safetensors"), checkpoint.step, checkpoint.values)
    body = {"step": checkpoint.step, "sha256": digest, "values": checkpoint.values}
    files.write_text(stem.with_suffix(".json"), json.dumps(body))
    for old in sorted(folder.glob("step-*.json"))[:-KEEP]:
        old.unlink()
        old.with_suffix(".safetensors").unlink(missing_ok=True)


def load_latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole, or ``None``; damaged ones are reported in the log and passed over."""
    for path in sorted(folder.glob("step-*.json"), reverse=True):
        try:
            return _load(path)
        except CheckpointError as error:
            log.warning("%s Going back to the checkpoint before it.", error)
    return None


def _load(path: Path) -> Checkpoint:
    tensors_path = path.with_suffix(".safetensors")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        step, values, expected = body["step"], body["values"], body["sha256"]
        digest = _digest(tensors_path, step, values)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise CheckpointError(f"checkpoint {path.name} is unreadable ({error}).") from error
    if digest != expected:
        raise CheckpointError(f"checkpoint {path.stem} is damaged (its SHA-256 does not match).")
    return Checkpoint(step, load_file(tensors_path), values)


def _digest(tensors: Path, step: int, values: dict[str, Any]) -> str:
    """SHA-256 over a tensor file and the plain values that belong to it."""
    return hashlib.sha256(json.dumps([files.sha256(tensors), step, values]).encode()).hexdigest()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state of an Adam-like optimiser as flat named tensors (``0/exp_avg`` ...)."""
    state = optimizer.state_dict()["state"]
    return {f"{index}/{name}": value for index, entry in state.items() for name, value in entry.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Inverse of :func:`optimizer_tensors`; hyperparameters stay as they are (they follow the step)."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for path, value in tensors.items():
        index, name = path.split("/", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def module_tensors(modules: dict[str, nn.Module]) -> dict[str, torch.Tensor]:
    """State of several modules under ``<name>:<entry>``; tied weights are stored once."""
    return {f"{root}:{name}": value for root, module in modules.items() for name, value in _untied(module).items()}


def restore_modules(modules: dict[str, nn.Module], tensors: dict[str, torch.Tensor]) -> None:
    """Inverse of :func:`module_tensors`; every entry must be there and no other.

    Raises:
        CheckpointError: entries are missing or left over, as happens with other sizes or another architecture.
    """
    for root, module in modules.items():
        prefix = f"{root}:"
        found = {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}
        differing = sorted(found.keys() ^ _untied(module).keys())
        if differing:
            raise CheckpointError(f"checkpoint does not fit '{root}': entry '{differing[0]}' is on one side only; "
                                  "load it into a network of the configuration it was saved from.")
        module.load_state_dict(found, strict=False)


def _untied(module: nn.Module) -> dict[str, torch.Tensor]:
    """The state without second names of one tensor (an output layer tied to an embedding, say)."""
    unique: dict[int, tuple[str, torch.Tensor]] = {}
    for name, value in module.state_dict().items():
        unique.setdefault(value.data_ptr() if value.numel() else -len(unique) - 1, (name, value))
    return dict(unique.values())
