"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

import torch

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _tuple(value, rank) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _backward(
    rank, input, weight, grad_output, stride, padding, dilation, groups, mask
) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
    stride, padding, dilation = (_tuple(v, rank) for v in (stride, padding, dilation))
    return torch.ops.aten.convolution_backward(
        grad_output, input, weight, None, stride, padding, dilation, False, [0] * rank, groups, mask
    )


def _input_gradient(rank):
    def gradient(
        input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1
    ) -> torch.Tensor | None:
        # Only the sizes of the input matter to its gradient.
        input = grad_output.new_empty(1).expand(input_size)
        mask = (True, False, False)
        return _backward(rank, input, weight, grad_output, stride, padding, dilation, groups, mask)[
            0
        ]

    gradient.__name__ = gradient.__qualname__ = f"conv{rank}d_input"
    gradient.__doc__ = f"The gradient of conv{rank}d with respect to its input."
    return gradient


def _weight_gradient(rank):
    def gradient(
        input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1
    ) -> torch.Tensor | None:
        weight = grad_output.new_empty(1).expand(weight_size)
        mask = (False, True, False)
        return _backward(rank, input, weight, grad_output, stride, padding, dilation, groups, mask)[
            1
        ]

    gradient.__name__ = gradient.__qualname__ = f"conv{rank}d_weight"
    gradient.__doc__ = f"The gradient of conv{rank}d with respect to its weight."
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_input_gradient(rank) for rank in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_weight_gradient(rank) for rank in (1, 2, 3))
