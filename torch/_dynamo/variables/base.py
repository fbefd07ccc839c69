"""VariableTracker: a value of the traced program. Its methods are the slots of CPython's data
model (read an attribute, call, iterate, take an item, compare, hash), so that the interpreter
asks every value the same questions. A value that cannot say what happens breaks the graph; it
never guesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import raise_error, unimplemented

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

Args = list["VariableTracker"]
Kwargs = dict[str, "VariableTracker"]


# How many functions of operators were begun to be traced; a value knows the count at its birth.
bodies = [0]


class VariableTracker:
    """A value of the program. `source` says where the running program finds it, or is None for what
    the program made itself. `changed` says that the running program's object differs from it."""

    __slots__ = ("born", "changed", "source")

    def __init__(self, source: Source | None = None) -> None:
        self.source = source
        self.changed = False
        self.born = bodies[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def describe(self) -> str:
        """A short text for messages."""
        return self.source.name() if self.source is not None else ""

    @staticmethod
    def build(tx: Frame, value: object, source: Source | None = None) -> VariableTracker:
        """The tracker of a Python value."""
        from torch._dynamo.variables.builder import wrap

        return wrap(tx, value, source)

    def realize(self) -> VariableTracker:
        """The value itself, where this only stands for one that was not looked at yet."""
        return self

    # ---- what is known of it

    def python_type(self) -> type:
        """Its class."""
        raise NotImplementedError(f"{type(self).__name__} has no Python type")

    def is_python_constant(self) -> bool:
        """Whether as_python_constant works."""
        return False

    def as_python_constant(self) -> object:
        """The value, known while tracing."""
        raise NotImplementedError(f"{self!r} is not a constant")

    def is_mutable(self) -> bool:
        """Whether the program could change it, so that it has an identity."""
        return True

    # ---- slots

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        """obj.name"""
        unimplemented(
            "attribute",
            f"getattr({self!r}, {name})",
            f"Dynamo does not know the attribute `{name}` of {self.describe() or self!r}",
        )

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        """obj.name = value"""
        unimplemented(
            "setattr", f"setattr({self!r}, {name})", f"Dynamo cannot set an attribute of {self!r}"
        )

    def delattr(self, tx: Frame, name: str) -> None:
        """del obj.name"""
        unimplemented("delattr", f"{self!r}.{name}", "Dynamo cannot delete this attribute")

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        """obj(...)"""
        try:
            kind = self.python_type()
        except NotImplementedError:
            kind = type
        if not any("__call__" in base.__dict__ for base in kind.__mro__):
            raise_error(tx, TypeError, f"{kind.__name__!r} object is not callable")
        return self.call_method(tx, "__call__", args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """obj.name(...)"""
        unimplemented(
            "method", f"call_method {self!r} {name}", f"Dynamo does not know how to call `{name}`"
        )

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        """The values that a `for` gets; changes of the object meanwhile show."""
        unimplemented("iteration", f"iter({self!r})", f"Dynamo cannot iterate over {self!r}")

    def unpack(self, tx: Frame) -> Args:
        """All values of an iteration."""
        return [item.realize() for item in self.iterate(tx)]

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        """obj[key]"""
        return self.call_method(tx, "__getitem__", [key], {})

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        """obj[key] = value"""
        self.call_method(tx, "__setitem__", [key, value], {})

    def truth(self, tx: Frame) -> bool | VariableTracker:
        """bool(obj); a tracker where it depends on data of tensors."""
        unimplemented("truth", f"bool({self!r})", f"Dynamo does not know whether {self!r} is true")

    def hash_key(self, tx: Frame) -> object:
        """An object that is equal for equal values, for use as a key."""
        unimplemented("hash", f"hash({self!r})", f"{self!r} cannot be the key of a dictionary")

    def is_same(self, other: VariableTracker) -> bool | None:
        """`is`; None where unknown."""
        if self is other:
            return True
        if self.is_python_constant() and other.is_python_constant():
            return self.as_python_constant() is other.as_python_constant()
        return False

    # ---- to the graph and to code

    def as_proxy(self) -> object:
        """The argument of a graph node."""
        unimplemented(
            "argument of a graph",
            f"{self!r}",
            f"a value of type {self.python_type().__name__} cannot enter the graph",
        )

    def reconstruct(self, cg: Codegen) -> str:
        """An expression that makes the value in the running program."""
        unimplemented(
            "reconstruct", f"{self!r}", f"Dynamo has no code that makes {self!r} after the graph"
        )

    def children(self) -> Iterator[VariableTracker]:
        """The values that it holds."""
        return iter(())


class KnownObjectVariable(VariableTracker):
    """An object that is the same in every run: its value is known while tracing."""

    __slots__ = ("value",)

    def __init__(self, value: object, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def is_mutable(self) -> bool:
        return False

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> object:
        return self.value

    def hash_key(self, tx: Frame) -> object:
        return self.value

    def truth(self, tx: Frame) -> bool:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        return cg.const(self.value)


class LazyVariableTracker(VariableTracker):
    """A value of the running program that the trace did not look at: no guard is needed yet."""

    __slots__ = ("_value", "_vt", "tx")

    def __init__(self, tx: Frame, value: object, source: Source) -> None:
        super().__init__(source)
        self.tx = tx
        self._value = value
        self._vt: VariableTracker | None = None

    def realize(self) -> VariableTracker:
        if self._vt is None:
            self._vt = VariableTracker.build(self.tx, self._value, self.source)
            self.tx = self._value = None
        return self._vt

    def is_realized(self) -> bool:
        """Whether it was looked at."""
        return self._vt is not None

    def peek_type(self) -> type:
        """The class, without a guard."""
        return type(self._value) if self._vt is None else self._vt.python_type()
