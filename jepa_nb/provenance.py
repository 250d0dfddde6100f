"""Who made a file, from what: the context of a notebook's run, versions, the commit, and the fingerprint of code.

The fingerprint of code is over syntax trees, so comments, docstrings and layout don't count, and it covers the named
modules with everything of this package that they import, also inside functions. Modules named ``config`` are left out:
they hold the sizes, and the values that a run uses are in its key already, so that a new tier does not make old runs stale.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from jepa_nb import paths
from jepa_nb.device import Resolved
from jepa_nb.errors import UnknownName

PACKAGE = "jepa_nb"
RECORDED = ("numpy", "scipy", "pandas", "matplotlib", "torch", "transformers", "tokenizers", "timm", "safetensors")


@dataclass(frozen=True)
class RunContext:
    """What a notebook resolved before it ran.

    Attributes:
        notebook: ``"paradox/fig2_mi_and_rank"``.
        tier: ``"smoke"``, ``"laptop"``, ``"gpu"`` or ``"paper"``.
        seeds: data seeds of the figure's arms.
        resolved: device, dtype, attention and threads.
        parameters: the notebook's parameters as given.
        overrides: fields of the experiment that were changed.
        data: fingerprint of each recipe that was read, by recipe name.
        code: fingerprint of the modules that the experiment runs.
        output_dir: where figures go; ``None`` means ``build/<tier>/figures``.
    """

    notebook: str
    tier: str
    seeds: tuple[int, ...]
    resolved: Resolved
    parameters: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    code: str = ""
    output_dir: Path | None = None

    @property
    def figures(self) -> Path:
        """Folder that this run's figures are written to."""
        return Path(self.output_dir) if self.output_dir else paths.tier_build(self.tier) / "figures"


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that a number can depend on; nothing is imported."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    installed = {name: _version(name) for name in RECORDED}
    return found | {name: version for name, version in installed.items() if version}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str:
    """Commit of the checkout, with ``+changes`` where tracked files differ from it; ``"unknown"`` outside a git checkout."""
    root = paths.project()
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root.resolve():
        return "unknown"
    revision = _git("rev-parse", "HEAD")
    if revision is None:
        return "unknown"
    return revision + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(paths.project()), *arguments], capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def code_fingerprint(module_names: Iterable[str], length: int = 16) -> str:
    """First ``length`` hex digits of a SHA-256 over the syntax trees of some modules and of all that they import from here.

    Raises:
        UnknownName: a module does not exist in this package.
    """
    digest = hashlib.sha256()
    for name, file in sorted(imported(module_names).items()):
        digest.update(f"{name}={_read(file, file.stat().st_mtime_ns)[1]}\n".encode())
    return digest.hexdigest()[:length]


def imported(module_names: Iterable[str]) -> dict[str, Path]:
    """File of each named module and of each module of the package that they reach by import, ``config`` left out."""
    waiting, found = list(module_names), {}
    for name in waiting:
        if _file(name) is None:
            raise UnknownName("module", name, _all_modules())
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if name in found or file is None or name.rpartition(".")[2] == "config":
            continue
        found[name] = file
        waiting += _parents(name) + list(_imports(_read(file, file.stat().st_mtime_ns)[0], name, is_package=file.name == "__init__.py"))
    return found


@lru_cache(maxsize=None)
def _read(file: Path, _changed: int) -> tuple[ast.Module, str]:
    """Syntax tree of a file, and the SHA-256 of what counts of it; read once as long as the file does not change."""
    text = file.read_text(encoding="utf-8")
    counts = _canonical(_without_docstrings(ast.parse(text)))
    return ast.parse(text), hashlib.sha256(counts.encode()).hexdigest()


def _imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterable[str]:
    """Dotted names that may be modules of the package; names that are not are dropped by the caller."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join(above[:len(above) - node.level + 1] + ([base] if base else []))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _file(name: str) -> Path | None:
    if name.split(".")[0] != PACKAGE:
        return None
    base = Path(__file__).resolve().parent.joinpath(*name.split(".")[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _all_modules() -> list[str]:
    root = Path(__file__).resolve().parent
    files = [file.relative_to(root.parent).with_suffix("") for file in root.rglob("*.py")]
    return [".".join(file.parts[:-1] if file.name == "__init__" else file.parts) for file in files]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                node.body = node.body[1:]
    return tree


def _canonical(node: Any) -> str:
    """Text of a syntax tree without positions and empty fields, so that it is the same under Python 3.11 to 3.13."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({','.join(f'{name}={_canonical(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    return repr(node)
