"""Trains one run of Paper A for the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from jepa_nb import device as devices
from jepa_nb.device import Resolved
from jepa_nb.experiments.paradox import diagnostics, masked_lm
from jepa_nb.experiments.paradox.config import MASKED_LM, Diagnostics, MaskedLM
from jepa_nb.training import store


def train(spec: store.RunSpec, folder: Path, resolved: Resolved, built_on: list[store.Run], label: str) -> store.Outcome:
    """Train the run that ``spec`` describes, going on from what ``folder`` holds.

    Args:
        spec: experiment and configuration.
        folder: checkpoints of an unfinished attempt.
        resolved: device, dtype and threads.
        built_on: finished runs it needs (a text run needs the masked LM).
        label: shown in the progress line.
    """
    with devices.threads(resolved.threads):
        if spec.experiment == MASKED_LM:
            training: Any = masked_lm.Training(MaskedLM(**spec.config), resolved)
        else:
            training = diagnostics.Training(Diagnostics(**spec.config), resolved)
            for run in built_on:
                training.use_completer(masked_lm.restored(MaskedLM(**run.spec["config"]), run.tensors))
        rows = training.run(folder, label)
    return store.Outcome(pd.DataFrame(rows), training.final_tensors(), training.notes())
