"""The store of runs under everything that two processes and a bad disk can do to it.

1. Two processes ask for one run: one trains, the other says that it waits, and both read the same. 2. When the one that
trains is killed, the waiting one goes on from its checkpoint. 3. A damaged finished run is set aside with a warning and
trained again, be it the weights, the table or the record. 4. A corrupt newest checkpoint is passed over with a warning, a
half-written one is ignored, and the result is the same. 5. Where no checkpoint is whole, training starts again. 6. A
checkpoint of other sizes is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pandas as pd
import pytest
import small_runs
import torch
from small_runs import PER_EPOCH
from torch import nn

from jepa_nb import paths
from jepa_nb.errors import CheckpointError
from jepa_nb.training import checkpoint, store


class Stop(Exception):
    """Ends a training in this process as a kill would end it in another."""


def stop() -> None:
    raise Stop


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished image run, and what an attempt leaves that ended in its fifth epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JEPA_NB_BUILD", str(tmp_path_factory.mktemp("whole")))
        finished = small_runs.job("image").run()
        patch.setenv("JEPA_NB_BUILD", str(tmp_path_factory.mktemp("stopped")))
        with small_runs.stopped("between optimiser and EMA", 4 * PER_EPOCH + 2, stop), pytest.raises(Stop):
            small_runs.job("image").run()
        return finished, paths.runs() / f"{finished.key}.partial"


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path / "build"))
    return tmp_path


@pytest.fixture
def finished(whole, build):
    """A copy of the finished run in a store of its own."""
    return shutil.copytree(whole[0].folder, paths.runs() / whole[0].key)


@pytest.fixture
def partial(whole, build):
    """A copy of the unfinished run in a store of its own, with checkpoints after 9 and 12 steps."""
    copy = shutil.copytree(whole[1], paths.runs() / whole[1].name)
    assert [path.name for path in sorted(copy.glob("*"))] == [
        f"step-000000{step}.{suffix}" for step in ("09", "12") for suffix in ("json", "safetensors")]
    return copy


def flip(path, place=-50) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def wait_for(text: str, log, child) -> None:
    while child.exitcode is None and not (log.exists() and text in log.read_text()):
        time.sleep(0.005)
    assert text in log.read_text()


def two_at_once(build, *first_stops) -> tuple[list[int], str]:
    """Start a training, hold it in the middle until a second process has asked for the same run; exit statuses of both and
    what the second printed."""
    logs = [build / "first", build / "second"]
    first = small_runs.start("image", logs[0], *first_stops)
    wait_for("steps)", logs[0], first)
    os.kill(first.pid, signal.SIGSTOP)
    second = small_runs.start("image", logs[1])
    wait_for("waiting for it", logs[1], second)
    os.kill(first.pid, signal.SIGCONT)
    return [small_runs.ended(child) for child in (first, second)], logs[1].read_text()


def test_one_trains_and_the_other_waits(whole, build):
    statuses, second = two_at_once(build)
    assert statuses == [0, 0] and "steps)" not in second
    small_runs.same(store.find(whole[0].key), whole[0])


def test_the_waiting_one_goes_on_when_the_other_is_killed(whole, build):
    statuses, second = two_at_once(build, "at publication", 1)
    assert statuses == [-signal.SIGKILL, 0]
    assert "(36/36 steps)" in second and "(4/36 steps)" not in second
    small_runs.same(store.find(whole[0].key), whole[0])


def test_a_finished_run_is_read_and_not_trained(whole, finished, monkeypatch):
    monkeypatch.setattr(small_runs.jobs.Job, "_train", lambda *_: pytest.fail("it was trained again"))
    found = small_runs.job("image").run()
    small_runs.same(found, whole[0])
    assert found.seconds == whole[0].seconds and found.notes == whole[0].notes
    assert all(torch.equal(value, whole[0].tensors[name]) for name, value in found.tensors.items())


@pytest.mark.parametrize("name", [store.TABLE, store.WEIGHTS, store.RECORD])
@pytest.mark.parametrize("fault", ["changed", "cut off", "missing"])
def test_a_damaged_run_is_set_aside_and_trained_again(name, fault, finished, caplog):
    path = finished / name
    if fault == "changed":
        path.write_text(path.read_text()[:-3] + "x") if name == store.RECORD else flip(path)
    elif fault == "cut off":
        path.write_bytes(path.read_bytes()[:200])
    else:
        path.unlink()
    spec = store.RunSpec("toy", {}, {}, "", "")
    renamed = finished.rename(finished.with_name(spec.key))
    found = store.run(spec, lambda *_: store.Outcome(pd.DataFrame({"value": [2.0]}), {"w": torch.ones(2)}))
    assert found.table["value"].tolist() == [2.0] and store.find(spec.key) is not None
    (aside,) = renamed.parent.glob(f"{spec.key}.damaged-*")
    assert {path.name for path in aside.iterdir()} >= {store.TABLE, store.WEIGHTS, store.RECORD} - {name}
    assert "set aside" in caplog.text and name in caplog.text


def test_a_damaged_run_trained_again_equals_the_first(whole, finished, caplog):
    flip(finished / store.WEIGHTS)
    small_runs.same(small_runs.job("image").run(), whole[0])
    assert "checkpoint.safetensors is damaged" in caplog.text


def last_line_of_json(path) -> None:
    path.write_text(path.read_text()[:-20])


def other_values(path) -> None:
    body = json.loads(path.read_text())
    body["values"]["rows"][0]["value"] = 0.5
    path.write_text(json.dumps(body))


FAULTS = {"a flipped bit in the tensors": lambda json, tensors: flip(tensors),
          "tensors that were cut off": lambda json, tensors: tensors.write_bytes(tensors.read_bytes()[:1000]),
          "tensors that are missing": lambda json, tensors: tensors.unlink(),
          "JSON that was cut off": lambda json, tensors: last_line_of_json(json),
          "JSON without its fields": lambda json, tensors: json.write_text("{}"),
          "other values in the JSON": lambda json, tensors: other_values(json),
          "an empty JSON": lambda json, tensors: json.write_text("")}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_corrupt_newest_checkpoint_is_passed_over(fault, partial, caplog):
    FAULTS[fault](partial / "step-00000012.json", partial / "step-00000012.safetensors")
    found = checkpoint.load_latest(partial)
    assert found.step == 9
    assert "step-00000012" in caplog.text and "Going back to the checkpoint before it" in caplog.text


def test_training_goes_on_from_the_checkpoint_before_and_ends_the_same(whole, partial, caplog, capsys):
    flip(partial / "step-00000012.safetensors")
    small_runs.same(small_runs.job("image").run(), whole[0])
    assert "Going back" in caplog.text
    assert "(11/36 steps)" in capsys.readouterr().out


def test_half_written_checkpoints_are_ignored(partial, caplog):
    (partial / "step-00000015.safetensors").write_bytes(b"half")
    (partial / ".step-00000015.json.12345678.json").write_text('{"step": 15')
    assert checkpoint.load_latest(partial).step == 12
    assert not caplog.text


def test_without_a_whole_checkpoint_training_starts_again(whole, partial, caplog):
    for path in partial.glob("*.safetensors"):
        flip(path)
    small_runs.same(small_runs.job("image").run(), whole[0])
    assert caplog.text.count("is damaged") == 2


def test_two_checkpoints_are_kept_and_none_after_the_end(tmp_path):
    for step in (3, 6, 9, 12):
        checkpoint.save(tmp_path, checkpoint.Checkpoint(step, {"w": torch.full((2,), float(step))}, {"rows": [step]}))
    assert sorted(path.stem for path in tmp_path.glob("*.safetensors")) == ["step-00000009", "step-00000012"]
    found = checkpoint.load_latest(tmp_path)
    assert (found.step, found.tensors["w"].tolist(), found.values) == (12, [12.0, 12.0], {"rows": [12]})


def test_a_full_disk_leaves_the_former_checkpoints(partial, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    before = sorted(path.name for path in partial.iterdir())
    with pytest.raises(OSError, match="No space left"):
        small_runs.job("image").run()
    assert sorted(path.name for path in partial.iterdir()) == before
    assert not store.is_finished(small_runs.job("image").spec.key)


def test_a_checkpoint_of_another_network_is_refused():
    tensors = checkpoint.module_tensors({"net": nn.Linear(2, 2)})
    with pytest.raises(CheckpointError, match="does not fit 'net': entry 'bias' is on one side only"):
        checkpoint.restore_modules({"net": nn.Linear(2, 2, bias=False)}, tensors)


def test_tied_weights_are_stored_once_and_restored_tied():
    def tied():
        net = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
        net[1].weight = net[0].weight
        return net

    source, copy = tied(), tied()
    tensors = checkpoint.module_tensors({"net": source})
    assert list(tensors) == ["net:0.weight"]
    checkpoint.restore_modules({"net": copy}, tensors)
    assert torch.equal(copy[1].weight, source[0].weight) and copy[1].weight is copy[0].weight
