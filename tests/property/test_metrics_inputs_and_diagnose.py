"""Claims: bad input is named with its argument and a remedy; the statistics load without torch; ``diagnose`` tells a good
predictor, a position-only predictor and a collapsed encoder apart."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError, NonFinite, UnknownName
from jepa_nb.metrics import geometry, information, statistics, variance
from jepa_nb.metrics.diagnostics import PAIR_ROWS, diagnose

X = torch.arange(24.0).reshape(8, 3).sin()
IDS = torch.arange(8)
FULL = information.FeatureQueue(4, 3)
FULL.push(X[:4], torch.arange(100, 104))

TENSOR_CALLS = {
    "x": [geometry.effective_rank, geometry.cosine_stats, variance.total_variance,
          lambda x: variance.within_group_variance(x, IDS % 2), lambda x: information.FeatureQueue(4, 3).push(x, IDS)],
    "pred": [lambda x: information.infonce_mi(x, X), lambda x: diagnose(x, X)],
    "target": [lambda x: information.infonce_mi(X, x), lambda x: diagnose(X, x)],
    "z_c": [lambda x: information.published_mi(x, X, FULL, IDS)],
    "z_t": [lambda x: information.published_mi(X, x, FULL, IDS)],
    "logits": [information.infonce_from_logits],
    "completions": [lambda x: variance.conditional_variance(x[None]), lambda x: diagnose(X, X, completions=x[None])],
    "weights": [lambda x: variance.conditional_variance(torch.ones(8, 3, 2), x)],
}


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 7), st.integers(0, 2), st.sampled_from([math.nan, math.inf]))
def test_a_planted_nan_or_infinity_is_named_with_its_argument(row, column, value):
    bad = X.abs()
    bad[row, column] = value
    for name, calls in TENSOR_CALLS.items():
        for call in calls:
            with pytest.raises(NonFinite, match=f"^{name}\\W"):
                call(bad)
    vector = bad[:, column].numpy()
    for name, call in (("x", statistics.t_interval), ("a", lambda v: statistics.paired_test(v, np.ones(8))),
                       ("b", lambda v: statistics.paired_test(np.ones(8), v)), ("p", statistics.holm),
                       ("x", lambda v: statistics.bootstrap_ci(v, generator=np.random.default_rng(0)))):
        with pytest.raises(NonFinite, match=f"^{name} "):
            call(vector)


BAD = [
    (lambda: geometry.effective_rank(X[:1]), "x needs at least 2 rows"),
    (lambda: geometry.effective_rank(X[0]), r"shape \(N, D\)"),
    (lambda: geometry.effective_rank(X[:, :0]), "without empty axes"),
    (lambda: geometry.effective_rank(X.numpy()), "torch.as_tensor"),
    (lambda: geometry.effective_rank(X.to(torch.complex64)), "real tensor"),
    (lambda: geometry.cosine_stats(X, bins=0), "bins must be at least 1"),
    (lambda: information.infonce_mi(X, X[:7]), "pred and target must have one shape"),
    (lambda: information.infonce_mi(X, X, temperature=0.0), "temperature must be a positive number"),
    (lambda: information.infonce_mi(X, X, groups=IDS), "no row has a negative"),
    (lambda: information.infonce_mi(X, X, groups=IDS[:5]), "groups must hold one label for each of the 8 rows"),
    (lambda: information.infonce_mi(X, X, groups=IDS.float()), "groups must be an integer tensor"),
    (lambda: information.infonce_mi(X, X, exclude=IDS[:5]), "exclude must hold"),
    (lambda: information.infonce_mi(X, X, exclude=IDS * 0), "no row has a negative"),
    (lambda: information.infonce_from_logits(X[:, :1]), "no row has a negative"),
    (lambda: information.published_mi(X, X, information.FeatureQueue(4, 3), IDS), "push other samples first"),
    (lambda: information.published_mi(X, X, information.FeatureQueue(4, 2), IDS), "width 3 but the queue holds width 2"),
    (lambda: information.published_mi(X[:3], X, FULL, IDS), "z_c and z_t must have one shape"),
    (lambda: information.FeatureQueue(4, 2).push(X, IDS), "width 3 but the queue holds width 2"),
    (lambda: information.FeatureQueue(0, 2), "positive size"),
    (lambda: information.equal_groups(IDS % 2, 5, torch.Generator()), "no group has 5 rows, the largest has 4"),
    (lambda: information.equal_groups(IDS, 1, torch.Generator()), "size must be at least 2"),
    (lambda: information.equal_groups(IDS[:0], 2, torch.Generator()), "groups must hold labels of one or more rows"),
    (lambda: variance.conditional_variance(X[:, None]), "needs K >= 2"),
    (lambda: variance.conditional_variance(X), r"shape \(C, K, D\)"),
    (lambda: variance.conditional_variance(X[None], torch.ones(1, 7)), r"\(C, K\) = \(1, 8\)"),
    (lambda: variance.conditional_variance(X[None], -torch.ones(1, 8)), "must not be negative"),
    (lambda: variance.conditional_variance(X[None], torch.zeros(1, 8)), "positive sum"),
    (lambda: variance.within_group_variance(X, IDS), "no group has two rows"),
    (lambda: variance.r2(1.0, -1.0), "cannot be negative"),
    (lambda: statistics.t_interval([1.0]), "at least two values"),
    (lambda: statistics.t_interval(np.ones((2, 2))), "must be a vector"),
    (lambda: statistics.t_interval([1.0, 2.0], level=95), "between 0 and 1"),
    (lambda: statistics.paired_test([1.0, 2.0], [1.0, 2.0, 3.0]), "hold 2 and 3 values"),
    (lambda: statistics.bootstrap_ci([1.0, 2.0], generator=np.random.default_rng(0), n=0), "at least 1 resample"),
    (lambda: statistics.holm([0.1, 1.2]), r"lie in \[0, 1\]"),
    (lambda: statistics.holm([[0.1]]), "must be a vector"),
    (lambda: diagnose(X, X, position=IDS % 2, sample=IDS[:3]), "sample must hold"),
    (lambda: diagnose(X, X, completions=torch.ones(2, 4, 5)), "completions have width 5, target has 3"),
]


@pytest.mark.parametrize("call, message", BAD, ids=[message for _, message in BAD])
def test_unusable_input_gets_one_sentence_with_the_remedy(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_non_finite_scalars_and_statistics_are_named():
    with pytest.raises(NonFinite, match="loss is nan"):
        variance.r2(math.nan, 1.0)
    with pytest.raises(NonFinite, match="not finite on some resamples"):
        statistics.bootstrap_ci([1.0, 2.0], statistic=lambda v: math.nan, generator=np.random.default_rng(0), n=5)
    with pytest.raises(NonFinite, match=r"logits\[:, 0\]"):
        information.infonce_from_logits(torch.tensor([[-math.inf, 0.0]]))


@pytest.mark.parametrize("call, nearest", [
    (lambda: geometry.effective_rank(X, "rank_me"), "rankme"),
    (lambda: geometry.rank_share(X, "participation_ratio"), "participation"),
    (lambda: statistics.paired_test([1, 2], [3, 5], alternative="bigger"), "greater"),
    (lambda: diagnose(X, X, rank_kind="eigenvalue"), "eigenvalue_entropy"),
    (lambda: information.infonce_mi(X, X, critic="cos"), "cosine"),
])
def test_an_unknown_name_gets_the_nearest_valid_one(call, nearest):
    with pytest.raises(UnknownName, match=f"did you mean '{nearest}'"):
        call()


def test_statistics_load_without_torch():
    code = "import sys, jepa_nb.metrics.statistics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def sequences(seed: int = 0) -> dict[str, torch.Tensor]:
    """Targets = a code of the position + a signal of the sample at that position + noise that nothing predicts."""
    generator = torch.Generator().manual_seed(seed)
    positions, samples, width = 12, 60, 16
    position, sample = torch.arange(positions).repeat(samples), torch.arange(samples).repeat_interleave(positions)
    code = 2 * torch.randn(positions, width, generator=generator)[position]
    signal = torch.randn(len(position), width, generator=generator)
    noise = 0.5 * torch.randn(len(position), width, generator=generator)
    completions = 0.5 * torch.randn(40, 16, width, generator=generator)
    return {"code": code, "signal": signal, "target": code + signal + noise, "position": position, "sample": sample,
            "completions": completions}


def test_diagnose_tells_a_good_predictor_from_one_that_only_knows_the_position():
    data = sequences()
    given_all = {name: data[name] for name in ("position", "sample", "completions")}
    good = diagnose(data["code"] + data["signal"], data["target"], **given_all)
    shortcut = diagnose(data["code"], data["target"], **given_all)
    assert good["r2_given_position"] == pytest.approx(0.8, abs=0.03)
    assert shortcut["r2_given_position"] == pytest.approx(0.0, abs=0.03)
    assert shortcut["r2"] == pytest.approx(shortcut["r2_position"], abs=0.03) and shortcut["r2"] > 0.6
    assert good["mi_position_conditioned"] > 3 and shortcut["mi_position_conditioned"] < 0.05 < shortcut["mi"]
    assert good["irreducible_share"] == pytest.approx(0.2, abs=0.03) == pytest.approx(1 - good["r2_given_position"], abs=0.06)
    assert all(type(value) is float and math.isfinite(value) for value in good.values())


def test_diagnose_agrees_with_the_single_metrics_and_omits_what_it_cannot_know():
    data = sequences(1)
    pred, target = data["code"], data["target"]
    found = diagnose(pred, target, rank_kind="participation")
    assert set(found) == {"loss", "total_variance", "r2", "effective_rank_tokens", "rank_share_tokens", "cosine_mean",
                          "cosine_sd", "cosine_p95", "mi", "mi_cap"}
    assert found["effective_rank_tokens"] == geometry.participation_ratio(target)
    assert found["rank_share_tokens"] == geometry.rank_share(target, "participation")
    assert found["loss"] == pytest.approx((pred - target).square().sum(1).mean().item(), rel=1e-5)
    assert found["cosine_mean"] == pytest.approx(geometry.cosine_stats(target).mean)
    pooled = diagnose(pred, target, sample=data["sample"])["effective_rank_pooled"]
    assert pooled == pytest.approx(geometry.effective_rank(target.reshape(60, 12, 16).mean(1)))


def test_diagnose_lets_no_row_compete_with_another_of_its_sample():
    data = sequences(3)
    twice = {name: data[name].repeat(2) for name in ("position", "sample")}  # each sample predicted under two masks
    found = diagnose(data["target"].repeat(2, 1), data["target"].repeat(2, 1), **twice)
    assert found["mi_position_conditioned_cap"] == pytest.approx(math.log(1 + 2 * 59))
    assert found["mi_cap"] == pytest.approx(math.log(1 + 2 * 59 * 12))
    assert found["mi_position_conditioned"] > 0.95 * found["mi_position_conditioned_cap"]


def test_diagnose_survives_a_fully_collapsed_encoder_and_says_so():
    data = sequences(2)
    flat = torch.ones_like(data["target"])
    found = diagnose(flat, flat, position=data["position"], sample=data["sample"], completions=torch.ones(3, 4, 16))
    assert found["loss"] == 0 and found["total_variance"] == 0
    assert found["effective_rank_tokens"] == 1.0 and found["cosine_mean"] == pytest.approx(1.0)
    assert found["mi_position_conditioned"] == found["mi"] == 0.0
    assert math.isnan(found["r2"]) and math.isnan(found["irreducible_share"])


def test_diagnose_of_many_rows_compares_a_fixed_draw_of_pairs():
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(PAIR_ROWS + 500, 4, generator=generator)
    found = diagnose(target, target)
    assert found["mi_cap"] == pytest.approx(math.log(PAIR_ROWS)) and found == diagnose(target, target)
