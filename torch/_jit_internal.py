"""Marks of the script compiler under the names that programs reach them by (see torch.jit)."""

import typing

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
