"""Statistics of a run's regex pairs beside those of the public NL-RX-SYNTH file, which the generated pairs stand in for."""

from __future__ import annotations

import pandas as pd

from jepa_nb.data import recipes
from jepa_nb.data.pairs import load_pairs
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.metrics.pair_statistics import REGEX_OPERATORS, statistics

PUBLISHED = "nl_rx_synth"


def beside_published(study: Study, base: str = "main") -> pd.DataFrame:
    """One row a statistic: of the training pairs that a base reads, and of the public file, whose numbers stand in its recipe."""
    size = study.sizes[base]
    ours = statistics(load_pairs(size["source"], size["recipe"]).train, operators=REGEX_OPERATORS)
    return pd.DataFrame({f"{size['recipe']} ({size['source']})": ours, "NL-RX-SYNTH (public file)": recipes.load(PUBLISHED).read["published"]})
