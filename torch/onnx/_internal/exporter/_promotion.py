"""Casts that operators of torch make by themselves and those of ONNX do not: operands of pointwise
operators meet in one type, integers become floating point where the result is, and reductions of
integers are computed in the type of their result."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

import torch
from torch import fx
from torch._ops import OpOverload
from torch.onnx._internal.exporter._building import OpRecorder
from torch.onnx._internal.exporter._types import onnx_type

__all__ = ["promoted"]

aten = torch.ops.aten

# Pointwise operators whose operands keep their types, or whose translations take care of them.
_LEFT_ALONE = {
    aten._to_copy,
    aten._conj,
    aten.bernoulli,
    aten.bucketize,
    aten.clone,
    aten.copy,
    aten.copysign,
    aten.fill,
    aten.ldexp,
    aten.masked_fill,
    aten.to,
}
_ALSO = {aten.cat, aten.stack, aten.hstack, aten.vstack, aten.concat}
_REDUCED = {aten.sum, aten.prod, aten.cumsum, aten.cumprod, aten.nansum}
_EXAMPLE = {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}


def promoted(node: fx.Node, args: list[object], recorder: OpRecorder) -> list[object]:
    """The positional arguments of a call with the casts that torch makes."""
    target = node.target
    if not isinstance(target, OpOverload):
        return args
    packet = target.overloadpacket
    result = _first(node.meta.get("val"))
    if packet in _REDUCED and isinstance(result, torch.Tensor):
        first = _example(node.args[0])
        if isinstance(first, torch.Tensor) and not first.dtype.is_floating_point:
            return [_cast(args[0], result.dtype, recorder), *args[1:]]
        return args
    if packet in _LEFT_ALONE:
        return args
    if packet not in _ALSO and torch.Tag.pointwise not in target.tags:
        return args
    skipped = 1 if packet is aten.where else 0  # the condition
    common = _common([_example(a) for a in node.args[skipped:]], result)
    if common is None or common.is_complex:
        return args
    rest = [_cast(value, common, recorder) for value in args[skipped:]]
    return [*args[:skipped], *rest]


def _first(value: object) -> object:
    return value[0] if isinstance(value, (tuple, list)) and value else value


def _example(argument: object) -> object:
    if isinstance(argument, fx.Node):
        return argument.meta.get("val")
    if isinstance(argument, (tuple, list)):
        return [_example(a) for a in argument]
    return argument


def _common(examples: Sequence[object], result: object) -> torch.dtype | None:
    """The type in which operands meet; None where there is nothing to cast."""
    flat: list[object] = []
    for example in examples:
        flat.extend(example if isinstance(example, list) else [example])
    tensors = [e for e in flat if isinstance(e, torch.Tensor)]
    if not tensors:
        return None
    meeting = _standing(tensors[0].dim(), tensors[0].dtype)
    for other in flat:
        other = _EXAMPLE.get(type(other), other)
        if isinstance(other, torch.Tensor):
            other = _standing(other.dim(), other.dtype)
        elif not isinstance(other, (bool, int, float, complex)):
            continue
        rank = max(meeting.dim(), other.dim() if isinstance(other, torch.Tensor) else 0)
        meeting = _standing(rank, torch.result_type(meeting, other))
    common = meeting.dtype
    if isinstance(result, torch.Tensor):
        wide = result.dtype.is_floating_point or result.dtype.is_complex
        if wide and not (common.is_floating_point or common.is_complex):
            return result.dtype
    return common


def _standing(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor that stands for others of its type and number of dimensions."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        return torch.empty([0] * rank, dtype=dtype, device="meta")


def _cast(value: object, dtype: torch.dtype, recorder: OpRecorder) -> object:
    if isinstance(value, (list, tuple)):
        return [_cast(v, dtype, recorder) for v in value]
    if isinstance(value, ir.Value):
        wanted = onnx_type(dtype)
        if value.dtype in (None, wanted) or getattr(value, "is_complex", False):
            return value
        made = recorder.opset.Cast(value, to=wanted)
        made.shape = value.shape
        return made
    if isinstance(value, int) and not isinstance(value, bool) and dtype.is_floating_point:
        return float(value)
    return value
