"""Operators of users that write to their arguments, as operators that do not:
auto_functionalized(op, **arguments) runs op on copies and returns op's results, then the copies in
the order of the arguments. Where a trace must have no writes (functionalization), this stands for
op."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._library.utils import is_builtin
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = [
    "auto_functionalized",
    "auto_functionalized_v2",
    "can_auto_functionalize",
    "do_auto_functionalize",
    "get_mutable_args",
]


def get_mutable_args(op: OpOverload) -> tuple[list[str], list[Any]]:
    """Names and types of the arguments that the operator writes to."""
    written = [a for a in op._schema.arguments if a.alias_info and a.alias_info.is_write]
    return [a.name for a in written], [a.type for a in written]


def can_auto_functionalize(op: Any) -> bool:
    """Whether auto_functionalized knows what to do: op writes to tensors, or lists of them, and
    none of its results is an argument.
    """
    if not isinstance(op, OpOverload) or is_builtin(op):
        return False
    schema = op._schema
    names, kinds = get_mutable_args(op)
    if not names or any(r.alias_info is not None for r in schema.returns):
        return False
    allowed = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]")
    return all(_written_as(kind) in allowed for kind in kinds) and all(
        _written_as(r.type) == "Tensor" for r in schema.returns
    )


def _written_as(kind: Any) -> str:
    """A type as schemas write it, whichever way it prints."""
    text = str(kind)
    while text.endswith("]") and not text.endswith("[]"):
        outer, _, inner = text[:-1].partition("[")
        text = inner + ("?" if outer == "Optional" else "[]")
    return text


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    return [_copied(x) for x in value] if isinstance(value, (tuple, list)) else value


def _results(found: Any) -> tuple:
    if found is None:
        return (None,)
    return tuple(found) if isinstance(found, tuple) else (found,)


class AutoFunctionalized(HigherOrderOperator):
    """auto_functionalized(op, **arguments)"""

    def __init__(self) -> None:
        super().__init__("auto_functionalized", cacheable=True)

    def __call__(self, op: OpOverload, /, **kwargs: Any) -> tuple:
        if not can_auto_functionalize(op):
            raise RuntimeError(f"auto_functionalized cannot stand for {op}")
        return super().__call__(op, **kwargs)


class AutoFunctionalizedV2(HigherOrderOperator):
    """auto_functionalized_v2(op, *, _all_bases, **arguments): as auto_functionalized, for arguments
    that are views of common bases. An argument `x` that is written is left out and given as
    `_x_base_index`, its place among `_all_bases`, beside the geometry of the view; the copies
    returned are those of the bases.
    """

    def __init__(self) -> None:
        super().__init__("auto_functionalized_v2", cacheable=True)

    def __call__(self, op: OpOverload, /, **kwargs: Any) -> tuple:
        if "_all_bases" not in kwargs:
            raise RuntimeError("auto_functionalized_v2 needs _all_bases")
        return super().__call__(op, **kwargs)


auto_functionalized = AutoFunctionalized()
auto_functionalized_v2 = AutoFunctionalizedV2()
for _op in (auto_functionalized, auto_functionalized_v2):
    for _key in (DispatchKey.BackendSelect, DispatchKey.ADInplaceOrView):
        _op.fallthrough(_key)


@auto_functionalized.py_impl(utils.COMPOSITE)
def _run(op, /, **kwargs) -> tuple:
    names, _ = get_mutable_args(op)
    copies = {name: _copied(kwargs[name]) for name in names}
    found = op(**{**kwargs, **copies})
    return (*_results(found), *copies.values())


def _view(bases: list[Tensor], kwargs: dict[str, Any], name: str) -> Any:
    """The written argument `name` as a view of the copies of its bases; takes its description out
    of the arguments.
    """
    length = kwargs.pop(f"_{name}_length", None)
    if length is not None:
        return [_view(bases, kwargs, f"{name}_{i}") for i in range(length)]
    index = kwargs.pop(f"_{name}_base_index")
    if index is None:
        return None
    base = bases[index]
    if kwargs.pop(f"_{name}_alias", False):
        return base
    size = kwargs.pop(f"_{name}_size", None)
    if size is not None:
        stride = kwargs.pop(f"_{name}_stride")
        return base.as_strided(size, stride, kwargs.pop(f"_{name}_storage_offset"))
    dim = kwargs.pop(f"_{name}_slice_dim", None)
    if dim is not None:
        start = kwargs.pop(f"_{name}_slice_start")
        return torch.ops.aten.slice.Tensor(base, dim, start, kwargs.pop(f"_{name}_slice_end"))
    return base


@auto_functionalized_v2.py_impl(utils.COMPOSITE)
def _run_v2(op, /, **kwargs) -> tuple:
    bases = [_copied(x) for x in kwargs.pop("_all_bases")]
    names, _ = get_mutable_args(op)
    views = {name: _view(bases, kwargs, name) for name in names}
    found = op(**kwargs, **views)
    return (*_results(found), *bases)


def _fake_of(run: Callable[..., tuple]) -> Callable[..., tuple]:
    def kernel(mode: Any, op: OpOverload, /, **kwargs: Any) -> tuple:
        with mode:
            return run(op, **kwargs)

    return kernel


def _trace_of(hop: HigherOrderOperator) -> Callable[..., tuple]:
    def kernel(mode: Any, op: OpOverload, /, **kwargs: Any) -> tuple:
        return utils.record(mode, hop, {}, (op,), hop(op, **kwargs), kwargs)

    return kernel


auto_functionalized.py_impl(FakeTensorMode)(_fake_of(_run))
auto_functionalized_v2.py_impl(FakeTensorMode)(_fake_of(_run_v2))
auto_functionalized.py_impl(ProxyTorchDispatchMode)(_trace_of(auto_functionalized))
auto_functionalized_v2.py_impl(ProxyTorchDispatchMode)(_trace_of(auto_functionalized_v2))


def _bound(op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The call's arguments by name, with defaults."""
    named = dict(kwargs)
    for i, argument in enumerate(op._schema.arguments):
        if i < len(args):
            named[argument.name] = args[i]
        elif argument.name not in named and argument.has_default_value():
            named[argument.name] = argument.default_value
    return named


def do_auto_functionalize(mode: Any, op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """op(*args, **kwargs) under a FunctionalTensorMode: runs auto_functionalized below it and gives
    the written arguments their new values.
    """
    from torch._subclasses.functional_tensor import PythonFunctionalizeAPI

    ctx = PythonFunctionalizeAPI(mode)
    named = _bound(op, args, kwargs)
    inner = {k: ctx.unwrap_tensors(v) for k, v in named.items()}
    with ctx.redispatch_to_next():
        found = auto_functionalized(op, **inner)
    names, _ = get_mutable_args(op)
    returned, written = found[: len(found) - len(names)], found[len(found) - len(names) :]
    for name, value in zip(names, written, strict=True):
        _write_back(ctx, named[name], value)
    if not op._schema.returns:
        return None
    wrapped = ctx.wrap_tensors(returned)
    return wrapped[0] if len(op._schema.returns) == 1 else wrapped


def _write_back(ctx: Any, target: Any, value: Any) -> None:
    if isinstance(target, Tensor):
        ctx.replace(target, value)
        ctx.commit_update(target)
        ctx.sync(target)
    elif isinstance(target, (tuple, list)):
        for one, new in zip(target, value, strict=True):
            _write_back(ctx, one, new)
