"""What an import costs and touches, each in a process of its own in which opening a socket fails.

1. ``import jepa_nb`` takes at most .3 s and loads nothing of torch. 2. Planning every tier loads no torch. 3. Importing all
that trains opens no socket and leaves CUDA alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

BLOCKED = """
import json, socket, sys, time


class Refused(socket.socket):
    def __init__(self, *arguments, **options):
        raise AssertionError(f"a socket was opened: {arguments}")


socket.socket, socket.create_connection, socket.getaddrinfo = Refused, Refused, Refused
heavy = lambda: sorted({"torch", "transformers", "timm", "pandas", "scipy", "matplotlib"} & set(sys.modules))
"""


@pytest.fixture
def alone(project):
    """Run code with blocked sockets and return what it prints as JSON."""
    def run(code: str):
        done = subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=project, capture_output=True, text=True,
                              env=os.environ | {"JEPA_NB_TIER": "smoke"})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_importing_the_package_is_fast_and_loads_nothing_heavy(alone):
    code = "t = time.process_time(); import jepa_nb; print(json.dumps([time.process_time() - t, heavy()]))"
    seconds, loaded = alone(code)
    assert seconds <= 0.3 and loaded == []


def test_light_modules_load_no_torch(alone):
    names = ["errors", "paths", "files", "config", "seeds", "device", "provenance", "ledger", "gallery", "cli", "data.recipes",
             "experiments", "experiments.registry", "experiments.paradox.jobs", "training.store"]
    load = f"import importlib\nfor name in {names}: importlib.import_module('jepa_nb.' + name)\n"
    assert alone(load + "print(json.dumps('torch' in sys.modules))") is False


def test_every_tier_is_planned_without_torch(alone):
    code = """
from jepa_nb.config import TIERS
from jepa_nb.experiments import registry
count = sum(len(registry.plan(name, tier)) for name in registry.notebooks() for tier in TIERS)
print(json.dumps([count, "torch" in sys.modules]))
"""
    count, torch_loaded = alone(code)
    assert count > 50 and not torch_loaded


def test_importing_what_trains_touches_neither_network_nor_cuda(alone):
    code = """
from jepa_nb.experiments.paradox import diagnostics, execute, masked_lm, plots, study
import torch
print(json.dumps([torch.cuda.is_initialized(), heavy()]))
"""
    initialised, loaded = alone(code)
    assert not initialised and {"torch", "transformers", "timm"} <= set(loaded)
