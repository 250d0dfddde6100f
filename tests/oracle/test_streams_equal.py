"""Every layout of the three streams gives the losses and gradients of three separate forward passes.

1. In float32 to 1e-5, eager and sdpa, 1 to 4 pairs of any lengths, predictor tokens behind, before or absent, more padding. 2. In bfloat16
to 2e-2. 3. Everything is finite, also in rows that are mostly padding. 4. Mean pooling and every distance too. 5. What a row may attend to
is what the definition says, by brute force. 6. The state of a view is picked at its last token.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.masking.streams import IGNORED, LAYOUTS, Streams, block_causal, lay_out
from jepa_nb.objectives.language import DISTANCES, POOLINGS, model_mask, view_states
from jepa_nb.training.llm_jepa import JEPATerms, losses

VOCAB, PAD = 23, 0
PREDICTORS = (21, 22)


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(3)
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, max_position_embeddings=64, initializer_range=0.25, attention_dropout=0.0)
    sdpa = LlamaForCausalLM._from_config(config, attn_implementation="sdpa")
    eager = LlamaForCausalLM._from_config(config, attn_implementation="eager")
    eager.load_state_dict(sdpa.state_dict())
    return {"sdpa": sdpa.eval(), "eager": eager.eval()}


def pair(text: list[int], code: list[int], k: int, prepend: bool) -> Streams:
    """A pair as a template would frame it: opening token, text, turn, code, end."""
    predictors = PREDICTORS[:k]
    view = (1, *predictors, *text) if prepend else (1, *text, *predictors)
    return Streams(full=(1, *text, 2, *code, 3), labels=(*[IGNORED] * (len(text) + 2), *code, 3), text=view, code=(4, *code))


words = st.lists(st.integers(5, 20), min_size=1, max_size=9)
pairs = st.lists(st.builds(pair, words, words, st.integers(0, 2), st.booleans()), min_size=1, max_size=4)


def one_by_one(model, examples, terms):
    """Three forward passes a pair, each a single row without padding or mask, then the losses by hand."""
    ntp, count, text, code = 0.0, 0, [], []
    for each in examples:
        logits = model(input_ids=torch.tensor([each.full])).logits[0].float()
        labels = torch.tensor(each.labels)
        kept = labels[1:] != IGNORED
        ntp = ntp - logits[:-1][kept].log_softmax(-1).gather(1, labels[1:][kept][:, None]).sum()
        count += int(kept.sum())
        for view, found in ((each.text, text), (each.code, code)):
            hidden = model(input_ids=torch.tensor([view]), output_hidden_states=True).hidden_states[-1][0].float()
            found.append(hidden[-1] if terms.pooling == "last" else hidden.mean(0))
    text, code = torch.stack(text), torch.stack(code)
    return ntp / count, {
        "cosine": lambda: 1 - (text * code).sum(1).div(text.norm(dim=1) * code.norm(dim=1)).mean(),
        "l2": lambda: (text - code).square().sum(1).sqrt().mean(),
        "mse": lambda: (text - code).square().mean(),
        "infonce": lambda: -torch.log_softmax(text / text.norm(dim=1, keepdim=True) @ (code / code.norm(dim=1, keepdim=True)).T
                                              / terms.temperature, 1).diagonal().mean()}[terms.distance]()


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()])


def compare(model, examples, layout, terms, multiple=1, tolerance=1e-5):
    ntp, jepa = one_by_one(model, examples, terms)
    want = gradients(model, terms.gamma * ntp + terms.lam * jepa)
    found = losses(model, lay_out(examples, layout, pad_id=PAD, multiple=multiple), terms)
    got = gradients(model, found.total)
    assert torch.isfinite(got).all()
    torch.testing.assert_close(torch.stack([found.ntp, found.jepa]), torch.stack([ntp, jepa]), rtol=tolerance, atol=tolerance)
    assert (got - want).norm() <= tolerance * (1 + want.norm())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("layout", LAYOUTS)
@given(examples=pairs, multiple=st.sampled_from([1, 16]))
@settings(max_examples=8, deadline=None)
def test_losses_and_gradients_equal_three_forward_passes(models, attention, layout, examples, multiple):
    compare(models[attention], examples, layout, JEPATerms(lam=1.5, gamma=0.5, layout=layout), multiple)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_other_distances_and_poolings_too(models, distance, pooling):
    examples = [pair([5, 6, 7], [8, 9], 2, True), pair([9], [10, 11, 12], 1, False), pair([12, 13], [5], 0, False)]
    for layout in LAYOUTS:
        compare(models["sdpa"], examples, layout, JEPATerms(distance=distance, pooling=pooling), tolerance=2e-5)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16_agrees_to_two_per_cent(models, attention, layout):
    model = models[attention]
    examples = [pair([5, 6, 7], [8, 9], 2, True), pair([9], [10, 11, 12], 1, False)]
    with torch.autocast("cpu", torch.bfloat16):
        compare(model, examples, layout, JEPATerms(), multiple=16, tolerance=2e-2)


def test_attention_is_the_definition_by_brute_force():
    batch = lay_out([pair([5, 6], [7], 2, False), pair([5], [6, 7, 8], 0, False)], "shared_prefix", pad_id=PAD)
    # row 0: full = 1 5 6 2 7 3, then the two predictor tokens after 1 5 6, then 4 7, then padding; row 1 has no predictor token
    stream = [list("ffffffttcc-"), list("fffffffcccc")]
    for row in range(2):
        for query in range(11):
            for key in range(11):
                padding = stream[row][query] == "-"
                same = stream[row][query] == stream[row][key] and key <= query and not padding
                prefix = stream[row][query] == "t" and key < 3
                assert bool(batch.attention[row, 0, query, key]) == (same or prefix or (padding and query == key))
    assert batch.input_ids.tolist() == [[1, 5, 6, 2, 7, 3, 21, 22, 4, 7, PAD], [1, 5, 2, 6, 7, 8, 3, 4, 6, 7, 8]]
    assert batch.position_ids[0].tolist() == [0, 1, 2, 3, 4, 5, 3, 4, 0, 1, 0]
    assert batch.text_index.tolist() == [[0, 1, 2, 6, 7], [11, 12, -1, -1, -1]]
    assert batch.code_index.tolist() == [[8, 9, -1, -1], [18, 19, 20, 21]]


def test_padding_attends_to_itself_alone():
    mask = block_causal(torch.tensor([[0, 0, -1, -1]]), torch.zeros(1, 4, dtype=torch.int64))
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_layouts_have_the_rows_they_promise_and_views_can_be_left_out():
    examples = [pair([5, 6], [7], 1, False)] * 3
    assert [len(lay_out(examples, layout, pad_id=PAD).input_ids) for layout in LAYOUTS] == [9, 6, 3]
    for layout in LAYOUTS:
        batch = lay_out(examples, layout, pad_id=PAD, jepa=False, multiple=8)
        assert batch.input_ids.shape == (3, 8) and batch.attention.ndim == 2 and batch.text_index is None
        assert batch.attention.sum(1).tolist() == [6, 6, 6]


def test_a_view_is_its_last_token_or_the_mean_of_all():
    hidden = torch.arange(12.0).view(2, 3, 2)
    index = torch.tensor([[0, 1, -1], [3, 4, 5]])
    assert view_states(hidden, index, "last").tolist() == [[2, 3], [10, 11]]
    assert view_states(hidden, index, "mean").tolist() == [[1, 2], [8, 9]]


def test_the_mask_of_eager_attention_is_added():
    allowed = torch.tensor([[[[True, False]]]])
    mask = model_mask(allowed, attention_implementation="eager", dtype=torch.bfloat16)
    assert mask.dtype == torch.bfloat16 and mask.flatten().tolist() == [0.0, torch.finfo(torch.bfloat16).min]
    assert model_mask(allowed, attention_implementation="sdpa", dtype=torch.float32) is allowed
    with pytest.raises(UnknownName, match="sdpa"):
        model_mask(allowed, attention_implementation="flash_attention_2", dtype=torch.float32)


def test_what_cannot_be_laid_out_is_named():
    with pytest.raises(DataError, match="'code' of a pair has no token"):
        Streams((1,), (1,), (1,), ())
    with pytest.raises(DataError, match="2 tokens have 1 labels"):
        Streams((1, 2), (1,), (1,), (1,))
    with pytest.raises(UnknownName, match="shared_prefix"):
        lay_out([pair([5], [6], 1, False)], "shared", pad_id=PAD)
    with pytest.raises(ConfigError, match="one pair or more"):
        lay_out([], "packed", pad_id=PAD)
    with pytest.raises(ConfigError, match="lam"):
        JEPATerms(lam=0.0, gamma=0.0)
