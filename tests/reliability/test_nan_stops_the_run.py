"""A NaN or an infinity stops a run and is named.

1. In the loss, in a weight, in the output of a layer, in a gradient: the first bad tensor is named, and the step. 2. The last
checkpoint stays, and without the fault the run goes on from it to the same end. 3. A learning rate that explodes does it by
itself, in training and in the last step. 4. The masked LM is watched too. 5. A notebook shows the sentence and stays readable.
"""

from __future__ import annotations

import os
import subprocess
import sys

import nbformat
import pytest
import small_runs
import torch
from small_runs import PER_EPOCH

from jepa_nb import paths
from jepa_nb.device import resolve
from jepa_nb.errors import NonFinite
from jepa_nb.experiments.paradox import diagnostics, masked_lm
from jepa_nb.experiments.paradox.config import TIERS


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path / "build"))
    return tmp_path


@pytest.fixture(params=["text", "image"])
def training(request):
    return diagnostics.Training(getattr(TIERS["smoke"], request.param), resolve("cpu"))


def told(training, step=0) -> str:
    with pytest.raises(NonFinite) as fault:
        training.step(step)
    return str(fault.value)


def bad_from(count, monkeypatch, value=float("nan")) -> None:
    """Plant a bad value in every loss of a training step from the ``count``-th on."""
    real, calls = diagnostics.latent_loss, []

    def planted(*arguments, **options):
        calls.append(1)
        return real(*arguments, **options) * (value if len(calls) >= count else 1.0)

    monkeypatch.setattr(diagnostics, "latent_loss", planted)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bad_loss_is_named_with_its_step(training, monkeypatch, value):
    bad_from(1, monkeypatch, value)
    assert told(training, 4).startswith("step 4: first non-finite tensor is 'loss'")


def test_a_planted_nan_keeps_the_last_checkpoint_and_the_run_can_go_on(build, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("JEPA_NB_BUILD", str(build / "whole"))
        whole = small_runs.job("image").run()
    with monkeypatch.context() as patch:
        bad_from(4 * PER_EPOCH + 2, patch)
        for attempt in range(2):  # the same fault again: the checkpoint is not eaten up
            with pytest.raises(NonFinite, match="training stopped and the last checkpoint is kept"):
                small_runs.job("image").run()
            kept = sorted((paths.runs() / f"{whole.key}.partial").glob("*.json"))
            assert [path.stem for path in kept][-1] >= "step-00000012"
            bad_from(1, patch)
    assert not (paths.runs() / whole.key).exists()
    small_runs.same(small_runs.job("image").run(), whole)


def test_an_infinite_weight_is_named(training):
    name, value = next((name, value) for name, value in training.jepa.named_parameters() if name.endswith("dense.weight")
                       or name.endswith("fc1.weight"))
    with torch.no_grad():
        value[0, 0] = float("inf")
    assert f"'parameter jepa.{name}'" in told(training)


def test_the_output_that_went_bad_first_is_named(training):
    name, module = next((name, module) for name, module in training.jepa.predictor.named_modules()
                        if isinstance(module, torch.nn.LayerNorm))
    module.register_forward_hook(lambda _module, _inputs, output: output + float("nan"))
    assert f"'output of jepa.predictor.{name}'" in told(training)


def test_a_bad_gradient_is_named(training):
    name, value = list(training.jepa.named_parameters())[-1]
    value.register_hook(lambda gradient: gradient * float("inf"))
    text = told(training)
    assert f"'gradient of jepa.{name}' (seen in 'gradient norm')" in text


def test_the_networks_are_not_changed_by_the_bad_step(training, monkeypatch):
    bad_from(1, monkeypatch)
    before = {name: value.clone() for name, value in training.jepa.state_dict().items()}
    told(training)
    assert all(torch.equal(value, before[name]) for name, value in training.jepa.state_dict().items())


def test_a_learning_rate_that_explodes_stops_the_run():
    with pytest.raises(NonFinite, match="step [1-4]: first non-finite tensor is '(parameter|output of) jepa.context_encoder"):
        small_runs.job("image", lr_peak=1e35).run()


def test_an_explosion_in_the_last_step_is_found_by_the_evaluation(monkeypatch):
    real = diagnostics.schedule.warmup_cosine
    monkeypatch.setattr(diagnostics.schedule, "warmup_cosine",
                        lambda step, *rest: 1e35 if step == small_runs.STEPS - 1 else real(step, *rest))
    with pytest.raises(NonFinite, match="NaN or infinite values, .* look for the step that produced them"):
        small_runs.job("image").run()
    assert not (paths.runs() / small_runs.job("image").spec.key).exists()


def test_the_masked_lm_is_watched_too():
    training = masked_lm.Training(TIERS["smoke"].masked_lm, resolve("cpu"))
    name, value = next((name, value) for name, value in training.model.named_parameters() if name.endswith("dense.weight"))
    with torch.no_grad():
        value[0, 0] = float("nan")
    with pytest.raises(NonFinite, match=f"step 3: first non-finite tensor is 'parameter masked_lm.{name}'"):
        training.step(3)


def test_a_notebook_shows_the_sentence_and_stays_readable(build, project):
    out = build / "partial.ipynb"
    source = project / "notebooks/paradox/cosine_similarity.ipynb"
    command = [sys.executable, "-m", "papermill", str(source), str(out), "-p", "tier", "smoke",
               "-y", "{overrides: {lr_peak: 1.0e+35}, seeds: [0]}",
               "-k", "python3", "--no-progress-bar"]
    environment = os.environ | {"JUPYTER_PREFER_ENV_PATH": "1"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and "NonFinite" in done.stderr
    cells = nbformat.read(out, as_version=4).cells
    errors = [output for cell in cells for output in cell.get("outputs", ()) if output.output_type == "error"]
    assert [error.ename for error in errors] == ["NonFinite"]
    assert "first non-finite tensor is 'output of jepa.context_encoder" in errors[0].evalue
    assert "Lower the learning rate" in errors[0].evalue
    printed = str([cell.get("outputs") for cell in cells])
    assert "tier     smoke" in printed and not (paths.tier_build("smoke") / "figures").exists()
