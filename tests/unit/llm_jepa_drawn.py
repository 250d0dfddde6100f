"""Test data for the plots of Paper C: a study of every arm with made-up numbers from a seeded generator, and claims with made-up numbers.

Nothing here was measured or reported. Values lie where measured ones could, so that axes and labels meet realistic ranges.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch

from jepa_nb import papers
from jepa_nb.device import resolve
from jepa_nb.experiments.llm_jepa.arms import METHODS, SEARCHES
from jepa_nb.experiments.llm_jepa.study import COLUMNS, Study
from jepa_nb.provenance import RunContext

SEEDS = (0, 1, 2)
EPOCHS, STEPS, PAIRS, WIDTH = 4, 100, 60, 32
LAPTOP = ("main", "sweep", "large", "sql", "word", "sentiment", "adapters", "smol")
OWN = {"sentiment": ("from_ntp", "from_jepa"), "main": ("ntp", "jepa", "shuffled", "ntp_flops"),
       "adapters": ("ntp", "jepa", *(name for name in METHODS if name.startswith("lora"))),
       "sweep": tuple(name for name in METHODS if not name.startswith(("lora", "from_")))}


def _named(base: str, *methods: str) -> list[str]:
    return [f"{base}.{method}" for method in methods]


_BOTH, _MAIN = ("ntp", "jepa"), _named("main", "ntp", "jepa")
_SEARCH = _named("sweep", "jepa", *SEARCHES["ntp"], *SEARCHES["jepa"])
_TASKS = [arm for base in ("main", "sweep", "large", "sql", "word") for arm in _named(base, *_BOTH)]
NOTEBOOKS = {  # arms of each notebook on a laptop
    "fig1_accuracy": _TASKS, "fig3_loss_curves": _MAIN, "fig4_tsne": _MAIN, "fig4_singular_values": _MAIN,
    "fig5_loss_dropout": _named("sweep", *_BOTH, "dropout50", "dropout75", "ntp_flops"),
    "tab2_pretraining": [*_MAIN, *_named("sentiment", "from_ntp", "from_jepa")],
    "tab3_ablation": _named("sweep", *_BOTH, "l2", "mse", "infonce", "prepend", "reverse", "mean_pool", "linear_predictor", "identical",
                            "lam20_k3"),
    "tab4_qa_reasoning": [*_named("smol", *_BOTH), *_named("word", *_BOTH)],
    "tab10_gamma": _named("sweep", *_BOTH, "gamma0", "gamma01", "gamma_lam", "lam20_k1"), "tab12_models_datasets": _TASKS,
    "lora_ranks": _named("adapters", *_BOTH, "lora8_ntp", "lora8_jepa", "lora32_ntp", "lora32_jepa"), "lambda_k": _SEARCH,
    "inference_cost": _MAIN,
    "ext_published_pitfalls": [*_named("sweep", *_BOTH, "all_labels_ntp", "all_labels_jepa", "accumulated_jepa", "undivided_jepa"),
                               *_named("sql", *_BOTH)],
    "ext_audit": [*_MAIN, "main.shuffled", "main.ntp_flops", *_SEARCH]}
BASE_LEVEL = {"main": 0.55, "sweep": 0.35, "large": 0.47, "sql": 0.2, "word": 0.12, "sentiment": 0.58, "adapters": 0.4, "smol": 0.15,
              "turk": 0.25, "gemma": 0.35, "olmo": 0.5, "qwen": 0.44, "distill": 0.14, "choice": 0.6, "scratch": 0.5}
LEVEL = {"l2": -0.2, "infonce": -0.1, "gamma0": -1.0, "gamma01": -0.1, "shuffled": -0.03, "rate_quarter": -0.1, "rate_five": -0.2}


class MadeUp(Study):
    """A study whose arms are listed once, since a figure asks for them hundreds of times."""

    arms = cached_property(Study.arms.fget)


def arms(*bases: str) -> list[str]:
    """Every arm of some bases."""
    return [f"{base}.{method}" for base in bases for method in OWN.get(base, ("ntp", "jepa"))]


def study(names: list[str] | None = None, *, seeds: tuple[int, ...] = SEEDS, standins: str = "test data, not a measurement") -> Study:
    """A study of some arms (all of a laptop's where None); ``smol`` has one seed, as on a laptop."""
    names = arms(*LAPTOP) if names is None else names
    runs = {(arm, seed): _run(arm, seed) for arm in names for seed in (seeds[:1] if arm.startswith("smol.") else seeds)}
    table = pd.DataFrame([(arm, seed, *row) for (arm, seed), (rows, _) in runs.items() for row in rows], columns=COLUMNS)
    sizes = {base: {"width": 128 if base == "main" else 64, "depth": 2, "n_train": {"main": 1600, "large": 4000}.get(base, 1000),
                    "recipe": "nl_rx_synth", "batch": 8, "epochs": 1 if base == "large" else EPOCHS,
                    "pretrained": "smollm2" if base == "smol" else ""} for base in dict.fromkeys(arm.partition(".")[0] for arm in names)}
    kept = {key: SimpleNamespace(tensors=views) for key, (_, views) in runs.items()}
    return MadeUp(table, sizes, dict.fromkeys(sizes, "test data"), standins, kept)


def context(seeds: tuple[int, ...] = SEEDS) -> RunContext:
    """A context without a notebook behind it."""
    return RunContext("llm_jepa/test", "laptop", seeds, resolve("cpu"))


def _run(arm: str, seed: int) -> tuple[list[tuple], dict[str, torch.Tensor]]:
    """Rows after (arm, seed) of :data:`COLUMNS`, and the views."""
    base, _, method = arm.partition(".")
    draw = np.random.default_rng([seed, *arm.encode()])
    jepa = "ntp" not in method and not method.startswith("rate")
    top = float(np.clip(BASE_LEVEL[base] + 0.04 * jepa + LEVEL.get(method, 0.0) + draw.normal(0, 0.02), 0, 1))
    rows = [(round(STEPS * epoch / EPOCHS), float(epoch), "test", *value) for epoch in range(EPOCHS + 1)
            for value in _evaluation(draw, top * (1 - np.exp(-1.2 * epoch)), epoch, jepa, base)]
    rows += [(step, EPOCHS * step / STEPS, "batch", "loss", name, float(scale * np.exp(-step / 30) + low + abs(draw.normal(0, 0.02))))
             for step in range(0, STEPS, 5) for name, scale, low in (("ntp", 4.0, 0.3), ("jepa", 0.5, 0.03)) if jepa or name == "ntp"]
    cost = 0.0031 * (1.52 - {"dropout50": 0.25, "dropout75": 0.38}.get(method, 0.0) if jepa else 1.5 if method == "ntp_flops" else 1.0)
    rows += [(STEPS, float(EPOCHS), *value) for value in (
        ("val", "accuracy", "rule", float(np.clip(top + draw.normal(0, 0.02), 0, 1))),
        ("train", "pflops", "counted", cost * draw.uniform(0.99, 1.01)), ("train", "seconds", "training", 9.0 * draw.uniform(0.9, 1.2)),
        ("train", "weights", "trained", 131_000.0 + 64 * jepa), ("train", "tokens", "forwarded", 4e5), ("train", "dropped", "pairs", 0.0))]
    text = draw.normal(size=(PAIRS, WIDTH)) * np.linspace(1, 0.05, WIDTH)
    code = text + (0.1 if jepa else 1.0) * draw.normal(size=(PAIRS, WIDTH)) * np.linspace(1, 0.02, WIDTH)
    return rows, {f"views:{name}": torch.tensor(each, dtype=torch.float32) for name, each in (("text", text), ("code", code))}


def _evaluation(draw: np.random.Generator, accuracy: float, epoch: int, jepa: bool, base: str) -> list[tuple[str, str, float]]:
    distance = float((0.5 * np.exp(-epoch) + 0.01 if jepa else 0.6 + 0.05 * epoch) * draw.uniform(0.9, 1.1))
    found = [("accuracy", "rule", accuracy), ("accuracy", "exact", 0.95 * accuracy), ("accuracy", "startswith", min(1.0, 1.05 * accuracy)),
             ("empty_share", "answers", 0.02), ("ntp_loss", "label", float(3 * np.exp(-epoch) + 0.4 * draw.uniform(0.95, 1.05))),
             ("jepa_distance", "cosine", distance), ("cosine", "paired", 1 - distance), ("cosine", "shuffled", 0.9 - distance),
             ("retrieval_at_1", "cosine", float(draw.uniform(0.05, 0.3))), ("spectrum_mean", "raw", distance),
             ("spectrum_mean", "normalised", distance), ("linear_residual", "held_out", float(draw.uniform(0.5, 0.8))),
             ("tokens_per_second", "greedy", float(draw.uniform(1500, 1900)))]
    return found + [("accuracy", "published", accuracy + 0.03)] * (base in ("sql", "smol"))


CLAIMS = {"main.ntp": (11.5, 2.5), "main.jepa": (22.25, 1.5), "sweep.l2": (3.75, 0.5), "turk.ntp": (33.0, 1.0), "turk.jepa": (44.5, 1.0),
          "adapters.lora64_ntp": (15.5, 1.0), "adapters.lora64_jepa": (26.75, 2.0), "sweep.dropout75": (41.0, 1.0)}

FIGURES = {"sweep.dropout75": "llm_jepa_fig5_loss_dropout", "sweep.l2": "llm_jepa_tab3_ablation",
           "adapters.lora64_ntp": "llm_jepa_lora_ranks", "adapters.lora64_jepa": "llm_jepa_lora_ranks"}


def claims() -> dict[str, papers.Claim]:
    """Claims of made-up values in the form of the real ones: points of some arms, with a spread."""
    return {f"T.{arm}": papers.Claim(f"T.{arm}", "llm_jepa", "test", "test", FIGURES.get(arm, "llm_jepa_fig1_accuracy"), "value",
                                     f"points:{arm}", "test", papers.Reported(("note",), value=value, sd=sd))
            for arm, (value, sd) in CLAIMS.items()}
