"""The two JEPAs: hidden input never reaches the context encoder, targets get no gradient, every mask argument acts."""

from __future__ import annotations

import pytest
import torch

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.masking.blocks import BlockMasks, multiblock
from jepa_nb.masking.spans import sample_spans
from jepa_nb.models.jepa import ImageJEPA, Jepa, TextJEPA
from jepa_nb.models.predictors import TextPredictor, VisionPredictor
from jepa_nb.models.text import TextEncoder
from jepa_nb.models.vision import VisionEncoder
from jepa_nb.objectives.latent import latent_loss

MASK_ID = 4


def strengthened(model: Jepa) -> Jepa:
    """The model with larger matrices: at initialisation tokens hardly see each other, so that nothing shows in outputs."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(5)
    return model.eval()


def text_jepa(norm: str = "post", dropout: float = 0.0) -> TextJEPA:
    with seeds.scoped(0, "text"):
        return TextJEPA(TextEncoder(vocab_size=60, width=32, depth=2, heads=4, max_length=14, norm=norm, dropout=dropout),
                        TextPredictor(32, 16, 2, 4, 14, norm=norm))


def image_jepa() -> ImageJEPA:
    with seeds.scoped(0, "image"):
        encoder = VisionEncoder(24, 4, 32, 2, 4)
        return ImageJEPA(encoder, VisionPredictor(encoder.grid, 32, 16, 2, 4))


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids, attention and mask of six sentences, the last three padded."""
    ids = torch.randint(5, 60, (6, 14), generator=seeds.generator(0))
    attention = torch.arange(14)[None] < torch.tensor([14, 14, 14, 11, 9, 6])[:, None]
    maskable = attention.clone()
    maskable[:, 0] = False
    return ids.masked_fill(~attention, 0), attention, sample_spans(maskable, seeds.generator(1), n_spans=(1, 3))


def pictures() -> tuple[torch.Tensor, BlockMasks]:
    images = torch.randn(5, 3, 24, 24, generator=seeds.generator(0))
    return images, multiblock((6, 6), 5, seeds.generator(2), min_keep=4)


def patch_at(images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """A copy of the images in which patch ``index[b]`` (side 4, 6 a row) of image b is noise."""
    edited = images.clone()
    for image, patch in enumerate(index.tolist()):
        row, column = 4 * (patch // 6), 4 * (patch % 6)
        edited[image, :, row:row + 4, column:column + 4] = torch.randn(3, 4, 4, generator=seeds.generator(patch))
    return edited


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_editing_masked_tokens_never_changes_the_prediction_and_editing_visible_ones_does(norm):
    model, (ids, attention, mask) = strengthened(text_jepa(norm)), sentences()
    noise = torch.randint(5, 60, ids.shape, generator=seeds.generator(3))
    with torch.no_grad():
        before = model.predict(ids, attention, mask, MASK_ID)
        hidden = model.predict(torch.where(mask, noise, ids), attention, mask, MASK_ID)
        shown = model.predict(torch.where(attention & ~mask, noise, ids), attention, mask, MASK_ID)
    assert torch.equal(before.pred, hidden.pred) and torch.equal(before.context_state, hidden.context_state)
    assert (before.target - hidden.target).abs().max() > 1e-2
    assert (before.pred - shown.pred).abs().max() > 1e-3
    assert ((before.context_state - shown.context_state).abs().amax(1) > 1e-3).all()


def test_editing_hidden_patches_never_changes_the_prediction_and_editing_context_ones_does():
    model, (images, masks) = strengthened(image_jepa()), pictures()
    visible = torch.zeros(5, 36, dtype=torch.bool).scatter_(1, masks.context, True)
    hidden = visible.logical_not().float().multinomial(1, generator=seeds.generator(4)).squeeze(1)
    with torch.no_grad():
        states = model.context_encoder(images, masks.context)
        before = model.predict(images, masks)
        for index in (hidden, masks.targets[:, 0, 0]):
            after = model.predict(patch_at(images, index), masks)
            assert torch.equal(states, model.context_encoder(patch_at(images, index), masks.context))
            assert torch.equal(before.pred, after.pred)
        assert (before.target - after.target).abs().max() > 1e-3
        shown = model.predict(patch_at(images, masks.context[:, 0]), masks)
    assert (before.pred - shown.pred).abs().max() > 1e-3
    assert ((before.context_state - shown.context_state).abs().amax(1) > 1e-3).all()


def test_editing_padding_changes_neither_predictions_nor_targets():
    model, (ids, attention, mask) = strengthened(text_jepa()), sentences()
    edited = torch.where(attention, ids, 7)
    with torch.no_grad():
        before, after = model.predict(ids, attention, mask, MASK_ID), model.predict(edited, attention, mask, MASK_ID)
    assert (before.pred - after.pred).abs().max() < 1e-5 and (before.target - after.target).abs().max() < 1e-5


def test_every_text_argument_changes_the_prediction():
    model, (ids, attention, mask) = strengthened(text_jepa()), sentences()
    with torch.no_grad():
        pred = model.predict(ids, attention, mask, MASK_ID)
        unpadded = model.predict(ids, None, mask, MASK_ID)
        more = mask.clone()
        more[:, 1] = ~mask[:, 1]
        other_mask = model.predict(ids, attention, more, MASK_ID)
        other_id = model.predict(ids, attention, mask, 3)
    padded = pred.sample >= 3
    assert (pred.pred - unpadded.pred)[padded].abs().max() > 1e-3
    assert (pred.pred - unpadded.pred)[~padded].abs().max() < 1e-5
    assert len(other_mask.pred) != len(pred.pred) or not torch.allclose(other_mask.pred, pred.pred)
    assert (pred.pred - other_id.pred).abs().max() > 1e-3
    assert (pred.context_state - unpadded.context_state)[3:].abs().max() > 1e-3
    assert (pred.target_state - unpadded.target_state)[3:].abs().max() > 1e-3


def test_every_image_mask_argument_changes_the_prediction():
    model, (images, masks) = strengthened(image_jepa()), pictures()
    fewer = BlockMasks(masks.context[:, :-1], masks.targets)
    elsewhere = BlockMasks(masks.context, masks.targets.flip(1))
    with torch.no_grad():
        pred, less, moved = (model.predict(images, m) for m in (masks, fewer, elsewhere))
        context = model.context_encoder(images, masks.context)
        misplaced = model.predictor(context, (masks.context + 7) % 36, masks.targets)
    assert (pred.pred - less.pred).abs().max() > 1e-3
    assert (pred.pred - moved.pred).abs().max() > 1e-3 and (pred.target - moved.target).abs().max() > 1e-2
    assert (pred.pred - misplaced.flatten(0, 2)).abs().max() > 1e-3


def test_rows_of_a_prediction_say_where_they_come_from():
    text, (ids, attention, mask) = text_jepa().eval(), sentences()
    image, (images, masks) = image_jepa().eval(), pictures()
    for model, inputs, prediction in ((text, (ids, attention), text.predict(ids, attention, mask, MASK_ID)),
                                      (image, (images,), image.predict(images, masks))):
        states = model.encode(*inputs, network="target")
        assert torch.equal(prediction.target, states[prediction.sample, prediction.position])
        assert prediction.pred.shape == prediction.target.shape and len(prediction.sample) == len(prediction.pred)
    places = text.predict(ids, attention, mask, MASK_ID)
    assert torch.equal(torch.zeros_like(mask).index_put_((places.sample, places.position), torch.tensor(True)), mask)


def test_pooled_states_are_the_stated_means():
    text, (ids, attention, mask) = text_jepa().eval(), sentences()
    image, (images, masks) = image_jepa().eval(), pictures()
    with torch.no_grad():
        words, blocks = text.predict(ids, attention, mask, MASK_ID), image.predict(images, masks)
    target = text.encode(ids, attention, network="target")
    context = text.encode(torch.where(mask, MASK_ID, ids), attention)
    for row in range(6):  # over all positions, padding included, which is how the published MI proxy pools
        assert torch.allclose(words.target_state[row], target[row].sum(0) / 14, atol=1e-6)
        assert torch.allclose(words.context_state[row], context[row].sum(0) / 14, atol=1e-6)
    patches = image.encode(images, network="target")
    for row in range(5):
        assert torch.allclose(blocks.target_state[row], patches[row, masks.targets[row, 0]].mean(0), atol=1e-6)
    assert torch.allclose(blocks.context_state, image.encode(images, masks.context).mean(1), atol=1e-6)


def loss_of(model: Jepa) -> torch.Tensor:
    if isinstance(model, TextJEPA):
        prediction = model.predict(*sentences(), MASK_ID)
    else:
        prediction = model.predict(*pictures())
    return latent_loss(prediction.pred, prediction.target)


@pytest.mark.parametrize("build", [text_jepa, image_jepa])
def test_gradients_reach_every_trained_parameter_and_none_of_the_target(build):
    model = build()
    loss_of(model).backward()
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert all(name.startswith(("context_encoder", "predictor")) for name in trained)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in trained.values() if p.ndim > 1)
    assert not any(p.requires_grad or p.grad is not None for p in model.target_encoder.parameters())


@pytest.mark.parametrize("build", [text_jepa, image_jepa])
def test_the_target_starts_as_an_exact_copy_with_its_own_memory(build):
    model = build()
    online, target = model.context_encoder.state_dict(), model.target_encoder.state_dict()
    assert online.keys() == target.keys() and all(torch.equal(online[name], target[name]) for name in online)
    name = next(iter(online))
    online[name].add_(1)
    assert not torch.equal(online[name], model.target_encoder.state_dict()[name])


@pytest.mark.parametrize("build", [text_jepa, image_jepa])
def test_equal_seeds_give_equal_losses_and_gradients(build):
    losses, gradients = [], []
    for _ in range(2):
        model = build()
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert losses[0] == losses[1] and torch.equal(*gradients)


@pytest.mark.parametrize("build", [text_jepa, image_jepa])
def test_a_few_steps_on_one_batch_lower_the_loss(build):
    model = build()
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    first = loss_of(model).item()
    for _ in range(15):
        optimiser.zero_grad()
        loss_of(model).backward()
        optimiser.step()
    assert loss_of(model).item() < 0.8 * first


def test_vision_blocks_start_as_in_ijepa_with_branches_that_shrink_with_depth():
    with seeds.scoped(0, "blocks"):
        blocks = VisionEncoder(24, 4, 64, 4, 4).blocks
    for depth, block in enumerate(blocks, 1):
        assert abs(block.attn.qkv.weight.std().item() - 0.02) < 5e-4
        for matrix in (block.attn.proj.weight, block.mlp.fc2.weight):
            assert abs(matrix.std().item() * (2 * depth) ** 0.5 - 0.02) < 1e-3


def test_the_target_encoder_never_uses_dropout():
    model, (ids, attention, _) = text_jepa(dropout=0.5).train(), sentences()
    assert model.context_encoder.training and not model.target_encoder.training
    assert torch.equal(model.encode(ids, attention, network="target"), model.encode(ids, attention, network="target"))
    with seeds.scoped(0, "dropout"):
        assert not torch.equal(model.encode(ids, attention), model.encode(ids, attention))


def test_impossible_requests_say_what_is_wrong():
    model, (ids, attention, mask) = text_jepa(), sentences()
    with pytest.raises(DataError, match="hides no token"):
        model.predict(ids, attention, torch.zeros_like(mask), MASK_ID)
    with pytest.raises(UnknownName, match="online"):
        model.encode(ids, attention, network="onlne")
    with pytest.raises(ConfigError, match="grid"):
        ImageJEPA(VisionEncoder(24, 4, 32, 1, 4), VisionPredictor((5, 5), 32, 16, 1, 4))
    with pytest.raises(ConfigError, match="patch 5"):
        VisionEncoder(24, 5, 32, 1, 4)
    with pytest.raises(ConfigError, match="multiple of 4"):
        VisionEncoder(24, 4, 30, 1, 3)
    with pytest.raises(ConfigError, match="heads 5"):
        VisionEncoder(24, 4, 32, 1, 5)
