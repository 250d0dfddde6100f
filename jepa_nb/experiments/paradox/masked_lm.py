"""Experiment ``paradox.masked_lm``: the frozen masked LM behind the irreducible variance of text (paper A, A5).

The paper uses bert-base-uncased. Where no pretrained weights are at hand a small BERT is trained on the training
documents, and its held-out loss and accuracy are recorded beside those of token frequencies alone.
"""

from __future__ import annotations

from pathlib import Path

import torch

from jepa_nb import device as devices
from jepa_nb import seeds
from jepa_nb.data import text as corpora
from jepa_nb.experiments.paradox.config import MaskedLM
from jepa_nb.experiments.paradox.text_task import documents_of
from jepa_nb.models import masked_lm as models
from jepa_nb.training import checkpoint, schedule
from jepa_nb.training.finite import require_finite
from jepa_nb.training.loop import Loop, Row


class Training:
    """Masked-token training on sentences that are drawn anew from all training documents."""

    def __init__(self, config: MaskedLM, resolved: devices.Resolved):
        self.config, self.resolved = config, resolved
        self.device = devices.torch_device(resolved)
        documents = documents_of(config.source, config.recipe)
        self.description = documents.description
        self.tokenizer = corpora.wordpiece(documents, config.vocab_size)
        self.special_ids = [self.tokenizer.token_to_id(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
        self.mask_id = self.tokenizer.token_to_id("[MASK]")
        self.tokens = {
            split: corpora.sample_tokens(documents, self.tokenizer, count, config.length,
                                         seeds.numpy_generator(config.seed, "masked lm", split), split=split)
            for split, count in (("train", config.steps * config.batch), ("val", config.n_val))}
        self.model = build(config, self.tokenizer.get_vocab_size()).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.learning_rate, weight_decay=0.01)

    def run(self, folder: Path, label: str) -> list[Row]:
        """Train and return the rows of held-out loss and accuracy."""
        every = max(self.config.steps // 10, 1)
        marks = set(range(0, self.config.steps + 1, every)) | {self.config.steps}
        loop = Loop(label, self.config.steps, {"model": self.model}, self.optimizer, {}, folder, checkpoint_every=every)
        return loop.run(self.step, self.measure, marks)

    def step(self, index: int) -> list[Row]:
        """One optimiser step on 15 % masked tokens."""
        config = self.config
        rows = torch.arange(index * config.batch, (index + 1) * config.batch)
        rate = schedule.warmup_cosine(index, config.steps, config.warmup, 0.0, config.learning_rate, 0.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        with devices.autocast(self.resolved):
            loss, _accuracy = self._loss("train", rows, seeds.generator(config.seed, "masked lm masks", index))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        require_finite(index, {"loss": loss.detach(), "gradient norm": norm}, {"masked_lm": self.model}, lambda: self._loss(
            "train", rows, seeds.generator(config.seed, "masked lm masks", index)))
        self.optimizer.step()
        return []

    def _loss(self, split: str, rows: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = self.tokens[split]
        ids, attention = tokens.ids[rows], tokens.attention[rows]
        maskable = attention & ~tokens.special[rows]
        inputs, labels = models.mlm_batch(ids, maskable, generator, vocab=self.tokenizer.get_vocab_size(),
                                          mask_id=self.mask_id, special=self.special_ids)
        labels = labels.to(self.device)
        asked = labels != -100
        logits = self.model(inputs.to(self.device), attention.to(self.device), asked)
        loss = torch.nn.functional.cross_entropy(logits.float(), labels[asked])
        return loss, (logits.argmax(dim=-1) == labels[asked]).float().mean()

    @torch.no_grad()
    def measure(self, step: int) -> list[Row]:
        """Held-out loss in nats a masked token, accuracy, and both for token frequencies alone."""
        self.model.eval()
        draw = seeds.generator(self.config.seed, "masked lm validation")
        loss, accuracy = self._loss("val", torch.arange(self.config.n_val), draw)
        unigram_loss, unigram_accuracy = self._unigram()
        values = {"masked_lm_loss": float(loss), "masked_lm_accuracy": float(accuracy), "unigram_loss": unigram_loss,
                  "unigram_accuracy": unigram_accuracy}
        return [{"step": step, "epoch": 0.0, "split": "val", "network": "masked_lm", "metric": metric, "variant": "published",
                 "value": value} for metric, value in values.items()]

    def _unigram(self) -> tuple[float, float]:
        """Cross-entropy and accuracy of the training tokens' frequencies (add-one smoothing) on validation tokens."""
        size = self.tokenizer.get_vocab_size()
        counts = {split: torch.bincount(tokens.ids[tokens.attention & ~tokens.special], minlength=size).double()
                  for split, tokens in self.tokens.items()}
        frequency = (counts["train"] + 1) / (counts["train"] + 1).sum()
        share = counts["val"] / counts["val"].sum()
        return float(-(share * frequency.log()).sum()), float(share[frequency.argmax()])

    def final_tensors(self) -> dict[str, torch.Tensor]:
        """The trained weights."""
        return checkpoint.module_tensors({"model": self.model})

    def notes(self) -> dict[str, str]:
        """What belongs in the provenance."""
        return {"data": self.description}


def build(config: MaskedLM, vocab_size: int) -> models.MaskedLM:
    """The small BERT with randomly initialised weights."""
    with seeds.scoped(config.seed, "masked lm initialisation"):
        return models.MaskedLM.from_sizes(vocab_size=vocab_size, width=config.width, depth=config.depth, heads=config.heads,
                                          max_length=config.length)


def restored(config: MaskedLM, tensors: dict[str, torch.Tensor]) -> models.MaskedLM:
    """The masked LM of a finished run."""
    vocab_size = next(value.shape[0] for name, value in tensors.items() if name.endswith("word_embeddings.weight"))
    model = build(config, vocab_size)
    checkpoint.restore_modules({"model": model}, tensors)
    return model
