"""What every test runs under: the smoke tier, folders of its own, one thread, and no network.

`make test` sets the folders for both of its workers; a plain `pytest` gets them here, so it never touches a reader's own.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("JEPA_NB_TIER", "smoke")
for variable in ("JEPA_NB_BUILD", "JEPA_NB_HOME"):
    os.environ.setdefault(variable, tempfile.mkdtemp(prefix=variable.lower()))
os.environ.pop("JEPA_NB_DATA", None)
os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "MPLBACKEND": "agg"})

PROJECT = Path(__file__).resolve().parent.parent
LOCAL = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(scope="session")
def project() -> Path:
    """Root of the checkout."""
    return PROJECT


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that reaches for another machine."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOCAL:
            raise AssertionError(f"a test tried to reach {address}; tests use no network")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
    yield
