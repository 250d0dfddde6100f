"""Fetch the files of a recipe once, check them always. The cache changes only by renaming complete, checked files.

Layout of the cache: ``archives/`` (downloaded packages), ``members/<name-version>/`` (extracted files), ``locks/``.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from filelock import FileLock

from jepa_nb import files, paths
from jepa_nb.data import archives, hub
from jepa_nb.data.archives import Download, Opener, disk_errors, open_archive, pip_download
from jepa_nb.data.recipes import Member, Package, Recipe, load
from jepa_nb.errors import DataError

KEEP_ARCHIVE_BYTES = 50_000_000

Supply = Callable[[], AbstractContextManager[Opener]]
"""Opens one place that a package's members can be read from."""


def fetch(name: str, source: str = "embedded", *, download: Download = pip_download) -> dict[str, Path]:
    """Path of every file of a recipe, by its name in the recipe; missing or damaged cached files are fetched again.

    ``embedded``: members of the packages, in the cache. ``local``: the public files of ``$JEPA_NB_DATA``. ``hub``: the
    folder of pretrained weights, or nothing for a data set, which is streamed. ``generated``: nothing, it is computed.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: the source is not offered, the network or the disk fails, or a file is not what was pinned.
    """
    return fetch_recipe(load(name), source, download=download)


def fetch_recipe(recipe: Recipe, source: str = "embedded", *, download: Download = pip_download) -> dict[str, Path]:
    """:func:`fetch` for a recipe that is already read."""
    recipe.require(source)
    if source == "local":
        return _local(recipe)
    if source == "hub":
        return hub.fetch_weights(recipe)
    found: dict[str, Path] = {}
    for package in recipe.embedded if source == "embedded" else ():
        found |= _fetch_package(package, download)
    return found


def verify(name: str) -> list[tuple[str, bool, str]]:
    """Check each embedded file in the cache against its recipe, without fetching: (member, ok, why not)."""
    recipe = load(name)
    checked = []
    for package in recipe.embedded:
        for member in _members(package):
            fault = _fault(_place(package, member), member, count_rows=True)
            checked.append((member.path, fault is None, fault or ""))
    return checked


def _members(package: Package) -> tuple[Member, ...]:
    """The files a package contributes: its members, or the archive itself where it has none."""
    return package.members or (Member(package.archive, package.sha256, package.bytes),)


def _place(package: Package, member: Member) -> Path:
    if not package.members:
        return paths.cache() / "archives" / package.archive
    return paths.cache() / "members" / package.key / member.path


def _fault(path: Path, member: Member, *, count_rows: bool) -> str | None:
    """Why ``path`` is not the pinned file, or ``None``. Equal sha256 imply equal rows, so those are counted only where new."""
    if not path.is_file():
        return "not fetched yet"
    if path.stat().st_size != member.bytes:
        return f"{path.stat().st_size} bytes instead of {member.bytes}"
    if files.sha256(path) != member.sha256:
        return "its sha256 is not the pinned one"
    if count_rows and member.rows is not None and _rows(path) != member.rows:
        return f"{_rows(path)} rows instead of {member.rows}"
    return None


def _rows(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as handle:
        return sum(1 for _ in csv.reader(handle)) - 1


def _missing(package: Package) -> list[Member]:
    return [member for member in _members(package) if _fault(_place(package, member), member, count_rows=False)]


def _fetch_package(package: Package, download: Download) -> dict[str, Path]:
    if _missing(package):
        with _locked(package):
            missing = _missing(package)  # another process may have fetched it while this one waited
            if missing:
                _supply(package, missing, download)
    return {member.path: _place(package, member) for member in _members(package)}


@contextmanager
def _locked(package: Package) -> Iterator[None]:
    with disk_errors("the data cache"):
        folder = paths.cache() / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{package.key}.lock")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _supply(package: Package, missing: list[Member], download: Download) -> None:
    """Extract ``missing`` from the installed package, the cached archive or a new download: the first that has all of them."""
    with disk_errors(package.package), _staging() as staging:
        for supply in _known_supplies(package):
            try:
                _install(package, missing, supply, staging)
                return
            except DataError:
                continue  # an edited environment or a damaged archive: fetch the real one, whose faults are reported
        folder = staging / "download"
        folder.mkdir()
        archive = download(package, folder)
        _check_archive(package, archive)
        if package.members:
            _install(package, missing, lambda: open_archive(archive), staging)
        if not package.members or archive.stat().st_size <= KEEP_ARCHIVE_BYTES:
            _rename(archive, paths.cache() / "archives" / package.archive)


def _known_supplies(package: Package) -> list[Supply]:
    if not package.members:
        return []
    supplies: list[Supply] = []
    present = archives.installed(package)
    if present is not None:
        supplies.append(lambda: nullcontext(present))
    cached = paths.cache() / "archives" / package.archive
    if cached.is_file():
        supplies.append(lambda: open_archive(cached))
    return supplies


@contextmanager
def _staging() -> Iterator[Path]:
    """A temporary folder inside the cache, so that renaming out of it never crosses a file system."""
    paths.cache().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".fetch-", dir=paths.cache()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _check_archive(package: Package, archive: Path) -> None:
    if package.sha256 and files.sha256(archive) != package.sha256:
        raise DataError(f"the archive of {package.package} has not the pinned sha256 (got {archive.stat().st_size} bytes); "
                        "a proxy or a mirror may have altered it: fetch again, from pypi.org if it persists.")


def _install(package: Package, missing: list[Member], supply: Supply, staging: Path) -> None:
    """Extract all members to temporary names, check each, and only then rename them into the cache."""
    folder = Path(tempfile.mkdtemp(dir=staging))
    extracted = []
    with supply() as opener:
        for number, member in enumerate(missing):
            path = folder / str(number)
            _extract(package, member, opener, path)
            extracted.append((path, _place(package, member)))
    for path, place in extracted:
        _rename(path, place)


def _extract(package: Package, member: Member, opener: Opener, path: Path) -> None:
    try:
        with opener(member.path) as inside, path.open("wb") as out:
            shutil.copyfileobj(inside, out, 1 << 20)
    except KeyError as fault:
        raise DataError(f"{package.package} has no member '{member.path}'; the recipe and the package disagree: update the "
                        "checkout.") from fault
    fault = _fault(path, member, count_rows=True)
    if fault:
        raise DataError(f"member '{member.path}' of {package.package} is not what the recipe pins ({fault}); fetch again, and "
                        "update the checkout if it persists.")


def _rename(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    files.sync(path)
    os.replace(path, place)


def _local(recipe: Recipe) -> dict[str, Path]:
    folder = paths.local_data()
    if folder is None:
        raise DataError(f"source 'local' of '{recipe.name}' needs JEPA_NB_DATA set to the folder with {_listed(recipe)}.")
    missing = [name for name in recipe.local["files"] if not (folder / name).exists()]
    if missing:
        raise DataError(f"'{missing[0]}' of '{recipe.name}' is not in JEPA_NB_DATA ({folder}); put it there under that name.")
    return {name: folder / name for name in recipe.local["files"]}


def _listed(recipe: Recipe) -> str:
    return ", ".join(f"'{name}'" for name in recipe.local["files"])
