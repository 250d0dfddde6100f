"""Image folders (a folder per class) for ImageNet: pictures decoded when they are asked for, from disk or from the hub."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from PIL import Image, UnidentifiedImageError

from jepa_nb import files, paths
from jepa_nb.data import fetch, hub
from jepa_nb.data.archives import disk_errors
from jepa_nb.data.recipes import Recipe
from jepa_nb.errors import DataError

SUFFIXES = (".jpeg", ".jpg", ".png", ".webp")

Stream = Callable[[Recipe, str, int], Iterator[dict[str, Any]]]


class Decoded(Sequence):
    """Pictures (H, W, 3) uint8 of some files, each decoded when it is indexed; the whole set need not fit into memory."""

    def __init__(self, files: Sequence[Path]):
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> np.ndarray:
        return decode(self.files[index])


def decode(path: Path) -> np.ndarray:
    """A picture as (H, W, 3) uint8; grey values are repeated in the three channels.

    Raises:
        DataError: the file is no picture, or is truncated.
    """
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as fault:
        raise DataError(f"picture {path} cannot be decoded ({fault}); fetch it again.") from fault


def images(root: Path, count: int) -> list[Path]:
    """``count`` pictures below ``root``, or all where there are fewer: one of each folder in turn, so that classes stay balanced.

    Raises:
        DataError: there is no picture.
    """
    by_folder = [[path for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]
                 for folder in sorted({root, *(entry for entry in root.iterdir() if entry.is_dir())})]
    rounds = itertools.zip_longest(*by_folder)
    found = [path for taken in rounds for path in taken if path is not None]
    if not found:
        raise DataError(f"no picture ({', '.join(SUFFIXES)}) in {root} or in its folders; put a folder per class there.")
    return found[:count]


def roots(recipe: Recipe, source: str) -> dict[str, Path]:
    """Folder of each split; a hub data set is first streamed into the cache."""
    if source == "hub":
        return {split: materialise(recipe, split) for split in recipe.hub["splits"]}
    found = fetch.fetch_recipe(recipe, source)
    return {split: found[name] for split, name in recipe.local["splits"].items()}


def materialise(recipe: Recipe, split: str, *, stream: Stream = hub.stream) -> Path:
    """Write the first pictures of a hub split into the cache, as the bytes they come in; complete or absent.

    Raises:
        DataError: the hub cannot be reached, it has fewer pictures than the recipe states, or the disk is full.
    """
    wanted = recipe.hub["images"][split]
    place = paths.cache() / "hub" / recipe.name / recipe.hub["revision"] / f"{split}-{wanted}"
    with disk_errors(f"the pictures of '{recipe.name}'"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not place.is_dir():
                _write(recipe, split, stream, place)
    return place


def _write(recipe: Recipe, split: str, stream: Stream, place: Path) -> None:
    wanted = recipe.hub["images"][split]
    staging = Path(tempfile.mkdtemp(prefix=".stream-", dir=place.parent))
    try:
        written = 0
        for written, row in enumerate(stream(recipe, recipe.hub["splits"][split], wanted), start=1):
            (staging / f"{written:07d}.jpg").write_bytes(row[recipe.hub["image"]]["bytes"])
        if written != wanted:
            raise DataError(f"the hub gave {written} of {wanted} pictures of '{recipe.name}' {split}; run again.")
        files.sync(staging)
        os.replace(staging, place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # gone already where it was renamed
