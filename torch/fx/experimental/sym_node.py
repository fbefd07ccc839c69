"""The nodes of symbolic numbers and the operations they know, by name. Nodes are C objects; here
are the tables that tracers and code generators go by."""

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import SymBool, SymFloat, SymInt
from torch._C import _SymNode as SymNode

__all__ = ["SymNode", "method_to_operator", "magic_methods", "to_node", "wrap_node"]

SymTypes = (SymInt, SymFloat, SymBool)

math_functions = tuple("sqrt cos cosh sin sinh tan tanh asin acos atan log2".split())

unary_magic_methods = {"abs", "sym_float", "sym_not", "ceil", "floor", "neg", "round", "trunc"}
unary_nonmagic_methods = {"is_integer"}
unary_methods = (
    unary_magic_methods | unary_nonmagic_methods | {f"sym_{name}" for name in math_functions}
)
only_bool_magic_methods = {"and", "or", "sym_not", "sym_ite"}
bool_magic_methods = only_bool_magic_methods
only_float_magic_methods = {"is_integer", "round", "sym_int", "sym_log2"}
bitwise_ops = {"bitwise_and": "and", "bitwise_or": "or", "lshift": "lshift", "rshift": "rshift"}
also_bool_magic_methods = {"eq"}
# Operations whose result on numbers with hints may be a plain one.
alternate_impl_if_hinted_methods = {"sym_min", "sym_max"}

_BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "pow": operator.pow,
    "float_pow": operator.pow,
    "pow_by_natural": operator.pow,
    "truediv": operator.truediv,
    "int_truediv": operator.truediv,
    "float_truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "int_floordiv": operator.floordiv,
    "and": operator.and_,
    "or": operator.or_,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "sym_min": torch.sym_min,
    "sym_max": torch.sym_max,
}
_UNARY = {
    "abs": operator.abs,
    "neg": operator.neg,
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": builtins.round,
    "sym_float": torch.sym_float,
    "sym_int": torch.sym_int,
    "sym_not": torch.sym_not,
    "is_integer": torch._sym_is_integer,
}
magic_methods: dict[str, Callable] = {
    **_BINARY,
    **_UNARY,
    **{f"sym_{name}": getattr(torch, f"_sym_{name}") for name in math_functions},
    "sym_ite": torch.sym_ite,
}


def method_to_operator(method: str) -> Callable:
    """The function that a program calls for the operation of this name."""
    return magic_methods[method]


def to_node(self: SymNode, num: Any) -> SymNode:
    """The node of a number, in the environment of `self` for a plain one; NotImplemented for what
    is no number."""
    if isinstance(num, SymTypes):
        return num.node
    if isinstance(num, (bool, int, float)):
        return self.wrap(num)
    return NotImplemented


def wrap_node(x: Any) -> Any:
    """The number of a node; other values stay what they are."""
    if not isinstance(x, SymNode):
        return x
    return {int: SymInt, float: SymFloat, bool: SymBool}[x.pytype](x)


def is_channels_last_contiguous_2d(sizes: Any, strides: Any) -> "bool | SymBool":
    """Whether a geometry of four dimensions has the channels innermost."""
    return _packed(sizes, strides, (1, 3, 2, 0))


def is_channels_last_contiguous_3d(sizes: Any, strides: Any) -> "bool | SymBool":
    """Whether a geometry of five dimensions has the channels innermost."""
    return _packed(sizes, strides, (1, 4, 3, 2, 0))


def is_contiguous(sizes: Any, strides: Any) -> "bool | SymBool":
    """Whether a geometry is that of a contiguous tensor."""
    return _packed(sizes, strides, tuple(range(len(sizes) - 1, -1, -1)))


def _packed(sizes: Any, strides: Any, order: tuple) -> "bool | SymBool":
    from torch.fx.experimental.symbolic_shapes import sym_and, sym_or

    if len(sizes) != len(order):
        return False
    held, expected = [], 1
    for d in order:
        held.append(sym_or(strides[d] == expected, sizes[d] == 1))
        expected = expected * sizes[d]
    return sym_and(*held)
