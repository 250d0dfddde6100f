"""Claims, ledger, gallery and provenance load without torch, pandas, scipy or matplotlib, and the ledger without network."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "scipy", "numpy", "matplotlib", "transformers")


@pytest.mark.parametrize("module", ["jepa_nb.papers", "jepa_nb.provenance", "jepa_nb.ledger", "jepa_nb.gallery", "jepa_nb.looks",
                                    "jepa_nb.figures"])
def test_importing_loads_nothing_heavy(module, project):
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=project)
    assert done.stdout.split() == []


def test_judging_every_claim_needs_no_torch(project, tmp_path):
    code = ("import sys, pathlib; from jepa_nb import ledger; folder = pathlib.Path(sys.argv[1]); "
            "ledger.write(ledger.collect(folder), folder); "
            "ledger.judge(ledger.claim('A.mi_text_low'), ledger.Measurement([.1, .2]), tier='laptop'); "
            "print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True, cwd=project)
    assert done.stdout.strip() == "False" and (tmp_path / "ledger.tex").exists()
