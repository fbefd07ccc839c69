"""Marks of the script compiler under the names that programs reach them by (see torch.jit)."""

import inspect
import types
import typing
import warnings

from torch.futures import Future  # noqa: F401
from torch.jit import (  # noqa: F401
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    is_tracing,
    unused,
)
from torch.jit.annotations import (  # noqa: F401
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingListCls,
)

Final = typing.Final


def _copy_to_script_wrapper(fn):
    """Marks a method that a compiled module would take over as it is."""
    return fn


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two others, by the value of a flag among its arguments."""

    def dispatch(*args, **kwargs):
        flag = default
        if arg_name in kwargs:
            flag = kwargs[arg_name]
        elif arg_index < len(args):
            flag = args[arg_index]
        return (if_true if flag else if_false)(*args, **kwargs)

    if func_name is not None:
        dispatch.__name__ = func_name
    if module_name is not None:
        dispatch.__module__ = module_name
    dispatch.__script_dispatch__ = (arg_name, arg_index, default, if_true, if_false)
    return dispatch


def get_callable_argument_names(fn) -> list[str]:
    """Names of the parameters that can be given by position or name; empty where a function takes
    any number of arguments, or its signature is not known."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    names = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is not p.POSITIONAL_OR_KEYWORD:
            return []
        names.append(p.name)
    return names


def is_optional(annotation: object) -> bool:
    """Whether an annotation says that None is one of the values."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return type(None) in typing.get_args(annotation)
    return False


def check_empty_containers(obj: object) -> None:
    """Warns that the types inside of an empty container cannot be seen."""
    if obj in ([], {}, ()):
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager "
            "mode. For example, List[int] would become list and therefore falsely return True for "
            "List[float] or List[str].",
            stacklevel=2,
        )


class _DisableEmitHooks:
    """Nothing watches compiled functions, so nothing is turned off: a block, or the decorator of a
    function or class."""

    def __call__(self, thing=None):
        return self if thing is None else thing

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


_disable_emit_hooks = _disable_emit_hooks_decorator = _DisableEmitHooks()
