"""I-JEPA on crops: data, networks, one step's inputs, and alternatives for a target block (paper A, A4 and A5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from jepa_nb import paths, seeds
from jepa_nb.data import images as pictures
from jepa_nb.experiments.paradox.config import Diagnostics
from jepa_nb.masking.blocks import BlockMasks, multiblock
from jepa_nb.metrics.variance import conditional_variance
from jepa_nb.models.jepa import ImageJEPA, Prediction
from jepa_nb.models.predictors import VisionPredictor
from jepa_nb.models.vision import VisionEncoder

CHUNK = 128  # filled crops encoded at a time
NOISE, FLIPS = 0.2, 0.005  # the published noise model: sd of the added noise, share of sign flips


@dataclass(frozen=True)
class ImageBatch:
    """images (B, 3, S, S) in [-1, 1] and the patches that are context and targets."""

    images: torch.Tensor
    masks: BlockMasks


@lru_cache(maxsize=1)
def _originals(source: str, recipes: tuple[str, ...], _cache: Path, _local: Path | None) -> list[pictures.Original]:
    """The originals of some recipes; a process that trains several runs decodes them once."""
    return pictures.load_originals(source, list(recipes))


class ImageTask:
    """Everything about the image modality that the common protocol needs."""

    def __init__(self, config: Diagnostics, device: torch.device, attention: str = "sdpa"):
        self.config, self.device = config, device
        originals = _originals(config.source, config.recipes, paths.cache(), paths.local_data())
        self.description = pictures.describe(originals)
        self.n_train = config.n_train * (config.epochs if config.single_pass else 1)
        self.images = {}
        for split, count, name in (("train", self.n_train, "corpus"), ("val", config.n_val, "validation")):
            self.images[split], _origin = pictures.sample_crops(
                originals, count, config.image_size, seeds.numpy_generator(config.seed, name), split=split)
        self.jepa = self._networks().to(device)

    def _networks(self) -> ImageJEPA:
        config = self.config
        with seeds.scoped(config.seed, "initialisation"):
            encoder = VisionEncoder(image_size=config.image_size, patch=config.patch, width=config.width, depth=config.depth,
                                    heads=config.heads, dropout=config.dropout)
            predictor = VisionPredictor(grid=encoder.grid, width=config.width, pred_width=config.pred_width,
                                        depth=config.pred_depth, heads=config.pred_heads)
        return ImageJEPA(encoder, predictor)

    def batch(self, split: str, index: torch.Tensor, generator: torch.Generator) -> ImageBatch:
        """Crops ``index`` (B,) of a split with freshly drawn blocks."""
        config = self.config
        masks = multiblock(self.jepa.context_encoder.grid, len(index), generator, policy=config.mask_policy,
                           context_scale=config.context_scale, target_scale=config.target_scale, aspect=config.aspect,
                           min_keep=config.min_keep)
        moved = BlockMasks(masks.context.to(self.device), masks.targets.to(self.device))
        return ImageBatch(self.images[split][index].to(self.device), moved)

    def predict(self, batch: ImageBatch) -> Prediction:
        """Predictions and targets of every patch of the target blocks."""
        return self.jepa.predict(batch.images, batch.masks)

    def states(self, network: str, batch: ImageBatch, predicted: Prediction) -> tuple[torch.Tensor, torch.Tensor]:
        """States of the whole crops: patches (B * N, D), and their average (B, D); the target encoder's are in ``predicted``."""
        states = predicted.target_tokens if network == "target" else self.jepa.encode(batch.images, network=network)
        return states.flatten(0, 1), states.mean(dim=1)

    def positions(self, batch: ImageBatch) -> torch.Tensor:
        """Position of every patch, in the order of :meth:`states`."""
        return torch.arange(self.jepa.context_encoder.n_patches, device=self.device).repeat(len(batch.images))

    def published_context(self, prediction: Prediction, _pooled: torch.Tensor) -> torch.Tensor:
        """(B, D) context vectors of the published proxy: the mean over the context tokens."""
        return prediction.context_state


class ImageAlternatives:
    """K alternatives for the first target block of each of C crops.

    ``published`` (A5): the block itself under pixel noise, N(0, .2^2) and .5 % sign flips, clamped to [-1, 1].
    ``corrected``: the same block of the K training crops whose surroundings (the ring of patches around the block) are
    nearest in squared pixel distance, pasted into this crop.
    """

    variants = ("published", "corrected")

    def __init__(self, task: ImageTask, split: str, batch: ImageBatch):
        self.task, self.split = task, split
        self.images = batch.images
        self.positions = batch.masks.targets[:, 0]
        self.inside = torch.stack([self._pixels(block) for block in self.positions])
        own = torch.arange(len(batch.images)) if split == "train" else torch.full((len(batch.images),), -1)
        self.neighbours = torch.stack([self._nearest(c, int(own[c])) for c in range(len(own))])

    def _pixels(self, patches: torch.Tensor) -> torch.Tensor:
        """(S, S) bool: the pixels of some patches."""
        rows, columns = self.task.jepa.context_encoder.grid
        chosen = torch.zeros(rows * columns, dtype=torch.bool, device=patches.device)
        chosen[patches] = True
        patch = self.task.config.patch
        return chosen.view(rows, columns).repeat_interleave(patch, 0).repeat_interleave(patch, 1)

    def _nearest(self, crop: int, own: int) -> torch.Tensor:
        """(K,) indices of the training crops whose ring around the block is nearest."""
        patch = self.task.config.patch
        grown = torch.nn.functional.max_pool2d(self.inside[crop][None].float(), 2 * patch + 1, 1, patch)[0].bool()
        ring = (grown & ~self.inside[crop]).cpu()
        pool = self.task.images["train"][:, :, ring].flatten(1)
        distance = (pool - self.images[crop].cpu()[:, ring].flatten()).square().sum(dim=1)
        if own >= 0:
            distance[own] = torch.inf
        return distance.topk(self.task.config.completions, largest=False).indices

    def _filled(self, variant: str, crop: int) -> torch.Tensor:
        """(K, 3, S, S) crops that differ inside the block only."""
        count = self.task.config.completions
        image = self.images[crop].expand(count, -1, -1, -1)
        if variant == "corrected":
            inner = self.task.images["train"][self.neighbours[crop]].to(image.device)
        else:
            inner = self._noisy(image, crop)
        return torch.where(self.inside[crop], inner, image)

    def _noisy(self, image: torch.Tensor, crop: int) -> torch.Tensor:
        draw = seeds.generator(self.task.config.seed, "noise", self.split, crop)
        noise = torch.randn(image.shape, generator=draw).to(image.device) * NOISE
        flips = torch.where(torch.rand(image.shape, generator=draw) < FLIPS, -1.0, 1.0).to(image.device)
        return ((image + noise) * flips).clamp(-1, 1)

    @torch.no_grad()
    def variance(self, variant: str) -> torch.Tensor:
        """(C,) irreducible variance of the target states, averaged over the block; ``published`` divides by K."""
        found = []
        for crops in torch.arange(len(self.images)).split(max(1, CHUNK // self.task.config.completions)):
            filled = torch.cat([self._filled(variant, int(crop)) for crop in crops])
            states = self.task.jepa.encode(filled, network="target").unflatten(0, (len(crops), -1)).float()
            found += [conditional_variance(of_one[:, self.positions[crop]].transpose(0, 1), unbiased=variant == "corrected").mean()
                      for crop, of_one in zip(crops, states)]
        return torch.stack(found)
