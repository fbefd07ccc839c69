"""Softmax and normalisations, forward and backward. All normalisations are one thing: subtract the
mean and divide by the deviation over some dimensions, then scale and shift along others. They
differ in which dimensions, and in the shapes in which statistics are returned."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._decomp._register import decomposes
from torch._prims_common import get_computation_dtype

aten = torch.ops.aten


def _rounded(value: Tensor, dtype: torch.dtype, half_to_float: bool) -> Tensor:
    return value if half_to_float else value.to(dtype)


def _shifted(self: Tensor, dim: int) -> Tensor:
    """The elements minus the greatest of their row, in which no exponential overflows."""
    wide = self.to(get_computation_dtype(self.dtype))
    return wide if wide.numel() == 0 else wide - torch.amax(wide, dim, keepdim=True)


@decomposes(aten._softmax)
def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    grown = torch.exp(_shifted(self.contiguous(), dim))
    return _rounded(grown / torch.sum(grown, dim, keepdim=True), self.dtype, half_to_float)


@decomposes(aten._log_softmax)
def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shifted = _shifted(self.contiguous(), dim)
    total = torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))
    return _rounded(shifted - total, self.dtype, half_to_float)


@decomposes(aten._safe_softmax)
def _safe_softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros for a row in which everything is masked."""
    empty = (self == -math.inf).all(dim, keepdim=True)
    return torch.where(empty, 0.0, torch.softmax(self, dim, dtype=dtype))


@decomposes(aten._softmax_backward_data)
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype
) -> Tensor:
    product = grad_output * output
    found = product - output * torch.sum(product, dim, keepdim=True)
    return found.to(input_dtype).contiguous()


@decomposes(aten._log_softmax_backward_data)
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype
) -> Tensor:
    total = torch.sum(grad_output, dim, keepdim=True)
    return (grad_output - torch.exp(output) * total).to(input_dtype)


# ---- what the normalisations share ----------------------------------------------------------


def _standardised(wide: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(var + eps), the mean, and the factor; statistics keep the dimensions."""
    var, mean = torch.var_mean(wide, dims, correction=0, keepdim=True)
    rstd = torch.rsqrt(var + eps)
    return (wide - mean) * rstd, mean, rstd


def _scaled(value: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        value = value * weight
    return value if bias is None else value + bias


def _input_grad(grad: Tensor, normal: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """The derivative of the standardised value: what remains of the gradient when its mean and its
    part along the value are taken away."""
    along = torch.mean(grad * normal, dims, keepdim=True)
    return (grad - torch.mean(grad, dims, keepdim=True) - normal * along) * rstd


@decomposes(aten.native_layer_norm)
def native_layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    wide = input.to(get_computation_dtype(input.dtype))
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    normal, mean, rstd = _standardised(wide, dims, eps)
    out = _scaled(normal, weight, bias).to(input.dtype)
    if input.device.type == "cpu" and (weight is None or weight.dtype == input.dtype):
        return out, mean.to(input.dtype), rstd.to(input.dtype)
    return out, mean, rstd


@decomposes(aten.native_layer_norm_backward)
def native_layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: list[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    compute = get_computation_dtype(input.dtype)
    grad, wide, mean, rstd = (t.to(compute) for t in (grad_out, input, mean, rstd))
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    normal = (wide - mean) * rstd
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.to(compute)
        found[0] = _input_grad(scaled, normal, rstd, inner).to(input.dtype)
    if output_mask[1] and weight is not None:
        product = grad * normal
        found[1] = (product.sum(outer) if outer else product).to(weight.dtype)
    if output_mask[2] and bias is not None:
        found[2] = (grad.sum(outer) if outer else grad.clone()).to(bias.dtype)
    return tuple(found)


@decomposes(aten._fused_rms_norm)
def _fused_rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    wide = input.to(get_computation_dtype(input.dtype))
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    rstd = torch.rsqrt(torch.mean(wide * wide, dims, keepdim=True) + eps)
    return _scaled(wide * rstd, weight, None).to(input.dtype), rstd


@decomposes(aten._fused_rms_norm_backward)
def _fused_rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: list[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None]:
    compute = get_computation_dtype(input.dtype)
    grad, wide, rstd = (t.to(compute) for t in (grad_out, input, rstd))
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    normal = wide * rstd
    found: list[Tensor | None] = [None, None]
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.to(compute)
        along = torch.mean(scaled * normal, inner, keepdim=True)
        found[0] = ((scaled - normal * along) * rstd).to(input.dtype)
    if output_mask[1] and weight is not None:
        product = grad * normal
        found[1] = (product.sum(outer) if outer else product).to(weight.dtype)
    return tuple(found)


@decomposes(aten.native_group_norm)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    wide = input.to(get_computation_dtype(input.dtype))
    normal, mean, rstd = _standardised(wide.reshape(N, group, C // group, HxW), [2, 3], eps)
    along = [1, C] + [1] * (input.dim() - 2)
    weight, bias = (None if t is None else t.reshape(along) for t in (weight, bias))
    out = _scaled(normal.reshape(input.shape), weight, bias)
    flat = (N, group)
    return (
        out.to(input.dtype),
        mean.reshape(flat).to(input.dtype),
        rstd.reshape(flat).to(input.dtype),
    )


@decomposes(aten.native_group_norm_backward)
def native_group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    compute = get_computation_dtype(input.dtype)
    parts = (N, group, C // group, HxW)
    grad, wide = (t.to(compute).reshape(parts) for t in (grad_out, input))
    mean, rstd = (t.to(compute).reshape(N, group, 1, 1) for t in (mean, rstd))
    normal = (wide - mean) * rstd
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        scaled = grad
        if weight is not None:
            scaled = grad * weight.to(compute).reshape(1, group, C // group, 1)
        found[0] = _input_grad(scaled, normal, rstd, [2, 3]).reshape(input.shape).to(input.dtype)
    kept = weight.dtype if weight is not None else input.dtype
    if output_mask[1]:
        found[1] = (grad * normal).sum([0, 3]).reshape(C).to(kept)
    if output_mask[2]:
        found[2] = grad.sum([0, 3]).reshape(C).to(kept)
    return tuple(found)


# ---- batch normalisation --------------------------------------------------------------------


def _along_channels(value: Tensor, rank: int) -> Tensor:
    return value.reshape([1, -1] + [1] * (rank - 2))


def _batch_dims(input: Tensor) -> list[int]:
    return [0, *range(2, input.dim())]


def _moved(running: Tensor | None, seen: Tensor, momentum: float) -> Tensor | None:
    if running is None:
        return None
    return (momentum * seen + (1 - momentum) * running).to(running.dtype)


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """The result, what backward saves, and the running statistics after the call."""
    compute = get_computation_dtype(input.dtype)
    wide, rank, dims = input.to(compute), input.dim(), _batch_dims(input)
    new_mean, new_var = running_mean, running_var
    if training:
        normal, mean, rstd = _standardised(wide, dims, eps)
        save_mean, save_rstd = mean.reshape(-1), rstd.reshape(-1)
        count = input.numel() // input.shape[1]
        new_mean = _moved(running_mean, save_mean, momentum)
        if running_var is not None:
            unbiased = torch.var(wide, dims, correction=0) * (count / (count - 1))
            new_var = _moved(running_var, unbiased, momentum)
    else:
        mean = _along_channels(running_mean.to(compute), rank)
        rstd = torch.rsqrt(_along_channels(running_var.to(compute), rank) + eps)
        normal = (wide - mean) * rstd
        if input.device.type == "cpu":
            save_mean = save_rstd = input.new_zeros((0,))
        else:
            save_mean, save_rstd = mean.reshape(-1), rstd.reshape(-1)
    weight, bias = (None if t is None else _along_channels(t, rank) for t in (weight, bias))
    out = _scaled(normal, weight, bias).to(input.dtype)
    if input.device.type == "cpu":
        save_mean, save_rstd = save_mean.to(input.dtype), save_rstd.to(input.dtype)
    return out, save_mean, save_rstd, new_mean, new_var


@decomposes(aten.native_batch_norm, aten._native_batch_norm_legit.default)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, rstd, new_mean, new_var = _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    if training:
        for running, value in ((running_mean, new_mean), (running_var, new_var)):
            if running is not None:
                running.copy_(value)
    return out, mean, rstd


@decomposes(aten._native_batch_norm_legit.no_stats)
def _native_batch_norm_legit_no_stats(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _batch_norm(input, weight, bias, None, None, training, momentum, eps)[:3]


@decomposes(aten._native_batch_norm_legit_functional.default)
def _native_batch_norm_legit_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@decomposes(aten._native_batch_norm_legit_no_training)
def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)[:3]


@decomposes(aten.native_batch_norm_backward)
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: list[bool],
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    compute, rank, dims = get_computation_dtype(input.dtype), input.dim(), _batch_dims(input)
    grad, wide = grad_out.to(compute), input.to(compute)
    if train:
        mean, rstd = save_mean.to(compute), save_invstd.to(compute)
    else:
        mean, rstd = running_mean.to(compute), torch.rsqrt(running_var.to(compute) + eps)
    rstd = _along_channels(rstd, rank)
    normal = (wide - _along_channels(mean, rank)) * rstd
    scaled = grad
    if weight is not None:
        scaled = grad * _along_channels(weight.to(compute), rank)
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        direct = _input_grad(scaled, normal, rstd, dims) if train else scaled * rstd
        found[0] = direct.to(input.dtype)
    kept = weight.dtype if weight is not None else input.dtype
    if output_mask[1]:
        found[1] = (grad * normal).sum(dims).to(kept)
    if output_mask[2]:
        found[2] = grad.sum(dims).to(kept)
    return tuple(found)
