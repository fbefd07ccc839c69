"""Elementwise operators in terms of `torch.ops.prims`: dtypes are promoted and shapes broadcast by
visible steps, then one primitive is applied. Tables say which, and by what rule of promotion."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch._decomp._register import KIND, decomposes
from torch._prims_common import elementwise_dtypes
from torch._prims_common.wrappers import out_wrapper

__all__: list[str] = []

aten, prims = torch.ops.aten, torch.ops.prims
Operand = Tensor | bool | int | float | complex


def _converted(value: Operand, dtype: torch.dtype) -> Operand:
    if isinstance(value, Tensor) and value.dtype != dtype:
        return prims.convert_element_type(value, dtype)
    return value


def broadcast(*values: Operand) -> list[Operand]:
    """Tensors expanded to their common shape, as primitives; numbers stay."""
    shapes = [v.shape for v in values if isinstance(v, Tensor)]
    common = torch.broadcast_shapes(*shapes)
    found: list[Operand] = []
    for value in values:
        if isinstance(value, Tensor) and tuple(value.shape) != tuple(common):
            lead = len(common) - value.dim()
            value = prims.broadcast_in_dim(value, common, list(range(lead, len(common))))
        found.append(value)
    return found


def _promoted(primitive: Callable, kind: KIND) -> Callable:
    """The primitive with promotion and broadcasting in front and rounding behind."""

    def apply(*values: Operand) -> Tensor:
        compute, result = elementwise_dtypes(*values, type_promotion_kind=kind)
        if not any(isinstance(v, Tensor) for v in values):
            values = (prims.scalar_tensor(values[0], dtype=compute), *values[1:])
        found = primitive(*broadcast(*(_converted(v, compute) for v in values)))
        return _converted(found, result)

    return apply


def _logical(primitive: Callable) -> Callable:
    """Of truth values: what is not zero is true."""

    def apply(*values: Operand) -> Tensor:
        truths = [prims.ne(v, 0) if v.dtype is not torch.bool else v for v in values]
        return primitive(*broadcast(*truths))

    return apply


def _written_back(function: Callable) -> Callable:
    @functools.wraps(function)
    def inplace(a: Tensor, *args: Operand) -> Tensor:
        return a.copy_(function(a, *args))

    return inplace


def _enter(name: str, apply: Callable[..., Tensor], arity: int) -> None:
    """Makes the reference and its in-place form, and enters both as decompositions."""
    if arity == 1:

        def reference(a: Tensor) -> Tensor:
            return apply(a)

    else:

        def reference(a: Operand, b: Operand) -> Tensor:
            return apply(a, b)

    reference.__name__ = reference.__qualname__ = name
    reference.__doc__ = f"torch.{name}, in primitives."
    reference._to_prims = True
    made = out_wrapper()(reference)
    globals()[name], globals()[f"{name}_"] = made, _written_back(reference)
    __all__.extend((name, f"{name}_"))
    packet = getattr(aten, name, None)
    if packet is not None:
        decomposes(packet, inplace=hasattr(aten, f"{name}_"))(reference)


_FLOATING = (
    "acos acosh asin asinh atan atanh cos cosh digamma erf erfc exp exp2 expm1 lgamma log log10 "
    "log1p log2 reciprocal rsqrt sin sinh sqrt tan tanh"
)
_SAME = "bitwise_not conj_physical neg sign"
_WHOLE = "ceil floor trunc"  # integers are already what they become


def _sigmoid(a: Tensor) -> Tensor:
    return prims.reciprocal(prims.add(prims.exp(prims.neg(a)), 1))


def _rounding(primitive: Callable) -> Callable:
    def apply(a: Tensor) -> Tensor:
        return _promoted(primitive, KIND.DEFAULT)(a) if a.is_floating_point() else prims.clone(a)

    return apply


for _name in _FLOATING.split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.INT_TO_FLOAT), 1)
for _name in _SAME.split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.DEFAULT), 1)
for _name in _WHOLE.split():
    _enter(_name, _rounding(getattr(prims, _name)), 1)
_enter("abs", _promoted(prims.abs, KIND.COMPLEX_TO_FLOAT), 1)
_enter("erfinv", _promoted(prims.erf_inv, KIND.INT_TO_FLOAT), 1)
_enter("i0", _promoted(prims.bessel_i0, KIND.INT_TO_FLOAT), 1)
_enter("sigmoid", _promoted(_sigmoid, KIND.INT_TO_FLOAT), 1)
_enter("signbit", _promoted(prims.signbit, KIND.ALWAYS_BOOL), 1)
_enter("isfinite", _promoted(prims.isfinite, KIND.ALWAYS_BOOL), 1)
_enter("isnan", _promoted(lambda a: prims.ne(a, a), KIND.ALWAYS_BOOL), 1)
_enter("square", _promoted(lambda a: prims.mul(a, a), KIND.BOOL_TO_LONG), 1)
_enter("logical_not", _logical(lambda a: prims.eq(a, False)), 1)

for _name in "eq ge gt le lt ne".split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.ALWAYS_BOOL), 2)
for _name in (
    "bitwise_and bitwise_or bitwise_xor fmax fmin fmod gcd maximum minimum mul remainder"
).split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.DEFAULT), 2)
for _name in "atan2 copysign".split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.INT_TO_FLOAT), 2)
for _name in "hypot igamma igammac nextafter".split():
    _enter(_name, _promoted(getattr(prims, _name), KIND.NO_OPMATH), 2)
_enter("true_divide", _promoted(prims.div, KIND.INT_TO_FLOAT), 2)
_enter("pow", _promoted(prims.pow, KIND.BOOL_TO_LONG), 2)
for _name, _primitive in (
    ("logical_and", prims.bitwise_and),
    ("logical_or", prims.bitwise_or),
    ("logical_xor", prims.bitwise_xor),
):
    _enter(_name, _logical(_primitive), 2)


def _scaled_sum(name: str, primitive: Callable) -> None:
    def reference(a: Operand, b: Operand, *, alpha: bool | int | float | complex = 1) -> Tensor:
        if alpha != 1:
            b = prims.mul(b, alpha) if isinstance(b, Tensor) else b * alpha
        return _promoted(primitive, KIND.DEFAULT)(a, b)

    reference.__name__ = reference.__qualname__ = name
    reference._to_prims = True
    globals()[name] = out_wrapper()(reference)
    globals()[f"{name}_"] = _written_back(reference)
    __all__.extend((name, f"{name}_"))


_scaled_sum("add", prims.add)
_scaled_sum("sub", prims.sub)


@out_wrapper()
def div(a: Operand, b: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """torch.div, in primitives."""
    if rounding_mode is None:
        return true_divide(a, b)  # noqa: F821
    if rounding_mode == "trunc":
        return _promoted(
            lambda x, y: prims.trunc(prims.div(x, y)) if x.is_floating_point() else prims.div(x, y),
            KIND.DEFAULT,
        )(a, b)
    if rounding_mode == "floor":
        return torch.div(a, b, rounding_mode="floor")
    raise ValueError(
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
        f"{rounding_mode}"
    )


@out_wrapper()
def where(pred: Tensor, a: Operand | None = None, b: Operand | None = None) -> Tensor:
    """torch.where, in primitives."""
    if a is None or b is None:
        raise NotImplementedError("torch._refs.where: expected three arguments")
    _, result = elementwise_dtypes(a, b, type_promotion_kind=KIND.NO_OPMATH)
    values = [
        _converted(v, result) if isinstance(v, Tensor) else prims.scalar_tensor(v, dtype=result)
        for v in (a, b)
    ]
    return prims.where(*broadcast(pred, *values))


__all__ += ["broadcast", "div", "where"]
