"""``python -m jepa_nb doctor``: is this machine ready? One line each, ``[ok]`` or ``[fail]`` with the remedy."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jepa_nb import __version__, device, lock, paths
from jepa_nb.errors import JepaError

PYTHONS = ((3, 11), (3, 14))  # from, below
FREE_GB = 3.0  # data of the laptop tier, extracted, and its runs


@dataclass(frozen=True)
class Check:
    """One line; ``remedy`` is shown when it failed."""

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"[{'ok' if self.ok else 'fail'}] {self.name}: {self.found}"
        return line if self.ok else f"{line}; {self.remedy}"


def examine() -> list[Check]:
    """All checks in the order a reader would mend them."""
    return [python(), packages(), compute(), *(folder(name, path) for name, path in
            (("cache", paths.cache()), ("build", paths.build()))), *data()]


def python() -> Check:
    """Interpreter and package version."""
    low, high = PYTHONS
    found = f"jepa_nb {__version__}, Python {'.'.join(map(str, sys.version_info[:3]))}"
    return Check("versions", low <= sys.version_info[:2] < high, found, "make .venv again with Python 3.11, 3.12 or 3.13")


def packages() -> Check:
    """Installed packages against ``requirements.lock``."""
    pins = [pin for pin in lock.read() if pin.applies()]
    wrong = [f"{pin.name} {_installed(pin.name)} instead of {pin.version}" for pin in pins if _installed(pin.name) != pin.version]
    if not wrong:
        return Check("packages", True, f"all {len(pins)} of {lock.LOCK}")
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return Check("packages", False, ", ".join(wrong[:3]) + more, f"run `{sys.executable} -m pip install -r {lock.LOCK}`")


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def compute() -> Check:
    """What a run would compute with."""
    try:
        resolved = device.resolve()
    except JepaError as error:
        return Check("device", False, str(error), "see the sentence before")
    return Check("device", True, f"{resolved.why}; {os.cpu_count()} cores")


def folder(name: str, path: Path) -> Check:
    """A folder that must take files, and the space on its disk."""
    variable = {"cache": "JEPA_NB_HOME", "build": "JEPA_NB_BUILD"}[name]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            free = shutil.disk_usage(path).free / 1e9
    except OSError as error:
        return Check(name, False, f"{path} takes no files ({error.strerror})", f"mend its rights, or set {variable} elsewhere")
    remedy = f"free {FREE_GB:.0f} GB, or set {variable} to another disk"
    return Check(name, free >= FREE_GB, f"{path}, {free:.1f} GB free", remedy)


def data() -> list[Check]:
    """One line a recipe whose files come from pinned packages; the others have nothing to fetch."""
    from jepa_nb.data import fetch, recipes

    embedded = [name for name in recipes.names() if recipes.load(name).embedded]
    return [_recipe(name, [member for member, ok, _ in fetch.verify(name) if not ok]) for name in embedded]


def _recipe(name: str, missing: list[str]) -> Check:
    found = f"{len(missing)} files missing or damaged" if missing else "fetched, as pinned"
    return Check(f"data {name}", not missing, found, f"run `python -m jepa_nb data fetch {name}`")
