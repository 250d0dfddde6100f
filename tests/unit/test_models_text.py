"""Text encoder and predictor: padding changes nothing and gives no NaN, the mask is used, initialisation is seeded."""

from __future__ import annotations

import pytest
import torch

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.models.predictors import TextPredictor
from jepa_nb.models.text import TextEncoder

SIZES = {"vocab_size": 40, "width": 32, "depth": 2, "heads": 4, "max_length": 12}


def encoder(**options) -> TextEncoder:
    with seeds.scoped(0, "encoder"):
        return TextEncoder(**(SIZES | options)).eval()


def predictor(**options) -> TextPredictor:
    with seeds.scoped(0, "predictor"):
        return TextPredictor(32, 16, 2, 4, 12, **options).eval()


def batch(side: str = "right") -> tuple[torch.Tensor, torch.Tensor]:
    """Five rows with 10, 8, 5, 2 and 1 real tokens out of 10."""
    ids = torch.randint(5, 40, (5, 10), generator=seeds.generator(1))
    attention = torch.arange(10)[None] < torch.tensor([10, 8, 5, 2, 1])[:, None]
    attention = attention if side == "right" else attention.flip(1)
    return ids.masked_fill(~attention, 0), attention


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_editing_padding_never_changes_real_tokens(norm, attention, side):
    ids, real = batch(side)
    edited = torch.where(real, ids, torch.randint(5, 40, ids.shape, generator=seeds.generator(2)))
    model, head = encoder(norm=norm, attention=attention), predictor(norm=norm, attention=attention)
    with torch.no_grad():
        before, after = model(ids, real), model(edited, real)
        assert (before - after)[real].abs().max() < 1e-6
        assert (before - after)[~real].abs().max() > 1e-2
        noise = torch.randn(before.shape, generator=seeds.generator(3)) * ~real[..., None]
        assert (head(before, real) - head(before + noise, real))[real].abs().max() < 1e-6


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("precision", ["float32", "autocast", "bfloat16"])
def test_padding_gives_no_nan_in_values_or_gradients(norm, attention, precision):
    ids, real = batch()
    real = torch.cat([real, torch.zeros(1, 10, dtype=torch.bool)])  # a row that is padding from end to end
    ids = torch.cat([ids, torch.zeros(1, 10, dtype=torch.int64)])
    model, head = encoder(norm=norm, attention=attention), predictor(norm=norm, attention=attention)
    if precision == "bfloat16":
        model, head = model.bfloat16(), head.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        states = model(ids, real)
        out = head(states, real)
    assert states.isfinite().all() and out.isfinite().all()
    out.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in [*model.parameters(), *head.parameters()])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_attention_mask_is_used_and_none_means_nothing_is_padded(norm):
    ids, real = batch()
    model, head = encoder(norm=norm), predictor(norm=norm)
    full = torch.ones_like(real)
    with torch.no_grad():
        states = model(ids)
        assert (states - model(ids, real))[1:].abs().max() > 1e-3
        assert torch.allclose(states, model(ids, full), atol=1e-6)
        assert (head(states) - head(states, real))[1:].abs().max() > 1e-4
        assert torch.allclose(head(states), head(states, full), atol=1e-6)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_order_matters_to_encoder_and_predictor(norm):
    ids, _ = batch()
    model, head = encoder(norm=norm), predictor(norm=norm)
    with torch.no_grad():
        states = model(ids)
        assert (states.flip(1) - model(ids.flip(1))).abs().max() > 1e-2
        assert (head(states).flip(1) - head(states.flip(1))).abs().max() > 1e-3


def test_initialisation_is_that_of_its_stream_and_the_predictor_has_no_word_table():
    same, other = encoder().state_dict(), encoder().state_dict()
    assert all(torch.equal(same[name], other[name]) for name in same)
    with seeds.scoped(1, "encoder"):
        different = TextEncoder(**SIZES).state_dict()
    assert not torch.equal(same["model.encoder.layer.0.output.dense.weight"],
                           different["model.encoder.layer.0.output.dense.weight"])
    assert not any("word_embeddings" in name for name in predictor().state_dict())


def test_dropout_acts_in_training_only():
    ids, _ = batch()
    model = encoder(dropout=0.5)
    assert torch.equal(model(ids), model(ids))
    model.train()
    with seeds.scoped(0, "dropout"):
        assert not torch.allclose(model(ids), model(ids))


def test_unusable_sizes_and_names_are_refused():
    with pytest.raises(ConfigError, match="13 tokens .* max_length 12"):
        encoder()(torch.ones(1, 13, dtype=torch.int64))
    with pytest.raises(ConfigError, match="heads 5"):
        encoder(heads=5)
    with pytest.raises(UnknownName, match="post"):
        encoder(norm="past")
    with pytest.raises(UnknownName, match="sdpa"):
        encoder(attention="spda")
