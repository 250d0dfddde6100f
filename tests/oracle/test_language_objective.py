"""Claims: every distance of LLM-JEPA equals a loop in float64 with scipy and moves both views, with the gradient of finite differences;
the next-token sum is torch's cross-entropy with the ignored labels left out; low precision is raised to float32, also under autocast; what
has no meaning is refused. Layouts, poolings and masks are tested where streams are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance
from scipy.special import log_softmax
from torch.nn import functional as F

from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.masking.streams import IGNORED
from jepa_nb.objectives.language import DISTANCES, jepa_distance, next_token_sum, total, view_states

shapes = st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(0, 10_000))


def embeddings(rows: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(seed)
    return tuple(torch.tensor(draw.normal(size=(rows, width)) + 0.3) for _ in range(2))


def looped(pred: np.ndarray, target: np.ndarray, distance: str, temperature: float) -> float:
    pairs = list(zip(pred, target))
    if distance == "cosine":
        return np.mean([scipy_distance.cosine(*pair) for pair in pairs])
    if distance == "l2":
        return np.mean([scipy_distance.euclidean(*pair) for pair in pairs])
    if distance == "mse":
        return np.mean([scipy_distance.sqeuclidean(*pair) for pair in pairs]) / pred.shape[1]
    similar = np.array([[1 - scipy_distance.cosine(each, other) for other in target] for each in pred])
    return -np.mean(np.diagonal(log_softmax(similar / temperature, axis=1)))


@pytest.mark.parametrize("distance", DISTANCES)
@given(shape=shapes, temperature=st.sampled_from([0.07, 0.5, 2.0]))
@settings(max_examples=20, deadline=None)
def test_a_distance_equals_the_loop_over_pairs(distance, shape, temperature):
    pred, target = embeddings(*shape)
    found = jepa_distance(pred, target, distance, temperature=temperature)
    assert found.dtype == torch.float64 and found.ndim == 0
    assert float(found) == pytest.approx(looped(pred.numpy(), target.numpy(), distance, temperature), rel=1e-9, abs=1e-9)


def test_distances_of_small_views_by_hand():
    pred, target = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    assert float(jepa_distance(pred, target)) == pytest.approx(1 - (0.6 + 0) / 2)
    assert float(jepa_distance(pred, target, "l2")) == pytest.approx((4 + 2**0.5) / 2)
    assert float(jepa_distance(pred, target, "mse")) == pytest.approx((16 + 2) / 4)
    assert float(jepa_distance(pred, -pred)) == pytest.approx(2.0) and float(jepa_distance(pred, 7 * pred)) == pytest.approx(0.0, abs=1e-6)
    alike = torch.ones(5, 3)
    assert float(jepa_distance(alike, alike, "infonce")) == pytest.approx(np.log(5))  # a collapsed encoder cannot tell five pairs apart
    assert float(jepa_distance(pred[:1], target[:1], "infonce")) == 0.0  # one pair has no negatives


def test_the_default_temperature_is_the_published_one():
    pred, target = embeddings(4, 6, 0)
    assert torch.equal(jepa_distance(pred, target, "infonce"), jepa_distance(pred, target, "infonce", temperature=0.07))


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradients_go_into_both_views_and_are_right(distance):
    pred, target = (view.requires_grad_() for view in embeddings(3, 4, 1))
    assert torch.autograd.gradcheck(lambda one, other: jepa_distance(one, other, distance, temperature=0.5), (pred, target))
    jepa_distance(pred, target, distance).backward()
    assert all(view.grad.norm(dim=1).min() > 1e-4 for view in (pred, target))


@pytest.mark.parametrize("distance", DISTANCES)
def test_equal_views_have_finite_gradients(distance):
    pred, target = (torch.ones(2, 3).requires_grad_() for _ in range(2))
    jepa_distance(pred, target, distance).backward()
    assert pred.grad.isfinite().all() and target.grad.isfinite().all()


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_low_precision_is_raised_to_float32_also_under_autocast(distance, dtype):
    pred, target = (view.to(dtype) for view in embeddings(4, 32, 2))
    wanted = looped(pred.double().numpy(), target.double().numpy(), distance, 0.07)
    with torch.autocast("cpu", torch.bfloat16):
        found = jepa_distance(pred, target, distance)
    assert found.dtype == torch.float32 and float(found) == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    sides = (pred.float().requires_grad_(), target.float())
    jepa_distance(sides[0].to(dtype), sides[1].to(dtype), distance).backward()
    assert sides[0].grad.norm() > 0


@pytest.mark.parametrize("distance", DISTANCES)
def test_only_infonce_sees_other_pairs_and_only_it_and_cosine_ignore_scale(distance):
    pred, target = embeddings(4, 5, 3)
    by_itself = torch.stack([jepa_distance(pred[i:i + 1], target[i:i + 1], distance) for i in range(4)]).mean()
    assert torch.isclose(by_itself, jepa_distance(pred, target, distance)) == (distance != "infonce")
    scaled = jepa_distance(3 * pred, 0.5 * target, distance)
    assert torch.isclose(scaled, jepa_distance(pred, target, distance)) == (distance in ("cosine", "infonce"))


@given(shape=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(2, 9)), seed=st.integers(0, 10_000),
       share=st.sampled_from([0.0, 0.3, 0.9]))
@settings(max_examples=40, deadline=None)
def test_the_next_token_sum_is_torchs_cross_entropy_without_the_ignored(shape, seed, share):
    draw = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(*shape, generator=draw)).requires_grad_()
    labels = torch.randint(shape[2], shape[:2], generator=draw).masked_fill(torch.rand(*shape[:2], generator=draw) < share, IGNORED)
    if (labels == IGNORED).all():
        labels[0, 0] = 1
    summed, count = next_token_sum(logits, labels)
    wanted = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    assert count == int((labels != IGNORED).sum()) and summed.dtype == torch.float32
    torch.testing.assert_close(summed, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(summed / count, F.cross_entropy(logits.flatten(0, 1), labels.flatten()), rtol=1e-5, atol=1e-5)
    found, expected = (torch.autograd.grad(loss, logits, retain_graph=True)[0] for loss in (summed, wanted))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert (found[labels == IGNORED] == 0).all()


def test_the_next_token_sum_of_uniform_logits_by_hand():
    summed, count = next_token_sum(torch.zeros(2, 3, 8), torch.tensor([[1, IGNORED, 7], [IGNORED, IGNORED, 0]]))
    assert count == 3 and float(summed) == pytest.approx(3 * np.log(8))
    low = torch.randn(1, 50, 30, generator=torch.Generator().manual_seed(0)).bfloat16()
    labels = torch.arange(50)[None] % 30
    summed, _ = next_token_sum(low, labels)
    assert float(summed) == pytest.approx(float(F.cross_entropy(low[0].double(), labels[0], reduction="sum")), rel=1e-5)
    spoilt = torch.zeros(1, 2, 4)
    spoilt[0, 0] = float("nan")  # at a column without a label
    assert float(next_token_sum(spoilt, torch.tensor([[IGNORED, 1]]))[0]) == pytest.approx(np.log(4))


def test_the_total_is_the_weighted_sum_with_its_gradients():
    ntp, jepa = torch.tensor(2.0, requires_grad=True), torch.tensor(0.5, requires_grad=True)
    found = total(ntp, jepa, gamma=0.1, lam=4.0)
    found.backward()
    assert float(found.detach()) == pytest.approx(2.2) and float(ntp.grad) == pytest.approx(0.1) and float(jepa.grad) == pytest.approx(4.0)


def test_a_pooled_view_gives_its_gradient_to_its_own_tokens():
    hidden, index = torch.randn(2, 3, 4, requires_grad=True), torch.tensor([[0, 1, -1], [5, -1, -1]])
    for pooling, share in (("last", {1: 1.0, 5: 1.0}), ("mean", {0: 0.5, 1: 0.5, 5: 1.0})):
        (found,) = torch.autograd.grad(view_states(hidden, index, pooling).sum(), hidden)
        assert found.reshape(6, 4)[:, 0].tolist() == [share.get(place, 0.0) for place in range(6)]


def test_what_has_no_meaning_is_refused():
    pair = torch.ones(2, 3)
    with pytest.raises(UnknownName, match="unknown distance 'cosin': did you mean 'cosine'"):
        jepa_distance(pair, pair, "cosin")
    for other in (torch.ones(3, 3), torch.ones(2, 4), torch.ones(2, 1)):
        with pytest.raises(ConfigError, match="two tensors .* of one shape"):
            jepa_distance(pair, other)
    for empty in (torch.ones(3), torch.ones(0, 3)):
        with pytest.raises(ConfigError, match="two tensors"):
            jepa_distance(empty, empty)
    for temperature in (0.0, -0.07):
        with pytest.raises(ConfigError, match=f"temperature must be positive, got {temperature}"):
            jepa_distance(pair, pair, "infonce", temperature=temperature)
    with pytest.raises(UnknownName, match="unknown pooling 'max'"):
        view_states(torch.ones(1, 2, 3), torch.tensor([[0]]), "max")
    with pytest.raises(ConfigError, match=r"logits \(2, 3, 5\) and labels \(2, 4\) do not fit"):
        next_token_sum(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.int64))
    with pytest.raises(DataError, match="no token of the batch has a label"):
        next_token_sum(torch.zeros(2, 3, 5), torch.full((2, 3), IGNORED))
