"""See the package."""

import math

import torch
from torch.autograd.function import Function, FunctionCtx

__all__ = ["Resize"]


class Resize(Function):
    """The elements of a tensor in another size of as many elements."""

    @staticmethod
    def forward(ctx: FunctionCtx, tensor: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
        """Raises RuntimeError where the numbers of elements differ."""
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {tuple(sizes)} ({math.prod(sizes)} elements in total), but "
                f"the given tensor has a size of {tuple(tensor.shape)} ({tensor.numel()} elements)."
            )
        ctx.shape = tensor.shape
        return tensor.contiguous().view(sizes)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The gradient in the first size."""
        return grad.contiguous().view(ctx.shape), None
