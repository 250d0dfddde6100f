"""Which device, dtype and threads a run takes.

1. Without a driver ``auto`` is the CPU in float32, and torch is not even imported for it. 2. ``cuda`` where there is none is
one sentence. 3. With a driver it is CUDA under bfloat16. 4. The explanation is no part of a run's identity, the rest is.
5. Autocast and the number of threads hold inside their block only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from jepa_nb import device
from jepa_nb.errors import ConfigError, UnknownName


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setattr(device, "_cuda_available", lambda asked: False)


def test_auto_is_the_cpu_where_no_driver_is(no_driver):
    found = device.resolve()
    assert found.key() == {"device": "cpu", "dtype": "float32", "attention": "sdpa", "threads": 1}
    assert found.why == "cpu: no CUDA device is visible; float32: default there"


def test_cuda_where_there_is_none_is_a_sentence_with_a_remedy(no_driver):
    with pytest.raises(ConfigError, match="'cuda' was asked for but torch sees none; use device='auto' or 'cpu'"):
        device.resolve("cuda")


@pytest.mark.parametrize("asked", ["auto", "cuda"])
def test_with_a_driver_it_is_cuda_under_bfloat16(asked, monkeypatch):
    monkeypatch.setattr(device, "_cuda_available", lambda asked: True)
    found = device.resolve(asked)
    assert (found.device, found.dtype) == ("cuda", "bfloat16")
    assert device.resolve("cpu").device == "cpu"
    assert device.resolve(asked, "float32").dtype == "float32"


@pytest.mark.parametrize("arguments", [{"device": "mps"}, {"dtype": "float16"}])
def test_unknown_names_are_refused(arguments):
    with pytest.raises(UnknownName, match="unknown d"):
        device.resolve(**arguments)


@pytest.mark.parametrize("arguments", ["", "device='cpu'", "dtype='bfloat16', threads=2"])
def test_resolving_imports_no_torch(arguments, project):
    code = (f"import sys\nfrom jepa_nb import device\ndevice.Path.exists = lambda self: False\n"
            f"print(device.resolve({arguments}).device, 'torch' in sys.modules)")
    told = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["cpu", "False"]


def test_hidden_devices_are_not_looked_for(monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device.resolve().device == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert device.resolve().device == "cuda"


def test_identity_leaves_out_the_explanation_only():
    asked, default = device.resolve("cpu"), device.Resolved("cpu", "float32", "sdpa", 1, "other words")
    assert asked.key() == default.key() and asked.why != default.why
    for changed in (device.resolve("cpu", threads=2), device.resolve("cpu", "bfloat16")):
        assert changed.key() != asked.key()


def test_autocast_follows_the_dtype():
    a = torch.ones(2, 2)
    for dtype, result in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        with device.autocast(device.resolve("cpu", dtype)):
            assert (a @ a).dtype == result
    assert (a @ a).dtype == torch.float32


def test_threads_are_restored_after_the_block_and_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), device.threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_the_device_is_torchs_own():
    assert device.torch_device(device.resolve("cpu")) == torch.device("cpu")
