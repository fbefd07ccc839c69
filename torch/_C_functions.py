"""torch._C._functions: classes of autograd nodes that programs make or ask for by name."""

from __future__ import annotations

import torch

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]

# The class of the nodes that add to the .grad of leaves; made by the engine.
AccumulateGrad = type(torch.empty((), requires_grad=True).clone().grad_fn.next_functions[0][0])


class _Undefined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs) -> tuple[torch.Tensor, ...]:
        return tuple(t.view_as(t) for t in inputs)

    @staticmethod
    def backward(ctx, *grads) -> tuple[None, ...]:
        return (None,) * len(grads)


class _Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, message, *inputs) -> tuple[torch.Tensor, ...]:
        ctx.message = message
        return tuple(t.view_as(t) for t in inputs)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


def _one_or_all(outputs: tuple[torch.Tensor, ...]) -> torch.Tensor | tuple[torch.Tensor, ...]:
    return outputs[0] if len(outputs) == 1 else outputs


class UndefinedGrad:
    """Gives its inputs on; no gradient comes back through them."""

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return _one_or_all(_Undefined.apply(*inputs))


class DelayedError:
    """Gives its inputs on; a gradient that comes back raises RuntimeError with the message."""

    def __init__(self, message: str, num_inputs: int) -> None:
        self.message = message
        self.num_inputs = num_inputs

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        if len(inputs) != self.num_inputs:
            raise RuntimeError(f"DelayedError expected {self.num_inputs} inputs, got {len(inputs)}")
        return _one_or_all(_Failing.apply(self.message, *inputs))
