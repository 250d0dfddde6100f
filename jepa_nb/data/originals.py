"""Originals of images: a photograph, a stereo pair, a video shot, a sheet of emoji. Splits are by original, never by crop.

Each recipe is one kind and states its splits in ``[read]``, by name or by rule, so that every kind stands on both sides.
"""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from PIL import Image

from jepa_nb import files, paths, seeds
from jepa_nb.data import fetch, folders
from jepa_nb.data.archives import disk_errors
from jepa_nb.data.recipes import Recipe, load
from jepa_nb.errors import DataError

Files = dict[str, Path]


@dataclass(frozen=True)
class Original:
    """One original.

    Attributes:
        name: unique within its kind.
        kind: the recipe it comes from; crops are drawn equally often from each kind.
        split: ``"train"`` or ``"val"``.
        frames: its pictures, each (H, W, 3) uint8: one, two of a stereo pair, or the frames of a shot.
        area: share of a picture's area that a crop takes, least and greatest; ``None``: crops are sized in pixels.
    """

    name: str
    kind: str
    split: str
    frames: Sequence[np.ndarray]
    area: tuple[float, float] | None = None


def load_originals(source: str, recipes: Iterable[str]) -> list[Original]:
    """Originals of one or more image recipes, in the order of the recipes.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: a source is not offered or cannot be had, or a file cannot be decoded.
    """
    return [original for name in recipes for original in originals_of(load(name), source)]


def originals_of(recipe: Recipe, source: str) -> list[Original]:
    """:func:`load_originals` for one recipe that is already read."""
    recipe.require(source)
    if source == "generated":
        return _generated(recipe)
    if source in ("hub", "local"):
        return _folders(recipe, source)
    found = fetch.fetch_recipe(recipe, source)
    return _reader(recipe)(recipe, found)


def _reader(recipe: Recipe) -> Callable[[Recipe, Files], list[Original]]:
    if "columns" in recipe.read:
        return _emoji_sheets
    return _shots if "every" in recipe.read else _stills


def _generated(recipe: Recipe) -> list[Original]:
    module, _, function = recipe.generated["function"].partition(":")
    pictures = getattr(importlib.import_module(f"jepa_nb.worlds.{module}"), function)(**recipe.generated["arguments"])
    every = recipe.read["validation_every"]
    return [Original(f"{index:03d}", recipe.read["kind"], "val" if index % every == every - 1 else "train", [picture])
            for index, picture in enumerate(pictures)]


def _folders(recipe: Recipe, source: str) -> list[Original]:
    roots = folders.roots(recipe, source)
    area = tuple(recipe.read["area"])
    return [Original(path.stem, recipe.read["kind"], split, folders.Decoded([path]), area)
            for split, root in roots.items() for path in folders.images(root, getattr(recipe, source)["images"][split])]


def _stills(recipe: Recipe, found: Files) -> list[Original]:
    return [Original(entry["name"], recipe.read["kind"], entry["split"], [folders.decode(found[file]) for file in entry["files"]])
            for entry in recipe.read["originals"]]


def _shots(recipe: Recipe, found: Files) -> list[Original]:
    every = recipe.read["every"]
    clips = {clip: _clip(path, every) for clip, path in found.items()}
    originals = []
    for entry in recipe.read["originals"]:
        first, end = entry["frames"]
        kept = clips[entry["clip"]][-(-first // every):-(-end // every)]
        originals.append(Original(entry["name"], recipe.read["kind"], entry["split"], list(kept)))
    return originals


def _clip(path: Path, every: int) -> np.ndarray:
    """Frames 0, every, 2 every, ... as one array (F, H, W, 3), decoded once and then mapped from the cache."""
    place = paths.cache() / "frames" / f"{path.stem}-{files.sha256(path)[:16]}-{every}.npy"
    with disk_errors(f"the frames of {path.name}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not place.is_file():
                with files.atomic(place) as temporary:
                    np.save(temporary, _decode_clip(path, every), allow_pickle=False)
    try:
        return np.load(place, mmap_mode="r", allow_pickle=False)
    except ValueError as fault:
        raise DataError(f"cached frames {place.name} are damaged ({fault}); delete {place} and run again.") from fault


def _decode_clip(path: Path, every: int) -> np.ndarray:
    import av

    try:
        with av.open(str(path)) as container:
            frames = container.decode(video=0)
            return np.stack([frame.to_ndarray(format="rgb24") for index, frame in enumerate(frames) if index % every == 0])
    except (av.FFmpegError, IndexError, ValueError) as fault:
        raise DataError(f"{path.name} cannot be decoded ({fault}); run `python -m jepa_nb data verify`.") from fault


# Skin tones, the variation selector and the gender signs (parts dropped), and woman and man (both read as person): what is
# left names the design of an emoji.
_DROPPED = re.compile(r"^(1f3f[b-f]|fe0f|200d|2640|2642)$")
_PERSON = {"1f468": "1f9d1", "1f469": "1f9d1"}
_TONE = re.compile(r"1f3f[b-f]")


def design(name: str) -> str:
    """The design an emoji file belongs to: ``1f469-200d-1f680`` and ``1f468-200d-1f680`` share one."""
    return "-".join(_PERSON.get(part, part) for part in name.split("-") if not _DROPPED.match(part))


def emoji_split(name: str, validation_share: float) -> str:
    """``"train"`` or ``"val"``, the same for all emoji of one design."""
    return "val" if seeds.stream(0, "emoji", design(name)) % 1000 < 1000 * validation_share else "train"


def _emoji_sheets(recipe: Recipe, found: Files) -> list[Original]:
    read = recipe.read
    (archive,) = found.values()
    with zipfile.ZipFile(archive) as content:
        inside = sorted(entry for entry in content.namelist() if entry.startswith(read["folder"]) and entry.endswith(".png"))
        emoji = {Path(entry).stem: content.read(entry) for entry in inside if not _TONE.search(Path(entry).stem)}
    originals = []
    for split in ("train", "val"):
        names = [name for name in emoji if emoji_split(name, read["validation_share"]) == split]
        generator = seeds.numpy_generator(0, "emoji", "sheets", split)
        names = [names[i] for i in generator.permutation(len(names))]
        for first in range(0, len(names), read["columns"] ** 2):
            chosen = [emoji[name] for name in names[first:first + read["columns"] ** 2]]
            sheet = _sheet(chosen, read["columns"], read["cell"], generator)
            originals.append(Original(f"{split}_{first // read['columns'] ** 2:03d}", read["kind"], split, [sheet]))
    return originals


def _sheet(emoji: Sequence[bytes], columns: int, cell: int, generator: np.random.Generator) -> np.ndarray:
    """Emoji on white, one in each cell of a square grid at a random place within it; (columns * cell, columns * cell, 3)."""
    sheet = Image.new("RGBA", (columns * cell, columns * cell), "white")
    for place, data in enumerate(emoji):
        picture = Image.open(io.BytesIO(data)).convert("RGBA")
        row, column = divmod(place, columns)
        shift = generator.integers(0, [cell - picture.width + 1, cell - picture.height + 1])
        sheet.alpha_composite(picture, (int(column * cell + shift[0]), int(row * cell + shift[1])))
    return np.asarray(sheet.convert("RGB"))
