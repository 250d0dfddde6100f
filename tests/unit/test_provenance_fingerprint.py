"""The fingerprint of code changes with code that a module reaches, and with nothing else.

1. Comments, docstrings and layout don't count. 2. Imports count, transitively, relative and inside functions.
3. Modules named ``config`` and modules that are not reached don't count. 4. The commit is of this checkout or unknown.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from jepa_nb import paths, provenance
from jepa_nb.errors import UnknownName

FILES = {
    "__init__.py": '"""Package."""\n',
    "top.py": "from jepa_nb import middle\n\n\ndef run():\n    from jepa_nb.metrics.far import measure\n"
              "    return measure(middle.VALUE)\n",
    "middle.py": "from .config import SIZE\nVALUE = 1\n",
    "config.py": "SIZE = 3\n",
    "unrelated.py": "OTHER = 1\n",
    "metrics/__init__.py": "",
    "metrics/far.py": 'from .near import scale\n\n\ndef measure(x):\n    """Doc."""\n    return scale(x)\n',
    "metrics/near.py": "import math\n\n\ndef scale(x):\n    return 2 * x  # doubled\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "jepa_nb"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(provenance, "__file__", str(root / "provenance.py"))
    return root


def fingerprint():
    return provenance.code_fingerprint(["jepa_nb.top"])


def test_it_reaches_all_imports_but_config(package):
    assert sorted(provenance.imported(["jepa_nb.top"])) == [
        "jepa_nb", "jepa_nb.metrics", "jepa_nb.metrics.far", "jepa_nb.metrics.near", "jepa_nb.middle", "jepa_nb.top"]


@pytest.mark.parametrize(("file", "text"), [
    ("metrics/near.py", "import math\n\ndef scale(x):\n    '''Says more.'''\n    # and more\n    return (2 *\n            x)\n"),
    ("unrelated.py", "OTHER = 2\n"), ("config.py", "SIZE = 4\n"), ("__init__.py", '"""Another docstring."""\n')])
def test_what_does_not_change_a_result_does_not_count(package, file, text):
    before = fingerprint()
    (package / file).write_text(text)
    assert fingerprint() == before


@pytest.mark.parametrize(("file", "before_text", "after_text"), [
    ("metrics/near.py", "2 * x", "3 * x"), ("middle.py", "VALUE = 1", "VALUE = 1.0"), ("top.py", "run()", "go()"),
    ("metrics/__init__.py", "", "FLAG = True\n"), ("metrics/near.py", "import math", "import cmath")])
def test_a_change_of_reached_code_counts(package, file, before_text, after_text):
    before = fingerprint()
    text = FILES[file]
    (package / file).write_text(text.replace(before_text, after_text, 1) if before_text else after_text)
    assert fingerprint() != before


def test_the_order_of_the_names_does_not_count(package):
    names = ["jepa_nb.top", "jepa_nb.unrelated"]
    assert provenance.code_fingerprint(names) == provenance.code_fingerprint(reversed(names))


def test_an_unknown_module_offers_the_nearest(package):
    with pytest.raises(UnknownName, match=r"jepa_nb\.metrics\.near"):
        provenance.code_fingerprint(["jepa_nb.metrics.nea"])


def test_versions_come_from_the_installed_packages():
    found = provenance.versions()
    assert re.fullmatch(r"3\.\d+\.\d+", found["python"]) and {"numpy", "scipy", "matplotlib"} <= set(found)


def test_the_commit_is_of_this_checkout(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    monkeypatch.setattr(paths, "project", lambda: tmp_path)
    assert provenance.commit() == "unknown"
    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "--no-verify", "-m", "one")
    head = git("rev-parse", "HEAD").strip()
    assert provenance.commit() == head
    (tmp_path / "file").write_text("2")
    assert provenance.commit() == head + "+changes"
    (tmp_path / "inside").mkdir()
    monkeypatch.setattr(paths, "project", lambda: tmp_path / "inside")
    assert provenance.commit() == "unknown"
