"""Rounding to the numbers of a quantised type whose scale and zero point are learned.

Inside of the range the gradient passes, as if nothing had been rounded, and the scale gets the
error of rounding; outside of it the value is a bound, which moves with scale and zero point."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed

_RANGE = "int quant_min, int quant_max, float grad_factor=1."


def _slices(parameter: Tensor, like: Tensor, axis: int | None) -> Tensor:
    """A parameter for each slice along an axis, or one for all, in a shape that broadcasts."""
    if axis is None:
        return parameter.reshape(())
    shape = [1] * like.dim()
    shape[axis] = -1
    return parameter.reshape(shape)


def _quantised(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None, low: int, high: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Scale and zero point to compute with, and the rounded numbers before they are clamped."""
    scale = _slices(scale, self, axis)
    zero = _slices(zero_point, self, axis).round().clamp(low, high)
    return scale, zero, (self / scale).round() + zero


def _gradients(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int | None,
    low: int,
    high: int,
    factor: float,
) -> tuple[Tensor, Tensor, Tensor]:
    step, zero, number = _quantised(self, scale, zero_point, axis, low, high)
    bounded = number.clamp(low, high)
    inside = number == bounded
    per_step = bounded - zero
    per_step = torch.where(inside, per_step - self / step, per_step)
    others = [d for d in range(self.dim()) if axis is None or d != axis % self.dim()]

    def total(values: Tensor, like: Tensor) -> Tensor:
        values = values * factor
        return (values.sum(others) if others else values).reshape_as(like).to(like.dtype)

    to_zero = torch.where(inside, 0.0, -grad * step)
    return grad * inside, total(grad * per_step, scale), total(to_zero, zero_point)


class _Learnable(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: object,
        self: Tensor,
        scale: Tensor,
        zero_point: Tensor,
        axis: int | None,
        low: int,
        high: int,
        factor: float,
    ) -> Tensor:
        ctx.save_for_backward(self, scale, zero_point)
        ctx.rest = (axis, low, high, factor)
        step, zero, number = _quantised(self, scale, zero_point, axis, low, high)
        return (number.clamp(low, high) - zero) * step

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *_gradients(grad, *ctx.saved_tensors, *ctx.rest), None, None, None, None


@composed(
    f"_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, "
    f"{_RANGE}) -> Tensor",
    out="out",
)
def _fake_quantize_learnable_per_tensor_affine(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    return _Learnable.apply(self, scale, zero_point, None, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, "
    f"Tensor zero_point, {_RANGE}) -> (Tensor, Tensor, Tensor)"
)
def _fake_quantize_learnable_per_tensor_affine_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    return _gradients(grad, self, scale, zero_point, None, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, "
    f"int axis, {_RANGE}) -> Tensor",
    out="out",
)
def _fake_quantize_learnable_per_channel_affine(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    return _Learnable.apply(self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


@composed(
    f"_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, "
    f"Tensor scale, Tensor zero_point, int axis, {_RANGE}) -> (Tensor, Tensor, Tensor)"
)
def _fake_quantize_learnable_per_channel_affine_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    return _gradients(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


@composed(
    "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
)
def cachemask_backward(grad: Tensor, mask: Tensor) -> Tensor:
    return grad * mask
