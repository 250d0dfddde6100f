"""Claims: the small Llama is set by its seed and leaves every global generator alone; predictor tokens are added once, old rows stay as
they are and new ones begin as asked, with a tied or an untied head, with spare rows or none; under LoRA only adapters and the named token
rows are trained; the linear predictor is set by its seed."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.metrics.generation import greedy
from jepa_nb.models.language import add_predictor_tokens, linear_predictor, tiny_llama, with_lora

SIZES = {"vocab_size": 16, "width": 16, "depth": 2, "heads": 2, "max_length": 32}
WORDS = ["<pad>", "<|end|>", *"abcdefghijklmn"]


def make_tokenizer():
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<|end|>")


def make_model(tied=True, rows=16):
    if tied:
        return tiny_llama(**(SIZES | {"vocab_size": rows}), seed=3)
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=rows, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                                        initializer_range=0.25, tie_word_embeddings=False))


def tables(model):
    return model.get_input_embeddings().weight, model.get_output_embeddings().weight


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def tied(request):
    return request.param


def global_states():
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()


def test_a_seed_is_one_model_and_global_generators_stay():
    before = global_states()
    one, same, other = (tiny_llama(**SIZES, seed=seed) for seed in (1, 1, 2))
    add_predictor_tokens(one, make_tokenizer(), 2, init="random", seed=5)
    with_lora(same, 2, seed=1)
    linear_predictor(4, 0)
    assert global_states() == before
    one, same = (tiny_llama(**SIZES, seed=1).state_dict() for _ in range(2))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not torch.equal(one["model.embed_tokens.weight"], other.state_dict()["model.embed_tokens.weight"])
    torch.manual_seed(99)
    assert torch.equal(tiny_llama(**SIZES, seed=1).state_dict()["model.embed_tokens.weight"], one["model.embed_tokens.weight"])


def test_the_model_has_the_sizes_asked_for():
    model = tiny_llama(vocab_size=50, width=32, depth=3, heads=4, max_length=64, seed=0, attention="eager")
    config = model.config
    assert [tuple(table.shape) for table in tables(model)] == [(50, 32)] * 2 and tables(model)[0] is tables(model)[1]
    assert len(model.model.layers) == 3 and config.num_attention_heads == 4 and config.max_position_embeddings == 64
    assert model.model.layers[0].mlp.up_proj.weight.shape == (96, 32) and config._attn_implementation == "eager"
    assert config.attention_dropout == 0 and config.eos_token_id is None
    large = tiny_llama(vocab_size=400, width=64, depth=1, heads=2, max_length=64, seed=0)
    assert float(tables(large)[0].detach().std()) == pytest.approx(64**-0.5, rel=0.02)
    logits = large(torch.arange(32)[None]).logits.detach()
    assert 0.8 < float(logits.std()) < 1.3  # at Llama's own 0.02 it would be 0.16


def test_sizes_that_cannot_be_are_refused():
    for width, heads in ((16, 3), (18, 2), (8, 8)):
        with pytest.raises(ConfigError, match=f"width {width} is no even multiple of heads {heads}"):
            tiny_llama(**(SIZES | {"width": width, "heads": heads}), seed=0)
    with pytest.raises(UnknownName, match="unknown attention 'flash'"):
        tiny_llama(**SIZES, seed=0, attention="flash")


def test_predictor_tokens_get_ids_and_rows(tied):
    model, tokenizer = make_model(tied), make_tokenizer()
    ids = add_predictor_tokens(model, tokenizer, 3)
    assert ids == (16, 17, 18) and tokenizer.convert_ids_to_tokens(list(ids)) == [f"<|predictor_{i}|>" for i in (1, 2, 3)]
    assert tokenizer("a <|predictor_2|><|predictor_1|> b")["input_ids"] == [2, 17, 16, 3]
    assert tokenizer.decode([2, 16, 3], skip_special_tokens=True).split() == ["a", "b"]
    assert [len(table) for table in tables(model)] == [24, 24] and model.config.vocab_size == 24  # 19 rounded up to a multiple of 8
    assert (tables(model)[0] is tables(model)[1]) is tied
    assert model(torch.tensor([ids])).logits.shape == (1, 3, 24)


def test_old_rows_stay_and_new_ones_are_their_mean(tied):
    model = make_model(tied)
    before = [table.detach().clone() for table in tables(model)]
    others = {name: value.clone() for name, value in model.state_dict().items() if "embed" not in name and "lm_head" not in name}
    words = torch.tensor([[2, 5, 7, 9]])
    logits = model(words).logits.detach()
    add_predictor_tokens(model, make_tokenizer(), 2)
    for table, old in zip(tables(model), before):
        assert torch.equal(table[:16], old)
        torch.testing.assert_close(table[16:].detach(), old.mean(0).expand(8, 16))
    assert all(torch.equal(model.state_dict()[name], value) for name, value in others.items())
    after = model(words).logits.detach()
    torch.testing.assert_close(after[..., :16], logits)
    assert (after[..., 16:].amax(-1) < after[..., :16].amax(-1)).all()  # so an untrained row is never generated


def test_a_second_call_changes_nothing_and_more_tokens_can_follow(tied):
    model, tokenizer = make_model(tied), make_tokenizer()
    assert add_predictor_tokens(model, tokenizer, 0) == () and len(tokenizer) == 16 and len(tables(model)[0]) == 16
    first = add_predictor_tokens(model, tokenizer, 2)
    with torch.no_grad():
        tables(model)[0][first[0]] = 7.0  # as training would
    before = [table.detach().clone() for table in tables(model)]
    assert add_predictor_tokens(model, tokenizer, 2, init="random") == first
    assert add_predictor_tokens(model, tokenizer, 1) == first[:1]
    assert all(torch.equal(*pair) for pair in zip(tables(model), before)) and len(tokenizer) == 18
    more = add_predictor_tokens(model, tokenizer, 4, init="random")
    assert more == (16, 17, 18, 19) and len(tables(model)[0]) == 24
    assert all(torch.equal(table[:18], old[:18]) and not torch.equal(table[18:20], old[18:20]) for table, old in zip(tables(model), before))
    assert add_predictor_tokens(model, tokenizer, 9)[-1] == 24 and len(tables(model)[0]) == 32


def test_spare_rows_are_used_before_the_table_grows(tied):
    model, tokenizer = make_model(tied, rows=19), make_tokenizer()
    before = [table.detach().clone() for table in tables(model)]
    assert add_predictor_tokens(model, tokenizer, 2) == (16, 17)
    for table, old in zip(tables(model), before):
        assert len(table) == 19 and torch.equal(table[:16], old[:16]) and torch.equal(table[18:], old[18:])
        torch.testing.assert_close(table[16:18].detach(), old[:16].mean(0).expand(2, 16))
    assert add_predictor_tokens(model, tokenizer, 4, multiple=5) == (16, 17, 18, 19) and len(tables(model)[0]) == 20


def test_a_tokenizer_that_has_the_tokens_already_serves_a_new_model(tied):
    tokenizer = make_tokenizer()
    first, second = make_model(tied), make_model(tied)
    ids = add_predictor_tokens(first, tokenizer, 2)
    assert add_predictor_tokens(second, tokenizer, 2) == ids
    assert all(torch.equal(*pair) for pair in zip(tables(first), tables(second)))


@pytest.mark.parametrize("rows", [16, 24], ids=["grown", "spare"])
def test_new_rows_begin_as_asked(tied, rows):
    def added(**options):
        model = make_model(tied, rows)
        old = [table.detach()[:16].clone() for table in tables(model)]
        add_predictor_tokens(model, make_tokenizer(), 2, **options)
        return old, [table.detach()[16:18] for table in tables(model)]

    old, named = added(init="named", named="c")
    assert all(torch.equal(new, table[[4, 4]]) for new, table in zip(named, old))
    old, drawn = added(init="random", seed=1)
    assert all(torch.equal(*pair) for pair in zip(drawn, added(init="random", seed=1)[1]))
    assert not torch.equal(drawn[0], added(init="random", seed=2)[1][0]) and not torch.equal(drawn[0][0], drawn[0][1])
    scores = [(new - table.mean(0)) / table.std(0) for new, table in zip(drawn, old)]
    assert torch.allclose(*scores, atol=0.1) is tied  # an untied head has a draw of its own
    assert abs(float(torch.cat(scores).mean())) < 0.6 and 0.6 < float(torch.cat(scores).std()) < 1.4


def test_tokens_that_cannot_be_added_are_refused():
    model, tokenizer = make_model(), make_tokenizer()
    with pytest.raises(UnknownName, match="unknown init 'zero'"):
        add_predictor_tokens(model, tokenizer, 1, init="zero")
    with pytest.raises(ConfigError, match="k is -1"):
        add_predictor_tokens(model, tokenizer, -1)
    for name in ("zebra", ""):
        with pytest.raises(ConfigError, match=f"'{name}' is no token"):
            add_predictor_tokens(model, tokenizer, 1, init="named", named=name)
    assert len(tokenizer) == 16 and len(tables(model)[0]) == 16


def step(model, ids):
    """One large step of descent on every weight that is trained."""
    model.train()
    found = model(ids, labels=ids)
    found.loss.backward()
    with torch.no_grad():
        for value in model.parameters():
            if value.requires_grad:
                value -= 0.5 * value.grad


def test_only_adapters_and_the_named_rows_are_trained(tied):
    model, tokenizer = make_model(tied), make_tokenizer()
    ids = add_predictor_tokens(model, tokenizer, 2)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    text = torch.tensor([[2, 3, 4, *ids, 5, 6]])
    logits = model.eval()(text).logits.detach()
    wrapped = with_lora(model, 4, dropout=0.0, tokens=ids)
    torch.testing.assert_close(wrapped.eval()(text).logits.detach(), logits)  # adapters begin at zero
    trained = {name for name, value in wrapped.named_parameters() if value.requires_grad}
    assert all("lora_A" in name or "lora_B" in name or "trainable_tokens" in name for name in trained)
    blocks = {name.rpartition(".lora_A")[0].rpartition(".")[2] for name in trained if "lora_A" in name}
    assert blocks == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert sum("lora_A" in name for name in trained) == 7 * len(model.model.layers)
    old = wrapped.get_input_embeddings()(torch.arange(24)).detach().clone()
    for _ in range(2):  # the first step moves B alone
        wrapped.zero_grad()
        step(wrapped, text)
    moved = (wrapped.get_input_embeddings()(torch.arange(24)).detach() != old).any(1)
    assert moved.nonzero()[:, 0].tolist() == list(ids)
    frozen = {name.replace("base_model.model.", "").replace(".token_adapter", "").replace(".base_layer", ""): value
              for name, value in wrapped.named_parameters() if not value.requires_grad}
    assert frozen.keys() == before.keys() and all(torch.equal(value, before[name]) for name, value in frozen.items())
    assert not torch.allclose(wrapped.eval()(text).logits.detach(), logits, atol=1e-3)


def test_without_tokens_the_embedding_is_frozen(tied):
    model = make_model(tied)
    wrapped = with_lora(model, 2)
    assert all("lora_" in name for name, value in wrapped.named_parameters() if value.requires_grad)
    old = [table.detach().clone() for table in tables(wrapped)]
    step(wrapped, torch.tensor([[2, 3, 4, 5]]))
    assert all(torch.equal(*pair) for pair in zip(tables(wrapped), old))


def test_adapters_have_the_published_scale_and_are_set_by_their_seed():
    made = {seed: with_lora(make_model(), 4, seed=seed) for seed in (0, 1)}
    config = made[0].peft_config["default"]
    assert (config.r, config.lora_alpha, config.lora_dropout) == (4, 8, 0.1)
    assert with_lora(make_model(), 4, alpha=6.0, dropout=0.0).peft_config["default"].lora_alpha == 6.0
    layer = made[0].base_model.model.model.layers[0].self_attn.q_proj
    assert layer.scaling["default"] == 2.0 and layer.lora_A["default"].weight.shape == (4, 16)
    weights = {seed: [value for name, value in model.named_parameters() if "lora_A" in name] for seed, model in made.items()}
    again = [value for name, value in with_lora(make_model(), 4, seed=0).named_parameters() if "lora_A" in name]
    assert all(torch.equal(*pair) for pair in zip(weights[0], again)) and not torch.equal(weights[0][0], weights[1][0])
    for rank in (0, -4):
        with pytest.raises(ConfigError, match=f"lora rank is {rank}"):
            with_lora(make_model(), rank)


def test_a_model_with_adapters_answers_as_without_before_training():
    prompts, ask = [[2, 3, 4], [5]], {"stop_ids": (), "max_new_tokens": 5, "pad_id": 0}
    before = greedy(make_model(), prompts, **ask)
    assert greedy(with_lora(make_model(), 4), prompts, **ask) == before


def test_the_linear_predictor_is_a_seeded_map_with_the_models_width():
    one, same, other = (linear_predictor(6, seed) for seed in (1, 1, 2))
    assert torch.equal(one.weight, same.weight) and torch.equal(one.bias, same.bias) and not torch.equal(one.weight, other.weight)
    states = torch.randn(3, 6)
    torch.testing.assert_close(one(states), states @ one.weight.T + one.bias)
