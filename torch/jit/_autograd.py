"""Gradients and checkpoints asked for inside of scripted code: these functions stay Python."""

from __future__ import annotations

from typing import Any, List, Optional  # noqa: UP035

import torch
from torch import Tensor


@torch.jit.ignore
def save(obj: Any, f: str) -> None:
    torch.save(obj, f)


@torch.jit.ignore
def backward(
    self: Tensor,
    gradient: Optional[Tensor] = None,  # noqa: UP045
    retain_graph: Optional[bool] = None,  # noqa: UP045
    create_graph: bool = False,
) -> None:
    torch.autograd.backward(self, gradient, retain_graph, create_graph)


@torch.jit.ignore
def grad(
    outputs: List[Tensor],  # noqa: UP006
    inputs: List[Tensor],  # noqa: UP006
    grad_outputs: Optional[List[Optional[Tensor]]] = None,  # noqa: UP006, UP045
    retain_graph: Optional[bool] = None,  # noqa: UP045
    create_graph: bool = False,
    allow_unused: bool = False,
) -> List[Optional[Tensor]]:  # noqa: UP006, UP045
    return list(
        torch.autograd.grad(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused
        )
    )


@torch.jit.ignore
def backward_of(
    tensors: List[Tensor],  # noqa: UP006
    grad_tensors: Optional[List[Optional[Tensor]]] = None,  # noqa: UP006, UP045
    retain_graph: Optional[bool] = None,  # noqa: UP045
    create_graph: bool = False,
) -> None:
    torch.autograd.backward(tensors, grad_tensors, retain_graph, create_graph)
