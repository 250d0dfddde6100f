"""The locked environment: ``requirements.lock`` and ``environment.yml``, both written from the one list in ``pyproject.toml``.

``python -m jepa_nb.lock`` rewrites them from the packages that are installed beside it: install the list, run the tests,
then lock what was tested. Every package that the list pulls in is pinned; a platform condition on the way to a package
(CUDA libraries on Linux) stays in its line, so that other platforms resolve without it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jepa_nb import paths

LOCK, ENVIRONMENT, PROJECT = "requirements.lock", "environment.yml", "pyproject.toml"
_LISTED = re.compile(r'^ {4}"(?P<requirement>[^"]+)", +# (?P<why>.+)$', re.MULTILINE)


@dataclass(frozen=True)
class Direct:
    """A dependency of the list: its requirement and what needs it."""

    requirement: str
    why: str

    @property
    def name(self) -> str:
        """Normalised package name."""
        return canonicalize_name(Requirement(self.requirement).name)


@dataclass(frozen=True)
class Pin:
    """One line of the lock; ``marker`` is the condition under which it is installed, or ``""``."""

    name: str
    version: str
    marker: str = ""

    def __str__(self) -> str:
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    def applies(self) -> bool:
        """Whether this machine installs the package."""
        return Requirement(str(self)).marker is None or Requirement(str(self)).marker.evaluate()


def direct(root: Path | None = None) -> list[Direct]:
    """The list of ``pyproject.toml`` in its own order, all groups, each with its comment."""
    text = ((root or paths.project()) / PROJECT).read_text()
    return [Direct(match["requirement"], match["why"]) for match in _LISTED.finditer(text)]


def declared(root: Path | None = None) -> list[str]:
    """The same requirements as TOML readers (pip) see them, without comments."""
    project = tomllib.loads(((root or paths.project()) / PROJECT).read_text())["project"]
    groups = project.get("optional-dependencies", {}).values()
    return [*project["dependencies"], *(entry for group in groups for entry in group)]


def read(root: Path | None = None) -> list[Pin]:
    """The pins of ``requirements.lock``."""
    return [_pin(line) for line in _lines(((root or paths.project()) / LOCK).read_text())]


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line and not line.startswith("#"))


def _pin(line: str) -> Pin:
    pinned, _, marker = line.partition(" ; ")
    name, _, version = pinned.partition("==")
    return Pin(name, version, marker)


def resolve(requirements: Iterable[str]) -> list[Pin]:
    """Pin every installed package that ``requirements`` lead to, sorted by name.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed.
    """
    conditions: dict[str, str] = {}
    seen: set[tuple[str, str, str]] = set()
    pending = [(Requirement(text), "") for text in requirements]
    while pending:
        wanted, condition = pending.pop()
        name = canonicalize_name(wanted.name)
        visit = (name, ",".join(sorted(wanted.extras)), condition)
        if visit in seen:
            continue
        seen.add(visit)
        conditions[name] = _weaker(conditions.get(name), condition)
        pending += _children(name, wanted.extras, condition)
    return [Pin(name, metadata.version(name), conditions[name]) for name in sorted(conditions)]


def _children(name: str, extras: set[str], condition: str) -> list[tuple[Requirement, str]]:
    found = []
    for text in metadata.distribution(name).requires or []:
        child = Requirement(text)
        environments = [{"extra": extra} for extra in (extras or {""})]
        if child.marker is None:
            found.append((child, condition))
        elif any(child.marker.evaluate(environment) for environment in environments):
            own = "" if "extra" in str(child.marker) else str(child.marker)
            found.append((child, condition or own))
    return found


def _weaker(known: str | None, condition: str) -> str:
    """Of two conditions to install one package: none at all wins, otherwise the first that was met."""
    return condition if known is None or not condition else known


def lock_text(pins: Iterable[Pin]) -> str:
    """Content of ``requirements.lock``."""
    head = (f"# Every package at the version the tests ran with, on Python 3.11.\n"
            f"# Written by `python -m jepa_nb.lock` from {PROJECT}.\n")
    return head + "".join(f"{pin}\n" for pin in pins)


def environment_text(listed: Iterable[Direct]) -> str:
    """Content of ``environment.yml``: conda brings Python, pip the lock and this checkout."""
    rows = [(entry.name, entry.why) for entry in listed]
    width = max(len(name) for name, _ in rows)
    head = f"# For conda users. Written by `python -m jepa_nb.lock` from {PROJECT}. What needs each direct dependency:\n"
    comments = "".join(f"#   {name:<{width}}  {why}\n" for name, why in rows)
    return f"""{head}{comments}name: jepa_nb
channels:
  - conda-forge
dependencies:
  - python=3.11  # the lock is tested on 3.11; 3.12 and 3.13 are accepted
  - pip
  - pip:
      - -r {LOCK}
      - -e .
"""


def write(root: Path | None = None) -> list[Pin]:
    """Rewrite both files from the list and the installed packages; returns the pins."""
    root = root or paths.project()
    pins = resolve(declared(root))
    (root / LOCK).write_text(lock_text(pins))
    (root / ENVIRONMENT).write_text(environment_text(direct(root)))
    return pins


if __name__ == "__main__":
    print(f"{LOCK}: {len(write())} packages; {ENVIRONMENT} rewritten.")
