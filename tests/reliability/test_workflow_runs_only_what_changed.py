"""`make figures` on a small copy of the project, whose figures/ holds committed output and whose build/ is empty.

1. a fresh clone really runs, trains a shared run once, and publishes its figure; a call with nothing changed does nothing, in
   under 20 s;
2. after one notebook is edited, that notebook runs and nothing else;
3. after one value of the configuration is edited, the run that has it is trained and only the notebook that reads it runs;
4. another tier publishes nothing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from toy_project import Toy

FIGURE = '''import pandas as pd
from jepa_nb import figures
from jepa_nb.experiments import registry
fig, ax = figures.canvas()
figures.save("toy_one", fig, pd.DataFrame({"x": [1.0]}), [], context=registry.context("toy/one", tier=tier), title="toy")
'''


@pytest.fixture(scope="module")
def toy(tmp_path_factory, project: Path) -> Toy:
    """The copy after its first `make figures`; its two notebooks have run."""
    made = Toy.make(project, tmp_path_factory.mktemp("clone"))
    (made.root / "notebooks/00_start_here.ipynb").unlink()
    (made.root / "figures/toy_one.png").write_bytes(b"committed")
    made.write("toy/one", ["a"], extra=FIGURE, figure="toy_one")
    done = made.figures()
    assert done.returncode == 0, done.stderr
    assert f"Gallery: {made.root / 'build/gallery/index.html'}" in done.stdout and "[5/5]" in done.stderr
    return made


def test_a_fresh_clone_runs_and_then_there_is_nothing_to_do(toy: Toy):
    assert toy.trained() == ["a", "b"] and toy.executed() == ["toy/one", "toy/two"]
    assert toy.parameters_of("toy/one", "laptop")["tier"] == "laptop"
    assert (toy.root / "build/gallery/index.html").exists()
    assert (toy.root / "figures/toy_one.png").read_bytes() == (toy.root / "build/laptop/figures/toy_one.png").read_bytes()
    assert json.loads((toy.root / "figures/toy_one.json").read_text())["tier"] == "laptop"
    assert (toy.root / "figures/ledger.md").exists()
    started = time.monotonic()
    again = toy.figures()
    assert time.monotonic() - started < 20 and again.returncode == 0
    assert "nothing to do" in again.stderr and toy.trained() == [] and toy.executed() == []


def test_after_a_notebook_is_edited_it_alone_runs(toy: Toy):
    toy.write("toy/two", ["a", "b"], extra="edited = True\n")
    assert toy.figures().returncode == 0
    assert toy.trained() == [] and toy.executed() == ["toy/two"]


def test_after_a_configuration_value_is_edited_only_what_reads_it_runs(toy: Toy):
    toy.configure(a=1, b=3)
    assert toy.figures().returncode == 0
    assert toy.trained() == ["b"] and toy.executed() == ["toy/two"]


def test_one_notebook_at_another_tier_runs_alone_and_publishes_nothing(toy: Toy):
    (toy.root / "figures/toy_one.png").write_bytes(b"committed")
    assert toy.figures("--tier", "smoke", "--only", "toy/one").returncode == 0
    assert toy.trained() == ["a"] and toy.executed() == ["toy/one"]
    assert (toy.root / "figures/toy_one.png").read_bytes() == b"committed"
