"""The ``paper`` tier is the published protocol, number by number (Paper A, sheet A4 and A5).

1. Every number of the common protocol, of T-JEPA and of I-JEPA. 2. What follows from them: steps, warm-up, marks of evaluation.
3. The networks are BERT-Large and ViT-H by their number of parameters. 4. No arm's rule changes the recipe at this tier.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from jepa_nb.experiments.paradox.config import PAPER_IMAGE, PAPER_TEXT, TIERS, members
from jepa_nb.experiments.paradox.image_task import FLIPS, NOISE, ImageTask
from jepa_nb.experiments.paradox.text_task import TextTask
from jepa_nb.models.text import TextStack

COMMON = {
    "source": "hub", "n_train": 100_000, "epochs": 15, "batch": 64, "lr_start": 2e-4, "lr_peak": 1e-3, "lr_final": 1e-6,
    "warmup_epochs": 10, "wd_start": 0.04, "wd_final": 0.4, "ema": 0.996, "clip": 0.3, "log_every": 10, "seed": 42,
    "target_norm": False, "pred_width": 384, "pred_depth": 12, "pred_heads": 16, "queue": 2048, "temperature": 0.1,
    "eval_samples": 4096, "cosine_tokens": 2048, "completions": 16, "probe_contexts": 200, "min_prob": 0.01, "single_pass": False,
    "n_documents": 0}
TEXT = {"modality": "text", "recipes": ("c4",), "pretrained": "bert_base_uncased", "depth": 24, "width": 1024, "heads": 16,
        "dropout": 0.1, "length": 256, "vocab_size": 30_522, "n_spans": (1, 5), "span_length": (1, 5), "latent_loss": "sum"}
IMAGE = {"modality": "image", "recipes": ("imagenet",), "depth": 32, "width": 1280, "heads": 16, "image_size": 224, "patch": 14,
         "context_scale": (0.85, 1.0), "target_scale": (0.15, 0.2), "aspect": (0.75, 1.5), "min_keep": 10, "latent_loss": "mean"}


@pytest.mark.parametrize(("modality", "field", "value"), [
    (modality, field, value) for modality, own in (("text", TEXT), ("image", IMAGE)) for field, value in (COMMON | own).items()])
def test_every_number_is_the_papers(modality, field, value):
    assert getattr(getattr(TIERS["paper"], modality), field) == value


@pytest.mark.parametrize("config", [PAPER_TEXT, PAPER_IMAGE], ids=["text", "image"])
def test_steps_and_marks_follow(config):
    assert (config.steps_per_epoch, config.steps, config.warmup) == (1562, 23_430, 15_620)
    assert config.eval_steps() == [*range(0, 23_430, 400), 23_430]
    assert config.probe_steps() == [*range(0, 23_430, 500), 23_430]


def test_seeds_and_masked_lm_are_the_papers():
    assert TIERS["paper"].seeds == (42, 0, 1, 2, 3, 4) and TIERS["paper"].masked_lm is None
    assert (NOISE, FLIPS) == (0.2, 0.005)


def parameters(module: torch.nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


def layer(width: int) -> int:
    """Weights of a transformer block with biases, two norms and an MLP of four times the width."""
    return 12 * width ** 2 + 13 * width


def test_the_text_encoder_is_bert_large():
    tokenizer = SimpleNamespace(get_vocab_size=lambda: PAPER_TEXT.vocab_size)
    with torch.device("meta"):
        jepa = TextTask._networks(SimpleNamespace(config=PAPER_TEXT, tokenizer=tokenizer), "sdpa")
    published = 335_141_888  # bert-large-uncased with its pooler and 512 positions
    assert parameters(jepa.context_encoder) == published - (1024 ** 2 + 1024) - 256 * 1024
    projections = 2 * 1024 * 384 + 384 + 1024
    assert parameters(jepa.predictor) == 12 * layer(384) + projections + (256 + 2 + 2) * 384
    bert = next(module for module in jepa.context_encoder.modules() if isinstance(module, TextStack)).model.config
    assert (bert.model_type, bert.hidden_dropout_prob, bert.attention_probs_dropout_prob) == ("bert", 0.1, 0.1)


def test_the_image_encoder_is_vit_huge():
    with torch.device("meta"):
        jepa = ImageTask._networks(SimpleNamespace(config=PAPER_IMAGE))
    published = 632_045_800  # timm's vit_huge_patch14_224 with class token, learned positions and a head of 1,000 classes
    assert parameters(jepa.context_encoder) == published - 1280 - 257 * 1280 - (1280 * 1000 + 1000)
    assert jepa.context_encoder.grid == (16, 16)
    projections = 2 * 1280 * 384 + 384 + 1280
    assert parameters(jepa.predictor) == 12 * layer(384) + projections + 3 * 384


@pytest.mark.parametrize("arm", ["scaled", "published"])
def test_no_rule_changes_the_recipe_at_its_own_scale(arm):
    text, image = (member.config for member in members("paper", [arm], seeds=[42]))
    assert text == PAPER_TEXT and image == PAPER_IMAGE


def test_an_override_of_the_published_sizes_is_taken():
    (text, _image) = members("paper", ["published"], seeds=[1], overrides={"patch": 16})
    assert text.config == replace(PAPER_TEXT, seed=1, patch=16)
