"""Function modes that a program enters inside of a trace. While one is open, each call of torch
goes to its __torch_function__, whose bytecode the trace runs; the graph holds what that calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._dynamo import trace_rules
from torch._dynamo.exc import unimplemented
from torch._dynamo.trace_rules import INLINE, handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame

for _method in (
    torch.overrides.TorchFunctionMode.__init__,
    torch.overrides.TorchFunctionMode.__enter__,
    torch.overrides.TorchFunctionMode.__exit__,
    torch.overrides.BaseTorchFunctionMode.__torch_function__,
    torch.overrides._push_mode,
    torch.overrides._pop_mode,
    torch.overrides._get_current_function_mode,
):
    trace_rules.register(_method, INLINE)


@handler(torch._C._push_on_torch_function_stack)
def _push(tx: Frame, mode: VariableTracker) -> VariableTracker:
    tx.out.function_modes.append(mode)
    return NONE


@handler(torch._C._pop_torch_function_stack)
def _pop(tx: Frame) -> VariableTracker:
    if not tx.out.function_modes:
        unimplemented(
            "function mode", "_pop_torch_function_stack", "it was entered before the trace"
        )
    return tx.out.function_modes.pop()


@handler(torch._C._len_torch_function_stack)
def _length(tx: Frame) -> VariableTracker:
    outside = torch._C._len_torch_function_stack()
    return ConstantVariable(outside + len(tx.out.function_modes))


def takes_over(
    tx: Frame, target: Callable | str, args: Args, kwargs: Kwargs
) -> VariableTracker | None:
    """What the newest open mode makes of a call; None where none is open."""
    modes = tx.out.function_modes
    if not modes or getattr(target, "__module__", "") == "torch._C._functorch":
        return None
    from torch._dynamo.variables.dicts import ConstDictVariable
    from torch._dynamo.variables.lists import TupleVariable

    function = VariableTracker.build(tx, _function(target))
    mode = modes.pop()
    try:
        run = mode.getattr(tx, "__torch_function__")
        names = ConstDictVariable.of(tx, [(ConstantVariable(k), v) for k, v in kwargs.items()])
        return run.call_function(
            tx, [function, TupleVariable([]), TupleVariable(list(args)), names], {}
        )
    finally:
        modes.append(mode)


def _function(target: Callable | str) -> Callable:
    """The function that a mode is shown for a node's target."""
    if isinstance(target, str):
        return getattr(torch.Tensor, target)
    if getattr(operator, getattr(target, "__name__", ""), None) is target:
        return getattr(torch.Tensor, f"__{target.__name__}__", target)
    return target
