"""Context managers of torch that C code implements: gradient modes, inference mode, autocast.
Entering and leaving one is a call in the graph and changes the state under which the trace
runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.eval_frame import ThreadSettings
from torch._dynamo import decorators, trace_rules
from torch._dynamo.exc import SkipFrame, unimplemented
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.lists import ListVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source


def set_grad_enabled(tx: Frame, mode: bool, always: bool = False) -> None:
    """torch._C._set_grad_enabled, in the graph and in the trace."""
    if torch.is_grad_enabled() == mode and not always:
        return
    node = tx.out.graph.create_node("call_function", torch._C._set_grad_enabled, (mode,), {})
    node.meta["example_value"] = None
    torch._C._set_grad_enabled(mode)


# What contexts are in a graph. An error between two of them leaves the contexts of the program.
IN_GRAPH = {
    torch._C._set_grad_enabled,
    torch.amp.autocast_mode._enter_autocast,
    torch.autograd.grad_mode._enter_inference_mode,
    torch._C._functorch._vmap_increment_nesting,
    torch._C._functorch._grad_increment_nesting,
    torch._C._functorch._jvp_increment_nesting,
}


def leaving(compiled: Callable) -> Callable:
    """A graph with contexts, which are left where it fails."""

    def run(*args: object) -> object:
        settings = ThreadSettings((), [])
        try:
            return compiled(*args)
        except BaseException:
            settings.put_back()
            raise

    return run


class ContextWrappingVariable(VariableTracker):
    """A context manager with constant arguments."""

    __slots__ = ("args", "cls", "entered", "kwargs", "saved")

    def __init__(self, cls: type, args: Args, kwargs: Kwargs) -> None:
        super().__init__(None)
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.entered = False
        self.saved: object = None

    def describe(self) -> str:
        return self.cls.__name__

    def python_type(self) -> type:
        return self.cls

    def truth(self, tx: Frame) -> bool:
        return True

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "mode" and self.cls is torch.set_grad_enabled:
            return ConstantVariable(self.grad_mode())
        return tx.attribute_of_builtin(self, name)

    def grad_mode(self) -> bool:
        """The mode that it sets."""
        if self.cls is torch.set_grad_enabled:
            given = self.args[0] if self.args else self.kwargs["mode"]
            return bool(given.as_python_constant())
        return self.cls is torch.enable_grad

    def enter(self, tx: Frame) -> None:
        """Enters the context."""
        self.saved = torch.is_grad_enabled()
        self.entered = True
        tx.out.contexts.append(self)
        set_grad_enabled(tx, self.grad_mode())

    def leave(self, tx: Frame) -> None:
        """Leaves the context."""
        self.entered = False
        if self in tx.out.contexts:
            tx.out.contexts.remove(self)
        set_grad_enabled(tx, self.saved)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__enter__":
            self.enter(tx)
            return NONE
        if name == "__exit__":
            self.leave(tx)
            return NONE
        if name == "__call__":
            return self.call_function(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        from torch._dynamo import polyfills

        wrap = VariableTracker.build(tx, polyfills.under_context)
        make = ContextFactoryVariable(self)
        return wrap.call_function(tx, [make, *args], kwargs)

    def clone(self) -> ContextWrappingVariable:
        """A fresh one with the same arguments."""
        return type(self)(self.cls, self.args, self.kwargs)

    def children(self) -> Iterator[VariableTracker]:
        yield from self.args
        yield from self.kwargs.values()

    def reconstruct(self, cg: Codegen) -> str:
        args = [cg.expr(a) for a in self.args]
        args += [f"{k}={cg.expr(v)}" for k, v in self.kwargs.items()]
        return f"{cg.const(self.cls)}({', '.join(args)})"


class ContextFactoryVariable(VariableTracker):
    """Makes a fresh context manager for each call of a decorated function."""

    __slots__ = ("manager",)

    def __init__(self, manager: ContextWrappingVariable) -> None:
        super().__init__(None)
        self.manager = manager

    def python_type(self) -> type:
        return type(self)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.manager.clone()

    def children(self) -> Iterator[VariableTracker]:
        yield self.manager

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.manager)}.clone"


class AutocastVariable(ContextWrappingVariable):
    """torch.autocast"""

    __slots__ = ("node",)

    def enter(self, tx: Frame) -> None:
        args = [a.as_python_constant() for a in self.args]
        kwargs = {k: v.as_python_constant() for k, v in self.kwargs.items()}
        self.saved = (
            torch.amp.autocast_mode.autocast(*args, **kwargs)
            if (self.cls is torch.autocast)
            else self.cls(*args, **kwargs)
        )
        live = self.saved
        given = (live.device, live.fast_dtype, live._enabled, live._cache_enabled)
        self.node = tx.out.graph.create_node(
            "call_function", torch.amp.autocast_mode._enter_autocast, given, {}
        )
        self.node.meta["example_value"] = live
        self.entered = True
        tx.out.contexts.append(self)
        live.__enter__()

    def leave(self, tx: Frame) -> None:
        self.entered = False
        if self in tx.out.contexts:
            tx.out.contexts.remove(self)
        node = tx.out.graph.create_node(
            "call_function", torch.amp.autocast_mode._exit_autocast, (self.node,), {}
        )
        node.meta["example_value"] = None
        self.saved.__exit__(None, None, None)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)


class InferenceModeVariable(ContextWrappingVariable):
    """torch.inference_mode. The trace itself runs in the mode of gradients that it brings: fake
    tensors of inputs may be made inside, and be used outside."""

    __slots__ = ("node",)

    def inference(self) -> bool:
        """The mode that it sets."""
        given = [*self.args, *self.kwargs.values()]
        return given[0].as_python_constant() if given else True

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return ConstantVariable(self.inference()) if name == "mode" else super().getattr(tx, name)

    def enter(self, tx: Frame) -> None:
        mode = self.inference()
        self.node = self._call(tx, torch.autograd.grad_mode._enter_inference_mode, mode)
        self.saved = torch.is_grad_enabled()
        self.entered = True
        tx.out.contexts.append(self)
        torch._C._set_grad_enabled(not mode)

    def leave(self, tx: Frame) -> None:
        if not self.entered:
            unimplemented("inference mode", "__exit__", "it was entered before the trace")
        self.entered = False
        if self in tx.out.contexts:
            tx.out.contexts.remove(self)
        self._call(tx, torch.autograd.grad_mode._exit_inference_mode, self.node)
        torch._C._set_grad_enabled(self.saved)

    def _call(self, tx: Frame, target: Callable, given: object) -> torch.fx.Node:
        node = tx.out.graph.create_node("call_function", target, (given,), {})
        node.meta["example_value"] = None
        return node


@trace_rules.handler(torch.is_inference_mode_enabled)
def _is_inference_mode_enabled(tx: Frame) -> VariableTracker:
    for manager in reversed(tx.out.contexts):
        if isinstance(manager, InferenceModeVariable):
            return ConstantVariable(manager.inference())
    return ConstantVariable(torch.is_inference_mode_enabled())


class ErrorOnBreakVariable(ContextWrappingVariable):
    """torch._dynamo.error_on_graph_break: says what a break is while the trace is inside. One that
    the running program entered before is left after the graph (`real`)."""

    __slots__ = ("real",)

    def __init__(self, cls: type, args: Args, kwargs: Kwargs) -> None:
        super().__init__(cls, args, kwargs)
        self.real: object = None

    def enter(self, tx: Frame) -> None:
        self.saved = tx.out.error_on_break
        self.entered = True
        tx.out.contexts.append(self)
        tx.out.error_on_break = self.args[0].as_python_constant()

    def leave(self, tx: Frame) -> None:
        self.entered = False
        if self in tx.out.contexts:
            tx.out.contexts.remove(self)
        elif self.real is not None:
            self.saved = bool(self.real._before[-1])
            tx.out.side_effects.changes += 1
            tx.out.side_effects.calls.append((self.cls.__exit__, [self, NONE, NONE, NONE], {}))
        tx.out.error_on_break = self.saved

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "_recreate_cm":
            return self.clone()
        return super().call_method(tx, name, args, kwargs)


class IdleContextVariable(ContextWrappingVariable):
    """A context that does nothing inside of a graph."""

    __slots__ = ()

    def enter(self, tx: Frame) -> None:
        self.entered = True
        tx.out.contexts.append(self)

    def leave(self, tx: Frame) -> None:
        self.entered = False
        if self in tx.out.contexts:
            tx.out.contexts.remove(self)


class ProfilerContextVariable(IdleContextVariable):
    """Ranges and profiles: a graph is one step to them."""

    __slots__ = ()

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        found = super().call_method(tx, name, args, kwargs)
        return self if name == "__enter__" else found


class CatchWarningsVariable(IdleContextVariable):
    """warnings.catch_warnings. A call that warns breaks the graph, and the code there enters the
    real one; in a trace nothing is caught."""

    __slots__ = ("gave_list",)

    def __init__(self, cls: type, args: Args, kwargs: Kwargs) -> None:
        super().__init__(cls, args, kwargs)
        self.gave_list = False

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        found = super().call_method(tx, name, args, kwargs)
        record = self.kwargs.get("record")
        if name == "__enter__" and record is not None and tx.truth(record):
            self.gave_list = True
            return ListVariable([])
        return found

    def reconstruct(self, cg: Codegen) -> str:
        if self.gave_list:
            raise SkipFrame("graph break while warnings are recorded")
        return super().reconstruct(cg)


@trace_rules.handler(decorators.error_on_graph_break)
def _error_on_graph_break(tx: Frame, error_on_graph_break: VariableTracker) -> VariableTracker:
    kind = decorators.ErrorOnGraphBreakDecoratorContextManager
    return ErrorOnBreakVariable(kind, [error_on_graph_break], {})


def _forward(name: str) -> Callable:
    def run(
        tx: Frame, obj: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker:
        return obj.call_method(tx, name, list(args), kwargs)

    return run


for _name in ("__enter__", "__exit__"):
    trace_rules.register(
        getattr(decorators.ErrorOnGraphBreakDecoratorContextManager, _name), _forward(_name)
    )
del _name

_PROFILERS = (torch.autograd.profiler.profile, torch.autograd.profiler.record_function)
_GRAD = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled)


def create(tx: Frame, cls: type, args: Args, kwargs: Kwargs) -> VariableTracker | None:
    """The tracker of a new context manager of these kinds."""
    if cls in _GRAD:
        made = ContextWrappingVariable(cls, args, kwargs)
        if cls is torch.set_grad_enabled:
            # Making one sets the mode at once; leaving puts back what was before.
            made.saved = torch.is_grad_enabled()
            set_grad_enabled(tx, made.grad_mode())
            acting = GradModeVariable(made)
            tx.out.lasting_modes.add(acting)
            return acting
        if cls is torch.no_grad and args:
            return made.call_function(tx, args, kwargs)
        return made
    if cls is torch.inference_mode:
        return InferenceModeVariable(cls, args, kwargs)
    if cls in _PROFILERS:
        return ProfilerContextVariable(cls, args, kwargs)
    if cls is warnings.catch_warnings:
        return CatchWarningsVariable(cls, args, kwargs)
    if cls is decorators.ErrorOnGraphBreakDecoratorContextManager:
        return ErrorOnBreakVariable(cls, [*args, *kwargs.values()], {})
    if issubclass(cls, torch.autocast) and hasattr(torch.amp.autocast_mode, "_enter_autocast"):
        return AutocastVariable(cls, args, kwargs)
    return None


class GradModeVariable(ContextWrappingVariable):
    """torch.set_grad_enabled, which acts when it is made."""

    __slots__ = ()

    def __init__(self, made: ContextWrappingVariable) -> None:
        super().__init__(made.cls, made.args, made.kwargs)
        self.saved = made.saved

    def enter(self, tx: Frame) -> None:
        self.entered = True
        tx.out.lasting_modes.discard(self)
        tx.out.contexts.append(self)
        set_grad_enabled(tx, self.grad_mode())

    def clone(self) -> ContextWrappingVariable:
        return ContextWrappingVariable(self.cls, self.args, self.kwargs)


def existing(tx: Frame, value: object, source: Source | None) -> VariableTracker | None:
    """The tracker of a context manager that exists before the trace."""
    cls = type(value)
    if cls in (torch.no_grad, torch.enable_grad):
        if source is not None:
            tx.out.guard(source, "TYPE_MATCH", cls)
        made = ContextWrappingVariable(cls, [], {})
        made.saved = getattr(value, "prev", None)
        return made
    if cls is torch.set_grad_enabled:
        if source is not None:
            tx.out.guard(source, "TYPE_MATCH", cls)
            for name in ("mode", "prev"):
                if hasattr(value, name):
                    tx.out.guard(AttrSource(source, name), "CONSTANT_MATCH", getattr(value, name))
        made = ContextWrappingVariable(cls, [ConstantVariable(value.mode)], {})
        made.saved = getattr(value, "prev", None)
        return made
    if cls is decorators.ErrorOnGraphBreakDecoratorContextManager:
        if source is not None:
            tx.out.guard(source, "TYPE_MATCH", cls)
            flag = AttrSource(source, "error_on_graph_break")
            tx.out.guard(flag, "CONSTANT_MATCH", value.error_on_graph_break)
        made = ErrorOnBreakVariable(cls, [ConstantVariable(value.error_on_graph_break)], {})
        made.source = source
        made.real = value if value._before else None
        return made
    if cls is torch.inference_mode:
        if source is not None:
            tx.out.guard(source, "TYPE_MATCH", cls)
            tx.out.guard(AttrSource(source, "mode"), "CONSTANT_MATCH", value.mode)
        return InferenceModeVariable(cls, [ConstantVariable(value.mode)], {})
    if cls in (torch.autograd.graph.saved_tensors_hooks, *_PROFILERS):
        unimplemented("context manager", f"{cls}", "this context manager is not traced")
    return None
