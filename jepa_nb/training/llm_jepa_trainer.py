"""LLM-JEPA as a transformers ``Trainer``: any causal language model, all weights or LoRA, any pairs in chat JSONL (Paper C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer, TrainingArguments

from jepa_nb import seeds
from jepa_nb.data.pairs import Pair
from jepa_nb.errors import ConfigError, DataError, require_known
from jepa_nb.masking.chat_frames import ChatFrame
from jepa_nb.masking.streams import StreamBatch, Streams, lay_out
from jepa_nb.models.language import add_predictor_tokens, with_lora
from jepa_nb.training.finite import require_finite
from jepa_nb.training.llm_jepa import JEPATerms, Losses, losses

ACCUMULATIONS = ("normalised", "paper_v1")
Example = dict[str, list[int]]


def examples(pairs: Sequence[Pair], frame: ChatFrame) -> list[Example]:
    """The streams of each pair as lists ``input_ids``, ``labels``, ``text``, ``code``; pairs that the frame drops are left out.

    ``input_ids`` is what ``train_sampling_strategy="group_by_length"`` reads lengths from.

    Raises:
        DataError: no pair is left, or a pair does not fit and the frame was told to raise.
    """
    kept = [streams for pair in pairs if (streams := frame.streams(pair)) is not None]
    if not kept:
        raise DataError(f"none of {len(pairs)} pairs can be trained on (dropped: {dict(frame.dropped)}); give others, or raise max_length.")
    return [{"input_ids": [*each.full], "labels": [*each.labels], "text": [*each.text], "code": [*each.code]} for each in kept]


class LLMJEPACollator:
    """Lays B examples out as one batch, padded to its own longest row.

    Args:
        terms: the objective; its ``layout`` is used.
        pad_id: token that fills rows up.
        multiple: row lengths are rounded up to a multiple of it.

    Returns (when called):
        ``labels`` (R, L) and the other tensors of :class:`jepa_nb.masking.streams.StreamBatch`; under ``plain`` the same without views,
        where loss dropout may ask for it.
    """

    def __init__(self, terms: JEPATerms, pad_id: int, *, multiple: int = 8):
        self.terms, self.pad_id, self.multiple = terms, pad_id, multiple

    def __call__(self, batch: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        streams = [Streams(*(tuple(each[name]) for name in ("input_ids", "labels", "text", "code"))) for each in batch]
        found = self._tensors(streams, bool(self.terms.lam))
        if self.terms.lam and self.terms.loss_dropout:
            found["plain"] = self._tensors(streams, False)
        return found

    def _tensors(self, streams: list[Streams], jepa: bool) -> dict[str, Any]:
        laid = lay_out(streams, self.terms.layout, pad_id=self.pad_id, jepa=jepa, multiple=self.multiple)
        return {name: value for name, value in vars(laid).items() if value is not None}


class LLMJEPATrainer(Trainer):
    """Minimises gamma * next-token loss + lam * distance of the two views (Paper C, equation 2).

    Predictor tokens are added to tokenizer and model, once, and start as the mean embedding. Logs have ``ntp_loss`` and ``jepa_loss`` beside
    ``loss``. With gradient accumulation the gradient is that of the whole batch (``infonce`` apart, whose negatives are a micro-batch's).

    Args:
        model: a causal language model with ``sdpa`` or ``eager`` attention; one that already has LoRA needs its predictor tokens.
        args: of transformers; ``seed`` also draws predictor tokens, adapters and loss dropout.
        processing_class: the tokenizer; its padding side does not matter.
        train_pairs, eval_pairs: pairs, as :func:`jepa_nb.data.pairs.read_chat` reads them.
        k: number of predictor tokens.
        terms: the objective.
        lora_rank: rank of adapters on all projections, alpha = 2 r; 0 trains all weights.
        accumulation: ``"normalised"``, or ``"paper_v1"``: not divided by the accumulation steps, as in the public code.
        frame: further arguments of :class:`jepa_nb.masking.chat_frames.ChatFrame`: ``max_length``, ``unfit``, ``label_policy``, ...
        options: further arguments of ``Trainer``.

    Raises:
        UnknownName: unknown accumulation.
        ConfigError: LoRA is there before the predictor tokens, or a linear predictor is asked for.
        DataError: pairs that cannot be trained on.
    """

    def __init__(self, model: PreTrainedModel, args: TrainingArguments, *, processing_class: PreTrainedTokenizerBase, train_pairs: Sequence[Pair],
                 eval_pairs: Sequence[Pair] | None = None, k: int = 1, terms: JEPATerms = JEPATerms(), lora_rank: int = 0,
                 accumulation: str = "normalised", frame: Mapping[str, Any] | None = None, **options: Any):
        self.terms, self.accumulation = terms, require_known("accumulation", accumulation, ACCUMULATIONS)
        if terms.linear_predictor:
            raise ConfigError("LLMJEPATrainer trains the model's own weights only; train a linear predictor in a loop of your own "
                              "with jepa_nb.training.llm_jepa.losses(predictor=...).")
        added = self._predictor_tokens(model, processing_class, k, args.seed)
        if lora_rank:
            model = with_lora(model, lora_rank, tokens=added, seed=args.seed)
        self.frame = ChatFrame(processing_class, k=k, **(frame or {}))
        super().__init__(
            model, args, LLMJEPACollator(terms, self.frame.pad_id), examples(train_pairs, self.frame),
            examples(eval_pairs, self.frame) if eval_pairs is not None else None, processing_class=processing_class, **options)
        self.model_accepts_loss_kwargs = True  # so that Trainer counts the labels of the whole accumulated batch
        self.loss_is_scaled_for_ga = True  # divided, or by choice not, in compute_loss
        self._signature_columns = ["input_ids", "labels", "text", "code"]
        self._parts: dict[str, list[Tensor]] = {"ntp_loss": [], "jepa_loss": []}
        self._micro = 0

    @staticmethod
    def _predictor_tokens(model: nn.Module, tokenizer: PreTrainedTokenizerBase, k: int, seed: int) -> tuple[int, ...]:
        missing = {f"<|predictor_{number}|>" for number in range(1, k + 1)} - set(tokenizer.get_vocab())
        if hasattr(model, "peft_config") and missing:
            raise ConfigError("the model has LoRA but its tokenizer lacks predictor tokens; call add_predictor_tokens before adding LoRA, "
                              "or pass the bare model with lora_rank.")
        return add_predictor_tokens(model, tokenizer, k, seed=seed) if not hasattr(model, "peft_config") else ()

    def get_batch_samples(self, *arguments: Any, **options: Any) -> tuple[list, Tensor | int | None]:
        """The micro-batches of the next optimiser step."""
        self._micro = 0
        return super().get_batch_samples(*arguments, **options)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False,
                     num_items_in_batch: Tensor | int | None = None) -> Any:
        """Loss of a micro-batch, as it is added to the accumulated gradient."""
        tensors = dict(inputs)
        plain = tensors.pop("plain", None)
        dropped = model.training and plain is not None and self._drops()
        batch = StreamBatch(**(plain if dropped else tensors))
        normalised = model.training and self.accumulation == "normalised"
        found = losses(model, batch, self.terms, num_labels=num_items_in_batch if normalised else None)
        total = found.total if not normalised else self._share(found)
        self._check(model, batch, found)
        self._note(found, num_items_in_batch if normalised else None)
        return (total, {}) if return_outputs else total

    def _share(self, found: Losses) -> Tensor:
        """What a micro-batch adds to the mean over the accumulated batch of all processes."""
        processes = self.accelerator.num_processes if self.args.average_tokens_across_devices else 1
        return self.terms.gamma * found.ntp * processes + self.terms.lam * found.jepa / self.current_gradient_accumulation_steps

    def _drops(self) -> bool:
        """Loss dropout: a coin a micro-batch, from a stream named after seed, step and process."""
        draw = seeds.generator(self.args.seed, "loss dropout", self.state.global_step, self._micro, self.args.process_index)
        self._micro += 1
        return float(torch.rand((), generator=draw)) < self.terms.loss_dropout

    def _check(self, model: nn.Module, batch: StreamBatch, found: Losses) -> None:
        require_finite(self.state.global_step, {"loss": found.total.detach()}, {"model": model},
                       lambda: losses(model, batch, self.terms))

    def _note(self, found: Losses, num_labels: Tensor | int | None) -> None:
        """Keep both parts for the next line of the log, the next-token loss per label of this micro-batch."""
        scale = 1.0 if num_labels is None else num_labels / found.labels
        self._parts["ntp_loss"].append(found.ntp.detach() * scale)
        if found.with_jepa:
            self._parts["jepa_loss"].append(found.jepa.detach())

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log with the means of both parts since the last line."""
        prefix = "eval_" if any(name.startswith("eval_") for name in logs) else ""
        if "loss" in logs or prefix:
            logs |= {prefix + name: float(torch.stack(values).mean()) for name, values in self._parts.items() if values}
            self._parts = {name: [] for name in self._parts}
        super().log(logs, start_time)

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], prediction_loss_only: bool,
                        ignore_keys: list[str] | None = None) -> tuple[Tensor, None, None]:
        """Loss of an evaluation batch; logits are not gathered."""
        with torch.no_grad(), self.compute_loss_context_manager():
            return self.compute_loss(model, self._prepare_inputs(inputs)).detach(), None, None
