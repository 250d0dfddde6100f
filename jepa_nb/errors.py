"""Errors that say what was wrong and what to do about it, in one sentence each.

The command line prints the sentence and exits with status 1; a notebook shows it under the failing cell.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class JepaError(Exception):
    """Base of every error that the reader can mend; its text names the fault and the remedy."""


class UnknownName(JepaError):
    """A name (tier, field, notebook, claim, recipe ...) that does not exist; the nearest valid one is offered."""

    def __init__(self, kind: str, given: object, valid: Iterable[str]):
        names = sorted(str(name) for name in valid)
        near = difflib.get_close_matches(str(given), names, n=1, cutoff=0.0)
        hint = f"did you mean '{near[0]}'?" if near else "there is none to choose from."
        listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        super().__init__(f"unknown {kind} '{given}': {hint} Valid: {listed}.")
        self.given, self.valid, self.nearest = given, names, near[0] if near else None


class ConfigError(JepaError):
    """A known field with a value that cannot be used."""


class DataError(JepaError):
    """Data that is missing, damaged or cannot be fetched."""


class CheckpointError(JepaError):
    """A checkpoint that cannot be read back."""


class NonFinite(JepaError):
    """A NaN or an infinity; the text names the first bad tensor and where training was."""


def require_known(kind: str, given: str, valid: Iterable[str]) -> str:
    """Return ``given`` if it is among ``valid``; raise :class:`UnknownName` otherwise."""
    names = list(valid)
    if given not in names:
        raise UnknownName(kind, given, names)
    return given
