"""Code that runs while a function is traced: `@comptime def _(ctx): ...` inside of a compiled
function is called with a view of the trace and leaves nothing in the graph. Outside of a trace it
does nothing, or calls the fallback."""

from __future__ import annotations

import builtins
import dis
import time
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

import torch
from torch._dynamo import trace_rules
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.constant import NONE
from torch.fx.proxy import GraphAppendingTracer, Proxy

if TYPE_CHECKING:
    from torch._dynamo.output_graph import OutputGraph
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.variables.base import VariableTracker

__all__ = ["ComptimeContext", "ComptimeVar", "comptime"]


class ComptimeVar:
    """A value of the traced program."""

    def __init__(self, v: VariableTracker, tx: Frame | None = None) -> None:
        self.__variable = v.realize()
        self.__tx = tx

    def as_proxy(self) -> Proxy | object:
        """The node that computes it, as a proxy: operations on it are written to the graph."""
        value = self.__variable.as_proxy()
        if isinstance(value, torch.fx.Node):
            return Proxy(value, GraphAppendingTracer(value.graph))
        return value

    def is_proxy(self) -> bool:
        """Whether the graph computes it."""
        return isinstance(self._node(), torch.fx.Node)

    def _node(self) -> object:
        return getattr(self.__variable, "node", None)

    def as_fake(self) -> object:
        """The fake tensor or symbolic number that stands for it."""
        return self._node().meta["example_value"]

    def size(self, dim: int | None = None) -> int | torch.SymInt | torch.Size:
        """Sizes of a tensor."""
        return self.as_fake().size() if dim is None else self.as_fake().size(dim)

    def python_type(self) -> type:
        """Its class."""
        return self.__variable.python_type()

    def as_python_constant(self) -> object:
        """The value, where the trace knows it."""
        return self.__variable.as_python_constant()

    def is_python_constant(self) -> bool:
        """Whether the trace knows the value."""
        return self.__variable.is_python_constant()

    def is_dynamic(self) -> bool:
        """Whether it is a symbolic number."""
        value = self.as_fake() if self.is_proxy() else None
        return isinstance(value, torch.SymInt) and value.node.is_symbolic()

    def force_static(self) -> None:
        """Specialises a symbolic number, or the sizes of a tensor, on what they are now."""
        value = self.as_fake() if self.is_proxy() else None
        if isinstance(value, torch.SymInt):
            int(value)
        elif isinstance(value, torch.Tensor):
            for size in value.shape:
                int(size)
        elif not self.is_python_constant():
            raise AssertionError(f"cannot force {self!r} static")

    def _i_will_not_complain_if_bc_breaks_VariableTracker(self) -> VariableTracker:
        return self.__variable

    def __repr__(self) -> str:
        return shown(self.__variable)


def shown(vt: VariableTracker) -> str:
    """A value as its repr would have it, with fakes for tensors and symbols for numbers."""
    vt = vt.realize()
    node = getattr(vt, "node", None)
    if isinstance(node, torch.fx.Node):
        value = node.meta["example_value"]
        if isinstance(value, torch.Tensor):
            return f"FakeTensor(..., size={_tuple_text([str(s) for s in value.shape])})"
        return str(value)
    items = getattr(vt, "items", None)
    if issubclass(vt.python_type(), range):
        found = vt.as_python_constant()
        return f"range({found.start}, {found.stop}, {found.step})"
    if isinstance(items, list):
        return _sequence_text(vt, [shown(item) for item in items])
    if isinstance(items, dict):
        return _mapping_text(vt, items)
    if vt.is_python_constant():
        return repr(vt.as_python_constant())
    return f"{type(vt).__name__}({vt.describe()})"


def _tuple_text(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _sequence_text(vt: VariableTracker, parts: list[str]) -> str:
    cls = vt.python_type()
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        pairs = [f"{name}={part}" for name, part in zip(cls._fields, parts, strict=True)]
        return f"{cls.__name__}({', '.join(pairs)})"
    return _tuple_text(parts) if issubclass(cls, tuple) else f"[{', '.join(parts)}]"


def _mapping_text(vt: VariableTracker, items: dict) -> str:
    cls = vt.python_type()
    if issubclass(cls, (set, frozenset)):
        return "{" + ",".join(sorted(shown(v) for v in items.values())) + "}" if items else "set()"
    text = "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in items.values()) + "}"
    factory = getattr(vt, "default_factory", None)
    return text if factory is None else f"defaultdict({shown(factory)}, {text})"


class ComptimeContext:
    """A trace that is under way, as seen from one of its frames."""

    def __init__(self, tx: Frame) -> None:
        self.__tx = tx
        tx.out.is_watched = True

    def _frame(self, stacklevel: int) -> Frame:
        frame = self.__tx
        for _ in range(stacklevel):
            if frame.parent is None:
                raise ValueError(f"stacklevel {stacklevel}: the trace has fewer frames")
            frame = frame.parent
        return frame

    def get_local(self, name: str, *, stacklevel: int = 0) -> ComptimeVar:
        """A local variable of the frame, or of one further out."""
        frame = self._frame(stacklevel)
        if name in frame.cells and frame.cells[name].contents is not None:
            return ComptimeVar(frame.cells[name].contents, frame)
        if name not in frame.locals:
            raise KeyError(name)
        return ComptimeVar(frame.locals[name], frame)

    def graph_break(self, msg: str = "ComptimeContext.graph_break") -> None:
        """Ends the graph here."""
        unimplemented("ComptimeContext graph break", msg, f"Manually triggered: {msg}")

    def graph(self) -> torch.fx.Graph:
        """The graph so far."""
        return self.__tx.out.root

    def assert_static(self, val: ComptimeVar) -> None:
        """Raises for a symbolic number."""
        if val.is_dynamic():
            raise AssertionError(f"expected static but got dynamic {val!r} (run with "
                                 "TORCH_LOGS=dynamic for more info)")  # fmt: skip

    def parent(self) -> ComptimeContext:
        """The same of the calling frame."""
        return ComptimeContext(self._frame(1))

    def print(self, val: object, *, file: TextIO | None = None) -> None:
        """Prints a value."""
        print(repr(val), file=file)

    def print_graph(self, *, verbose: bool = True, file: TextIO | None = None) -> None:
        """Prints the code of the graph so far."""
        code = self.graph().python_code("self", verbose=verbose).src
        print(code.strip(), file=file)

    def print_disas(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Prints the instructions of the frame, the current one marked."""
        frame = self._frame(stacklevel)
        place = frame.program.instructions[max(frame.ip - 1, 0)].offset
        print(dis.Bytecode(frame.code, current_offset=place).dis(), file=file)

    def print_value_stack(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Prints the values on the frame's stack."""
        for vt in self._frame(stacklevel).stack:
            print(f"- {shown(vt)}", file=file)

    def print_locals(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Prints the frame's local variables."""
        for name, vt in self._frame(stacklevel).locals.items():
            print(f"{name} = {shown(vt)}", file=file)

    def print_bt(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Prints the user's frames, the innermost last."""
        frames = self._frame(stacklevel).user_stack()
        print("".join(traceback.StackSummary.from_list(frames).format()), file=file)

    def print_guards(self, *, file: TextIO | None = None) -> None:
        """Prints what the trace relies on so far."""
        for record in self.__tx.out.guards.values():
            name = record.source.name() if record.source is not None else ""
            print(f"{record.kind} {name}", file=file)

    def _i_will_not_complain_if_bc_breaks_InstructionTranslator(self) -> Frame:
        return self.__tx

    @property
    def output(self) -> OutputGraph:
        """The state of the trace."""
        return self.__tx.out

    def sleep(self, sec: float) -> None:
        """Waits, while tracing."""
        time.sleep(sec)

    def breakpoint(self, *, stacklevel: int = 0) -> None:
        """Stops in the debugger, with `ctx` for this object."""
        ctx = self  # noqa: F841  (for the debugger)
        builtins.breakpoint()


class _Comptime:
    """comptime(fn): calls fn(ctx) while tracing. The methods are short forms."""

    @staticmethod
    def __call__(
        fn: Callable[[ComptimeContext], object],
        fallback_fn: Callable[[], object] = lambda: None,
    ) -> None:
        """Outside of a trace: calls the fallback."""
        fallback_fn()

    @staticmethod
    def graph_break() -> None:
        """Ends the graph."""

    @staticmethod
    def print(e: object) -> None:
        """Prints a value, also outside of a trace."""
        builtins.print(e)

    @staticmethod
    def print_graph() -> None:
        """Prints the graph."""

    @staticmethod
    def print_disas(*, stacklevel: int = 0) -> None:
        """Prints the instructions."""

    @staticmethod
    def print_value_stack(*, stacklevel: int = 0) -> None:
        """Prints the stack."""

    @staticmethod
    def print_value_stack_and_return(e: object, *, stacklevel: int = 0) -> object:
        """Prints the stack; returns e, so that it can stand inside of an expression."""
        return e

    @staticmethod
    def print_locals(*, stacklevel: int = 0) -> None:
        """Prints local variables."""

    @staticmethod
    def print_bt(*, stacklevel: int = 0) -> None:
        """Prints the user's frames."""

    @staticmethod
    def print_guards() -> None:
        """Prints the guards."""

    @staticmethod
    def assert_static(val: object) -> None:
        """Raises for a symbolic number."""

    @staticmethod
    def force_static(val: object) -> None:
        """Specialises a symbolic number."""

    @staticmethod
    def breakpoint() -> None:
        """Stops in the debugger while tracing."""

    @staticmethod
    def sleep(sec: float) -> None:
        """Waits, while tracing."""


comptime = _Comptime()


# ---- what the tracer does at a call


def _function_of(vt: VariableTracker) -> Callable:
    """The function itself; its closure holds the constants that the trace knows."""
    vt = vt.realize()
    code = vt.code()
    cells = []
    for cell in vt.closure if hasattr(vt, "closure") else ():
        known = cell.contents is not None and cell.contents.realize().is_python_constant()
        cells.append(types.CellType(cell.contents.as_python_constant()) if known
                     else types.CellType())  # fmt: skip
    if not hasattr(vt, "closure"):
        return vt.fn
    return types.FunctionType(code, vt.globals(), code.co_name, None, tuple(cells))


def _call(
    tx: Frame, fn: VariableTracker, fallback_fn: VariableTracker | None = None
) -> VariableTracker:
    _function_of(fn)(ComptimeContext(tx))
    return NONE


def _short_form(name: str) -> Callable:
    def rule(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        ctx = ComptimeContext(tx)
        options = {k: v.as_python_constant() for k, v in kwargs.items()}
        getattr(ctx, name)(*[ComptimeVar(a, tx) for a in args], **options)
        return NONE

    return rule


def _sleep(tx: Frame, sec: VariableTracker) -> VariableTracker:
    time.sleep(sec.as_python_constant())
    return NONE


def _force_static(tx: Frame, val: VariableTracker) -> VariableTracker:
    ComptimeVar(val, tx).force_static()
    return NONE


def _stack_and_value(tx: Frame, e: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    _short_form("print_value_stack")(tx, **kwargs)
    return e


_RULES = {
    "__call__": _call,
    "sleep": _sleep,
    "force_static": _force_static,
    "print_value_stack_and_return": _stack_and_value,
}


def install() -> None:
    """Tells the tracer about the functions above."""
    for name, member in vars(_Comptime).items():
        if isinstance(member, staticmethod):
            trace_rules.register(member.__func__, _RULES.get(name) or _short_form(name))


install()
