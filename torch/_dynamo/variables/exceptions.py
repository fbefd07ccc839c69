"""Exceptions of the traced program. They are objects like others, whose base class keeps the
arguments, the cause and the context."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import polyfills
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import FALSE, NONE, TRUE, ConstantVariable
from torch._dynamo.variables.lists import TupleVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedObjectVariable,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame


class ExceptionVariable(UserDefinedObjectVariable):
    """An exception."""

    __slots__ = ("args", "raised")

    def __init__(
        self, cls: type, args: Args, value: BaseException | None = None, source: object = None
    ) -> None:
        super().__init__(cls, value, source)
        self.args = list(args)
        # Whether it was raised while tracing, which leaves a traceback.
        self.raised = False

    def describe(self) -> str:
        inner = ", ".join(
            repr(a.as_python_constant()) if a.is_python_constant() else repr(a) for a in self.args
        )
        return f"{self.cls.__name__}({inner})"

    def set_args(self, tx: Frame, args: Args) -> None:
        """Gives the exception its arguments; one of the running program is changed."""
        self.args = list(args)
        if self.value is not None:
            self.store(tx, "args", TupleVariable(list(args)))

    def set_origin(self, tx: Frame, name: str, value: VariableTracker) -> None:
        """Sets __cause__, __context__ or __suppress_context__."""
        if self.value is not None:
            tx.mutate(self)
        self.attrs[name] = value

    def children(self) -> Iterator[VariableTracker]:
        yield from self.args
        yield from super().children()

    def lookup(self, tx: Frame, name: str) -> VariableTracker | None:
        if name in self.attrs:
            return super().own_attribute(tx, name)
        if name == "args":
            return TupleVariable(list(self.args))
        if name == "__traceback__" and self.raised:
            return TracebackVariable()
        if name in ("__cause__", "__context__", "__traceback__"):
            if self.source is not None:
                unimplemented("exception", f"{self!r}.{name}", "an exception from outside")
            if name == "__context__" and not tx.out.options.fullgraph:
                # The function may be called while its caller handles an exception.
                unimplemented("exception", f"{self!r}.{name}", "the caller's exception if any")
            return NONE
        if self.source is not None and name in ("__suppress_context__", "name", "obj"):
            return super().lookup(tx, name)
        if name == "__suppress_context__":
            return FALSE
        if name == "value" and issubclass(self.cls, StopIteration):
            return self.args[0] if self.args else NONE
        if name == "code" and issubclass(self.cls, SystemExit):
            return self.args[0] if self.args else NONE
        if name in ("name", "obj") and issubclass(self.cls, AttributeError | NameError):
            return NONE
        return super().lookup(tx, name)

    def generic_setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if name == "args":
            self.set_args(tx, value.unpack(tx))
            return
        if name in ("__cause__", "__context__", "__traceback__", "__suppress_context__"):
            if name != "__traceback__":
                self.set_origin(tx, name, value)
            if name == "__cause__":
                self.set_origin(tx, "__suppress_context__", TRUE)
            return
        super().generic_setattr(tx, name, value)

    def call_c_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__init__":
            self.set_args(tx, args)
            return NONE
        if name == "with_traceback":
            return self
        if name == "add_note":
            unimplemented("exception", f"{self!r}.add_note", "notes are not modelled")
        if name in ("__str__", "__repr__") and all(a.is_python_constant() for a in self.args):
            values = [a.as_python_constant() for a in self.args]
            base = next(c for c in self.cls.__mro__ if not _is_python_class(c))
            made = base.__new__(self.cls, *values)
            made.args = tuple(values)
            return ConstantVariable(getattr(base, name)(made))
        return super().call_c_method(tx, name, args, kwargs)

    def truth(self, tx: Frame) -> bool | VariableTracker:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.expr(a) for a in self.args)
        made = cg.name_for(f"{cg.const(self.cls)}.__new__({cg.const(self.cls)}, {inner})")
        cg.made(self, made)
        cg.load(f"{made}.args = ({''.join(f'{cg.expr(a)}, ' for a in self.args)})")
        for name, vt in self.attrs.items():
            cg.load(f"{made}.{name} = {cg.expr(vt)}")
        if self.raised:
            cg.load(f"{cg.const(polyfills.give_traceback)}({made})")
        return made


class TracebackVariable(VariableTracker):
    """The traceback of an exception that was raised while tracing: it is there, and no frame is."""

    __slots__ = ()

    def python_type(self) -> type:
        return types.TracebackType

    def truth(self, tx: Frame) -> bool:
        return True


def _is_python_class(cls: type) -> bool:
    return bool(cls.__flags__ & (1 << 9))


def exception_from_value(tx: Frame, error: BaseException) -> ExceptionVariable:
    """The tracker of an exception that the trace itself raised for the program."""
    args = [
        ConstantVariable.create(a) if _plain(a) else ConstantVariable(str(a)) for a in error.args
    ]
    return ExceptionVariable(type(error), args)


def _plain(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | tuple | type(None))


def has_python_init(cls: type) -> bool:
    """Whether the class of an exception has an __init__ or __new__ of its own in Python."""
    for name in ("__init__", "__new__"):
        raw = class_attribute(cls, name)
        raw = raw.__func__ if isinstance(raw, staticmethod) else raw
        if raw is not _MISSING and isinstance(raw, types.FunctionType):
            return True
    return False
