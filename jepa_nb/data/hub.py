"""Hugging Face hub: data sets streamed at a pinned revision and pretrained weights. Code from the hub is never run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jepa_nb.data.recipes import Recipe
from jepa_nb.errors import DataError


def fetch_weights(recipe: Recipe) -> dict[str, Path]:
    """Folder of a model at its revision, by hub id; empty for a data set, which is streamed when it is read.

    Raises:
        DataError: the hub cannot be reached and the files are not in its cache, or access is refused.
    """
    hub = recipe.hub
    if hub.get("kind") != "model":
        return {}
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(hub["id"], revision=hub["revision"], allow_patterns=list(hub["files"]))
    except _faults() as fault:
        raise DataError(_sentence(recipe, fault)) from fault
    return {hub["id"]: Path(folder)}


def stream(recipe: Recipe, split: str, count: int) -> Iterator[dict[str, Any]]:
    """The first ``count`` rows of a split (its hub name) at the pinned revision; images come as undecoded bytes.

    Raises:
        DataError: the hub cannot be reached, or access is refused.
    """
    import datasets

    hub = recipe.hub
    try:
        rows = datasets.load_dataset(hub["id"], hub.get("config"), revision=hub["revision"], split=split, streaming=True)
        if hub.get("image"):
            rows = rows.cast_column(hub["image"], datasets.Image(decode=False))
        yield from itertools.islice(rows, count)
    except _faults() as fault:
        raise DataError(_sentence(recipe, fault)) from fault


def _faults() -> tuple[type[Exception], ...]:
    """What the hub's client raises: its errors derive from ``OSError`` and from the base error of its HTTP library.

    That library changed its name between versions of the client, so its base is taken from the client's own error.
    """
    from huggingface_hub.errors import HfHubHTTPError

    return (*HfHubHTTPError.__bases__, ValueError)


def _sentence(recipe: Recipe, fault: Exception) -> str:
    others = [source for source in recipe.sources if source != "hub"]
    instead = f", or use source '{others[0]}'" if others else ""
    reason = (str(fault).strip().splitlines() or [""])[0][:160]
    return (f"cannot read {recipe.hub['id']} at its pinned revision from the Hugging Face hub "
            f"({type(fault).__name__}: {reason}); check the network and, for gated data, `hf auth login`{instead}.")
