"""The command line: one sentence and status 1 for a fault that can be mended, 130 for Ctrl-C, no torch until it is needed."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from jepa_nb import cli, paths
from jepa_nb.errors import DataError
from jepa_nb.experiments import registry
from jepa_nb.experiments.registry import PlannedRun
from jepa_nb.workflow import __main__ as workflow


def sentence(capsys: pytest.CaptureFixture, *argv: str) -> str:
    """Standard error of a command that fails with status 1, which must be one line."""
    assert cli.main(argv) == 1
    error = capsys.readouterr().err.strip()
    assert "\n" not in error and "Traceback" not in error
    return error


def test_an_unknown_tier_gets_the_nearest_one(capsys):
    assert "did you mean 'laptop'?" in sentence(capsys, "run", "--plan", "--tier", "labtop")


def test_run_without_keys_says_what_to_give(capsys):
    assert "--plan" in sentence(capsys, "run", "--tier", "smoke")


def test_an_unknown_run_is_named(capsys):
    assert "0000000000000000" in sentence(capsys, "run", "0000000000000000", "--tier", "smoke")


def test_an_unknown_recipe_gets_the_nearest_one(capsys):
    status = cli.main(["data", "fetch", "imbd"])
    shown = capsys.readouterr()
    assert status == 1 and "did you mean 'imdb'?" in shown.out + shown.err


def test_the_recipes_are_listed(capsys):
    assert cli.main(["data", "list"]) == 0
    assert "imdb" in capsys.readouterr().out


def test_the_plan_shows_each_run_once_with_the_notebooks_that_share_it(capsys, monkeypatch):
    plans = {"a/x": [PlannedRun("k1", "first", 30.0, (), ())], "a/y": [PlannedRun("k1", "first", 30.0, (), ()),
                                                                      PlannedRun("k2", "second", 12.5, ("k1",), ())]}
    monkeypatch.setattr(registry, "plan", lambda name, tier: plans[name])
    assert cli.show_plan(list(plans), "laptop") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "30.0 s" in lines[0] and "<- a/x, a/y" in lines[0] and "12.5 s" in lines[1]
    assert lines[2].startswith("2 runs of tier laptop, 42 s")


def test_a_mendable_fault_is_one_sentence(capsys):
    def fails(arguments):
        raise DataError("the archive is truncated; fetch it again.")

    assert cli.guarded(fails, argparse.Namespace()) == 1
    assert capsys.readouterr().err == "the archive is truncated; fetch it again.\n"


def test_a_fault_of_the_program_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        cli.guarded(lambda arguments: 1 // 0, argparse.Namespace())


def test_ctrl_c_says_that_it_can_be_resumed(capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    assert cli.guarded(interrupted, argparse.Namespace()) == cli.INTERRUPTED
    assert "goes on from there" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "expected"), [(["--tier", "smok"], "did you mean 'smoke'?"),
                                                     (["--only", "paradox/fig22"], "did you mean")])
def test_figures_checks_names_before_anything_runs(capsys, arguments, expected, monkeypatch):
    monkeypatch.setattr(workflow.subprocess, "Popen", lambda *a, **k: pytest.fail("something ran"))
    assert cli.guarded(workflow.run, workflow.parser().parse_args(["figures", *arguments])) == 1
    assert expected in capsys.readouterr().err


def test_options_after_the_dashes_reach_snakemake():
    arguments = workflow.parser().parse_args(["figures", "--tier", "smoke", "--", "--dry-run"])
    assert workflow._command(arguments, "smoke")[-1] == "--dry-run"


def test_planning_loads_no_torch():
    code = ("import sys; from jepa_nb import cli; status = cli.main(['run', '--plan', '--tier', 'laptop']); "
            "import jepa_nb.workflow.plan, jepa_nb.workflow.progress, jepa_nb.workflow.notebook, jepa_nb.doctor; "
            "sys.exit(status or 'torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.project(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
