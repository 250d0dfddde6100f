"""Tiers, overrides and fingerprints of configurations (frozen dataclasses of plain values)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any, TypeVar

from jepa_nb.errors import ConfigError, UnknownName, require_known

TIERS = ("smoke", "laptop", "gpu", "paper")
DEFAULT_TIER = "laptop"

Config = TypeVar("Config")


def resolve_tier(tier: str = "default") -> str:
    """Name of the tier to run: ``"default"`` means ``$JEPA_NB_TIER``, and ``laptop`` where that is unset.

    Raises:
        UnknownName: the tier does not exist; the nearest valid one is named.
    """
    if tier == "default":
        tier = os.environ.get("JEPA_NB_TIER") or DEFAULT_TIER
    return require_known("tier", tier, TIERS)


def override(config: Config, changes: dict[str, Any]) -> Config:
    """A copy of a dataclass with some fields replaced, each checked against the type of its present value.

    Raises:
        ConfigError: ``changes`` is no dict, or a value has another type than the field.
        UnknownName: a field does not exist; the nearest valid one is named.
    """
    if not isinstance(changes, dict):
        raise ConfigError(f"overrides must be a dict, got {type(changes).__name__} {changes!r}; "
                          "from the papermill command line pass dicts and lists with -y, not with -p.")
    fields = {field.name for field in dataclasses.fields(config)}
    for name, value in changes.items():
        if name not in fields:
            raise UnknownName(f"field of {type(config).__name__}", name, fields)
        _require_type(name, value, getattr(config, name))
    coerced = {name: _coerce(value, getattr(config, name)) for name, value in changes.items()}
    return dataclasses.replace(config, **coerced)


def _require_type(name: str, value: Any, present: Any) -> None:
    if present is None:
        return
    expected: tuple[type, ...] = (type(present),)
    if isinstance(present, float):
        expected = (float, int)
    if isinstance(present, tuple):
        expected = (tuple, list)
    wrong_bool = isinstance(value, bool) and not isinstance(present, bool)
    if wrong_bool or not isinstance(value, expected):
        hint = " YAML reads 1e-3 as text; write 1.0e-3." if isinstance(present, float) and isinstance(value, str) else ""
        raise ConfigError(f"field '{name}' takes {type(present).__name__} (now {present!r}), "
                          f"got {type(value).__name__} {value!r}.{hint}")


def _coerce(value: Any, present: Any) -> Any:
    if isinstance(present, tuple):
        return tuple(value)
    if isinstance(present, float):
        return float(value)
    return value


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text. Dataclasses become dicts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(value: Any, length: int = 16) -> str:
    """First ``length`` hex digits of the SHA-256 of :func:`canonical_json`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
