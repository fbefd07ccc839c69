"""Who takes over calls of torch in a trace: function modes that the program enters, and the classes
of arguments that define __torch_function__. The trace runs that function's bytecode; the graph
holds what it calls, on plain tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._dynamo import trace_rules
from torch._dynamo.exc import raise_error
from torch._dynamo.operators import SPECIAL
from torch._dynamo.source import TorchFunctionModeStackSource
from torch._dynamo.trace_rules import INLINE, handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch.utils._python_dispatch import is_traceable_wrapper_subclass_type

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
    tx.out.overridable = True
    return NONE


@handler(torch._C._pop_torch_function_stack)
def _pop(tx: Frame) -> VariableTracker:
    if not tx.out.function_modes:
        raise_error(tx, RuntimeError, "the torch function mode stack is empty")
    return tx.out.function_modes.pop()


@handler(torch._C._len_torch_function_stack)
def _length(tx: Frame) -> VariableTracker:
    return ConstantVariable(len(tx.out.function_modes))


@handler(torch._C._get_function_stack_at)
def _at(tx: Frame, index: VariableTracker) -> VariableTracker:
    return tx.out.function_modes[tx.as_index(index)]


def take_over_open_modes(tx: Frame) -> None:
    """The modes that the program has open take part in the trace."""
    for place, mode in enumerate(torch.overrides._get_current_function_mode_stack()):
        source = TorchFunctionModeStackSource(place)
        tx.out.function_modes.append(VariableTracker.build(tx, mode, source))
    tx.out.open_modes = list(tx.out.function_modes)
    tx.out.overridable = bool(tx.out.function_modes)


class paused:
    """No mode is open while the compiler works: the trace has them as values."""

    def __enter__(self) -> None:
        count = torch._C._len_torch_function_stack()
        self.modes = [torch._C._pop_torch_function_stack() for _ in range(count)]

    def __exit__(self, *error: object) -> None:
        for mode in reversed(self.modes):
            torch._C._push_on_torch_function_stack(mode)


def without_modes(compiled: Callable) -> Callable:
    """A graph that runs with no mode open: the trace has followed what the modes do."""

    def run(*args: object) -> object:
        with paused():
            return compiled(*args)

    return run


def replace_stack(modes: list) -> None:
    """Makes these modes the open ones."""
    for _ in range(torch._C._len_torch_function_stack()):
        torch._C._pop_torch_function_stack()
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)


def takes_over(
    tx: Frame, target: Callable | str, args: Args, kwargs: Kwargs
) -> VariableTracker | None:
    """What the newest open mode, or the class of an argument, makes of a call; None where there is
    neither."""
    modes = tx.out.function_modes
    if getattr(target, "__module__", "") == "torch._C._functorch":
        return None
    classes = [] if tx.out.overrides_off else overriding([*args, *kwargs.values()])
    if not modes and not classes:
        return None
    from torch._dynamo.variables.dicts import ConstDictVariable
    from torch._dynamo.variables.lists import TupleVariable

    target, args = _with_tensor_first(target, args)
    function = VariableTracker.build(tx, _function(target))
    kinds = TupleVariable([VariableTracker.build(tx, cls) for cls in classes])
    names = ConstDictVariable.of(tx, [(ConstantVariable(k), v) for k, v in kwargs.items()])
    given = [function, kinds, TupleVariable(list(args)), names]
    if modes:
        mode = modes.pop()
        try:
            return mode.getattr(tx, "__torch_function__").call_function(tx, given, {})
        finally:
            modes.append(mode)
    for cls in kinds.items:
        result = cls.getattr(tx, "__torch_function__").call_function(tx, given, {})
        if not (result.is_python_constant() and result.as_python_constant() is NotImplemented):
            return result
    raise_error(
        tx,
        TypeError,
        f"no implementation found for '{getattr(target, '__name__', target)}' on types that "
        f"implement __torch_function__: {classes}",
    )


def overrides(cls: type) -> bool:
    """Whether a class takes over calls of torch."""
    found = getattr(cls, "__torch_function__", None)
    if found is None or found is torch._C._disabled_torch_function_impl:
        return False
    if getattr(found, "__func__", None) is not torch.Tensor.__torch_function__.__func__:
        return True
    return cls is not torch.Tensor and not is_traceable_wrapper_subclass_type(cls)


def overriding(values: Args) -> list[type]:
    """The classes among arguments that take over calls, derived ones before their bases."""
    from torch._dynamo.variables.lists import BaseListVariable
    from torch._dynamo.variables.tensor import TensorVariable
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    found: list[type] = []
    for vt in values:
        vt = vt.realize()
        if isinstance(vt, BaseListVariable):
            inner = overriding([x for x in vt.items if not isinstance(x, BaseListVariable)])
            found += [cls for cls in inner if cls not in found]
            continue
        if not isinstance(vt, TensorVariable | UserDefinedObjectVariable):
            continue
        cls = vt.cls
        if cls is torch.Tensor or cls in found or not overrides(cls):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(cls, other)), len(found))
        found.insert(place, cls)
    return found


@handler(torch.Tensor.__torch_function__.__func__)
def _default(
    tx: Frame,
    cls: VariableTracker,
    func: VariableTracker,
    types: VariableTracker,
    args: VariableTracker | None = None,
    kwargs: VariableTracker | None = None,
) -> VariableTracker:
    """Tensor.__torch_function__: the call itself, with results of the class."""
    given = [] if args is None else args.unpack(tx)
    named = {}
    if kwargs is not None and not kwargs.is_same(NONE):
        named = {k.as_python_constant(): v.realize() for k, v in tx.pairs(kwargs)}
    tx.out.overrides_off += 1
    try:
        result = func.call_function(tx, given, named)
    finally:
        tx.out.overrides_off -= 1
    plain = func.is_python_constant() and func.as_python_constant() in (
        torch.overrides.get_default_nowrap_functions()
    )
    return result if plain else of_class(result, cls.as_python_constant())


def of_class(vt: VariableTracker, cls: type) -> VariableTracker:
    """A result with its plain tensors as tensors of a class."""
    from torch._dynamo.variables.lists import BaseListVariable
    from torch._dynamo.variables.tensor import TensorVariable

    if isinstance(vt, BaseListVariable) and vt.cls in (list, tuple):
        return vt.like([of_class(item.realize(), cls) for item in vt.items])
    if not isinstance(vt, TensorVariable) or vt.cls is cls or issubclass(vt.cls, cls):
        return vt
    made = TensorVariable(vt.node, vt.fake)
    made.cls = cls
    return made


def _with_tensor_first(target: Callable | str, args: Args) -> tuple[Callable | str, Args]:
    """A call of an operator whose left operand is a number, as the method of its right operand."""
    if isinstance(target, str) or target not in SPECIAL or len(args) != 2:
        return target, args
    kinds = [getattr(vt, "cls", None) for vt in args]
    first, second = (isinstance(k, type) and issubclass(k, torch.Tensor) for k in kinds)
    if first or not second:
        return target, args
    return SPECIAL[target][1], [args[1], args[0]]


def _function(target: Callable | str) -> Callable:
    """The function that a mode is shown for a node's target."""
    if isinstance(target, str):
        return getattr(torch.Tensor, target)
    if getattr(operator, getattr(target, "__name__", ""), None) is target:
        return getattr(torch.Tensor, f"__{target.__name__}__", target)
    return target
