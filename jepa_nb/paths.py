"""Where things are. Every root comes from the project or from the environment, never from the working directory."""

from __future__ import annotations

import os
from pathlib import Path


def project() -> Path:
    """Root of the checkout: the folder that holds ``jepa_nb``, ``notebooks``, ``data_recipes`` and ``figures``."""
    return Path(__file__).resolve().parent.parent


def build() -> Path:
    """Generated files (runs, executed notebooks, gallery); ``$JEPA_NB_BUILD`` moves it."""
    return Path(os.environ.get("JEPA_NB_BUILD") or project() / "build")


def tier_build(tier: str) -> Path:
    """The generated files of one tier."""
    return build() / tier


def runs() -> Path:
    """The content-addressed store of finished runs, shared by all tiers (a key already holds the tier's sizes)."""
    return build() / "runs"


def cache() -> Path:
    """Downloaded and derived data: ``$JEPA_NB_HOME``, by default ``~/.cache/jepa_nb``."""
    return Path(os.environ.get("JEPA_NB_HOME") or Path.home() / ".cache" / "jepa_nb")


def local_data() -> Path | None:
    """Folder with public data sets under their public file names (``$JEPA_NB_DATA``), or ``None``."""
    value = os.environ.get("JEPA_NB_DATA")
    return Path(value) if value else None


def recipes() -> Path:
    """One TOML file per data set or pretrained weight."""
    return project() / "data_recipes"


def papers() -> Path:
    """One TOML file of claims per paper."""
    return Path(__file__).resolve().parent / "papers"


def notebooks() -> Path:
    """Sources of all notebooks."""
    return project() / "notebooks"


def figures() -> Path:
    """Reference output of the laptop tier, committed."""
    return project() / "figures"
