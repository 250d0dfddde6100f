"""Named random streams: a seed and a path of names give one generator; nothing global is left changed.

``stream(3, "masks", 120)`` is the same number on every machine, and independent of ``stream(3, "corpus")``. Training
draws step ``t`` from a stream that is named after ``t``, so a resumed run needs no saved generator state.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def stream(seed: int, *names: str | int) -> int:
    """A 63-bit integer derived from ``seed`` and a path of names."""
    text = "/".join([str(int(seed)), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *names: str | int) -> torch.Generator:
    """A CPU ``torch.Generator`` for the named stream."""
    import torch

    return torch.Generator().manual_seed(stream(seed, *names))


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """A ``numpy.random.Generator`` for the named stream."""
    import numpy as np

    return np.random.default_rng(stream(seed, *names))


@contextlib.contextmanager
def scoped(seed: int, *names: str | int) -> Iterator[None]:
    """Seed torch's global generators inside the block only, for layers that draw from them (initialisation, dropout)."""
    import torch

    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(stream(seed, *names))
        yield
