"""No stream of a pair leaks into another, in any layout.

1. Another Code changes no state of Text or of its predictor tokens. 2. Another Text changes no state of Code. 3. Another pair changes
nothing. 4. What is behind a label in the row (the views) does not change the next-token loss. 5. A predictor token is never a label.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from jepa_nb.masking.streams import IGNORED, LAYOUTS, Streams, lay_out
from jepa_nb.objectives.language import view_states
from jepa_nb.training.llm_jepa import forward

PREDICTOR = 21


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=22, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
                         num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.25)
    return LlamaForCausalLM(config).eval()


def pair(text, code):
    return Streams((1, *text, 2, *code, 3), (*[IGNORED] * (len(text) + 2), *code, 3), (1, *text, PREDICTOR), (4, *code))


@torch.no_grad()
def states(model, examples, layout):
    batch = lay_out(examples, layout, pad_id=0, multiple=32)
    found = forward(model, batch, hidden=True)
    every = {name: [found.hidden.reshape(-1, 16)[index[index >= 0]] for index in getattr(batch, name)] for name in ("text_index", "code_index")}
    return batch, found, every


words = st.lists(st.integers(5, 20), min_size=1, max_size=8)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(text=words, code=words, other=words)
@settings(max_examples=12, deadline=None)
def test_another_code_changes_no_state_of_text_and_the_reverse(model, layout, text, code, other):
    _, _, before = states(model, [pair(text, code)], layout)
    _, _, changed_code = states(model, [pair(text, other)], layout)
    _, _, changed_text = states(model, [pair(other, code)], layout)
    torch.testing.assert_close(changed_code["text_index"], before["text_index"], rtol=0, atol=1e-5)
    torch.testing.assert_close(changed_text["code_index"], before["code_index"], rtol=0, atol=1e-5)
    if other != code:
        assert not torch.equal(changed_code["code_index"][0], before["code_index"][0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_pair_changes_nothing(model, layout):
    mine = pair([5, 6], [7, 8])
    _, _, alone = states(model, [mine], layout)
    _, _, together = states(model, [mine, pair([9, 10, 11, 12], [13])], layout)
    for name in alone:
        torch.testing.assert_close(together[name][0], alone[name][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_views_do_not_change_the_logits(model, layout):
    with_views = states(model, [pair([5, 6], [7, 8])], layout)[1]
    plain = forward(model, lay_out([pair([5, 6], [7, 8])], layout, pad_id=0, jepa=False), hidden=False)
    torch.testing.assert_close(with_views.logits[:1], plain.logits, rtol=0, atol=1e-5)
    assert plain.hidden is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_token_of_a_view_is_never_a_label(model, layout):
    batch, _, _ = states(model, [pair([5, 6], [7, 8]), pair([5], [6])], layout)
    assert PREDICTOR in batch.input_ids and PREDICTOR not in batch.labels
    assert int((batch.labels != IGNORED).sum()) == 3 + 2


def test_mean_pooling_reads_the_shared_prefix_too(model):
    examples = [pair([5, 6, 7], [8]), pair([9], [10, 11])]
    found = [view_states(states(model, examples, layout)[1].hidden, lay_out(examples, layout, pad_id=0, multiple=32).text_index, "mean")
             for layout in LAYOUTS]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[0], found[2], rtol=0, atol=1e-5)
