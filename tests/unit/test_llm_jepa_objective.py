"""Claims: the loss of a batch is gamma and lam times its two terms, in value and gradient; a batch without views has no JEPA term and the
others are not scaled up for it; the linear predictor stands after the Text view alone; labels are divided by what is asked for; a NaN is
handed on, not hidden; whatever the pairs, no predictor token and no token of a view is a label, in any layout."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.masking.streams import IGNORED, LAYOUTS, Streams, lay_out
from jepa_nb.models.language import linear_predictor, tiny_llama, with_lora
from jepa_nb.objectives.language import DISTANCES, POOLINGS, jepa_distance, view_states
from jepa_nb.training.llm_jepa import JEPATerms, forward, losses

PAD, PREDICTORS = 0, (30, 31)


def pair(text, code, k=1, prepend=False, everything=False):
    """Opening 1, text, turn 2, code, end 3; labels on the answer, or on every token but the first."""
    full = (1, *text, 2, *code, 3)
    labels = full[1:] if everything else (*[IGNORED] * (len(text) + 1), *code, 3)
    view = (1, *PREDICTORS[:k], *text) if prepend else (1, *text, *PREDICTORS[:k])
    return Streams(full, (IGNORED, *labels), view, (4, *code))


EXAMPLES = [pair([5, 6, 7], [8, 9], 2), pair([10], [11, 12, 13]), pair([14, 15], [16])]


@pytest.fixture
def model():
    return tiny_llama(vocab_size=32, width=16, depth=2, heads=2, max_length=64, seed=4)


def batch(layout="shared_prefix", jepa=True, examples=EXAMPLES):
    return lay_out(examples, layout, pad_id=PAD, jepa=jepa)


def gradient(loss, model):
    found = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True, allow_unused=True)
    return torch.cat([(torch.zeros_like(value) if part is None else part).flatten() for part, value in zip(found, model.parameters())])


@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.1, 2.0), (0.0, 1.0), (1.0, 1024.0), (3.0, 0.25)])
def test_the_total_is_the_weighted_sum_in_value_and_gradient(model, gamma, lam):
    found = losses(model, batch(), JEPATerms(gamma=gamma, lam=lam))
    plain = losses(model, batch(), JEPATerms())
    torch.testing.assert_close([found.ntp, found.jepa], [plain.ntp, plain.jepa])
    torch.testing.assert_close(found.total, gamma * plain.ntp + lam * plain.jepa)
    wanted = gamma * gradient(plain.ntp, model) + lam * gradient(plain.jepa, model)
    torch.testing.assert_close(gradient(found.total, model), wanted, rtol=1e-4, atol=1e-5 * (1 + lam))
    assert gradient(plain.jepa, model).norm() > 0.01 and found.with_jepa and found.labels == 9


def test_without_lam_there_is_no_jepa_term_and_no_state_is_kept(model):
    found = losses(model, batch(), JEPATerms(lam=0.0, gamma=2.0))
    assert not found.with_jepa and float(found.jepa) == 0
    torch.testing.assert_close(found.total, 2 * found.ntp)
    assert forward(model, batch(), hidden=False).hidden is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_batch_without_views_has_no_jepa_term_and_others_are_not_scaled_up(model, layout):
    terms = JEPATerms(lam=2.0, loss_dropout=0.75, layout=layout)
    dropped, kept = (losses(model, batch(layout, jepa), terms) for jepa in (False, True))
    assert not dropped.with_jepa and kept.with_jepa and float(dropped.jepa) == 0 < float(kept.jepa.detach())
    torch.testing.assert_close(dropped.total, dropped.ntp)
    torch.testing.assert_close(dropped.ntp, kept.ntp, rtol=1e-5, atol=1e-5)
    full = losses(model, batch(layout), JEPATerms(lam=2.0, layout=layout))
    torch.testing.assert_close(kept.total, full.total)
    # so dropping three of four leaves on average the gradient of a quarter of lam: lam (1 - alpha) is what counts
    mean = (3 * gradient(dropped.total, model) + gradient(kept.total, model)) / 4
    quarter = losses(model, batch(layout), JEPATerms(lam=0.5, layout=layout))
    torch.testing.assert_close(mean, gradient(quarter.total, model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_terms_reach_the_distance(model, distance, pooling):
    rows = batch()
    hidden = forward(model, rows, hidden=True).hidden
    views = [view_states(hidden, index, pooling) for index in (rows.text_index, rows.code_index)]
    found = losses(model, rows, JEPATerms(distance=distance, pooling=pooling, temperature=0.3))
    torch.testing.assert_close(found.jepa, jepa_distance(*views, distance, temperature=0.3))
    if distance == "infonce":
        assert float(found.jepa.detach()) != pytest.approx(float(jepa_distance(*views, distance).detach()), rel=1e-2)


def test_the_linear_predictor_stands_after_the_text_view_alone(model):
    rows, predictor = batch(), linear_predictor(16, 0)
    hidden = forward(model, rows, hidden=True).hidden
    text, code = (view_states(hidden, index) for index in (rows.text_index, rows.code_index))
    found = losses(model, rows, JEPATerms(distance="mse"), predictor=predictor)
    torch.testing.assert_close(found.jepa, (text @ predictor.weight.T + predictor.bias - code).square().mean())
    found.total.backward()
    assert all(value.grad.norm() > 0 for value in predictor.parameters())
    with torch.no_grad():
        predictor.weight.copy_(torch.eye(16))
        predictor.bias.zero_()
    same = losses(model, rows, JEPATerms(), predictor=predictor)
    torch.testing.assert_close(same.jepa, losses(model, rows, JEPATerms()).jepa)


def test_the_next_token_loss_is_divided_by_what_is_asked_for(model):
    whole = losses(model, batch(), JEPATerms(lam=0.0))
    assert whole.labels == sum(label != IGNORED for each in EXAMPLES for label in each.labels) == 9
    torch.testing.assert_close(losses(model, batch(), JEPATerms(), num_labels=18).ntp, whole.ntp / 2)
    torch.testing.assert_close(losses(model, batch(), JEPATerms(), num_labels=torch.tensor(18)).ntp, whole.ntp / 2)
    parts = [losses(model, batch(examples=[each]), JEPATerms(lam=0.0), num_labels=9) for each in EXAMPLES]  # gradient accumulation
    torch.testing.assert_close(sum(part.ntp for part in parts), whole.ntp, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(sum(gradient(part.total, model) for part in parts), gradient(whole.total, model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("everything", [False, True])
def test_logits_are_computed_at_the_columns_before_a_label_only(model, everything):
    rows = batch(examples=[pair([5, 6, 7], [8, 9], everything=everything), pair([5, 6], [7], everything=everything)])
    found = forward(model, rows, hidden=False)
    columns = list(range(7) if everything else range(3, 7))  # labels stand in columns 5, 6, 7 and 4, 5
    assert found.logits.shape == (2, len(columns), 32)
    assert torch.equal(found.labels, rows.labels[:, [column + 1 for column in columns]])
    mask = torch.where(rows.attention, 0.0, torch.finfo(torch.float32).min)
    every = model(input_ids=rows.input_ids, attention_mask=mask, position_ids=rows.position_ids).logits
    torch.testing.assert_close(found.logits, every[:, columns], rtol=1e-5, atol=1e-5)


def test_a_model_with_adapters_gives_the_losses_of_the_model_within(model):
    plain = losses(model, batch(), JEPATerms())
    wrapped = losses(with_lora(model, 2, dropout=0.0), batch(), JEPATerms())
    torch.testing.assert_close([wrapped.ntp, wrapped.jepa, wrapped.total], [plain.ntp, plain.jepa, plain.total])


def test_a_nan_is_handed_on_and_a_batch_without_labels_is_named(model):
    empty = [Streams(each.full, (IGNORED,) * len(each.full), each.text, each.code) for each in EXAMPLES]
    with pytest.raises(DataError, match="no token of the batch has a label"):
        losses(model, batch(examples=empty), JEPATerms())
    with torch.no_grad():
        model.model.norm.weight[0] = math.nan
    found = losses(model, batch(), JEPATerms())
    assert all(math.isnan(float(value.detach())) for value in (found.total, found.ntp, found.jepa))


def test_terms_that_mean_nothing_are_refused():
    for fields in ({"distance": "cosin"}, {"pooling": "max"}, {"layout": "rows"}):
        with pytest.raises(UnknownName, match=f"unknown {next(iter(fields))}"):
            JEPATerms(**fields)
    for fields in ({"lam": -1.0}, {"gamma": -0.1}, {"lam": 0.0, "gamma": 0.0}, {"lam": math.nan}, {"gamma": math.inf}):
        with pytest.raises(ConfigError, match="lam and gamma must be finite and not negative, nor both 0"):
            JEPATerms(**fields)
    for share in (-0.1, 1.0, math.nan):
        with pytest.raises(ConfigError, match=r"loss_dropout is a share in \[0, 1\)"):
            JEPATerms(loss_dropout=share)
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigError, match="temperature must be positive"):
            JEPATerms(temperature=temperature)
    assert JEPATerms(lam=0.0).gamma == JEPATerms(gamma=0.0).lam == 1.0


words = st.lists(st.integers(5, 29), min_size=1, max_size=7)
pairs = st.lists(st.builds(pair, words, words, st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=4)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(examples=pairs, jepa=st.booleans(), multiple=st.sampled_from([1, 8]))
@settings(max_examples=40, deadline=None)
def test_no_predictor_token_and_no_token_of_a_view_is_a_label(layout, examples, jepa, multiple):
    rows = lay_out(examples, layout, pad_id=PAD, jepa=jepa, multiple=multiple)
    kept = rows.labels != IGNORED
    assert not torch.isin(rows.labels, torch.tensor([*PREDICTORS, PAD])).any()
    assert torch.equal(rows.labels[kept], rows.input_ids[kept])  # a label is its own column's token: the shift is the model's
    assert not kept[:, 0].any()  # nothing predicts a row's first token
    assert Counter(rows.labels[kept].tolist()) == Counter(label for each in examples for label in each.labels if label != IGNORED)
    for row, each in enumerate(examples):
        assert rows.labels[row, :len(each.full)].tolist() == list(each.labels)
        assert not kept[row, len(each.full):].any()
    assert not kept[len(examples):].any()
    if jepa:
        places = rows.input_ids.flatten()[rows.text_index[rows.text_index >= 0]]
        assert Counter(places[places >= 30].tolist()) == Counter(token for each in examples for token in each.text if token >= 30)
