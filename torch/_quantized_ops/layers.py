"""Normalisation and pooling of quantized tensors."""

import torch
from torch import Tensor
from torch._quantized_ops.registry import defined, on_grid

_NORM = (
    "Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, "
    "float output_scale, int output_zero_point"
)
_TAIL = "Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point"


def _define_batch_norm(name: str, ranks: tuple[int, ...], relu: bool) -> None:
    @defined(f"{name}({_NORM}) -> Tensor")
    def normalise(
        qx: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        eps: float,
        output_scale: float,
        output_zero_point: int,
    ) -> Tensor:
        if qx.dim() not in ranks:
            raise RuntimeError(f"quantized::{name}: Expecting the input tensor of rank {ranks}.")
        values = torch.nn.functional.batch_norm(
            qx.dequantize(), mean, var, weight, bias, False, 0.0, eps
        )
        return on_grid(values.relu() if relu else values, qx, output_scale, output_zero_point)


for _name, _ranks in (
    ("batch_norm", (2, 3, 4, 5)),
    ("batch_norm1d", (2, 3)),
    ("batch_norm2d", (4,)),
    ("batch_norm3d", (5,)),
):
    _define_batch_norm(_name, _ranks, False)
    _define_batch_norm(f"{_name}_relu", _ranks, True)


@defined(f"layer_norm(Tensor input, int[] normalized_shape, {_TAIL}) -> Tensor")
def _layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    values = torch.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return on_grid(values, input, output_scale, output_zero_point)


@defined(f"group_norm(Tensor input, int num_groups, {_TAIL}) -> Tensor")
def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    values = torch.group_norm(input.dequantize(), num_groups, weight, bias, eps)
    return on_grid(values, input, output_scale, output_zero_point)


@defined(f"instance_norm(Tensor input, {_TAIL}) -> Tensor")
def _instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    values = torch.group_norm(input.dequantize(), input.size(1), weight, bias, eps)
    return on_grid(values, input, output_scale, output_zero_point)


_POOL = "Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode"


@defined(f"max_pool1d({_POOL}) -> Tensor")
def _max_pool1d(
    qx: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Tensor:
    return torch.max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)


@defined(f"max_pool2d({_POOL}) -> Tensor")
def _max_pool2d(
    qx: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Tensor:
    return torch.max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)
