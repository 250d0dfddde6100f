"""T-JEPA and I-JEPA (Paper A, A1.1 and A4): a context encoder, its moving-average copy as target, and a predictor.

Both give the same :class:`Prediction`: one row a masked token or patch, with where it comes from, so that losses and
diagnostics need not know which modality they look at. The moving average itself belongs to training.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import nn

from jepa_nb.errors import ConfigError, DataError, require_known
from jepa_nb.masking.blocks import BlockMasks
from jepa_nb.models.predictors import TextPredictor, VisionPredictor
from jepa_nb.models.text import TextEncoder
from jepa_nb.models.vision import VisionEncoder, take

NETWORKS = ("online", "target")


class Prediction(NamedTuple):
    """N predicted tokens or patches of a batch of B samples.

    Attributes:
        pred: (N, D) g(f(x_C), p), with gradient.
        target: (N, D) states of the target encoder on the whole input, without gradient.
        position: (N,) int64, place in the sequence or row-major patch index.
        sample: (N,) int64, row of the batch.
        context_state: (B, D) pooled states of the context encoder, with gradient.
        target_state: (B, D) pooled states of the target encoder, without gradient.
        target_tokens: (B, T, D) all states of the target encoder, without gradient.
    """

    pred: torch.Tensor
    target: torch.Tensor
    position: torch.Tensor
    sample: torch.Tensor
    context_state: torch.Tensor
    target_state: torch.Tensor
    target_tokens: torch.Tensor


class Jepa(nn.Module):
    """What both modalities share. The target encoder never gets a gradient and never uses dropout."""

    def __init__(self, context_encoder: nn.Module, predictor: nn.Module):
        super().__init__()
        self.context_encoder = context_encoder
        self.target_encoder = copy.deepcopy(context_encoder).requires_grad_(False)
        self.predictor = predictor
        self.train(self.training)

    def train(self, mode: bool = True) -> Jepa:
        """Set training mode; the target encoder stays in evaluation mode."""
        super().train(mode)
        self.target_encoder.eval()
        return self

    def network(self, name: str) -> nn.Module:
        """The ``"online"`` (context) or the ``"target"`` encoder.

        Raises:
            UnknownName: another name.
        """
        require_known("network", name, NETWORKS)
        return self.context_encoder if name == "online" else self.target_encoder


class TextJEPA(Jepa):
    """T-JEPA: predicts the target states of masked tokens from the sequence with those tokens replaced by [MASK]."""

    def __init__(self, context_encoder: TextEncoder, predictor: TextPredictor):
        super().__init__(context_encoder, predictor)

    def predict(self, ids: torch.Tensor, attention: torch.Tensor | None, mask: torch.Tensor, mask_id: int) -> Prediction:
        """Predict the masked tokens of a batch; pooled states are means over all T positions, padding included, as in the
        published MI proxy (A5).

        Args:
            ids: (B, T) int64, the clean tokens.
            attention: (B, T) bool, True on real tokens; None where nothing is padded.
            mask: (B, T) bool, True on tokens to hide and predict.
            mask_id: id of [MASK].

        Raises:
            DataError: ``mask`` hides nothing.
        """
        attention = unpadded(attention)
        sample, position = mask.nonzero(as_tuple=True)
        if not len(sample):
            raise DataError("the mask hides no token, so there is nothing to predict; draw it with sample_spans.")
        context = self.context_encoder(ids.masked_fill(mask, mask_id), attention)
        pred = self.predictor(context, attention)[sample, position]
        with torch.no_grad():
            target = self.target_encoder(ids, attention)
        return Prediction(pred, target[sample, position], position, sample,
                          context.mean(1), target.mean(1), target)

    @torch.no_grad()
    def encode(self, ids: torch.Tensor, attention: torch.Tensor | None = None, *, network: str = "online") -> torch.Tensor:
        """States (B, T, D) of the clean sequence, without gradient; ``network`` as in :meth:`Jepa.network`."""
        return self.network(network)(ids, unpadded(attention))


class ImageJEPA(Jepa):
    """I-JEPA: predicts the target states of the target blocks from the context patches alone."""

    def __init__(self, context_encoder: VisionEncoder, predictor: VisionPredictor):
        if predictor.grid != context_encoder.grid:
            raise ConfigError(f"the predictor is made for a grid of {predictor.grid} patches, the encoder for "
                              f"{context_encoder.grid}; give both the encoder's grid.")
        super().__init__(context_encoder, predictor)

    def predict(self, images: torch.Tensor, masks: BlockMasks) -> Prediction:
        """Predict the target blocks of images (B, 3, S, S).

        Pooled states are the mean over the context patches and over the first target block.
        """
        batch, blocks, size = masks.targets.shape
        context = self.context_encoder(images, masks.context)
        pred = self.predictor(context, masks.context, masks.targets).flatten(0, 2)
        with torch.no_grad():
            whole = self.target_encoder(images)
            target = take(whole, masks.targets.flatten(1))
        sample = torch.arange(batch, device=images.device).repeat_interleave(blocks * size)
        return Prediction(pred, target.flatten(0, 1), masks.targets.flatten(), sample,
                          context.mean(1), target[:, :size].mean(1), whole)

    @torch.no_grad()
    def encode(self, images: torch.Tensor, keep: torch.Tensor | None = None, *, network: str = "online") -> torch.Tensor:
        """States (B, N, D) of all patches, or (B, Nc, D) of keep (B, Nc) alone, without gradient."""
        return self.network(network)(images, keep)


def unpadded(attention: torch.Tensor | None) -> torch.Tensor | None:
    """None where no token of the batch is padding, so that attention needs no mask; else ``attention`` itself."""
    return None if attention is None or bool(attention.all()) else attention
