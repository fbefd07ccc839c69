"""Optimizers that step in the backward pass, each parameter as soon as its gradient is complete, so
that no two gradients need to exist at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

__all__: list[str] = []


def _step_and_clear(parameter: torch.Tensor) -> None:
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _apply_optimizer_in_backward(
    optimizer_class: type[torch.optim.Optimizer],
    params: Iterable[nn.Parameter],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Gives each parameter an optimizer of its own, which steps when a backward pass has added to
    its gradient; the gradient is None after it. A parameter that comes twice gets a second
    optimizer, which steps after the first. Without `register_hook` the caller steps
    `_in_backward_optimizers`."""
    for parameter in params:
        optimizers = getattr(parameter, "_in_backward_optimizers", None)
        if optimizers is None:
            optimizers = parameter._in_backward_optimizers = []
            parameter._optimizer_classes, parameter._optimizer_kwargs = [], []
            parameter._steps_in_backward = False
        parameter._optimizer_classes.append(optimizer_class)
        parameter._optimizer_kwargs.append(optimizer_kwargs)
        optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        if register_hook and not parameter._steps_in_backward:
            parameter._steps_in_backward = True
            parameter.register_post_accumulate_grad_hook(_step_and_clear)


def _get_in_backward_optimizers(module: nn.Module) -> list[torch.optim.Optimizer]:
    """The optimizers that the parameters of a module have."""
    return [
        optimizer
        for parameter in module.parameters()
        for optimizer in getattr(parameter, "_in_backward_optimizers", [])
    ]
