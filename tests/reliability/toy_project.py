"""A small copy of this project: the same Snakefile and package, three tiny notebooks, and an experiment that counts its runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat

COPIED = ("Snakefile", "pyproject.toml", "requirements.lock", "jepa_nb", "data_recipes")
EXPERIMENT = '''
from types import SimpleNamespace

from jepa_nb import config, paths
from jepa_nb.experiments.toy.config import VALUES

NOTEBOOK_MODULES = ("jepa_nb.experiments.toy.jobs",)


def jobs(tier, arms, **changes):
    return [_job(tier, arm) for arm in arms]


def _job(tier, arm):
    key = config.fingerprint([tier, arm, VALUES[arm]])

    def run():
        with (paths.build() / "trained.log").open("a") as log:
            log.write(f"{arm}\\n")

    return SimpleNamespace(spec=SimpleNamespace(key=key), label=arm, arm=arm, seed=0, seconds=1.0, needs=(), recipes=(), data={},
                           run=run)
'''
NOTEBOOKS = {"00_start_here": [], "toy/one": ["a"], "toy/two": ["a", "b"]}


def notebook(arms: list[str], body: str, *, figure: str = "") -> nbformat.NotebookNode:
    """A notebook with a parameters cell and one cell of code."""
    parameters = nbformat.v4.new_code_cell('tier: str = "default"  # tier', id="parameters", metadata={"tags": ["parameters"]})
    about = {"headline": True, "experiment": "toy" if arms else None, "arms": arms, "figure": figure,
             "seconds": {"smoke": 1, "laptop": 1}}
    made = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell(body, id="body")])
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata |= {"jepa_nb": about, "kernelspec": kernel}
    return made


@dataclass
class Toy:
    """The copy; ``trained`` and ``executed`` say what has run since the last look."""

    root: Path

    @classmethod
    def make(cls, project: Path, root: Path) -> Toy:
        """Copy the project's workflow and give it the toy experiment."""
        for name in COPIED:
            source = project / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, root / name, **({"ignore": shutil.ignore_patterns("__pycache__")} if source.is_dir() else {}))
        (root / "jepa_nb/experiments/toy").mkdir()
        (root / "jepa_nb/experiments/toy/__init__.py").touch()
        (root / "jepa_nb/experiments/toy/jobs.py").write_text(EXPERIMENT)
        with (root / "jepa_nb/experiments/registry.py").open("a") as registry:
            registry.write('\nJOBS["toy"] = "jepa_nb.experiments.toy.jobs"\n')
        toy = cls(root)
        toy.configure(a=1, b=2)
        for name, arms in NOTEBOOKS.items():
            toy.write(name, arms)
        (root / "figures").mkdir()
        return toy

    def configure(self, **values: int) -> None:
        """Set the configuration value of each arm."""
        (self.root / "jepa_nb/experiments/toy/config.py").write_text(f"VALUES = {values!r}\n")

    def write(self, name: str, arms: list[str], *, extra: str = "", figure: str = "") -> None:
        """Write a notebook whose execution leaves a line in ``executed.log``."""
        trace = f"with (paths.build() / 'executed.log').open('a') as log:\n    log.write('{name}\\n')\n"
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(arms, f"from jepa_nb import paths\n{trace}{extra}", figure=figure), path)

    def figures(self, *arguments: str) -> subprocess.CompletedProcess:
        """What ``make figures`` calls, in this copy."""
        command = [sys.executable, "-m", "jepa_nb.workflow", "figures", "--cores", "2", *arguments]
        return subprocess.run(command, cwd=self.root, env=self.environment(), capture_output=True, text=True, timeout=600)

    def environment(self) -> dict[str, str]:
        """The environment without this test session's folders, and with the copy's package."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JEPA_NB")}
        return kept | {"PYTHONPATH": str(self.root), "JUPYTER_PREFER_ENV_PATH": "1"}

    def trained(self) -> list[str]:
        """Arms that were trained since the last call."""
        return self._since("trained.log")

    def executed(self) -> list[str]:
        """Notebooks that were executed since the last call."""
        return self._since("executed.log")

    def _since(self, name: str) -> list[str]:
        file = self.root / "build" / name
        lines = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return sorted(lines)

    def parameters_of(self, name: str, tier: str) -> dict:
        """Parameters that papermill recorded in the executed notebook."""
        executed = json.loads((self.root / "build" / tier / "notebooks" / f"{name}.ipynb").read_text())
        return executed["metadata"]["papermill"]["parameters"]
