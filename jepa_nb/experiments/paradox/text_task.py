"""T-JEPA on sentences: data, networks, one step's inputs, and completions of masked text (paper A, A4 and A5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from jepa_nb import paths, seeds
from jepa_nb.data import text as corpora
from jepa_nb.data import weights
from jepa_nb.experiments.paradox.config import Diagnostics
from jepa_nb.masking.spans import sample_spans
from jepa_nb.metrics.variance import conditional_variance
from jepa_nb.models.jepa import Prediction, TextJEPA
from jepa_nb.models.masked_lm import MaskedLM, completions
from jepa_nb.models.predictors import TextPredictor
from jepa_nb.models.text import TextEncoder

CHUNK = 128  # completed sentences encoded at a time


@dataclass(frozen=True)
class TextBatch:
    """ids (B, T) int64, attention (B, T) bool, mask (B, T) bool: True where a token is hidden and predicted."""

    ids: torch.Tensor
    attention: torch.Tensor
    mask: torch.Tensor


def documents_of(source: str, recipe: str) -> corpora.Documents:
    """The documents of a recipe; a process that trains several runs reads them once."""
    return _documents(source, recipe, paths.cache(), paths.local_data())


@lru_cache(maxsize=1)
def _documents(source: str, recipe: str, _cache: Path, _local: Path | None) -> corpora.Documents:
    return corpora.load_documents(source, recipe)


class TextTask:
    """Everything about the text modality that the common protocol needs."""

    def __init__(self, config: Diagnostics, device: torch.device, attention: str = "sdpa"):
        self.config, self.device = config, device
        documents = documents_of(config.source, config.recipes[0])
        self.description = documents.description
        self.tokenizer = (weights.tokenizer(config.pretrained, config.source) if config.pretrained
                          else corpora.wordpiece(documents, config.vocab_size))
        self.mask_id = self.tokenizer.token_to_id("[MASK]")
        self.special_ids = [self.tokenizer.token_to_id(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
        self.n_train = config.n_train * (config.epochs if config.single_pass else 1)
        self.tokens = {
            "train": corpora.sample_tokens(
                documents, self.tokenizer, self.n_train, config.length, seeds.numpy_generator(config.seed, "corpus"),
                split="train", n_documents=config.n_documents or None),
            "val": corpora.sample_tokens(
                documents, self.tokenizer, config.n_val, config.length, seeds.numpy_generator(config.seed, "validation"),
                split="val")}
        self.jepa = self._networks(attention).to(device)

    def _networks(self, attention: str) -> TextJEPA:
        config = self.config
        with seeds.scoped(config.seed, "initialisation"):
            encoder = TextEncoder(
                vocab_size=self.tokenizer.get_vocab_size(), width=config.width, depth=config.depth, heads=config.heads,
                max_length=config.length, dropout=config.dropout, norm="post", attention=attention)
            predictor = TextPredictor(
                width=config.width, pred_width=config.pred_width, depth=config.pred_depth, heads=config.pred_heads,
                max_length=config.length, dropout=config.dropout, attention=attention)
        return TextJEPA(encoder, predictor)

    def batch(self, split: str, index: torch.Tensor, generator: torch.Generator) -> TextBatch:
        """Sentences ``index`` (B,) of a split with freshly drawn spans."""
        tokens = self.tokens[split]
        ids, attention = tokens.ids[index], tokens.attention[index]
        maskable = attention & ~tokens.special[index]
        mask = sample_spans(maskable, generator, n_spans=self.config.n_spans, span_length=self.config.span_length)
        return TextBatch(*(part.to(self.device) for part in (ids, attention, mask)))

    def predict(self, batch: TextBatch) -> Prediction:
        """Predictions and targets of every hidden token."""
        return self.jepa.predict(batch.ids, batch.attention, batch.mask, self.mask_id)

    def states(self, network: str, batch: TextBatch, predicted: Prediction) -> tuple[torch.Tensor, torch.Tensor]:
        """States of the clean sentences: real tokens (N, D), and (B, D) averages over all T positions, padding included,
        which is how the published MI proxy pools; the target encoder's are in ``predicted``."""
        states = (predicted.target_tokens if network == "target"
                  else self.jepa.encode(batch.ids, batch.attention, network=network))
        return states[batch.attention], states.mean(dim=1)

    def positions(self, batch: TextBatch) -> torch.Tensor:
        """Position of every real token, in the order of :meth:`states`."""
        return torch.arange(batch.ids.shape[1], device=self.device).expand_as(batch.ids)[batch.attention]

    def published_context(self, _prediction: Prediction, pooled: torch.Tensor) -> torch.Tensor:
        """(B, D) context vectors of the published proxy: the context encoder's average on the clean sentence."""
        return pooled


class TextCompletions:
    """K completions of each of C masked sentences, drawn once from a frozen masked LM.

    ``published`` (A5): only the first hidden token is masked, everything else is seen; candidates with p >= ``min_prob``,
    drawn without replacement where enough survive. ``corrected``: what T-JEPA's context leaves open; all hidden tokens are
    drawn one after the other, each given the context and the tokens drawn before, with replacement from the full softmax.
    """

    variants = ("published", "corrected")

    def __init__(self, task: TextTask, split: str, batch: TextBatch, masked_lm: MaskedLM):
        self.task, config = task, task.config
        self.positions = batch.mask.int().argmax(dim=1)
        draw = seeds.generator(config.seed, "completions", split)
        self.ids = {"published": self._first_only(batch, masked_lm, draw), "corrected": self._jointly(batch, masked_lm, draw)}
        self.attention = batch.attention

    def _first_only(self, batch: TextBatch, masked_lm: MaskedLM, draw: torch.Generator) -> torch.Tensor:
        rows = torch.arange(len(batch.ids), device=batch.ids.device)
        drawn = self._complete(masked_lm, batch.ids, batch.attention, self.positions, self.task.config.completions, draw,
                               min_prob=self.task.config.min_prob, replace=False)
        ids = batch.ids[:, None].repeat(1, drawn.shape[1], 1)
        ids[rows, :, self.positions] = drawn
        return ids

    def _jointly(self, batch: TextBatch, masked_lm: MaskedLM, draw: torch.Generator) -> torch.Tensor:
        count = self.task.config.completions
        ids = batch.ids.masked_fill(batch.mask, self.task.mask_id).repeat_interleave(count, dim=0)
        attention = batch.attention.repeat_interleave(count, dim=0)
        hidden = batch.mask.repeat_interleave(count, dim=0)
        while hidden.any():
            rows = hidden.any(dim=1).nonzero()[:, 0]
            slot = hidden[rows].int().argmax(dim=1)
            ids[rows, slot] = self._complete(masked_lm, ids[rows], attention[rows], slot, 1, draw)[:, 0]
            hidden[rows, slot] = False
        return ids.view(len(batch.ids), count, -1)

    def _complete(self, masked_lm: MaskedLM, *arguments: Any, **options: Any) -> torch.Tensor:
        return completions(masked_lm, *arguments, mask_id=self.task.mask_id, special=self.task.special_ids, **options)

    @torch.no_grad()
    def variance(self, variant: str) -> torch.Tensor:
        """(C,) irreducible variance of the target state at the first hidden position; ``published`` divides by K."""
        contexts, count, _length = self.ids[variant].shape
        repeated = [part.repeat_interleave(count, dim=0).split(CHUNK) for part in (self.attention, self.positions)]
        states = [self.task.jepa.encode(ids, attention, network="target")[torch.arange(len(ids)), position]
                  for ids, attention, position in zip(self.ids[variant].flatten(0, 1).split(CHUNK), *repeated)]
        grouped = torch.cat(states).float().view(contexts, count, -1)
        return conditional_variance(grouped, unbiased=variant == "corrected")
