"""Claims of ``LLMJEPATrainer``: it trains any causal model on pairs, and its numbers are those of the definition.

1. Ten lines train all weights or LoRA; only what should train moves. 2. Accumulated, a step equals that of the whole batch; ``paper_v1``
has the gradient of the sum. 3. Resumed, a run ends in the same weights. 4. Both parts are logged and evaluated; loss dropout leaves
batches without the second. 5. Length grouping and bfloat16 work. 6. A NaN is named, and what cannot be trained says why.
"""

from __future__ import annotations

import pytest
import torch
from transformers import TrainingArguments

from jepa_nb.data.pair_tokens import byte_level
from jepa_nb.data.pairs import Pair
from jepa_nb.errors import ConfigError, DataError, NonFinite
from jepa_nb.models.language import tiny_llama
from jepa_nb.training.llm_jepa import JEPATerms
from jepa_nb.training.llm_jepa_trainer import LLMJEPATrainer

PAIRS = [Pair(f"lines with {'a ' * (number % 3)}number {number}", f".*{number}.*", "Convert.") for number in range(16)]


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))

    def build(pairs=PAIRS, batch=4, steps=2, model=None, arguments=None, **options):
        tokenizer = byte_level(PAIRS, 300)
        model = model or tiny_llama(vocab_size=len(tokenizer), width=16, depth=1, heads=2, max_length=128, seed=0)
        given = {"optim": "sgd", "learning_rate": 0.1, "max_grad_norm": 0.0, "lr_scheduler_type": "constant"} | (arguments or {})
        args = TrainingArguments(str(tmp_path / "out"), per_device_train_batch_size=batch, max_steps=steps, logging_steps=1, report_to=[],
                                 save_strategy=given.pop("save_strategy", "no"), use_cpu=True, disable_tqdm=True, **given)
        return LLMJEPATrainer(model, args, processing_class=tokenizer, train_pairs=pairs, **options)

    return build


def moved(trainer, before):
    return {name for name, value in trainer.model.named_parameters() if not torch.equal(value.detach(), before[name])}


def weights(trainer):
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters()}


def test_training_lowers_the_loss(trainer):
    made = trainer(steps=40, arguments={"optim": "adamw_torch", "learning_rate": 5e-3}, k=2)
    made.train()
    logged = [line for line in made.state.log_history if "ntp_loss" in line]
    assert logged[-1]["ntp_loss"] < 0.7 * logged[0]["ntp_loss"] and logged[-1]["jepa_loss"] < logged[0]["jepa_loss"]
    assert made.processing_class.convert_tokens_to_ids("<|predictor_2|>") < len(made.model.get_input_embeddings().weight)


def test_lora_trains_adapters_and_predictor_tokens_alone(trainer):
    made = trainer(k=1, lora_rank=2)
    before = weights(made)
    made.train()
    assert moved(made, before) and all("lora" in name or "token_adapter" in name or "trainable_tokens" in name for name in moved(made, before))


def test_accumulated_steps_equal_whole_batches(trainer):
    whole, parts = trainer(batch=8, steps=1), trainer(batch=2, steps=1, arguments={"gradient_accumulation_steps": 4})
    start = weights(whole)
    assert all(torch.equal(value, start[name]) for name, value in weights(parts).items())
    for made in (whole, parts):
        made.train()
    assert moved(whole, start)
    for name, value in weights(parts).items():
        torch.testing.assert_close(value, weights(whole)[name], rtol=1e-4, atol=1e-6)


def test_the_published_accumulation_does_not_divide(trainer):
    equal = [PAIRS[3]] * 8  # with equal pairs a micro-batch's mean is the batch's
    normalised, published = (trainer(equal, batch=2, steps=1, arguments={"gradient_accumulation_steps": 4}, accumulation=name)
                             for name in ("normalised", "paper_v1"))
    start = weights(normalised)
    for made in (normalised, published):
        made.train()
    for name, value in weights(published).items():
        torch.testing.assert_close(value - start[name], 4 * (weights(normalised)[name] - start[name]), rtol=1e-3, atol=1e-6)


def test_a_resumed_run_ends_in_the_same_weights(trainer):
    options = {"arguments": {"optim": "adamw_torch", "save_strategy": "steps", "save_steps": 2}, "terms": JEPATerms(loss_dropout=0.5)}
    whole = trainer(steps=4, **options)
    whole.train()
    resumed = trainer(steps=4, **options)
    resumed.train(resume_from_checkpoint=f"{resumed.args.output_dir}/checkpoint-2")
    assert all(torch.equal(value, weights(whole)[name]) for name, value in weights(resumed).items())


def test_both_parts_are_logged_and_evaluated(trainer):
    made = trainer(terms=JEPATerms(lam=0.5), eval_pairs=PAIRS[:6])
    found = made.evaluate()
    assert found["eval_loss"] == pytest.approx(found["eval_ntp_loss"] + 0.5 * found["eval_jepa_loss"], rel=1e-4)
    dropped = trainer(steps=12, terms=JEPATerms(lam=2.0, loss_dropout=0.5))
    dropped.train()
    lines = [line for line in dropped.state.log_history if "ntp_loss" in line]
    assert 0 < sum("jepa_loss" in line for line in lines) < len(lines) == 12
    plain = trainer(terms=JEPATerms(lam=0.0), k=0)
    plain.train()
    assert not any("jepa_loss" in line for line in plain.state.log_history)


@pytest.mark.parametrize("arguments", [{"train_sampling_strategy": "group_by_length"}, {"bf16": True}, {"dataloader_drop_last": True}])
def test_arguments_of_transformers_work(trainer, arguments):
    made = trainer(arguments=arguments)
    made.train()
    assert all(torch.isfinite(value).all() for value in weights(made).values())


def test_a_nan_is_named(trainer):
    made = trainer()
    with torch.no_grad():
        made.model.model.layers[0].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(NonFinite, match="layers.0.mlp.up_proj.weight"):
        made.train()


def test_what_cannot_be_trained_says_why(trainer):
    with pytest.raises(DataError, match="max_length is 8"):
        trainer(frame={"max_length": 8})
    with pytest.raises(DataError, match="none of 16 pairs.*too long"):
        trainer(frame={"max_length": 8, "unfit": "drop"})
    with pytest.raises(ConfigError, match="linear predictor"):
        trainer(terms=JEPATerms(linear_predictor=True))
    adapted = trainer(k=0, lora_rank=2).model
    with pytest.raises(ConfigError, match="before adding LoRA"):
        trainer(model=adapted, k=1)
