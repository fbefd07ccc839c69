"""Operators of Python's notation, casts by name, and small products."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, define_out

_PYTHON_OPERATORS = {
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
}


def _define_python_operators() -> None:
    for name, function in _PYTHON_OPERATORS.items():
        inplace = getattr(Tensor, function.__name__ + "_")
        for overload, kind in (("Scalar", "Scalar"), ("Tensor", "Tensor")):
            schema = f"__{name}__.{overload}(Tensor self, {kind} other) -> Tensor"
            define(schema, function)
            if name.endswith("shift"):
                define_out(schema, f"{overload}_out", function)
            define(f"__i{name}__.{overload}(Tensor(a!) self, {kind} other) -> Tensor(a!)", inplace)


_define_python_operators()

_CASTS = {
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


def _define_casts() -> None:
    for name, dtype in _CASTS.items():

        def cast(self: Tensor, non_blocking: bool = False, dtype: torch.dtype = dtype) -> Tensor:
            return self.to(dtype, non_blocking=non_blocking)

        define(f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor", cast)


_define_casts()


@composed("chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def chalf(self: Tensor, *, memory_format: torch.memory_format | None = None) -> Tensor:
    return self.to(torch.complex32, memory_format=memory_format or torch.preserve_format)


@composed("_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", out="out")
def _add_relu(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    return torch.relu(torch.add(self, other, alpha=alpha))


@composed("_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", out="Scalar_out")
def _add_relu_number(self: Tensor, other: float, alpha: float = 1) -> Tensor:
    return torch.relu(torch.add(self, other, alpha=alpha))


@composed(
    "_add_relu_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
)
def _add_relu_(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    return self.add_(other, alpha=alpha).relu_()


@composed("_add_relu_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)")
def _add_relu_number_(self: Tensor, other: float, alpha: float = 1) -> Tensor:
    return self.add_(other, alpha=alpha).relu_()


@composed(
    "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor"
)
def linalg__powsum(
    self: Tensor,
    ord: float = 2,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    values = self if dtype is None else self.to(dtype)
    return values.abs().pow(ord).sum(dim, keepdim)


@composed("native_norm(Tensor self, Scalar p=2) -> Tensor", out="out")
def native_norm(self: Tensor, p: float = 2) -> Tensor:
    return torch.norm(self, p)


@composed(
    "native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, "
    "ScalarType? dtype) -> Tensor",
    out="ScalarOpt_dim_dtype_out",
)
def native_norm_along(
    self: Tensor, p: float | None, dim: list[int], keepdim: bool, dtype: torch.dtype | None
) -> Tensor:
    return torch.norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


@composed("_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor", out="out")
def _masked_scale(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    return self * mask.to(self.dtype) * scale


@composed(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", out="out"
)
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * (mask.to(grad_output.dtype) * scale)


@composed("_dim_arange(Tensor like, int dim) -> Tensor")
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    return torch.arange(like.size(dim), device=like.device)


@composed(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
    "int[] sumdim, int unroll_dim=1) -> Tensor",
    out="out",
)
def _trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    factors = []
    for factor, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in dims:
            factor = factor.unsqueeze(dim)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(sumdim) if sumdim else product


@composed("_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor", out="out")
def _compute_linear_combination(input: Tensor, coefficients: Tensor) -> Tensor:
    return torch.tensordot(coefficients, input, dims=1)


@composed("_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor", out="out")
def _cholesky_solve_helper(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    return torch.cholesky_solve(self, A, upper)


@composed("_to_cpu(Tensor[] tensors) -> Tensor[]")
def _to_cpu(tensors: list[Tensor]) -> list[Tensor]:
    return [t.cpu() for t in tensors]


@composed("_saturate_weight_to_fp16(Tensor weight) -> Tensor")
def _saturate_weight_to_fp16(weight: Tensor) -> Tensor:
    largest = torch.finfo(torch.float16).max
    return weight.clamp(-largest, largest)


@composed("floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
def floor_divide_(self: Tensor, other: Tensor) -> Tensor:
    return self.div_(other, rounding_mode="floor")


@composed("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)")
def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    return torch.ops.aten.ldexp_.Tensor(self, other)
