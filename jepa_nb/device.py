"""Which device, dtype and attention kernel a run uses, and why. Reading the choice never touches CUDA on a machine without it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepa_nb.errors import ConfigError, require_known

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Resolved:
    """The machine's side of a run.

    Attributes:
        device: ``"cpu"`` or ``"cuda"``.
        dtype: autocast dtype, ``"float32"`` (no autocast) or ``"bfloat16"``.
        attention: attention implementation handed to transformers (``"sdpa"``).
        threads: CPU threads a run computes with.
        why: one sentence that explains the choice.
    """

    device: str
    dtype: str
    attention: str
    threads: int
    why: str

    def key(self) -> dict[str, Any]:
        """The part that belongs to a run's identity (all but the explanation)."""
        values = asdict(self)
        values.pop("why")
        return values


def resolve(device: str = "auto", dtype: str = "auto", threads: int = 1) -> Resolved:
    """Choose device and dtype.

    CPU runs in float32: at the widths of the laptop tier autocast to bfloat16 costs more than it saves. CUDA runs under
    bfloat16 autocast. torch is imported only where an NVIDIA driver is visible or ``device="cuda"`` is asked for.

    Raises:
        UnknownName: unknown device or dtype.
        ConfigError: ``cuda`` is asked for and there is none.
    """
    require_known("device", device, DEVICES)
    require_known("dtype", dtype, DTYPES)
    if device == "cpu":
        name, why = "cpu", "asked for"
    elif _cuda_available(device):
        name, why = "cuda", "a CUDA device is available" if device == "auto" else "asked for"
    elif device == "cuda":
        raise ConfigError("device 'cuda' was asked for but torch sees none; use device='auto' or 'cpu', or check the driver.")
    else:
        name, why = "cpu", "no CUDA device is visible"
    chosen = dtype if dtype != "auto" else ("bfloat16" if name == "cuda" else "float32")
    return Resolved(name, chosen, "sdpa", threads, f"{name}: {why}; {chosen}: {'asked for' if dtype != 'auto' else 'default there'}")


def _cuda_available(asked: str) -> bool:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") != "" and Path("/proc/driver/nvidia/version").exists()
    if not visible and asked != "cuda":
        return False
    import torch

    return torch.cuda.is_available()


def autocast(resolved: Resolved) -> contextlib.AbstractContextManager:
    """Autocast context of a resolved device; does nothing for float32."""
    import torch

    if resolved.dtype == "float32":
        return contextlib.nullcontext()
    return torch.autocast(resolved.device, dtype=getattr(torch, resolved.dtype))


@contextlib.contextmanager
def threads(count: int):
    """Compute with ``count`` CPU threads inside the block and restore the former number after it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_device(resolved: Resolved) -> torch.device:
    """The ``torch.device`` of a resolved choice."""
    import torch

    return torch.device(resolved.device)
