"""The doctor: one line a check, and a line that fails says what to do and makes the exit status 1."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from jepa_nb import cli, device, doctor, lock
from jepa_nb.data import recipes
from jepa_nb.errors import ConfigError

Usage = namedtuple("Usage", "total used free")


def test_a_failed_line_carries_its_remedy_and_a_good_one_does_not():
    assert str(doctor.Check("cache", False, "full", "free 3 GB")) == "[fail] cache: full; free 3 GB"
    assert str(doctor.Check("cache", True, "80 GB free", "free 3 GB")) == "[ok] cache: 80 GB free"


def test_packages_agree_with_the_lock():
    assert doctor.packages().ok


@pytest.mark.parametrize(("pin", "found"), [(lock.Pin("pytest", "0.1"), "instead of 0.1"),
                                            (lock.Pin("no-such-thing", "1"), "missing")])
def test_a_package_that_differs_from_the_lock_is_named(monkeypatch, pin, found):
    monkeypatch.setattr(lock, "read", lambda: [pin])
    check = doctor.packages()
    assert not check.ok and pin.name in str(check) and found in str(check) and "pip install -r requirements.lock" in str(check)


def test_a_pin_of_another_platform_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(lock, "read", lambda: [lock.Pin("no-such-thing", "1", 'platform_system == "Nowhere"')])
    assert doctor.packages().ok


def test_a_folder_that_takes_no_files_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    check = doctor.folder("cache", tmp_path / "file" / "cache")
    assert not check.ok and "JEPA_NB_HOME" in str(check)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1, 1, 5e8))
    check = doctor.folder("build", tmp_path)
    assert not check.ok and "0.5 GB free" in str(check) and "JEPA_NB_BUILD" in str(check)


def test_a_device_that_cannot_be_had_is_named(monkeypatch):
    def none():
        raise ConfigError("device 'cuda' was asked for but torch sees none")

    monkeypatch.setattr(device, "resolve", none)
    assert str(doctor.compute()).startswith("[fail] device: device 'cuda'")


def test_every_recipe_with_files_has_a_line_and_a_missing_one_its_command(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path))
    lines = {check.name: check for check in doctor.data()}
    assert set(lines) == {f"data {name}" for name in recipes.names() if recipes.load(name).embedded}
    assert "python -m jepa_nb data fetch imdb" in str(lines["data imdb"])


@pytest.mark.parametrize("ok", [True, False])
def test_the_exit_status_is_that_of_the_worst_line(monkeypatch, capsys, ok):
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Check("a", True, "fine"), doctor.Check("b", ok, "so", "mend it")])
    assert cli.main(["doctor"]) == (0 if ok else 1)
    assert len(capsys.readouterr().out.splitlines()) == 2
