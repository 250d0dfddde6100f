"""Claims: batched greedy decoding gives what transformers' own ``generate`` gives for one prompt at a time, for prompts of any lengths, any
batch, any stop tokens and any limit, in the prompts' order; choice logits are the model's own after each prompt; neither changes the model."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import ConfigError, NonFinite
from jepa_nb.metrics.generation import choice_logits, greedy
from jepa_nb.models.language import tiny_llama

VOCAB, PAD = 40, 0


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def model(request):
    """With larger weights, so that the answers are no mere repetition, and near ties, which rounding could turn, are rare."""
    made = tiny_llama(vocab_size=VOCAB, width=16, depth=2, heads=2, max_length=64, seed=1, attention=request.param)
    with torch.no_grad():
        for layer in made.model.layers:
            for weight in layer.parameters():
                weight.mul_(4)
    return made


def one_at_a_time(model, prompts, stop_ids, max_new_tokens):
    answers = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        model.eval()
        found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=max_new_tokens,
                               pad_token_id=PAD, eos_token_id=sorted(stop_ids) or None)[0, len(prompt):].tolist()
        answers.append(found[:-1] if found and found[-1] in stop_ids else found)
    return answers


def prompts_of(lengths, seed):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(1, VOCAB, (length,), generator=draw).tolist() for length in lengths]


def test_these_models_answers_are_worth_comparing(model):
    answers = one_at_a_time(model, prompts_of([3, 5, 7, 4], 0), set(), 12)
    assert len({tuple(answer) for answer in answers}) == 4 and sum(len(set(answer)) for answer in answers) >= 12


@given(lengths=st.lists(st.integers(1, 17), min_size=1, max_size=6), seed=st.integers(0, 99), batch=st.sampled_from([1, 2, 3, 64]),
       stop=st.sets(st.integers(0, VOCAB - 1), max_size=8), limit=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_answers_equal_transformers_for_any_prompts_batch_stops_and_limit(model, lengths, seed, batch, stop, limit):
    prompts = prompts_of(lengths, seed)
    assert greedy(model, prompts, stop_ids=stop, max_new_tokens=limit, pad_id=PAD, batch=batch) == one_at_a_time(model, prompts, stop, limit)


def test_rows_that_stop_at_different_times_leave_the_others_alone(model):
    prompts = prompts_of([9, 2, 6, 4, 11, 2], 3)
    free = one_at_a_time(model, prompts, set(), 12)
    assert all(len(answer) == 12 for answer in free)
    for stop in ({free[0][3]}, {free[1][0], free[2][5]}, {answer[-1] for answer in free}):
        found = greedy(model, prompts, stop_ids=stop, max_new_tokens=12, pad_id=PAD)
        assert found == one_at_a_time(model, prompts, stop, 12)
        assert len({len(answer) for answer in found}) > 1
        assert found == [answer[:next((i for i, token in enumerate(answer) if token in stop), 12)] for answer in free]


def test_an_answer_may_be_empty_and_a_stop_token_may_pad(model):
    prompts = prompts_of([4, 8], 5)
    free = greedy(model, prompts, stop_ids=(), max_new_tokens=4, pad_id=PAD)
    first = free[1][0]
    found = greedy(model, prompts, stop_ids=[first], max_new_tokens=4, pad_id=first)
    assert found[1] == [] and found == one_at_a_time(model, prompts, {first}, 4)
    assert greedy(model, prompts, stop_ids=range(VOCAB), max_new_tokens=4, pad_id=PAD) == [[], []]


def test_neither_the_order_of_the_prompts_nor_the_padding_token_nor_the_batch_matters(model):
    prompts = prompts_of([7, 1, 12, 3, 3, 9], 7)
    answers = greedy(model, prompts, stop_ids={4}, max_new_tokens=8, pad_id=PAD)
    turned = greedy(model, prompts[::-1], stop_ids={4}, max_new_tokens=8, pad_id=17, batch=4)
    assert turned[::-1] == answers and len({tuple(answer) for answer in answers}) > 1
    assert greedy(model, [prompts[0], prompts[0]], stop_ids={4}, max_new_tokens=8, pad_id=PAD) == [answers[0]] * 2
    assert greedy(model, [], stop_ids={4}, max_new_tokens=8, pad_id=PAD) == []


def test_equal_logits_go_to_the_smaller_id():
    twin = tiny_llama(vocab_size=VOCAB, width=16, depth=1, heads=2, max_length=64, seed=1)
    with torch.no_grad():
        twin.model.embed_tokens.weight[:] = twin.model.embed_tokens.weight[5]
    assert greedy(twin, [[9], [7, 8]], stop_ids=(), max_new_tokens=3, pad_id=PAD) == [[0, 0, 0]] * 2


def test_sampling_settings_and_penalties_of_the_model_are_not_applied(model):
    prompts = prompts_of([5, 3], 11)
    before = greedy(model, prompts, stop_ids=(), max_new_tokens=8, pad_id=PAD)
    settings_before = model.generation_config
    model.generation_config = type(settings_before)(do_sample=True, temperature=5.0, repetition_penalty=9.0, eos_token_id=before[0][0])
    try:
        assert greedy(model, prompts, stop_ids=(), max_new_tokens=8, pad_id=PAD) == before
    finally:
        model.generation_config = settings_before


def test_the_model_is_given_back_as_it_was(model):
    model.train()
    model.model.layers[0].eval()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    greedy(model, [[1, 2]], stop_ids=(), max_new_tokens=2, pad_id=PAD)
    choice_logits(model, [[1, 2]], [3])
    assert [module.training for module in model.modules()] == modes and any(modes) and not all(modes)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert torch.is_grad_enabled() and all(weight.grad is None for weight in model.parameters())


def test_dropout_is_off_meanwhile():
    noisy = tiny_llama(vocab_size=VOCAB, width=16, depth=2, heads=2, max_length=64, seed=1)
    noisy.config.attention_dropout = 0.5
    for layer in noisy.model.layers:
        layer.self_attn.attention_dropout = 0.5
    noisy.train()
    prompts = prompts_of([6, 9], 2)
    assert not torch.equal(noisy(torch.tensor(prompts[:1])).logits, noisy(torch.tensor(prompts[:1])).logits)
    logits = [choice_logits(noisy, prompts, range(VOCAB)) for _ in range(2)]
    assert torch.equal(*logits) and noisy.training
    noisy.eval()
    assert greedy(noisy.train(), prompts, stop_ids=(), max_new_tokens=6, pad_id=PAD) == one_at_a_time(noisy, prompts, set(), 6)


@given(lengths=st.lists(st.integers(1, 15), min_size=1, max_size=5), batch=st.sampled_from([1, 2, 64]))
@settings(max_examples=10, deadline=None)
def test_choice_logits_are_the_models_own_after_each_prompt(model, lengths, batch):
    prompts, choices = prompts_of(lengths, 13), [3, 11, 5, 39]
    found = choice_logits(model, prompts, choices, batch=batch)
    with torch.no_grad():
        wanted = torch.stack([model.eval()(torch.tensor([prompt])).logits[0, -1, choices] for prompt in prompts])
    assert found.dtype == torch.float32 and found.shape == (len(prompts), 4)
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-4)
    answers = greedy(model, prompts, stop_ids=(), max_new_tokens=1, pad_id=PAD)
    assert choice_logits(model, prompts, range(VOCAB)).argmax(1)[:, None].tolist() == answers


def test_what_cannot_be_answered_is_named(model):
    ask = {"stop_ids": (), "max_new_tokens": 2, "pad_id": PAD}
    with pytest.raises(ConfigError, match="prompt 1 is empty"):
        greedy(model, [[1], [], [2]], **ask)
    with pytest.raises(ConfigError, match="max_new_tokens must be at least 1, got 0"):
        greedy(model, [[1]], **(ask | {"max_new_tokens": 0}))
    with pytest.raises(ConfigError, match="batch must be at least 1, got 0"):
        greedy(model, [[1]], **ask, batch=0)
    with pytest.raises(ConfigError, match="prompt 0 is empty"):
        choice_logits(model, [[]], [1])
    with pytest.raises(ConfigError, match="choice_ids is empty"):
        choice_logits(model, [[1]], [])
    with pytest.raises(ConfigError, match="batch must be at least 1"):
        choice_logits(model, [[1]], [1], batch=-1)


def test_a_broken_model_is_not_evaluated():
    broken = tiny_llama(vocab_size=VOCAB, width=16, depth=1, heads=2, max_length=64, seed=1)
    with torch.no_grad():
        broken.model.norm.weight[0] = float("nan")
    with pytest.raises(NonFinite, match="logits hold NaN"):
        greedy(broken, [[1, 2]], stop_ids=(), max_new_tokens=2, pad_id=PAD)
    with pytest.raises(NonFinite, match="logits hold NaN"):
        choice_logits(broken, [[1, 2]], [1])
    assert broken.training
