"""Sums, products and functions of elements. Each dequantizes, computes in float32 and rounds once;
what multiplies or shifts by a number keeps the integers and changes their scale instead."""

import torch
from torch import Tensor
from torch._quantized_ops.registry import defined, on_grid, on_grid_of

_GRID = "float output_scale, int output_zero_point"


def _check_pair(name: str, a: Tensor, b: Tensor) -> None:
    for tensor in (a, b):
        if not tensor.is_quantized or tensor.qscheme() is not torch.per_tensor_affine:
            raise RuntimeError(f"quantized::{name}: Only per-tensor quantization is supported.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"quantized::{name}: expected operands of one dtype, got {a.dtype} and {b.dtype}"
        )


def _pairwise(name: str, relu: bool) -> None:
    """name, its form with an activation, and those that write into a tensor of another grid."""
    function = getattr(torch, name)
    full = f"{name}_relu" if relu else name

    def values(a: Tensor, b: Tensor) -> Tensor:
        _check_pair(full, a, b)
        result = function(a.dequantize(), b.dequantize())
        return result.relu() if relu else result

    @defined(f"{full}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
    def new(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
        return on_grid(values(qa, qb), qa, scale, zero_point)

    @defined(
        f"{full}.out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out",
        f"{full}_out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out",
    )
    def into(qa: Tensor, qb: Tensor, out: Tensor) -> Tensor:
        _check_pair(full, qa, out)
        return out.copy_(values(qa, qb))


def _levels(dtype: torch.dtype) -> tuple[int, int]:
    plain = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
    if dtype not in plain:
        raise NotImplementedError(f"quantized arithmetic with a number is not implemented: {dtype}")
    limits = torch.iinfo(plain[dtype])
    return limits.min, limits.max


def _plus_number(qa: Tensor, number: float) -> Tensor:
    """The zero point moves; where it would leave the levels, the scale grows to make room."""
    low, high = _levels(qa.dtype)
    scale, zero_point = qa.q_scale(), qa.q_zero_point()
    moved = zero_point - round(number / scale)
    if low <= moved <= high:
        return torch._make_per_tensor_quantized_tensor(qa.int_repr(), scale, moved)
    steps = high - low
    outside = low - moved if moved < low else moved - high
    wider = scale * (steps + outside) / steps
    return on_grid(qa.dequantize() + number, qa, wider, low if moved < low else high)


def _times_number(qa: Tensor, number: float) -> Tensor:
    """The scale is multiplied; a negative factor turns the levels around."""
    low, high = _levels(qa.dtype)
    scale, zero_point = qa.q_scale(), qa.q_zero_point()
    if number > 0:
        return torch._make_per_tensor_quantized_tensor(qa.int_repr(), scale * number, zero_point)
    if number == 0:
        return torch._make_per_tensor_quantized_tensor(torch.zeros_like(qa.int_repr()), 1.0, 0)
    turned = (low + high) - qa.int_repr().to(torch.int64)
    return torch._make_per_tensor_quantized_tensor(
        turned.to(qa.int_repr().dtype), scale * -number, low + high - zero_point
    )


def _with_number(name: str, relu: bool) -> None:
    compute = _plus_number if name == "add" else _times_number
    old = f"{name}_scalar_relu" if relu else f"{name}_scalar"
    full = f"{name}_relu" if relu else name

    def result(qa: Tensor, b: float | Tensor) -> Tensor:
        made = compute(qa, float(b))
        return made.relu() if relu else made

    @defined(
        f"{full}.Scalar(Tensor qa, Scalar b) -> Tensor qc",
        f"{old}(Tensor qa, Scalar b) -> Tensor qc",
        f"{old}.Tensor(Tensor qa, Tensor b) -> Tensor qc",
    )
    def new(qa: Tensor, b: float | Tensor) -> Tensor:
        return result(qa, b)

    @defined(f"{full}.Scalar2(Scalar b, Tensor qa) -> Tensor qc")
    def turned(b: float, qa: Tensor) -> Tensor:
        return result(qa, b)

    @defined(
        f"{full}.Scalar_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out",
        f"{old}_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out",
        f"{old}_out.Tensor(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out",
    )
    def into(qa: Tensor, b: float | Tensor, out: Tensor) -> Tensor:
        return out.copy_(result(qa, b))


for _name in ("add", "mul"):
    for _relu in (False, True):
        _pairwise(_name, _relu)
        _with_number(_name, _relu)


@defined("matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def _matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    _check_pair("matmul", qa, qb)
    # Products of centred levels are integers, and their sums too.
    left = qa.int_repr().double() - qa.q_zero_point()
    right = qb.int_repr().double() - qb.q_zero_point()
    values = torch.matmul(left, right) * (qa.q_scale() * qb.q_scale())
    return on_grid(values.float(), qa, scale, zero_point)


def _concatenated(tensors: list[Tensor], dim: int, relu: bool) -> Tensor:
    values = torch.cat([t.dequantize() for t in tensors], dim)
    return values.relu() if relu else values


def _define_cat(name: str, relu: bool) -> None:
    @defined(f"{name}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")
    def new(qx: list[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
        scale = qx[0].q_scale() if scale is None else scale
        zero_point = qx[0].q_zero_point() if zero_point is None else zero_point
        return on_grid(_concatenated(qx, dim, relu), qx[0], scale, zero_point)

    @defined(f"{name}_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)")
    def into(qx: list[Tensor], dim: int, out: Tensor) -> Tensor:
        return out.copy_(_concatenated(qx, dim, relu))


_define_cat("cat", False)
_define_cat("cat_relu", True)


# ---- functions of one element
@defined("relu6(Tensor qx, bool inplace=False) -> Tensor")
def _relu6(qx: Tensor, inplace: bool = False) -> Tensor:
    result = on_grid_of(qx.dequantize().clamp(0, 6), qx)
    return qx.copy_(result) if inplace else result


@defined(
    f"leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, {_GRID}) -> Tensor",
)
def _leaky_relu(
    qx: Tensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> Tensor:
    values = torch.nn.functional.leaky_relu(qx.dequantize(), negative_slope)
    return on_grid(values, qx, output_scale, output_zero_point)


@defined(f"hardswish(Tensor input, {_GRID}) -> Tensor")
def _hardswish(input: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    values = torch.nn.functional.hardswish(input.dequantize())
    return on_grid(values, input, output_scale, output_zero_point)


@defined(f"sigmoid(Tensor qx, {_GRID}) -> Tensor")
def _sigmoid(qx: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return on_grid(qx.dequantize().sigmoid(), qx, output_scale, output_zero_point)


@defined(
    f"elu(Tensor self, {_GRID}, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"
)
def _elu(
    self: Tensor,
    output_scale: float,
    output_zero_point: int,
    alpha: float = 1,
    scale: float = 1,
    input_scale: float = 1,
) -> Tensor:
    values = torch.ops.aten.elu(self.dequantize(), alpha, scale, input_scale)
    return on_grid(values, self, output_scale, output_zero_point)


@defined(f"celu(Tensor self, {_GRID}, Scalar alpha=1) -> Tensor")
def _celu(self: Tensor, output_scale: float, output_zero_point: int, alpha: float = 1) -> Tensor:
    values = torch.celu(self.dequantize(), alpha)
    return on_grid(values, self, output_scale, output_zero_point)


@defined(f"prelu(Tensor qx, Tensor weight, {_GRID}) -> Tensor")
def _prelu(qx: Tensor, weight: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    slopes = weight.dequantize() if weight.is_quantized else weight
    return on_grid(torch.prelu(qx.dequantize(), slopes), qx, output_scale, output_zero_point)


@defined(f"softmax(Tensor qx, int dim, {_GRID}) -> Tensor")
def _softmax(qx: Tensor, dim: int, output_scale: float, output_zero_point: int) -> Tensor:
    return on_grid(qx.dequantize().softmax(dim), qx, output_scale, output_zero_point)


@defined("clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy")
def _clamp(qx: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    return torch.clamp(qx, min, max)


@defined("threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy")
def _threshold(qx: Tensor, threshold: float, value: float) -> Tensor:
    return torch.threshold(qx, threshold, value)


@defined(f"dropout(Tensor self, {_GRID}, Scalar p=0.5, bool training=False) -> Tensor")
def _dropout(
    self: Tensor,
    output_scale: float,
    output_zero_point: int,
    p: float = 0.5,
    training: bool = False,
) -> Tensor:
    values = torch.nn.functional.dropout(self.dequantize(), p, training)
    return on_grid(values, self, output_scale, output_zero_point)
