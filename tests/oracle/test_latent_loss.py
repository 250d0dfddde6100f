"""The latent loss equals a brute-force sum in float64 for every reduction, kind and target normalisation."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.objectives.latent import latent_loss


def pair(dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(3 * torch.randn(7, 5, generator=seeds.generator(0, name), dtype=torch.float64).to(dtype) for name in ("p", "t"))


def brute_force(pred, target, reduction: str, target_norm: bool, kind: str) -> float:
    total = 0.0
    for p, t in zip(pred.tolist(), target.tolist()):
        if target_norm:
            mean = sum(t) / len(t)
            sd = math.sqrt(sum((v - mean) ** 2 for v in t) / len(t) + 1e-5)
            t = [(v - mean) / sd for v in t]
        gaps = [abs(a - b) for a, b in zip(p, t)]
        terms = [g * g if kind == "mse" else (0.5 * g * g if g < 1 else g - 0.5) for g in gaps]
        total += sum(terms) / (1 if reduction == "sum" else len(terms))
    return total / len(pred)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("target_norm", [False, True])
@pytest.mark.parametrize("kind", ["mse", "smooth_l1"])
def test_value_equals_brute_force(reduction, target_norm, kind):
    pred, target = pair()
    got = latent_loss(pred, target, reduction=reduction, target_norm=target_norm, kind=kind)
    assert got.dtype == torch.float64
    assert abs(got.item() - brute_force(pred, target, reduction, target_norm, kind)) < 1e-12


def test_gradient_is_the_closed_form_and_the_target_gets_none():
    pred, target = (x.requires_grad_() for x in pair())
    latent_loss(pred, target).backward()
    assert torch.allclose(pred.grad, 2 * (pred - target).detach() / 7, atol=1e-12)
    assert target.grad is None


def test_the_best_constant_prediction_is_the_mean_and_leaves_the_variance():
    _, target = pair()
    mean = target.mean(0, keepdim=True).expand_as(target)
    assert abs(latent_loss(mean, target).item() - target.var(0, unbiased=False).sum().item()) < 1e-12
    assert latent_loss(mean + 0.1, target) > latent_loss(mean, target)


@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_summed_in_float32(autocast):
    pred, target = pair(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        got = latent_loss(pred, target)
    assert got.dtype == torch.float32
    assert abs(got.item() - brute_force(pred, target, "sum", False, "mse")) < 1e-3


def test_wrong_names_shapes_and_empty_input_are_refused():
    pred, target = pair()
    with pytest.raises(UnknownName, match="mean"):
        latent_loss(pred, target, reduction="maen")
    with pytest.raises(UnknownName, match="smooth_l1"):
        latent_loss(pred, target, kind="smooth")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a broadcast must be an error of ours, not a warning of torch
        with pytest.raises(ConfigError, match="shape"):
            latent_loss(pred, target[:1])
    with pytest.raises(DataError, match="no prediction"):
        latent_loss(pred[:0], target[:0])
