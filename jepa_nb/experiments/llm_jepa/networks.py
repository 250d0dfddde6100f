"""The language model of a run with its tokenizer: a small Llama from scratch, or pretrained weights, all trained or through LoRA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from jepa_nb.data import recipes
from jepa_nb.data.pair_tokens import byte_level
from jepa_nb.data.pairs import load_pairs
from jepa_nb.errors import CheckpointError
from jepa_nb.experiments.llm_jepa.config import Finetune
from jepa_nb.models import pretrained
from jepa_nb.models.language import add_predictor_tokens, linear_predictor, tiny_llama, with_lora
from jepa_nb.training import checkpoint

RESERVED = 4  # predictor tokens of a model from scratch, used or not, so that all arms have the same number of weights


@dataclass
class Networks:
    """What is trained.

    Attributes:
        model: the causal language model (with LoRA around it where asked).
        predictor: the linear map of the ablation, or ``None``.
        tokenizer: its tokenizer, with the predictor tokens.
    """

    model: nn.Module
    predictor: nn.Module | None
    tokenizer: Any

    def trained(self) -> list[nn.Parameter]:
        """Parameters that receive gradients, the model's first."""
        return [value for module in self.modules().values() for value in module.parameters() if value.requires_grad]

    def modules(self) -> dict[str, nn.Module]:
        """Networks by name."""
        return {"model": self.model} | ({"predictor": self.predictor} if self.predictor is not None else {})


class TrainedPart(nn.Module):
    """The trained parameters of a module as its state: what a checkpoint of a LoRA run has to hold."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def state_dict(self, *arguments: Any, **options: Any) -> dict[str, torch.Tensor]:
        """Trained parameters by name; a tensor with two names stands under its first."""
        return {name: value.detach() for name, value in self.module.named_parameters() if value.requires_grad}

    def load_state_dict(self, state: dict[str, torch.Tensor], *arguments: Any, **options: Any) -> None:
        """Copy the values of :meth:`state_dict` back; :func:`checkpoint.restore_modules` has compared the names."""
        own = dict(self.module.named_parameters())
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(value)


def trained_parts(networks: Networks) -> dict[str, nn.Module]:
    """State of all networks for checkpoints."""
    return {name: TrainedPart(module) for name, module in networks.modules().items()}


def build(config: Finetune, device: torch.device, attention: str, built_on: dict[str, torch.Tensor] | None = None) -> Networks:
    """The networks of a run before its first step.

    Args:
        config: the run.
        device: where they compute.
        attention: attention implementation.
        built_on: final tensors of the run that this one goes on from.
    """
    model, tokenizer = _pretrained(config) if config.pretrained else _scratch(config, attention)
    added = add_predictor_tokens(model, tokenizer, config.k if config.pretrained else RESERVED, seed=config.seed)
    if built_on is not None:
        _go_on_from(model, built_on)
    width = model.config.hidden_size
    if config.lora_rank:
        model = with_lora(model, config.lora_rank, tokens=added if config.k else (), seed=config.seed)
    predictor = linear_predictor(width, config.seed).to(device) if config.linear_predictor else None
    return Networks(model.to(device), predictor, tokenizer)


def _scratch(config: Finetune, attention: str) -> tuple[nn.Module, Any]:
    read = config.vocab_recipes or (config.recipe,)
    words = [pair for name in read for pair in load_pairs(recipes.offered(name, config.source), name).train]
    tokenizer = byte_level(words, config.vocab_size)
    model = tiny_llama(vocab_size=len(tokenizer), width=config.width, depth=config.depth, heads=config.heads,
                       max_length=config.max_length + config.max_new_tokens, seed=config.seed, attention=attention)
    return model, tokenizer


def _pretrained(config: Finetune) -> tuple[nn.Module, Any]:
    return pretrained.load(config.pretrained, recipes.offered(config.pretrained, config.source))


def _go_on_from(model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Load the final weights of another run of the same sizes."""
    prefix = "model:"
    found = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    own = dict(model.named_parameters())
    if {name: value.shape for name, value in found.items()} != {name: value.shape for name, value in own.items()}:
        raise CheckpointError("the run that this one goes on from has other sizes; give both the same width, depth and vocabulary.")
    with torch.no_grad():
        for name, value in found.items():
            own[name].copy_(value)


def final_tensors(networks: Networks) -> dict[str, torch.Tensor]:
    """Trained weights under ``model:`` and ``predictor:``."""
    return checkpoint.module_tensors(trained_parts(networks))
