"""Operators named after an engine that computes them elsewhere.

What oneDNN computes has ordinary tensors for arguments here and runs our kernels. What cuDNN
computes runs on CUDA tensors only, as its name says. MIOpen and Metal have no device here: their
operators are declared, so that programs can name them and read their schemas, and calls raise."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, declare, on_device

Triple = tuple[Tensor | None, Tensor | None, Tensor | None]

_WINDOW = "SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups"


def _convolve(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_padding: Sequence[int] | None = None,
) -> Tensor:
    """A convolution; with output_padding the transposed one."""
    transposed = output_padding is not None
    beyond = output_padding if transposed else [0] * (weight.dim() - 2)
    return torch.convolution(
        self, weight, bias, stride, padding, dilation, transposed, beyond, groups
    )


# ---- oneDNN
composed(
    f"mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, {_WINDOW}) -> Tensor", out="out"
)(_convolve)


@composed("mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor", out="out")
def mkldnn_linear(self: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.nn.functional.linear(self, weight, bias)


@composed(
    "mkldnn_linear_backward_input(int[] input_size, Tensor grad_output, Tensor weight) -> Tensor",
    out="out",
)
def mkldnn_linear_backward_input(
    input_size: list[int], grad_output: Tensor, weight: Tensor
) -> Tensor:
    return torch.matmul(grad_output, weight).reshape(input_size)


@composed(
    "mkldnn_linear_backward_weights(Tensor grad_output, Tensor input, Tensor weight, "
    "bool bias_defined) -> (Tensor, Tensor)",
    out="out",
)
def mkldnn_linear_backward_weights(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_defined: bool
) -> tuple[Tensor, Tensor | None]:
    rows = grad_output.reshape(-1, grad_output.size(-1))
    to_weight = rows.t() @ input.reshape(-1, input.size(-1))
    return to_weight, rows.sum(0) if bias_defined else None


@composed(
    "mkldnn_linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    out="out",
)
def mkldnn_linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: list[bool]
) -> Triple:
    to_input = to_weight = to_bias = None
    if output_mask[0]:
        to_input = mkldnn_linear_backward_input(list(self.shape), grad_output, weight)
    if output_mask[1] or output_mask[2]:
        to_weight, to_bias = mkldnn_linear_backward_weights(
            grad_output, self, weight, output_mask[2]
        )
    return to_input, to_weight if output_mask[1] else None, to_bias


@composed("mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor", out="out")
def mkldnn_adaptive_avg_pool2d(self: Tensor, output_size: list[int]) -> Tensor:
    return torch.ops.aten._adaptive_avg_pool2d(self, output_size)


@composed(
    "mkldnn_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", out="out"
)
def mkldnn_adaptive_avg_pool2d_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return torch.ops.aten._adaptive_avg_pool2d_backward(grad_output, self)


def _define_max_pools() -> None:
    for dims in (2, 3):
        window = (
            f"int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, "
            f"int[{dims}] dilation=1, bool ceil_mode=False"
        )
        pool = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")
        gradient = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices_backward")

        def forward(
            self: Tensor,
            kernel_size: list[int],
            stride: list[int] = [],  # noqa: B006
            padding: list[int] | int = 0,
            dilation: list[int] | int = 1,
            ceil_mode: bool = False,
            pool: object = pool,
        ) -> Tensor:
            return pool(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

        def backward(
            grad_output: Tensor,
            output: Tensor,
            input: Tensor,
            kernel_size: list[int],
            stride: list[int] = [],  # noqa: B006
            padding: list[int] | int = 0,
            dilation: list[int] | int = 1,
            ceil_mode: bool = False,
            pool: object = pool,
            gradient: object = gradient,
        ) -> Tensor:
            where = (kernel_size, stride, padding, dilation, ceil_mode)
            return gradient(grad_output, input, *where, pool(input, *where)[1])

        composed(f"mkldnn_max_pool{dims}d(Tensor self, {window}) -> Tensor", out="out")(forward)
        composed(
            f"mkldnn_max_pool{dims}d_backward(Tensor grad_output, Tensor output, Tensor input, "
            f"{window}) -> Tensor",
            out="out",
        )(backward)


_define_max_pools()


@composed("_mkldnn_reshape(Tensor self, int[] shape) -> Tensor", out="out")
def _mkldnn_reshape(self: Tensor, shape: list[int]) -> Tensor:
    return self.reshape(shape).clone()


@composed("_mkldnn_transpose(Tensor self, int dim0, int dim1) -> Tensor", out="out")
def _mkldnn_transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose(dim0, dim1).clone(memory_format=torch.contiguous_format)


@composed("_mkldnn_transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
def _mkldnn_transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose_(dim0, dim1)


@composed("to_mkldnn_backward(Tensor grad, Tensor input) -> Tensor")
def to_mkldnn_backward(grad: Tensor, input: Tensor) -> Tensor:
    return grad.to_dense(input.dtype)


# The results of these have the layout torch._mkldnn, which there is none of here.
declare("to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor", out="out")
for _dims in (2, 3):
    _many = f"SymInt[{_dims}]"
    _zeros, _ones = f"[{', '.join('0' * _dims)}]", f"[{', '.join('1' * _dims)}]"
    declare(
        f"mkldnn_reorder_conv{_dims}d_weight(Tensor self, {_many} padding={_zeros}, "
        f"{_many} stride={_ones}, {_many} dilation={_ones}, SymInt groups=1, "
        "SymInt[]? input_size=None) -> Tensor",
        out="out",
    )


# ---- cuDNN
@on_device(
    "cuda",
    f"cudnn_convolution(Tensor self, Tensor weight, {_WINDOW}, bool benchmark, "
    "bool deterministic, bool allow_tf32) -> Tensor",
    out="out",
)
def cudnn_convolution(
    self: Tensor,
    weight: Tensor,
    padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    allow_tf32: bool,
) -> Tensor:
    with torch.backends.cudnn.flags(True, benchmark, deterministic, allow_tf32):
        return _convolve(self, weight, None, padding, stride, dilation, groups)


@on_device(
    "cuda",
    "cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, "
    "SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, "
    "bool deterministic, bool allow_tf32) -> Tensor",
    out="out",
)
def cudnn_convolution_transpose(
    self: Tensor,
    weight: Tensor,
    padding: list[int],
    output_padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    allow_tf32: bool,
) -> Tensor:
    with torch.backends.cudnn.flags(True, benchmark, deterministic, allow_tf32):
        return _convolve(self, weight, None, padding, stride, dilation, groups, output_padding)


@on_device(
    "cuda",
    "cudnn_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor",
    out="out",
)
def cudnn_convolution_relu(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    return _convolve(self, weight, bias, padding, stride, dilation, groups).relu()


@on_device(
    "cuda",
    "cudnn_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha, "
    "Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor",
    out="out",
)
def cudnn_convolution_add_relu(
    self: Tensor,
    weight: Tensor,
    z: Tensor,
    alpha: float | None,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    convolved = _convolve(self, weight, bias, padding, stride, dilation, groups)
    return convolved.add(z, alpha=1 if alpha is None else alpha).relu()


@on_device(
    "cuda",
    "cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float exponential_average_factor, float epsilon) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    out="out",
)
def cudnn_batch_norm(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The last result is what the engine would keep for its gradient: ours keeps nothing."""
    parts = torch.native_batch_norm(
        input,
        weight,
        bias,
        running_mean,
        running_var,
        training,
        exponential_average_factor,
        epsilon,
    )
    return *parts, torch.empty(0, dtype=torch.uint8, device=input.device)


@on_device(
    "cuda",
    "cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, "
    "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, "
    "float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)",
    out="out",
)
def cudnn_batch_norm_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_var: Tensor | None,
    epsilon: float,
    reserveSpace: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.native_batch_norm_backward(
        grad_output,
        input,
        weight,
        running_mean,
        running_var,
        save_mean,
        save_var,
        True,
        epsilon,
        [True, True, True],
    )


@on_device(
    "cuda",
    "cudnn_affine_grid_generator(Tensor theta, int N, int C, int H, int W) -> Tensor grid",
    out="out",
)
def cudnn_affine_grid_generator(theta: Tensor, N: int, C: int, H: int, W: int) -> Tensor:
    return torch.affine_grid_generator(theta, [N, C, H, W], True)


@on_device(
    "cuda",
    "cudnn_affine_grid_generator_backward(Tensor grad, int N, int C, int H, int W) "
    "-> Tensor grad_theta",
    out="out",
)
def cudnn_affine_grid_generator_backward(grad: Tensor, N: int, C: int, H: int, W: int) -> Tensor:
    return torch.ops.aten.affine_grid_generator_backward(grad, [N, C, H, W], True)


@on_device("cuda", "cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor output", out="out")
def cudnn_grid_sampler(self: Tensor, grid: Tensor) -> Tensor:
    """Bilinear, zero outside, corners aligned."""
    return torch.grid_sampler_2d(self, grid, 0, 0, True)


@on_device(
    "cuda",
    "cudnn_grid_sampler_backward(Tensor self, Tensor grid, Tensor grad_output) "
    "-> (Tensor grad_self, Tensor grad_grid)",
    out="out",
)
def cudnn_grid_sampler_backward(
    self: Tensor, grid: Tensor, grad_output: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.ops.aten.grid_sampler_2d_backward(
        grad_output, self, grid, 0, 0, True, [True, True]
    )


@composed("cudnn_is_acceptable(Tensor self) -> bool")
def cudnn_is_acceptable(self: Tensor) -> bool:
    return torch.backends.cudnn.is_acceptable(self)
