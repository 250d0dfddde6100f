"""Paper A: sizes of the four tiers, the published recipe, and the one rule that scales it. No torch.

``paper`` is protocol A4 to the letter. The other tiers keep its 15 epochs, batch of 64, schedules' shapes, clip and
mask policy, and change sizes; :func:`scaled` then carries three numbers over: the learning rate with the width, the EMA
half-life and the warm-up as fractions of training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from jepa_nb import config as configuration
from jepa_nb.errors import ConfigError, require_known
from jepa_nb.training.schedule import scaled_ema, scaled_learning_rate

EXPERIMENT = "paradox.diagnostics"
MASKED_LM = "paradox.masked_lm"
MODALITIES = ("text", "image")


@dataclass(frozen=True)
class MaskedLM:
    """The small frozen masked LM that proposes completions of a text where bert-base-uncased (paper A, A5) is not used."""

    recipe: str = "imdb"
    source: str = "embedded"
    vocab_size: int = 4096
    length: int = 25
    width: int = 128
    depth: int = 2
    heads: int = 4
    steps: int = 1200
    batch: int = 64
    learning_rate: float = 1e-3
    warmup: int = 120
    n_val: int = 512
    seed: int = 0


@dataclass(frozen=True)
class Diagnostics:
    """One training of T-JEPA or I-JEPA with the five diagnostics logged along it. Units of time are optimiser steps
    unless the name says epochs."""

    modality: str
    seed: int = 0
    # data
    recipes: tuple[str, ...] = ("imdb",)
    source: str = "embedded"
    n_train: int = 1600
    n_val: int = 512
    n_documents: int = 0  # text: draw the corpus from that many documents only; 0 = from all
    single_pass: bool = False  # every step sees new samples, instead of 15 epochs over one corpus
    pretrained: str = ""  # text: recipe of the tokenizer and masked LM; empty: both are trained on the training documents
    # sizes
    vocab_size: int = 4096
    length: int = 25
    image_size: int = 40
    patch: int = 8
    width: int = 96
    depth: int = 3
    heads: int = 4
    dropout: float = 0.0
    pred_width: int = 48
    pred_depth: int = 2
    pred_heads: int = 4
    # masks
    n_spans: tuple[int, ...] = (1, 5)
    span_length: tuple[int, ...] = (1, 5)
    mask_policy: str = "fixed"
    context_scale: tuple[float, ...] = (0.85, 1.0)
    target_scale: tuple[float, ...] = (0.15, 0.2)
    aspect: tuple[float, ...] = (0.75, 1.5)
    min_keep: int = 4
    # recipe
    epochs: int = 15
    warmup_epochs: int = 10
    batch: int = 64
    lr_start: float = 2e-4
    lr_peak: float = 1e-3
    lr_final: float = 1e-6
    wd_start: float = 0.04
    wd_final: float = 0.4
    clip: float = 0.3
    ema: float = 0.996
    latent_loss: str = "sum"
    target_norm: bool = False
    # diagnostics
    log_every: int = 10
    eval_epochs: float = 1.5
    probe_epochs: float = 3.0
    eval_samples: int = 48
    mi_group: int = 16
    queue: int = 2048
    temperature: float = 0.1
    cosine_tokens: int = 384
    probe_contexts: int = 10
    completions: int = 16
    min_prob: float = 0.01

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps per pass over the corpus (the last, smaller batch is dropped)."""
        return self.n_train // self.batch

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole training."""
        return self.epochs * self.steps_per_epoch

    @property
    def warmup(self) -> int:
        """Steps of linear learning-rate warm-up."""
        return self.warmup_epochs * self.steps_per_epoch

    def eval_steps(self) -> list[int]:
        """Numbers of steps done at which the full evaluation runs: 0, then every ``eval_epochs``, and the end."""
        return _every(self.eval_epochs, self)

    def probe_steps(self) -> list[int]:
        """Numbers of steps done at which the irreducible variance is measured, beside a full evaluation."""
        return _every(self.probe_epochs, self)


def _every(epochs: float, config: Diagnostics) -> list[int]:
    count = math.floor(config.epochs / epochs)
    marks = {round(i * epochs * config.steps_per_epoch) for i in range(count + 1)}
    return sorted(marks | {config.steps})


PAPER_TEXT = Diagnostics(
    modality="text", seed=42, recipes=("c4",), source="hub", pretrained="bert_base_uncased", n_train=100_000, n_val=10_000,
    vocab_size=30_522, length=256,
    width=1024, depth=24, heads=16, dropout=0.1, pred_width=384, pred_depth=12, pred_heads=16, min_keep=10,
    eval_epochs=400 / 1562, probe_epochs=500 / 1562, eval_samples=4096, mi_group=128, cosine_tokens=2048, probe_contexts=200)
PAPER_IMAGE = replace(
    PAPER_TEXT, modality="image", recipes=("imagenet",), pretrained="", image_size=224, patch=14, width=1280, depth=32, heads=16, dropout=0.0,
    latent_loss="mean")

_IMAGES = ("photographs", "textures", "video_frames", "emoji_sheets")
LAPTOP_TEXT = Diagnostics(modality="text")
SMOKE_TEXT = replace(
    LAPTOP_TEXT, recipes=("toy_sentences",), source="generated", n_train=96, n_val=64, vocab_size=256, length=16, image_size=24,
    patch=4, width=16, depth=1, heads=2, pred_width=8, pred_depth=1, pred_heads=2, epochs=2, warmup_epochs=1, batch=32,
    eval_epochs=1.0, eval_samples=48, mi_group=4, queue=64, cosine_tokens=64, probe_epochs=1.0, probe_contexts=4, completions=4,
    min_prob=0.001, log_every=1)
GPU_TEXT = replace(
    PAPER_TEXT, n_train=50_000, length=128, width=768, depth=12, heads=12, pred_depth=6, pred_heads=12, eval_samples=1024)
GPU_IMAGE = replace(PAPER_IMAGE, n_train=50_000, patch=16, width=768, depth=12, heads=12, pred_depth=6, pred_heads=12,
                    latent_loss="sum", eval_samples=1024)


@dataclass(frozen=True)
class Tier:
    """One row of the dial: both modalities, the masked LM (``None``: pretrained), seeds of the headline arm and of the controls."""

    text: Diagnostics
    image: Diagnostics
    masked_lm: MaskedLM | None
    seeds: tuple[int, ...]
    control_seeds: tuple[int, ...]


TIERS = {
    "smoke": Tier(SMOKE_TEXT, replace(SMOKE_TEXT, modality="image", recipes=("toy_pictures",)),
                  MaskedLM(recipe="toy_sentences", source="generated", vocab_size=256, length=16, width=16, depth=1, heads=2,
                           steps=10, batch=32, warmup=2, n_val=64), (0, 1), (0,)),
    "laptop": Tier(LAPTOP_TEXT, replace(LAPTOP_TEXT, modality="image", recipes=_IMAGES), MaskedLM(), (0, 1, 2, 3, 4), (0, 1, 2)),
    "gpu": Tier(GPU_TEXT, GPU_IMAGE, None, (0, 1, 2, 3, 4), (0, 1, 2)),
    "paper": Tier(PAPER_TEXT, PAPER_IMAGE, None, (42, 0, 1, 2, 3, 4), (0, 1, 2, 3, 4)),
}


def scaled(config: Diagnostics) -> Diagnostics:
    """The published recipe carried to another scale by one rule: learning rates x 1024 / width, and an EMA whose
    half-life is the same fraction of training (173 of 23,430 steps, .74 %). Warm-up is in epochs of 15 already. Both
    modalities take the text encoder's width of 1024 as the reference, so that they share one rate; at that width and above,
    as ViT-H is, the published rate stands."""
    rates = {name: scaled_learning_rate(getattr(config, name), PAPER_TEXT.width, min(config.width, PAPER_TEXT.width))
             for name in ("lr_start", "lr_peak", "lr_final")}
    return replace(config, ema=scaled_ema(config.ema, PAPER_TEXT.steps, config.steps), **rates)


def single_pass(config: Diagnostics) -> Diagnostics:
    """The scaled recipe on sentences that are never seen twice: nothing can be memorised."""
    return replace(scaled(config), single_pass=True)


def few_documents(config: Diagnostics) -> Diagnostics:
    """The scaled recipe on a text corpus drawn from as few reviews as the images have training originals."""
    return replace(scaled(config), n_documents=IMAGE_ORIGINALS)


IMAGE_ORIGINALS = 117  # training originals of the embedded image recipes; a test holds it to the recipes
ARMS = {"scaled": scaled, "published": lambda config: config,
        "single_pass": single_pass, "few_documents": few_documents}
TEXT_ONLY = ("single_pass", "few_documents")


@dataclass(frozen=True)
class Member:
    """One run of an arm, before anything about the machine is known."""

    arm: str
    config: Diagnostics


def members(tier: str, arms: list[str], *, seeds: list[int] | None = None, overrides: dict | None = None) -> list[Member]:
    """The runs of some arms at a tier: both modalities, paired by seed; overrides apply before the arm's own change.

    Raises:
        UnknownName: unknown tier, arm or field.
        ConfigError: a value of the wrong type, or another seed or modality, which would train one run under several names.
    """
    sizes = TIERS[configuration.resolve_tier(tier)]
    found = []
    for arm in arms:
        require_known("arm", arm, ARMS)
        for seed in seeds or (sizes.seeds if arm == "scaled" else sizes.control_seeds):
            for base in (sizes.text, sizes.image):
                if base.modality == "image" and arm in TEXT_ONLY:
                    continue
                changed = configuration.override(replace(base, seed=seed), overrides or {})
                if (changed.seed, changed.modality) != (seed, base.modality):
                    raise ConfigError("'seed' and 'modality' cannot be overridden, since an arm sets both for each of its runs; "
                                      "choose the seeds with the parameter 'seeds'.")
                found.append(Member(arm, ARMS[arm](changed)))
    return found
