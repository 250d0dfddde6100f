"""Pinned packages as carriers of data: download with pip, read single members. No package is installed or imported."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from jepa_nb import paths
from jepa_nb.data.recipes import Package
from jepa_nb.errors import DataError

Opener = Callable[[str], BinaryIO]
"""Opens a member by its path inside a package; raises ``KeyError`` where the package lacks it."""

Download = Callable[[Package, Path], Path]
"""Puts the archive of a package into an empty folder and returns its path; raises ``DataError``."""


def pip_download(package: Package, folder: Path) -> Path:
    """Fetch the archive of a pinned package, without its dependencies, through this Python's own pip.

    Raises:
        DataError: pip failed; the text carries pip's last error line and the remedy.
    """
    kind = ["--only-binary", ":all:"] if package.format == "wheel" else ["--no-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check",
               "--retries", "2", "--quiet", *kind, "-d", str(folder), package.package]
    done = subprocess.run(command, capture_output=True, text=True)
    found = sorted(folder.iterdir())
    if done.returncode or len(found) != 1:
        raise DataError(f"could not fetch {package.package} ({_last_error(done.stderr)}); check the network or the pip index, "
                        "then run `python -m jepa_nb data fetch` again.")
    return found[0]


def _last_error(stderr: str) -> str:
    """The line that says why: pip's last ``ERROR``, or its last line; warnings about skipped links are noise."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and "is ignored" not in line]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1].rstrip(".")


@contextlib.contextmanager
def open_archive(archive: Path) -> Iterator[Opener]:
    """Open a wheel (zip) or an sdist (tar.gz; its one top folder is left out of member paths).

    Raises:
        DataError: the archive is truncated or damaged, when it is opened or while a member is read.
    """
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as content:
                yield content.open
        else:
            with tarfile.open(archive, "r:gz") as content:
                yield _tar_opener(content)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as fault:
        # A full disk is reported by the writer; only reading errors of the archive mean that it is damaged.
        if isinstance(fault, OSError) and fault.errno is not None:
            raise
        raise DataError(f"archive {archive.name} is truncated or damaged ({fault}); "
                        "run `python -m jepa_nb data fetch` again to replace it.") from fault


def _tar_opener(content: tarfile.TarFile) -> Opener:
    inside = {name.partition("/")[2]: name for name in content.getnames()}

    def opener(path: str) -> BinaryIO:
        handle = content.extractfile(inside[path])
        if handle is None:
            raise KeyError(path)
        return handle

    return opener


def installed(package: Package) -> Opener | None:
    """Opener of the installed distribution, or ``None`` unless exactly the pinned version is installed.

    The environment already holds some of the packages that carry data; their files are then read in place, and checked
    like any other.
    """
    name, _, version = package.package.partition("==")
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != version:
        return None

    def opener(path: str) -> BinaryIO:
        file = Path(str(distribution.locate_file(path)))
        if not file.is_file():
            raise KeyError(path)
        return file.open("rb")

    return opener


@contextlib.contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn an operating system error inside the block into one sentence with the remedy.

    Raises:
        DataError: the disk is full, or the cache cannot be written.
    """
    try:
        yield
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(f"the disk is full while writing {what}; free some space, or point JEPA_NB_HOME "
                            f"(now {paths.cache()}) to a larger disk.") from fault
        raise DataError(f"cannot write {what} ({fault.strerror or fault}); make the cache writable, or point JEPA_NB_HOME "
                        f"(now {paths.cache()}) elsewhere.") from fault
