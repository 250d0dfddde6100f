"""Recipes: one TOML file per data set or pretrained weight, read and checked; nothing is fetched here.

A recipe offers one or more sources: ``embedded`` (files inside pinned packages), ``local`` (public files in
``$JEPA_NB_DATA``), ``hub`` (id and revision) and ``generated`` (a function of :mod:`jepa_nb.worlds`). Its table ``[read]``
says how the files become documents or originals: columns, splits, frames.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from jepa_nb import config, paths, provenance
from jepa_nb.errors import DataError, require_known

SOURCES = ("embedded", "local", "hub", "generated")
_FIELDS = {"name", "title", "licence", "needs", "read", *SOURCES}


@dataclass(frozen=True)
class Member:
    """One file inside a package: its path there, SHA-256, size in bytes, and, for CSV, the records below the header."""

    path: str
    sha256: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class Package:
    """A pinned package of the package index.

    Attributes:
        package: ``name==version``.
        format: ``"wheel"`` or ``"sdist"``.
        sha256: of the archive; empty where the archive depends on the platform, and then every member has its own.
        bytes: size of the archive, 0 where it depends on the platform.
        members: files that are extracted. Empty: the archive itself is the one member, read as it is.
    """

    package: str
    format: str = "wheel"
    sha256: str = ""
    bytes: int = 0
    members: tuple[Member, ...] = ()

    @property
    def key(self) -> str:
        """``name-version``, the package's folder in the cache."""
        return self.package.replace("==", "-")

    @property
    def archive(self) -> str:
        """File name of the archive in the cache."""
        return self.key + (".whl" if self.format == "wheel" else ".tar.gz")


@dataclass(frozen=True)
class Recipe:
    """A recipe as read; ``needs`` are the notebooks that use it."""

    name: str
    title: str
    licence: str
    needs: tuple[str, ...]
    embedded: tuple[Package, ...] = ()
    local: Mapping[str, Any] = field(default_factory=dict)
    hub: Mapping[str, Any] = field(default_factory=dict)
    generated: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the recipe offers."""
        return tuple(source for source in SOURCES if getattr(self, source))

    def require(self, source: str) -> str:
        """Return ``source`` if the recipe offers it.

        Raises:
            UnknownName: there is no source of that name.
            DataError: the recipe does not offer it; those offered are named.
        """
        require_known("source", source, SOURCES)
        if source not in self.sources:
            raise DataError(f"recipe '{self.name}' does not offer source '{source}'; it offers: {', '.join(self.sources)}.")
        return source


def offered(name: str, source: str) -> str:
    """``source`` where a recipe offers it, else its first: weights come from the hub also where a run's pairs are generated."""
    known = load(name).sources
    return source if source in known else known[0]


def names() -> list[str]:
    """Names of all recipes, sorted."""
    return sorted(file.stem for file in paths.recipes().glob("*.toml"))


def load(name: str) -> Recipe:
    """Read one recipe.

    Raises:
        UnknownName: there is no recipe of that name.
        DataError: the file is no valid recipe; the text names the file and the fault.
    """
    return parse(paths.recipes() / f"{require_known('recipe', name, names())}.toml")


def parse(file: Path) -> Recipe:
    """Read a recipe from a file; raises as :func:`load`."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        unknown = sorted(set(table) - _FIELDS)
        if unknown:
            raise ValueError(f"unknown field '{unknown[0]}'")
        packages = tuple(_package(entry) for entry in table.pop("embedded", []))
        recipe = Recipe(embedded=packages, needs=tuple(table.pop("needs")), **table)
        _check(recipe, file)
    except (KeyError, TypeError, ValueError) as fault:
        raise DataError(f"recipe file {file.name} cannot be used: {fault}; "
                        "see the other files of data_recipes for the form.") from fault
    return recipe


def _package(entry: dict[str, Any]) -> Package:
    members = tuple(Member(**member) for member in entry.pop("members", []))
    return Package(members=members, **entry)


def _check(recipe: Recipe, file: Path) -> None:
    if recipe.name != file.stem:
        raise ValueError(f"name '{recipe.name}' differs from the file's")
    if not recipe.sources:
        raise ValueError("it offers no source")
    for package in recipe.embedded:
        if package.package.count("==") != 1 or package.format not in ("wheel", "sdist"):
            raise ValueError(f"package '{package.package}' needs name==version and format wheel or sdist")
        if not package.sha256 and not package.members:
            raise ValueError(f"package '{package.package}' pins neither its archive nor members")
        for member in package.members:
            path = PurePosixPath(member.path)
            if path.is_absolute() or ".." in path.parts or len(member.sha256) != 64:
                raise ValueError(f"member '{member.path}' needs a relative path and a sha256 of 64 digits")


def fingerprint(name: str, source: str) -> str:
    """16 hex digits that name the content a source stands for; title, licence and ``needs`` don't count, and nothing is fetched.

    The code of a generator counts, so that changed generated data has another name.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: the recipe does not offer the source.
    """
    return content_fingerprint(load(name), source)


def content_fingerprint(recipe: Recipe, source: str) -> str:
    """:func:`fingerprint` of a recipe that is already read."""
    recipe.require(source)
    pinned = [asdict(package) for package in recipe.embedded] if source == "embedded" else dict(getattr(recipe, source))
    code = ""
    if source == "generated":
        code = provenance.code_fingerprint([f"jepa_nb.worlds.{recipe.generated['function'].split(':')[0]}"])
    return config.fingerprint({"name": recipe.name, "source": source, "pinned": pinned, "read": dict(recipe.read), "code": code})
