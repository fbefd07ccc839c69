"""Running a function as a graph of primitives."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch._prims.context import TorchRefsMode

__all__ = ["execute", "make_traced"]


def execute(
    gm: torch.nn.Module,
    *args: object,
    executor: str = "aten",
    executor_parameters: dict[str, object] | None = None,
) -> object:
    """Runs a graph of primitives by their own kernels."""
    if executor != "aten":
        raise ValueError(
            f"Received unexpected value for 'executor': {executor}. Allowed values are: aten."
        )
    return gm.forward(*args)


def make_traced(fn: Callable) -> Callable:
    """The function traced to primitives at every call and then run."""
    from torch.fx.experimental.proxy_tensor import make_fx

    @functools.wraps(fn)
    def traced(*args: object, executor: str = "aten", **kwargs: object) -> object:
        with TorchRefsMode():
            graph = make_fx(lambda *inner: fn(*inner, **kwargs))(*args)
        return execute(graph, *args, executor=executor)

    return traced
