"""Each figure's finding as one sentence, written from the measured numbers and their intervals over data seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from jepa_nb.experiments.paradox.measurements import EARLY, RANK, TOKENS, Curves, at, late, measure
from jepa_nb.experiments.paradox.study import Study
from jepa_nb.experiments.wording import interval


def _mi_and_rank(scaled: Curves, unscaled: Curves) -> str:
    rank = {modality: scaled(TOKENS, RANK, modality, network="online") for modality in ("text", "image")}
    given = {modality: interval(late(scaled("mi", "position_conditioned", modality))) for modality in ("text", "image")}
    kept = interval(late(unscaled(TOKENS, RANK, "text", network="online")), log=True)
    return (f"Under the scaled recipe T-JEPA's effective rank goes from {interval(at(rank['text'], EARLY), log=True)} early to "
            f"{interval(late(rank['text']), log=True)} late and I-JEPA's from {interval(at(rank['image'], EARLY), log=True)} to "
            f"{interval(late(rank['image']), log=True)}; late MI given the position is {given['text']} nats for text and "
            f"{given['image']} for images; under the unscaled recipe T-JEPA ends at rank {kept}.")


def _loss_divergence(scaled: Curves, unscaled: Curves) -> str:
    known = measure(scaled.table)
    spike = known["loss.val.text.largest_rise_from_a_minimum"]()
    gap = known["loss.log_val_over_train.text.after_event_minus_before"]()
    left = {f"{recipe} {modality}": interval(unexplained(curves("r2", "within_position", modality)), log=True)
            for recipe, curves in (("scaled", scaled), ("unscaled", unscaled)) for modality in ("text", "image")}
    return (f"T-JEPA's validation loss rises to {interval(spike, log=True)} times its earlier minimum, its log ratio to the train loss "
            f"changes by {interval(gap)} at the event, and late in training the loss is {left['scaled text']} times the target variance "
            f"given the position for text, where 1 means that nothing is predicted, and {left['scaled image']} times for images "
            f"(unscaled recipe: {left['unscaled text']} and {left['unscaled image']}).")


def unexplained(explained: pd.DataFrame) -> pd.Series:
    """Loss over target variance, 1 - R², late in training: a geometric mean, since it has no bound where the variance vanishes."""
    return np.exp(late(np.log((1 - explained).where(explained < 1))))


def _irreducible(scaled: Curves, _unscaled: Curves) -> str:
    known = measure(scaled.table)
    share = {modality: interval(known[f"irreducible.share.val.{modality}.event"](), log=True) for modality in ("text", "image")}
    return (f"At the event the irreducible share of the target variance is {share['text']} for text and {share['image']} for images with "
            f"real alternatives; as published the raw variance of text is "
            f"{interval(known['irreducible.published.val.text_over_image.event'](), log=True)} times that of images, whose noise model "
            f"reads {interval(known['irreducible.noise_over_nearest.val.image.event'](), log=True)} of what real alternatives give.")


def _cosine(scaled: Curves, unscaled: Curves) -> str:
    known = measure(scaled.table)
    means = {modality: interval(known[f"cosine.mean.tokens.online.val.{modality}.late"]()) for modality in ("text", "image")}
    spread = interval(known["cosine.sd.tokens.online.val.text.late"]())
    kept = interval(late(unscaled("cosine_mean", "published", "text", network="online")))
    return (f"Late in training the mean cosine between tokens is {means['text']} for T-JEPA (sd over pairs {spread}) and "
            f"{means['image']} for I-JEPA under the scaled recipe, and {kept} for T-JEPA under the unscaled one.")


FINDINGS: dict[str, Callable[[Curves, Curves], str]] = {
    "paradox_fig2_mi_and_rank": _mi_and_rank, "paradox_fig3_loss_divergence": _loss_divergence,
    "paradox_fig4_irreducible_variance": _irreducible, "paradox_cosine_similarity": _cosine}


def finding(name: str, study: Study) -> str:
    """The sentence of a figure."""
    return FINDINGS[name](Curves(study.arm("scaled")), Curves(study.arm("published")))
