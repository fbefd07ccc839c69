"""Exceptions of the traced program. They are objects like others, whose base class keeps the
arguments, the cause and the context."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import polyfills
from torch._dynamo.exc import ObservedException, raise_error, raise_observed, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import FALSE, NONE, TRUE, ConstantVariable
from torch._dynamo.variables.lists import TupleVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedObjectVariable,
    c_base,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame


# What classes of C code keep besides the arguments, which their __init__ takes apart.
_OF_ALL = frozenset(vars(BaseException))


def _parts(cls: type) -> frozenset[str]:
    """Names of what the class in C takes out of the arguments: errno, msg, start and the like."""
    return frozenset(
        name
        for base in c_base(cls).__mro__[:-2]
        for name, raw in vars(base).items()
        if isinstance(raw, types.MemberDescriptorType | types.GetSetDescriptorType)
        and name not in _OF_ALL
    )


class ExceptionVariable(UserDefinedObjectVariable):
    """An exception. `made_of` are the arguments of __new__, None for one that the interpreter made;
    `given` are those of the __init__ in C, if it ran."""

    __slots__ = ("args", "given", "made_of", "raised")

    def __init__(
        self, cls: type, args: Args, value: BaseException | None = None, source: object = None
    ) -> None:
        super().__init__(cls, value, source)
        self.args = list(args)
        self.made_of: Args | None = None
        self.given: tuple[Args, Kwargs] | None = None
        # Whether it was raised while tracing, which leaves a traceback.
        self.raised = False

    @classmethod
    def new(cls, tx: Frame, kind: type, args: Args) -> ExceptionVariable:
        """kind.__new__(kind, *args)"""
        if kind is OSError and len(args) > 1:
            # The number of the error chooses the class.
            if not args[0].is_python_constant():
                unimplemented("exception", "OSError", "the number of the error is not known")
            kind = type(OSError(args[0].as_python_constant(), ""))
        made = cls(kind, list(args))
        made.made_of = list(args)
        return made

    def initialise(self, tx: Frame, args: Args, kwargs: Kwargs) -> None:
        """The __init__ in C."""
        self.given = (list(args), dict(kwargs))
        if not kwargs and not _parts(self.cls):
            self.set_args(tx, args)
            return
        if self.value is not None:
            unimplemented("exception", f"{self!r}.__init__", "it is initialised by C code")
        proto, marks = self._prototype(tx)
        known = [*args, *(self.made_of or ())]
        self.args = [_tracker_of(tx, a, known, marks) for a in proto.args]

    def _prototype(self, tx: Frame) -> tuple[BaseException, dict[int, VariableTracker]]:
        """An exception of the same kind, with marks in place of what is not known while tracing."""
        marks: dict[int, VariableTracker] = {}
        kept: list[object] = []

        def shown(vt: VariableTracker) -> object:
            if vt.is_python_constant():
                return vt.as_python_constant()
            kept.append(object())
            marks[id(kept[-1])] = vt
            return kept[-1]

        base = c_base(self.cls)
        first = self.args if self.made_of is None else self.made_of
        given = (self.args, {}) if self.made_of is None else self.given
        try:
            proto = base.__new__(self.cls, *map(shown, first))
            if given is not None:
                named = {name: shown(vt) for name, vt in given[1].items()}
                base.__init__(proto, *map(shown, given[0]), **named)
            for name in _parts(self.cls).intersection(self.attrs):
                setattr(proto, name, shown(self.attrs[name]))
        except Exception as error:
            if kept:
                unimplemented("exception", f"{self!r}", "an argument is not known while tracing")
            raise_observed(tx, error)
        return proto, marks

    def _part(self, tx: Frame, name: str) -> VariableTracker:
        """What the class in C keeps under the name."""
        if self.made_of is None and name in ("name", "obj", "path"):
            unimplemented("exception", f"{self!r}.{name}", "the interpreter fills it in")
        proto, marks = self._prototype(tx)
        known = [*self.args, *(self.made_of or ()), *(self.given[0] if self.given else ())]
        return _tracker_of(tx, getattr(proto, name), known, marks)

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
        if self.value is None:
            yield from self.made_of or ()
            if self.given is not None:
                yield from self.given[0]
                yield from self.given[1].values()
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
        if name == "__suppress_context__" and self.source is None:
            return FALSE
        if self.value is None and name in _parts(self.cls):
            if getattr(class_attribute(self.cls, name), "__objclass__", None) in (
                c_base(self.cls).__mro__
            ):
                return self._part(tx, name)
        return super().lookup(tx, name)

    def generic_setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if name == "args":
            self.set_args(tx, value.unpack(tx))
            return
        if name in _ORIGINS:
            self._check_origin(tx, name, value)
            if name == "__traceback__":
                self.raised = not value.is_same(NONE)
                return
            self.set_origin(tx, name, value)
            if name == "__cause__":
                self.set_origin(tx, "__suppress_context__", TRUE)
            return
        if self.value is not None and name in _parts(self.cls):
            unimplemented("exception", f"{self!r}.{name} = ...", "a part kept by C code")
        if name in _parts(self.cls):
            before = self.attrs.get(name)
            self.attrs[name] = value
            try:
                self._prototype(tx)  # raises what such a value raises
            except ObservedException:
                del self.attrs[name]
                if before is not None:
                    self.attrs[name] = before
                raise
            return
        super().generic_setattr(tx, name, value)

    def generic_delattr(self, tx: Frame, name: str) -> None:
        if name in _parts(self.cls) or name in _ORIGINS or name == "args":
            unimplemented("exception", f"del {self!r}.{name}", "a part kept by C code")
        super().generic_delattr(tx, name)

    def _check_origin(self, tx: Frame, name: str, value: VariableTracker) -> None:
        kind = value.python_type()
        if name == "__traceback__":
            if kind not in (types.TracebackType, type(None)):
                raise_error(tx, TypeError, "__traceback__ must be a traceback or None")
        elif name != "__suppress_context__" and not issubclass(kind, BaseException | type(None)):
            text = f"exception {name.strip('_')} must be None or derive from BaseException"
            raise_error(tx, TypeError, text)

    def call_c_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__init__":
            self.initialise(tx, args, kwargs)
            return NONE
        if name == "with_traceback" and len(args) == 1 and not kwargs:
            self.generic_setattr(tx, "__traceback__", args[0])
            return self
        if name == "add_note":
            unimplemented("exception", f"{self!r}.add_note", "notes are not modelled")
        if name in ("__str__", "__repr__") and self.value is None:
            if all(a.is_python_constant() for a in self.args):
                proto, marks = self._prototype(tx)
                if not marks:
                    proto.args = tuple(a.as_python_constant() for a in self.args)
                    return self._text(tx, proto, name)
        return super().call_c_method(tx, name, args, kwargs)

    def _text(self, tx: Frame, proto: BaseException, name: str) -> VariableTracker:
        try:
            return ConstantVariable(getattr(c_base(self.cls), name)(proto))
        except Exception as error:
            raise_observed(tx, error)

    def truth(self, tx: Frame) -> bool | VariableTracker:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        first = self.args if self.made_of is None else self.made_of
        inner = ", ".join(cg.expr(a) for a in first)
        made = cg.name_for(f"{cg.const(self.cls)}.__new__({cg.const(self.cls)}, {inner})")
        cg.made(self, made)
        if _parts(self.cls) and self._is_initialised():
            given = self.given or (self.args, {})
            inner = "".join(f", {cg.expr(a)}" for a in given[0])
            inner += "".join(f", {name}={cg.expr(a)}" for name, a in given[1].items())
            cg.load(f"{cg.const(c_base(self.cls))}.__init__({made}{inner})")
        cg.load(f"{made}.args = ({''.join(f'{cg.expr(a)}, ' for a in self.args)})")
        for name, vt in self.attrs.items():
            cg.load(f"{made}.{name} = {cg.expr(vt)}")
        if self.raised:
            cg.load(f"{cg.const(polyfills.give_traceback)}({made})")
        return made

    def _is_initialised(self) -> bool:
        return self.given is not None or self.made_of is None


_ORIGINS = ("__cause__", "__context__", "__traceback__", "__suppress_context__")


def _tracker_of(
    tx: Frame, value: object, known: Args, marks: dict[int, VariableTracker]
) -> VariableTracker:
    """The tracker of what a prototype holds: one of those it was made of, or a new constant."""
    found = marks.get(id(value))
    if found is not None:
        return found
    for vt in known:
        if vt.is_python_constant() and vt.as_python_constant() is value:
            return vt
    return VariableTracker.build(tx, value)


class TracebackVariable(VariableTracker):
    """The traceback of an exception that was raised while tracing: it is there, and no frame is."""

    __slots__ = ()

    def python_type(self) -> type:
        return types.TracebackType

    def truth(self, tx: Frame) -> bool:
        return True


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
