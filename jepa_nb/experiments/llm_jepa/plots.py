"""Paper C's fifteen figures by name, and the tidy table under each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jepa_nb.errors import require_known
from jepa_nb.experiments.llm_jepa import plots_accuracy, plots_audit, plots_costs, plots_tables, plots_views
from jepa_nb.experiments.llm_jepa.study import COLUMNS, Study
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[..., Figure]] = {
    "llm_jepa_fig1_accuracy": plots_accuracy.accuracy, "llm_jepa_fig3_loss_curves": plots_accuracy.loss_curves,
    "llm_jepa_fig4_tsne": plots_views.tsne, "llm_jepa_fig4_singular_values": plots_views.singular_values,
    "llm_jepa_fig5_loss_dropout": plots_costs.loss_dropout, "llm_jepa_tab2_pretraining": plots_tables.pretraining,
    "llm_jepa_tab3_ablation": plots_tables.ablation, "llm_jepa_tab4_qa_reasoning": plots_tables.reasoning,
    "llm_jepa_tab10_gamma": plots_tables.gamma, "llm_jepa_tab12_models_datasets": plots_tables.models,
    "llm_jepa_lora_ranks": plots_tables.lora, "llm_jepa_lambda_k": plots_costs.lambda_k,
    "llm_jepa_inference_cost": plots_costs.inference_cost,
    "llm_jepa_ext_published_pitfalls": plots_audit.published_pitfalls, "llm_jepa_ext_audit": plots_audit.audit}

_ACCURACY = ("accuracy", "empty_share")
_GEOMETRY = ("cosine", "retrieval_at_1", "jepa_distance")
METRICS: dict[str, tuple[str, ...]] = {
    "llm_jepa_fig1_accuracy": _ACCURACY, "llm_jepa_fig3_loss_curves": ("ntp_loss", "jepa_distance", "loss"),
    "llm_jepa_fig5_loss_dropout": ("accuracy", "pflops", "seconds", "tokens"), "llm_jepa_lambda_k": ("accuracy", "pflops", "seconds"),
    "llm_jepa_inference_cost": ("tokens_per_second", "weights"), "llm_jepa_ext_published_pitfalls": _ACCURACY,
    "llm_jepa_ext_audit": ("accuracy", *_GEOMETRY)}


def draw(name: str, study: Study, context: RunContext, **choices: Any) -> Figure:
    """The figure of that name; ``choices`` are the notebook's own parameters.

    Raises:
        UnknownName: no such figure.
    """
    return FIGURES[require_known("figure", name, FIGURES)](study, context, **choices)


def table_under(name: str, study: Study) -> pd.DataFrame:
    """The tidy rows under a figure in a fixed order: the metrics that it draws of the study's arms, the places of the views for the t-SNE
    of the first seed, and singular values with their number.

    Raises:
        UnknownName: no such figure.
    """
    require_known("figure", name, FIGURES)
    if name == "llm_jepa_fig4_tsne":
        return plots_views.embedding(study, plots_views.shown_seed(study))
    if name == "llm_jepa_fig4_singular_values":
        return _with_residuals(study)
    rows = study.table[study.table["metric"].isin(METRICS.get(name, _ACCURACY))]
    rows = rows[np.isfinite(rows["value"])]
    return rows.sort_values([column for column in COLUMNS if column not in ("epoch", "value")]).reset_index(drop=True)


def _with_residuals(study: Study) -> pd.DataFrame:
    """Singular values and the held-out residual of the linear map: columns arm, seed, metric, variant, number, value."""
    values = plots_views.spectra(study).assign(metric="singular_value")
    rows = study.table[study.table["arm"].isin(plots_views.ARMS) & (study.table["metric"] == "linear_residual")]
    last = rows[np.isfinite(rows["value"])].sort_values("step").drop_duplicates(["arm", "seed", "variant"], keep="last").assign(number=1)
    columns = ["arm", "seed", "metric", "variant", "number", "value"]
    return pd.concat([values, last])[columns].sort_values(columns[:-1]).reset_index(drop=True)
