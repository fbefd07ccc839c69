"""The table of what nested tensors can do: functions by the name of the public call they stand for.

`torch.sum(x)`, `x.sum()`, `torch.ops.aten.sum(x)` all arrive as "sum". A function of the table gets
the callable that was called and its arguments; element-wise calls, of which there are hundreds, are
recognised by the operators' own tag instead of being listed."""

from __future__ import annotations

import functools

import torch

_jagged = {}
_strided = {}
_DUNDERS = {
    "__rpow__": "pow",
    "__rdiv__": "div",
    "__rtruediv__": "div",
    "__rfloordiv__": "floor_divide",
    "__rmod__": "remainder",
    "__rsub__": "sub",
    "__radd__": "add",
    "__rmul__": "mul",
    "__rmatmul__": "rmatmul",
    "__invert__": "bitwise_not",
    "__contains__": "contains",
}
# Element-wise functions of torch.nn.functional and Tensor that are no operators of their name.
_ALSO_POINTWISE = frozenset(
    "relu relu6 selu celu elu leaky_relu prelu hardtanh hardsigmoid hardswish hardshrink "
    "softsign softplus softshrink tanhshrink logsigmoid log_sigmoid threshold rrelu gelu "
    "silu mish tanh sigmoid dropout alpha_dropout square float_power true_divide positive "
    "isfinite isinf isreal isclose isnan isposinf isneginf masked_fill fix negative clip "
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh absolute subtract multiply divide "
    "greater greater_equal less less_equal not_equal conj conj_physical resolve_conj "
    "resolve_neg real imag bernoulli normal_ uniform_ exponential_ random_ geometric_ "
    "cauchy_ log_normal_ zero_ fill_ nan_to_num where __and__ __or__ __xor__ __lshift__ "
    "__rshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __rand__ __ror__ __rxor__ "
    "__rlshift__ __rrshift__ fill addcmul addcdiv xlogy ldexp logit "
    "fake_quantize_per_tensor_affine bitwise_left_shift bitwise_right_shift rsub polar "
    "complex".split()
)
_NOT_POINTWISE = frozenset("copy copy_ to _to_copy clone".split())


def implements(*names):
    """A decorator: the function that returns calls of these names for the jagged layout."""

    def enter(function):
        for name in names:
            _jagged[name] = function
        return function

    return enter


def implements_strided(*names):
    """The same for the strided layout."""

    def enter(function):
        for name in names:
            _strided[name] = function
        return function

    return enter


@functools.cache
def name_of(func) -> str:
    """The name under which the table knows a callable; "get:x" for the property x."""
    name = getattr(func, "__name__", None) or str(func)
    if name in ("__get__", "__set__", "__delete__"):
        return f"{name[2:5]}:{func.__self__.__name__}"
    if name.startswith("__"):
        return _DUNDERS.get(name, name)
    # Overloads of operators are called "add.Tensor".
    return name.partition(".")[0].removeprefix("_aten_")


@functools.cache
def is_pointwise(name) -> bool:
    """Whether a call of this name computes each element on its own."""
    if name in _ALSO_POINTWISE:
        return True
    if name in _NOT_POINTWISE or name.startswith("__"):
        return False
    base = name.removesuffix("_")
    if base in _ALSO_POINTWISE:
        return True
    packet = getattr(torch.ops.aten, base, None) or getattr(torch.ops.aten, f"special_{base}", None)
    if packet is None:
        return False
    return any(
        torch.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads()
    )


def wrap_dim(dim, ndim) -> int:
    """A dimension as a number from 0; IndexError if there is none."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim + ndim if dim < 0 else dim


def tensors_in(args):
    """The tensors among arguments, those in lists included."""
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from tensors_in(arg)


def not_implemented(name, tensor):
    """The error for a call that nested tensors do not have."""
    return NotImplementedError(
        f"{name}: not implemented for nested tensors with layout {tensor.layout}, dtype "
        f"{tensor.dtype}, device {tensor.device}"
    )


def _own_member(cls, name):
    """What the class itself defines for a call or property of this name."""
    for base in cls.__mro__:
        if base is torch.Tensor:
            return None
        if name in vars(base):
            return vars(base)[name]
    return None


def _property(func, name, args):
    kind, _, attribute = name.partition(":")
    owner = args[0]
    member = _own_member(type(owner), attribute)
    if isinstance(member, property):
        if kind == "get":
            return member.fget(owner)
        if kind == "set" and member.fset is not None:
            return member.fset(owner, args[1])
    table = _table_of(owner)
    if kind == "get" and attribute in table:
        return table[attribute](attribute, owner)
    if kind == "get" and is_pointwise(attribute):
        return table["pointwise"](func, owner)
    raise not_implemented(f"torch.Tensor.{attribute}", owner)


def _table_of(tensor):
    return _jagged if tensor.layout is torch.jagged else _strided


def _composition(func, name):
    """The composition of an operator of torch.ops.aten whose name says that it is about nested
    tensors; they are defined when a program asks for one."""
    if not name.startswith("_nested_"):
        return None
    from torch._composed_ops.registry import COMPOSITIONS

    # A call by the name of the operator leaves the overload open.
    overload = getattr(func, "_overloadname", "default")
    return COMPOSITIONS.get(name if overload == "default" else f"{name}.{overload}")


def call(func, args, kwargs):
    """Returns a call in which a nested tensor takes part."""
    name = name_of(func)
    if ":" in name:
        return _property(func, name, args)
    # The first argument has one name in functions and another in operators' schemas.
    for keyword in ("input", "self"):
        if not args and keyword in kwargs:
            kwargs = dict(kwargs)
            args = (kwargs.pop(keyword),)
    nested = [t for t in tensors_in((*args, *kwargs.values())) if t.is_nested]
    if not nested:
        raise TypeError(f"{name}(): no nested tensor among the arguments")
    lead = nested[0]
    if any(t.layout is not lead.layout for t in nested):
        raise RuntimeError(f"{name}(): nested tensors of different layouts do not mix")
    composition = _composition(func, name)
    if composition is not None:
        return composition(*args, **kwargs)
    if "out" in kwargs:
        kwargs = dict(kwargs)
        if kwargs.pop("out") is not None:
            raise NotImplementedError(f"{name}(): out= is not implemented for nested tensors")
    handler = _table_of(lead).get(name)
    if handler is not None:
        return handler(func, *args, **kwargs)
    member = _own_member(type(args[0]), name) if args else None
    if callable(member):
        return member(*args, **kwargs)
    if is_pointwise(name):
        return _table_of(lead)["pointwise"](func, *args, **kwargs)
    raise not_implemented(name if name.startswith("_") else f"torch.{name}", lead)
