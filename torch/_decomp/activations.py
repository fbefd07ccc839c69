"""Activations and their derivatives. Each line is the formula; dtypes are handled by `pointwise`.
A derivative takes the gradient first and the saved value after it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._decomp._register import KIND, decomposes, pointwise, widened

aten = torch.ops.aten


@pointwise(aten.sigmoid_backward)
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (output * (1 - output)).conj_physical()


@pointwise(aten.tanh_backward)
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output).conj_physical()


@decomposes(aten.threshold_backward)
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    return torch.where(self <= threshold, 0, grad_output)


@pointwise(aten.elu, inplace=True)
def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    falling = torch.expm1(self * input_scale) * (alpha * scale)
    return torch.where(self > 0, self * scale, falling)


@pointwise(aten.elu_backward)
def elu_backward(
    grad_output: Tensor,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: Tensor,
) -> Tensor:
    saved = self_or_result
    if is_result:  # the derivative below zero is that of the result plus its limit
        slope = input_scale * (saved + alpha * scale)
    else:
        slope = torch.exp(saved * input_scale) * (input_scale * alpha * scale)
    return torch.where(saved <= 0, grad_output * slope, grad_output * scale)


@pointwise(aten.hardsigmoid, inplace=True)
def hardsigmoid(self: Tensor) -> Tensor:
    return torch.clamp(self + 3, 0, 6) / 6


@pointwise(aten.hardsigmoid_backward)
def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return torch.where((self > -3) & (self < 3), grad_output / 6, 0)


@pointwise(aten.hardswish, inplace=True)
def hardswish(self: Tensor) -> Tensor:
    return self * torch.clamp(self + 3, 0, 6) / 6


@pointwise(aten.hardswish_backward)
def hardswish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    middle = grad_output * (self / 3 + 0.5)
    return torch.where(self <= -3, 0, torch.where(self < 3, middle, grad_output))


@decomposes(aten.hardtanh, inplace=True)
def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return torch.clamp(self, min_val, max_val)


@decomposes(aten.hardtanh_backward)
def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: float, max_val: float) -> Tensor:
    return torch.where((self <= min_val) | (self >= max_val), 0, grad_output)


@pointwise(aten.leaky_relu, inplace=True)
def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return torch.where(self > 0, self, self * negative_slope)


@pointwise(aten.leaky_relu_backward)
def leaky_relu_backward(
    grad_output: Tensor, self: Tensor, negative_slope: float, self_is_result: bool
) -> Tensor:
    return torch.where(self > 0, grad_output, grad_output * negative_slope)


_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


@pointwise(aten.gelu, inplace=True)
def gelu(self: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = (self + self * self * self * _TANH_CUBIC) * _TANH_SCALE
        return self * 0.5 * (1 + torch.tanh(inner))
    return self * 0.5 * (1 + torch.erf(self * math.sqrt(0.5)))


@pointwise(aten.gelu_backward)
def gelu_backward(grad: Tensor, self: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        square = self * self
        wave = torch.tanh(_TANH_SCALE * (self + _TANH_CUBIC * square * self))
        slope = _TANH_SCALE * (1 + 3 * _TANH_CUBIC * square)
        return grad * (0.5 * (1 + wave) + 0.5 * self * (1 - wave * wave) * slope)
    below = 0.5 * (1 + torch.erf(self * math.sqrt(0.5)))
    density = torch.exp(self * self * -0.5) * (0.5 * math.sqrt(2 / math.pi))
    return grad * (below + self * density)


@pointwise(aten.mish, inplace=True)
def mish(self: Tensor) -> Tensor:
    return self * torch.tanh(torch.nn.functional.softplus(self))


@pointwise(aten.mish_backward)
def mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    wave = torch.tanh(torch.nn.functional.softplus(self))
    return grad_output * (wave + self * torch.sigmoid(self) * (1 - wave * wave))


@pointwise(aten.silu, inplace=True)
def silu(self: Tensor) -> Tensor:
    return self * torch.sigmoid(self)


@pointwise(aten.silu_backward)
def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    gate = torch.sigmoid(self)
    return grad_output * gate * (1 + self * (1 - gate))


@pointwise(aten.softplus)
def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = self * beta
    return torch.where(scaled > threshold, self, torch.log1p(torch.exp(scaled)) / beta)


@pointwise(aten.softplus_backward)
def softplus_backward(grad_output: Tensor, self: Tensor, beta: float, threshold: float) -> Tensor:
    grown = torch.exp(self * beta)
    return torch.where(self * beta > threshold, grad_output, grad_output * grown / (grown + 1))


@pointwise(aten.softshrink)
def softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    nearer = torch.where(self > 0, self - lambd, self + lambd)
    return torch.where(torch.abs(self) > lambd, nearer, self * 0)


@decomposes(aten.softshrink_backward, aten.hardshrink_backward)
def shrink_backward(grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    return torch.where((self >= -lambd) & (self <= lambd), 0, grad_output)


@decomposes(aten.hardshrink)
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where((self >= -lambd) & (self <= lambd), 0, self)


@decomposes(aten.threshold, inplace=True)
def threshold(self: Tensor, threshold: float, value: float) -> Tensor:
    return torch.where(self <= threshold, value, self)


@pointwise(aten.celu, inplace=True)
def celu(self: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.where(self > 0, self, torch.expm1(self / alpha) * alpha)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@pointwise(aten.selu, inplace=True)
def selu(self: Tensor) -> Tensor:
    return elu.__wrapped__(self, _SELU_ALPHA, _SELU_SCALE)


@decomposes(aten.relu, inplace=True)
def relu(self: Tensor) -> Tensor:
    return torch.where(self <= 0, 0, self)


@pointwise(aten.logit, inplace=True, kind=KIND.INT_TO_FLOAT)
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    inside = self if eps is None else torch.clamp(self, eps, 1 - eps)
    return torch.log(inside / (1 - inside))


@pointwise(aten.logit_backward)
def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    low = 0.0 if eps is None else eps
    outside = math.nan if eps is None else 0.0
    inside = (self >= low) & (self <= 1 - low)
    return torch.where(inside, grad_output / (self * (1 - self)), outside)


def _log_sigmoid(self: Tensor) -> Tensor:
    return self.clamp_max(0) - torch.log1p(torch.exp(-torch.abs(self)))


@decomposes(aten.log_sigmoid_forward)
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    return widened(_log_sigmoid)(self), self.new_zeros((0,))


@decomposes(aten.log_sigmoid_backward)
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    return widened(lambda grad, x: grad * torch.sigmoid(-x))(grad_output, self)


@decomposes(aten._prelu_kernel)
def _prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return torch.where(self > 0, self, weight * self)


@decomposes(aten._prelu_kernel_backward)
def _prelu_kernel_backward(
    grad_output: Tensor, self: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    rising = self > 0
    return (
        torch.where(rising, grad_output, weight * grad_output),
        torch.where(rising, 0, self * grad_output),
    )


@pointwise(aten.rrelu_with_noise_backward)
def rrelu_with_noise_backward(
    grad_output: Tensor,
    self: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    if training and upper - lower > 1e-6:
        return grad_output * noise
    slope = (lower + upper) / 2
    return torch.where(self > 0, grad_output, grad_output * slope)


@decomposes(aten.glu)
def glu(self: Tensor, dim: int = -1) -> Tensor:
    dim = torch._prims_common.canonicalize_dim(self.dim(), dim)
    torch._check(
        self.shape[dim] % 2 == 0,
        lambda: f"Halving dimension must be even, but dimension {dim} is size {self.shape[dim]}",
    )
    half = self.shape[dim] // 2
    return self.narrow(dim, 0, half) * torch.sigmoid(self.narrow(dim, half, half))


@decomposes(aten.glu_backward)
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    dim = torch._prims_common.canonicalize_dim(self.dim(), dim)
    half = self.shape[dim] // 2

    def both(grad: Tensor, value: Tensor, gate_input: Tensor) -> Tensor:
        gate = torch.sigmoid(gate_input)
        return torch.cat([grad * gate, grad * value * gate * (1 - gate)], dim)

    halves = self.narrow(dim, 0, half), self.narrow(dim, half, half)
    return widened(both)(grad_output, *halves)
