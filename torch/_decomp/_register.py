"""How a decomposition is written down: once, for the functional form. In-place and out= forms of
the operator follow from its schema, and arithmetic in a wider dtype from the kind of promotion."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch._decomp import register_decomposition
from torch._ops import OpOverload, OpOverloadPacket
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.utils._pytree import tree_map

__all__ = ["KIND", "decomposes", "pointwise", "widened"]

KIND = ELEMENTWISE_TYPE_PROMOTION_KIND


def widened(function: Callable, kind: ELEMENTWISE_TYPE_PROMOTION_KIND = KIND.DEFAULT) -> Callable:
    """The function computed in the dtype for arithmetic of its tensor arguments (half precision in
    single); its results are rounded to their common dtype."""

    @functools.wraps(function)
    def computed(*args, **kwargs):
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        compute, result = elementwise_dtypes(*tensors, type_promotion_kind=kind)

        def enter(value: object) -> object:
            return value.to(compute) if isinstance(value, Tensor) else value

        def leave(value: object) -> object:
            return value.to(result) if isinstance(value, Tensor) else value

        found = function(*map(enter, args), **{k: enter(v) for k, v in kwargs.items()})
        return tree_map(leave, found)

    return computed


def _written_back(function: Callable) -> Callable:
    """The in-place form: the result is copied into the first argument."""

    @functools.wraps(function)
    def inplace(self: Tensor, *args, **kwargs) -> Tensor:
        return self.copy_(function(self, *args, **kwargs))

    return inplace


def _into_outputs(function: Callable, names: list[str]) -> Callable:
    """The out= form: the results are copied into the tensors of those names."""

    @functools.wraps(function)
    def to_out(*args, **kwargs):
        outs = [kwargs.pop(name) for name in names]
        found = function(*args, **kwargs)
        for out, value in zip(outs, (found,) if len(outs) == 1 else found, strict=True):
            if out.shape != value.shape:
                out.resize_(value.shape)
            out.copy_(value)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return to_out


def _written(op: OpOverload) -> list[str]:
    """The names of the arguments that the operator writes to."""
    found = []
    for argument in op._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(argument.name)
    return found


def _form_for(op: OpOverload, function: Callable) -> Callable:
    names = _written(op)
    if not names or op._schema.arguments[0].name in names:
        return function
    return _into_outputs(function, names)


def decomposes(*ops: OpOverload | OpOverloadPacket, inplace: bool = False) -> Callable:
    """Enters a function for operators: for every overload of a packet (out= forms included), and
    with `inplace` for the packet of the same name with an underscore."""

    def register(function: Callable) -> Callable:
        for packet in ops:
            named = [packet]
            if isinstance(packet, OpOverloadPacket):
                named = [getattr(packet, name) for name in packet.overloads()]
            for op in named:
                register_decomposition(op)(_form_for(op, function))
            if inplace:
                other = getattr(torch.ops.aten, f"{packet.__name__}_")
                register_decomposition(other)(_written_back(function))
        return function

    return register


def pointwise(
    *ops: OpOverload | OpOverloadPacket,
    inplace: bool = False,
    kind: ELEMENTWISE_TYPE_PROMOTION_KIND = KIND.DEFAULT,
) -> Callable:
    """The same for a function of elements, which is written without a word on dtypes."""

    def register(function: Callable) -> Callable:
        return decomposes(*ops, inplace=inplace)(widened(function, kind))

    return register
