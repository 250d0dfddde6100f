"""The encoders equal transformers' BERT and RobertaPreLayerNorm, and timm's VisionTransformer, at 1e-5 with their weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from transformers import BertConfig, BertModel, RobertaPreLayerNormConfig, RobertaPreLayerNormModel

from jepa_nb import seeds
from jepa_nb.models.predictors import TextPredictor, VisionPredictor
from jepa_nb.models.text import TextEncoder
from jepa_nb.models.vision import VisionEncoder, positions

TOLERANCE = 1e-5


def bert_config(config_class, **options):
    return config_class(**({"vocab_size": 50, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
                            "intermediate_size": 192, "max_position_embeddings": 16} | options))


def text_batch() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, 50, (6, 16), generator=seeds.generator(0))
    return ids, torch.arange(16)[None] < torch.tensor([16, 14, 9, 5, 3, 2])[:, None]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_text_encoder_equals_bert(attention):
    ids, real = text_batch()
    with seeds.scoped(0, "bert"):
        theirs = BertModel(bert_config(BertConfig, attn_implementation="eager"), add_pooling_layer=False).eval()
    ours = TextEncoder(vocab_size=50, width=48, depth=3, heads=4, max_length=16, attention=attention).eval()
    ours.model.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        expected = theirs(ids, attention_mask=real.long()).last_hidden_state
        assert (ours(ids, real) - expected)[real].abs().max() < TOLERANCE
        whole = theirs(ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        assert (ours(ids) - whole).abs().max() < TOLERANCE


def test_pre_norm_text_encoder_equals_roberta_prelayernorm_with_its_own_positions():
    ids, real = text_batch()
    config = bert_config(RobertaPreLayerNormConfig, max_position_embeddings=18, pad_token_id=1, type_vocab_size=2,
                         layer_norm_eps=1e-12, bos_token_id=None, eos_token_id=None)
    with seeds.scoped(0, "roberta"):
        theirs = RobertaPreLayerNormModel(config, add_pooling_layer=False).eval()
    ours = TextEncoder(vocab_size=50, width=48, depth=3, heads=4, max_length=16, norm="pre", pad_id=1).eval()
    ours.model.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        expected = theirs(ids.masked_fill(~real, 1), attention_mask=real.long()).last_hidden_state
        assert (ours(ids, real) - expected)[real].abs().max() < TOLERANCE


def test_text_predictor_is_a_narrow_bert_between_two_linear_maps():
    with seeds.scoped(0, "predictor"):
        ours = TextPredictor(48, 24, 2, 4, 16).eval()
        theirs = BertModel(bert_config(BertConfig, hidden_size=24, num_hidden_layers=2, intermediate_size=96),
                           add_pooling_layer=False).eval()
    missing = theirs.load_state_dict(ours.stack.model.state_dict(), strict=False)
    assert missing.missing_keys == ["embeddings.word_embeddings.weight"] and not missing.unexpected_keys
    states = torch.randn(6, 16, 48, generator=seeds.generator(1))
    _, real = text_batch()
    with torch.no_grad():
        narrow = states @ ours.enter.weight.T + ours.enter.bias
        middle = theirs(inputs_embeds=narrow, attention_mask=real.long()).last_hidden_state
        expected = middle @ ours.leave.weight.T + ours.leave.bias
        assert (ours(states, real) - expected)[real].abs().max() < TOLERANCE


def timm_vit(ours: VisionEncoder, width: int, depth: int, heads: int, image: int, patch: int) -> VisionTransformer:
    theirs = VisionTransformer(image, patch, embed_dim=width, depth=depth, num_heads=heads, class_token=False, global_pool="",
                               num_classes=0).eval()
    theirs.load_state_dict({**ours.state_dict(), "pos_embed": ours.pos_embed})
    return theirs


def test_vision_encoder_equals_timm():
    with seeds.scoped(0, "vit"):
        ours = VisionEncoder(48, 8, 64, 3, 4).eval()
    theirs = timm_vit(ours, 64, 3, 4, 48, 8)
    images = torch.randn(5, 3, 48, 48, generator=seeds.generator(0))
    with torch.no_grad():
        assert (ours(images) - theirs(images)).abs().max() < TOLERANCE


def test_kept_patches_equal_timm_run_on_those_tokens_alone():
    with seeds.scoped(0, "vit"):
        ours = VisionEncoder(48, 8, 64, 3, 4).eval()
    theirs = timm_vit(ours, 64, 3, 4, 48, 8)
    images = torch.randn(2, 3, 48, 48, generator=seeds.generator(0))
    keep = torch.tensor([[0, 3, 8, 20, 35], [1, 2, 5, 30, 31]])
    with torch.no_grad():
        tokens = theirs.patch_embed(images) + theirs.pos_embed
        tokens = torch.stack([tokens[row][keep[row]] for row in range(2)])
        assert (ours(images, keep) - theirs.norm(theirs.blocks(tokens))).abs().max() < TOLERANCE


def test_vision_predictor_equals_one_image_and_one_block_at_a_time():
    with seeds.scoped(0, "predictor"):
        ours = VisionPredictor((6, 6), 64, 32, 2, 4).eval()
    context = torch.randn(3, 7, 64, generator=seeds.generator(1))
    seen = torch.stack([torch.randperm(36, generator=seeds.generator(row))[:7] for row in range(3)])
    asked = torch.stack([torch.randperm(36, generator=seeds.generator(9 + row))[:20].reshape(4, 5) for row in range(3)])
    with torch.no_grad():
        got = ours(context, seen, asked)
        for image in range(3):
            known = ours.enter(context[image]) + ours.pos_embed[seen[image]]
            for block in range(4):
                unknown = ours.mask_token + ours.pos_embed[asked[image, block]]
                out = ours.norm(ours.blocks(torch.cat([known, unknown])[None]))[0, 7:]
                assert (got[image, block] - ours.leave(out)).abs().max() < TOLERANCE


def test_positions_are_sines_and_cosines_of_row_and_column():
    table = positions((3, 4), 16).numpy()
    frequency = 10_000.0 ** (-np.arange(4) / 4)
    for row in range(3):
        for column in range(4):
            angle = np.concatenate([row * frequency, column * frequency])
            expected = np.concatenate([np.sin(angle), np.cos(angle)])
            assert np.abs(np.sort(table[4 * row + column]) - np.sort(expected)).max() < TOLERANCE
    assert len(np.unique(table.round(5), axis=0)) == 12
