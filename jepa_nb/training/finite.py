"""A NaN or an infinity stops a run and is named: the first bad tensor, found by replaying the forward pass with hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from jepa_nb.errors import NonFinite


def first_bad(tensors: Mapping[str, torch.Tensor | None]) -> str | None:
    """Name of the first tensor that holds a NaN or an infinity, in the order given; ``None`` if all are finite."""
    for name, tensor in tensors.items():
        if tensor is not None and torch.is_floating_point(tensor) and not torch.isfinite(tensor).all():
            return name
    return None


def require_finite(step: int, named: Mapping[str, torch.Tensor], modules: Mapping[str, nn.Module],
                   replay: Callable[[], Any]) -> None:
    """Raise :class:`NonFinite` when one of ``named`` (loss, gradient norm ...) is not finite.

    The cause is looked for in the order in which it would have arisen: parameters, then the outputs of every submodule
    during ``replay()``, then the first of ``named`` (the loss), then gradients, then the rest of ``named``.
    """
    bad = first_bad(named)
    if bad is None:
        return
    before_backward = bad if bad == next(iter(named)) else None
    cause = _bad_parameter(modules) or _bad_output(modules, replay) or before_backward or _bad_gradient(modules) or bad
    raise NonFinite(f"step {step}: first non-finite tensor is '{cause}' (seen in '{bad}'); training stopped and the last "
                    "checkpoint is kept. Lower the learning rate or inspect the batch of this step.")


def _bad_parameter(modules: Mapping[str, nn.Module]) -> str | None:
    return first_bad({f"parameter {root}.{name}": value.detach() for root, module in modules.items()
                      for name, value in module.named_parameters()})


def _bad_gradient(modules: Mapping[str, nn.Module]) -> str | None:
    return first_bad({f"gradient of {root}.{name}": value.grad for root, module in modules.items()
                      for name, value in module.named_parameters()})


def _bad_output(modules: Mapping[str, nn.Module], replay: Callable[[], Any]) -> str | None:
    found: list[str] = []
    handles = []
    for root, module in modules.items():
        for name, child in module.named_modules():
            label = f"output of {root}.{name}" if name else f"output of {root}"
            handles.append(child.register_forward_hook(_recorder(label, found)))
    try:
        with torch.no_grad():
            replay()
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def _recorder(label: str, found: list[str]) -> Callable:
    def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
        if not found and isinstance(output, torch.Tensor) and first_bad({label: output}):
            found.append(label)

    return hook
