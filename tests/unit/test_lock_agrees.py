"""One list of dependencies: pyproject.toml, requirements.lock, environment.yml, the installed packages and the imports agree.

1. every entry of the list has a comment that says what needs it;
2. the lock pins exactly what the list leads to, at the installed versions;
3. environment.yml is what the list gives, installs the lock, and asks for a Python that the project accepts;
4. every third-party import in package, notebooks, tests and Snakefile is on the list;
5. every entry of the list is imported somewhere or named by the command that calls it.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from jepa_nb import lock

CALLED = {  # packages that a command or an option names: file and text
    "pytest-xdist": ("Makefile", "-n 2"), "nbval": ("Makefile", "--nbval-lax"), "jupyterlab": ("Makefile", "-m jupyterlab"),
    "papermill": ("jepa_nb/workflow/notebook.py", '"papermill"'), "snakemake": ("jepa_nb/workflow/__main__.py", '"snakemake"')}
LOADED = {  # packages that a library in use loads: text of that use
    "ipykernel": "python3", "ipywidgets": "tqdm.auto", "torchvision": "timm", "pyarrow": "parquet",
    "accelerate": "Trainer", "gguf": "gguf_file"}


def sources(project: Path) -> dict[str, str]:
    """Python text of everything that imports: files and notebooks' code cells."""
    files = [path for folder in ("jepa_nb", "tests") for path in sorted((project / folder).rglob("*.py"))]
    texts = {str(path): path.read_text(encoding="utf-8") for path in files}
    for path in sorted((project / "notebooks").rglob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        texts[str(path)] = re.sub(r"^[%!].*$", "", code, flags=re.MULTILINE)
    snakefile = (project / "Snakefile").read_text(encoding="utf-8")
    texts["Snakefile"] = "\n".join(line for line in snakefile.splitlines() if line.startswith(("import ", "from ")))
    return texts


def imported(project: Path) -> set[str]:
    """Top-level names that are imported anywhere, the standard library and this project left out."""
    names: set[str] = set()
    for text in sources(project).values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    own = {"jepa_nb"} | {path.stem for path in (project / "tests").rglob("*.py")}
    return names - own - set(sys.stdlib_module_names)


@lru_cache(maxsize=1)
def distributions() -> dict[str, set[str]]:
    """Package names that provide a top-level import name."""
    return {name: {canonicalize_name(found) for found in owners} for name, owners in metadata.packages_distributions().items()}


def recipe_packages(project: Path) -> set[tuple[str, str]]:
    """(name, version) of each package whose files are data; one that is installed is read in place."""
    texts = [path.read_text(encoding="utf-8") for path in (project / "data_recipes").glob("*.toml")]
    found = [pair for text in texts for pair in re.findall(r'^package = "(.+)==(.+)"', text, re.MULTILINE)]
    return {(canonicalize_name(name), version) for name, version in found}


def listed() -> dict[str, Requirement]:
    return {canonicalize_name(Requirement(text).name): Requirement(text) for text in lock.declared()}


def test_every_entry_says_what_needs_it():
    assert [entry.requirement for entry in lock.direct()] == lock.declared()


def test_the_lock_pins_what_the_list_leads_to():
    locked = {str(pin) for pin in lock.read() if pin.applies()}
    assert locked == {str(pin) for pin in lock.resolve(lock.declared()) if pin.applies()}


def test_the_pins_satisfy_the_list():
    versions = {pin.name: pin.version for pin in lock.read()}
    wrong = [f"{need} but {versions.get(name)} is locked" for name, need in listed().items()
             if name not in versions or versions[name] not in need.specifier]
    assert not wrong


def test_data_that_is_read_from_an_installed_package_has_the_locked_version(project: Path):
    versions = {pin.name: pin.version for pin in lock.read()}
    assert [pair for pair in recipe_packages(project) if versions.get(pair[0], pair[1]) != pair[1]] == []


def test_the_lock_names_no_index_and_pins_each_package_once(project: Path):
    pins = lock.read()
    assert len({pin.name for pin in pins}) == len(pins)
    assert not re.search(r"://|--|@", (project / lock.LOCK).read_text())


def test_the_environment_file_is_what_the_list_gives(project: Path):
    assert (project / lock.ENVIRONMENT).read_text() == lock.environment_text(lock.direct())


def test_the_environment_file_asks_for_an_accepted_python(project: Path):
    asked = re.search(r"- python=(\S+)", (project / lock.ENVIRONMENT).read_text())[1]
    declared = re.search(r'requires-python = "(.+)"', (project / lock.PROJECT).read_text())[1]
    assert f"{asked}.0" in SpecifierSet(declared)


def test_every_import_is_on_the_list(project: Path):
    known = set(listed())
    missing = sorted(name for name in imported(project) if not distributions().get(name, {canonicalize_name(name)}) & known)
    assert not missing, f"imported but not in {lock.PROJECT}: {', '.join(missing)}; add them, then `python -m jepa_nb.lock`"


def test_every_entry_is_used(project: Path):
    names = {package for name in imported(project) for package in distributions().get(name, set())}
    called = {package for package, (file, command) in CALLED.items() if command in (project / file).read_text()}
    text = "\n".join(sources(project).values())
    loaded = {package for package, user in LOADED.items() if user in text}
    data = {package for package, _ in recipe_packages(project)}
    unused = sorted(set(listed()) - names - called - loaded - data)
    assert not unused, f"on the list but neither imported nor called: {', '.join(unused)}; drop them from {lock.PROJECT}"


@pytest.mark.parametrize(("entry", "has_comment"), [('"colorama",  # nothing', True), ('"colorama",', False)])
def test_a_list_that_changed_is_noticed(project: Path, tmp_path: Path, entry: str, has_comment: bool):
    text = (project / lock.PROJECT).read_text().replace("dependencies = [\n", f"dependencies = [\n    {entry}\n", 1)
    (tmp_path / lock.PROJECT).write_text(text)
    listed_there = [each.requirement for each in lock.direct(tmp_path)]
    assert (listed_there == lock.declared(tmp_path)) is has_comment
    assert (lock.environment_text(lock.direct(tmp_path)) == lock.environment_text(lock.direct())) is not has_comment


def test_a_platform_condition_stays_in_the_lock():
    pins = {pin.name: pin for pin in lock.resolve(["torch"])}
    assert 'platform_system == "Linux"' in pins["triton"].marker and not pins["sympy"].marker
