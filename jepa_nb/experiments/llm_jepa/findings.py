"""Each figure's finding as one sentence, written from the measured numbers and their intervals over paired seeds."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from jepa_nb.experiments.llm_jepa.arms import SEARCHES
from jepa_nb.experiments.llm_jepa.measurements import SEARCHED, chosen, searched, value
from jepa_nb.experiments.llm_jepa.study import Study
from jepa_nb.experiments.wording import interval
from jepa_nb.metrics.statistics import paired_test

NAMES = {"main": "regexes", "sweep": "regexes with the smaller model", "large": "four times as many pairs", "sql": "SQL", "word": "word problems",
         "turk": "human regex descriptions", "gemma": "Gemma-2-2B", "olmo": "OLMo-2-1B"}


def points(study: Study, arm: str) -> str:
    """Accuracy of an arm in per cent."""
    return f"{interval(value(study, f'points:{arm}'))} %"


def gain(study: Study, arm: str, baseline: str, quantity: str = "points") -> str:
    """Paired difference in points with its interval."""
    return interval(value(study, f"{quantity}:{arm}-{baseline}"))


def one_sided(study: Study, arm: str, baseline: str) -> str:
    """The paper's test: p of the one-sided paired test that ``arm`` is better."""
    pair = pd.concat([value(study, f"points:{name}") for name in (arm, baseline)], axis=1, keys=("a", "b")).dropna()
    return f"{paired_test(pair['a'], pair['b'], alternative='greater').p:.2f}" if len(pair) > 1 else "not defined"


def _accuracy(study: Study) -> str:
    others = [base for base in study.sizes if base != "main"]
    shown = "; ".join(f"{gain(study, f'{base}.jepa', f'{base}.ntp')} on {NAMES.get(base, base)}" for base in others)
    return (f"Next-token prediction answers {points(study, 'main.ntp')} of the test pairs exactly and LLM-JEPA {points(study, 'main.jepa')}: a "
            f"difference of {gain(study, 'main.jepa', 'main.ntp')} points (one-sided p {one_sided(study, 'main.jepa', 'main.ntp')}), and of "
            f"{shown}.")


def _loss_curves(study: Study) -> str:
    kept = {arm: interval(value(study, f"jepa_distance:main.{arm}"), log=True) for arm in ("ntp", "jepa")}
    start = interval(value(study, "jepa_distance@start:main.ntp"), log=True)
    return (f"Trained on the next token alone, the JEPA term goes from {start} to {kept['ntp']}; trained on it, to {kept['jepa']}; the next-token "
            f"losses of the two end {gain(study, 'main.jepa', 'main.ntp', 'ntp_loss')} nats apart.")


def _tsne(study: Study) -> str:
    found = {arm: (interval(value(study, f"cosine.paired:main.{arm}")), interval(value(study, f"cosine.shuffled:main.{arm}")),
                   interval(value(study, f"retrieval_at_1:main.{arm}"))) for arm in ("ntp", "jepa")}
    return (f"The two views of a pair have a mean cosine of {found['jepa'][0]} under LLM-JEPA, and those of different pairs {found['jepa'][1]}; "
            f"next-token prediction alone gives {found['ntp'][0]} and {found['ntp'][1]}; the nearest Code is the right one for "
            f"{found['jepa'][2]} of the Texts under LLM-JEPA and for {found['ntp'][2]} without it.")


def _singular_values(study: Study) -> str:
    ratio = {variant: interval(value(study, f"spectrum_mean.{variant}:main.jepa/main.ntp"), log=True) for variant in ("raw", "normalised")}
    residual = {arm: interval(value(study, f"linear_residual:main.{arm}")) for arm in ("ntp", "jepa")}
    return (f"The mean of the top 100 singular values of Enc(Text) − Enc(Code) under LLM-JEPA is {ratio['raw']} times that of next-token "
            f"prediction, and {ratio['normalised']} times after dividing by the mean norm; a linear map from Text to Code leaves a held-out "
            f"residual of {residual['jepa']} against {residual['ntp']}.")


def _loss_dropout(study: Study) -> str:
    cost = {arm: interval(value(study, f"pflops:sweep.{arm}/sweep.ntp")) for arm in ("jepa", "dropout50", "dropout75")}
    return (f"In the shared-prefix layout LLM-JEPA costs {cost['jepa']} times the operations of next-token prediction, {cost['dropout50']} times at "
            f"a loss dropout of .5 and {cost['dropout75']} at .75; accuracies are {points(study, 'sweep.jepa')}, {points(study, 'sweep.dropout50')} "
            f"and {points(study, 'sweep.dropout75')}, and {points(study, 'sweep.ntp_flops')} for next-token prediction at about the cost of LLM-JEPA.")


def _pretraining(study: Study) -> str:
    return (f"From scratch, by the first characters of the answer, LLM-JEPA minus next-token prediction is "
            f"{interval(100 * value(study, 'accuracy.startswith:main.jepa-main.ntp'))} points; sentiment of Rotten Tomatoes after "
            f"pre-training on verses reaches {points(study, 'sentiment.from_jepa')} with LLM-JEPA and {points(study, 'sentiment.from_ntp')} without.")


def _ablation(study: Study) -> str:
    kinds = {"l2": "L2", "mse": "MSE", "infonce": "InfoNCE", "mean_pool": "mean pooling", "prepend": "predictor tokens in front",
             "reverse": "Code to Text", "linear_predictor": "a linear predictor"}
    shown = ", ".join(f"{gain(study, f'sweep.{arm}', 'sweep.jepa')} for {name}" for arm, name in kinds.items())
    return f"Against LLM-JEPA with the cosine ({points(study, 'sweep.jepa')}) the accuracy changes by {shown} points."


def _reasoning(study: Study) -> str:
    seen = {arm: f"{interval(value(study, f'points.rule.seen:word.{arm}'))} %" for arm in ("ntp", "jepa")}
    return (f"SmolLM2-135M fine-tuned on NQ-Open answers {points(study, 'smol.ntp')} of the test questions with next-token prediction and "
            f"{points(study, 'smol.jepa')} with LLM-JEPA; a small model on generated word problems answers {points(study, 'word.ntp')} and "
            f"{points(study, 'word.jepa')} where the template is unseen, and {seen['ntp']} and {seen['jepa']} where it is known.")


def _gamma(study: Study) -> str:
    empty = interval(value(study, "empty_share:sweep.gamma0"))
    return (f"Without the next-token term (γ = 0) {points(study, 'sweep.gamma0')} of the answers are right and a share of {empty} is empty; at γ = "
            f".1 {points(study, 'sweep.gamma01')}, at γ = λ = 1 {points(study, 'sweep.jepa')} and at γ = λ = 2 {points(study, 'sweep.gamma_lam')} are right.")


def _models(study: Study) -> str:
    shown = ", ".join(f"{gain(study, f'{base}.jepa', f'{base}.ntp')} on {NAMES.get(base, base)}" for base in study.sizes)
    return f"LLM-JEPA minus next-token prediction, in points of accuracy: {shown}."


def _lora(study: Study) -> str:
    ranks = sorted({int(arm.partition("lora")[2].partition("_")[0]) for arm in study.arms if "lora" in arm})
    shown = ", ".join(f"{gain(study, f'adapters.lora{rank}_jepa', f'adapters.lora{rank}_ntp')} at rank {rank}" for rank in ranks)
    low = ranks[0]
    return (f"LLM-JEPA minus next-token prediction is {shown} and {gain(study, 'adapters.jepa', 'adapters.ntp')} with all weights; next-token "
            f"prediction itself reaches {points(study, f'adapters.lora{low}_ntp')} at rank {low} and {points(study, 'adapters.ntp')} with all weights.")


def _search(study: Study) -> str:
    best = {search: chosen(study, search) for search in SEARCHES}
    spent = {search: sum(value(study, f"pflops:{arm}").sum() for arm in searched(search)) for search in SEARCHES}
    return (f"The setting that validation chooses for LLM-JEPA ({best['jepa'].partition('.')[2]}) answers {points(study, best['jepa'])}, and the one "
            f"chosen for next-token prediction with as many trials ({best['ntp'].partition('.')[2]}) {points(study, best['ntp'])}, "
            f"{gain(study, best['jepa'], best['ntp'])} points apart; the search for λ and k took {spent['jepa'] / spent['ntp']:.2f} times the operations.")


def _inference(study: Study) -> str:
    speed = interval(value(study, "tokens_per_second:main.jepa/main.ntp"), log=True)
    return (f"A model trained with LLM-JEPA generates {speed} times as many tokens a second as one trained without, with "
            f"{interval(value(study, 'weights:main.jepa/main.ntp'))} times the weights.")


def _pitfalls(study: Study) -> str:
    return (f"Training on all labels instead of the answer's alone changes next-token prediction by "
            f"{gain(study, 'sweep.all_labels_ntp', 'sweep.ntp')} points and LLM-JEPA by {gain(study, 'sweep.all_labels_jepa', 'sweep.jepa')}; "
            f"gradients that are not divided by the four accumulated batches change it by "
            f"{gain(study, 'sweep.undivided_jepa', 'sweep.accumulated_jepa')}.")


def _audit(study: Study) -> str:
    return (f"With the Code of another pair LLM-JEPA answers {points(study, 'main.shuffled')}, {gain(study, 'main.jepa', 'main.shuffled')} points "
            f"below LLM-JEPA itself; next-token prediction at equal cost answers {points(study, 'main.ntp_flops')}, "
            f"{gain(study, 'main.jepa', 'main.ntp_flops')} points from LLM-JEPA; after equal searches ({SEARCHED}) the difference is "
            f"{interval(value(study, 'points:best(jepa)-best(ntp)'))} points; the cosine of unpaired views is "
            f"{interval(value(study, 'cosine.shuffled:main.jepa'))} beside {interval(value(study, 'cosine.paired:main.jepa'))} of paired ones.")


FINDINGS: dict[str, Callable[[Study], str]] = {
    "llm_jepa_fig1_accuracy": _accuracy, "llm_jepa_fig3_loss_curves": _loss_curves, "llm_jepa_fig4_tsne": _tsne,
    "llm_jepa_fig4_singular_values": _singular_values, "llm_jepa_fig5_loss_dropout": _loss_dropout, "llm_jepa_tab2_pretraining": _pretraining,
    "llm_jepa_tab3_ablation": _ablation, "llm_jepa_tab4_qa_reasoning": _reasoning, "llm_jepa_tab10_gamma": _gamma,
    "llm_jepa_tab12_models_datasets": _models, "llm_jepa_lora_ranks": _lora, "llm_jepa_lambda_k": _search,
    "llm_jepa_inference_cost": _inference, "llm_jepa_ext_published_pitfalls": _pitfalls, "llm_jepa_ext_audit": _audit}


def finding(name: str, study: Study) -> str:
    """The sentence of a figure."""
    return FINDINGS[name](study)
