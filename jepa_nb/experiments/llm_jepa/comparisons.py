"""Which arms each figure of Paper C compares, and the tests of these comparisons: paired by seed, two-sided, one-sided as the paper's, and
corrected for their number within the figure (Holm)."""

from __future__ import annotations

import math

import pandas as pd

from jepa_nb.errors import require_known
from jepa_nb.experiments.llm_jepa.arms import base_of
from jepa_nb.experiments.llm_jepa.measurements import arms_of, value
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.metrics.statistics import holm, paired_test

COLUMNS = ["comparison", "n", "difference (points)", "low", "high", "p two-sided", "p one-sided (greater)", "p Holm"]
TASKS = ("main", "sweep", "large", "sql", "word", "turk", "gemma")
MODELS = (*TASKS, "olmo")
QUESTIONS = ("smol", "word", "choice", "qwen", "distill")
RANKS = (8, 32, 64, 128, 256, 512)


def _jepa_over_ntp(*bases: str) -> list[tuple[str, str]]:
    return [(f"{base}.jepa", f"{base}.ntp") for base in bases]


def _at_sweep(*named: tuple[str, str]) -> list[tuple[str, str]]:
    return [(f"sweep.{arm}", f"sweep.{baseline}") for arm, baseline in named]


_MAIN, _SWEEP, _BEST = _jepa_over_ntp("main"), _jepa_over_ntp("sweep"), [("best(jepa)", "best(ntp)")]
PAIRS: dict[str, list[tuple[str, str]]] = {
    "llm_jepa_fig1_accuracy": _jepa_over_ntp(*TASKS), "llm_jepa_fig3_loss_curves": _MAIN, "llm_jepa_fig4_tsne": _MAIN,
    "llm_jepa_fig4_singular_values": _MAIN,
    "llm_jepa_fig5_loss_dropout": _at_sweep(("jepa", "ntp"), ("ntp_flops", "ntp"), ("jepa", "ntp_flops"), ("dropout50", "jepa"),
                                            ("dropout75", "jepa")),
    "llm_jepa_tab2_pretraining": [*_jepa_over_ntp("main", "scratch"), ("sentiment.from_jepa", "sentiment.from_ntp")],
    "llm_jepa_tab3_ablation": _SWEEP + _at_sweep(
        *((arm, "jepa") for arm in ("l2", "mse", "infonce", "prepend", "reverse", "mean_pool", "linear_predictor", "lam20_k3")),
        ("identical", "lam20_k3")),
    "llm_jepa_tab4_qa_reasoning": _jepa_over_ntp(*QUESTIONS),
    "llm_jepa_tab10_gamma": _SWEEP + _at_sweep(("gamma0", "jepa"), ("gamma01", "jepa"), ("lam20_k1", "jepa"), ("gamma_lam", "lam20_k1")),
    "llm_jepa_tab12_models_datasets": _jepa_over_ntp(*MODELS),
    "llm_jepa_lora_ranks": [*((f"adapters.lora{rank}_jepa", f"adapters.lora{rank}_ntp") for rank in RANKS), *_jepa_over_ntp("adapters")],
    "llm_jepa_lambda_k": [*_BEST, *_SWEEP], "llm_jepa_inference_cost": _MAIN,
    "llm_jepa_ext_published_pitfalls": _at_sweep(
        ("all_labels_ntp", "ntp"), ("all_labels_jepa", "jepa"), ("accumulated_jepa", "jepa"), ("undivided_jepa", "accumulated_jepa"),
        ("jepa", "ntp"), ("all_labels_jepa", "all_labels_ntp"), ("undivided_jepa", "ntp")),
    "llm_jepa_ext_audit": [*_MAIN, ("main.jepa", "main.shuffled"), ("main.jepa", "main.ntp_flops"), ("main.ntp_flops", "main.ntp"), *_BEST]}


def pairs(name: str) -> list[tuple[str, str]]:
    """Arm and baseline of each comparison of a figure, at any tier.

    Raises:
        UnknownName: no such figure.
    """
    return list(PAIRS[require_known("figure", name, PAIRS)])


def quantity(name: str, arm: str) -> str:
    """What is compared, in points: the answer's first characters for Table 2's training from scratch, else the run's own rule."""
    scratch = name == "llm_jepa_tab2_pretraining" and base_of(arm) in ("main", "scratch")
    return "points.startswith" if scratch else "points"


def made(name: str, study: Study) -> list[tuple[str, str]]:
    """The comparisons of a figure of which the study has both sides."""
    known = set(study.arms)
    return [pair for pair in pairs(name) if known.issuperset(arms_of(f"points:{pair[0]}-{pair[1]}"))]


def table(name: str, study: Study) -> pd.DataFrame:
    """Every comparison of a figure that the study has, as :data:`COLUMNS`: differences in points with 95 % t intervals over paired seeds.

    ``p Holm`` corrects the two-sided p-values of the figure's comparisons. With one pair of seeds there is a difference and no test:
    interval and p-values are NaN.

    Raises:
        UnknownName: no such figure.
    """
    rows = [_row(study, quantity(name, arm), arm, baseline) for arm, baseline in made(name, study)]
    found = pd.DataFrame(rows, columns=COLUMNS[:-1]).assign(**{"p Holm": math.nan})
    tested = found["p two-sided"].notna()
    found.loc[tested, "p Holm"] = holm(found.loc[tested, "p two-sided"])
    return found


def _row(study: Study, measured: str, arm: str, baseline: str) -> tuple:
    both = pd.concat([value(study, f"{measured}:{each}") for each in (arm, baseline)], axis=1, keys=("arm", "baseline")).dropna()
    name, n = f"{arm} − {baseline}", len(both)
    if n < 2:
        return (name, n, (both["arm"] - both["baseline"]).mean(), *[math.nan] * 4)
    two, one = (paired_test(both["arm"], both["baseline"], alternative=kind) for kind in ("two-sided", "greater"))
    return name, n, two.difference, two.low, two.high, two.p, one.p
