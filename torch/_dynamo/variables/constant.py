"""Values known while tracing: numbers, strings, dtypes, devices, members of enumerations.
Operations on them are done at once, by Python itself, so that their meaning is Python's."""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_observed, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch.utils._pytree import TreeSpec

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame

LITERALS = frozenset({int, float, bool, str, bytes, complex, type(None), type(...)})
# Types whose values never change. Those of the second line are compared by identity or equality.
CONSTANT_TYPES = frozenset(
    {
        *LITERALS,
        type(NotImplemented),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        types.CodeType,
        re.Pattern,
        torch.finfo,
        TreeSpec,
        torch.iinfo,
    }
)
# Others by module and name: who has none of their values need not import them.
_NAMED_TYPES = {
    "datetime": ("date", "datetime", "timedelta"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
    "pathlib": ("PosixPath", "PurePosixPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath"),
}


def is_constant_type(cls: type) -> bool:
    """Whether values of the class are constants."""
    if cls in CONSTANT_TYPES or issubclass(cls, enum.Enum | TreeSpec):
        return True
    return cls.__name__ in _NAMED_TYPES.get(cls.__module__, ())


class ConstantVariable(VariableTracker):
    """A value known while tracing."""

    __slots__ = ("value",)

    def __init__(self, value: object, source: object = None) -> None:
        self.source = source
        self.changed = False
        self.value = value

    @staticmethod
    def create(value: object, source: object = None) -> VariableTracker:
        """The tracker of a constant, or of a tuple, list, dict or set of constants."""
        if type(value) in LITERALS and source is None:
            return ConstantVariable(value)
        from torch._dynamo.variables.builder import wrap_constant

        return wrap_constant(value)

    def describe(self) -> str:
        try:
            text = repr(self.value)
        except Exception as error:  # a method of the program
            text = f"<repr() raised {type(error).__name__}>"
        return f"{type(self.value).__name__}: {text if len(text) < 80 else text[:77] + '...'}"

    def python_type(self) -> type:
        return type(self.value)

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> object:
        return self.value

    def is_mutable(self) -> bool:
        return False

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise_observed(tx, error)
        if isinstance(found, types.MethodType) and isinstance(found.__func__, types.FunctionType):
            # A method of an enumeration: its code may read what is not constant.
            cls = VariableTracker.build(tx, type(self.value))
            owner = self if found.__self__ is self.value else cls
            binding = VariableTracker.build(tx, found.__func__).getattr(tx, "__get__")
            return binding.call_function(tx, [owner, cls], {})
        if callable(found) and not isinstance(found, type):
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        return VariableTracker.build(tx, found)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "join" and isinstance(self.value, str | bytes) and len(args) == 1:
            from torch._dynamo.variables.lists import TupleVariable

            args = [TupleVariable(args[0].unpack(tx))]
        if name == "__format__" or not all(_foldable(a) for a in (*args, *kwargs.values())):
            if name == "format" and isinstance(self.value, str):
                return tx.format_text(self.value, args, kwargs)
            unimplemented(
                "method of a constant",
                f"{self!r}.{name}({args}, {kwargs})",
                f"the method `{name}` of a constant gets a value that is not known while tracing",
            )
        values = [a.as_python_constant() for a in args]
        named = {k: v.as_python_constant() for k, v in kwargs.items()}
        try:
            result = getattr(self.value, name)(*values, **named)
        except Exception as error:
            raise_observed(tx, error)
        return wrap_result(tx, result)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        try:
            items = iter(self.value)
        except TypeError as error:
            raise_observed(tx, error)
        return (VariableTracker.build(tx, item) for item in items)

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        if not key.is_python_constant():
            unimplemented("index of a constant", f"{self!r}[{key!r}]", "the index is not known")
        try:
            return VariableTracker.build(tx, self.value[key.as_python_constant()])
        except Exception as error:
            raise_observed(tx, error)

    def truth(self, tx: Frame) -> bool:
        return bool(self.value)

    def hash_key(self, tx: Frame) -> object:
        return self.value

    def is_same(self, other: VariableTracker) -> bool | None:
        if not other.is_python_constant():
            return False
        a, b = self.value, other.as_python_constant()
        if a is b:
            return True
        # Equal numbers and texts may or may not be one object in the running program.
        if type(a) is type(b) and a == b and type(a) in LITERALS:
            return True if type(a) is not float else None
        return False

    def as_proxy(self) -> object:
        if type(self.value).__module__ == "numpy":
            return self.value.item()
        return self.value

    def reconstruct(self, cg: Codegen) -> str:
        return cg.constant(self.value)


def _foldable(vt: VariableTracker) -> bool:
    return vt.is_python_constant()


def wrap_result(tx: Frame, value: object) -> VariableTracker:
    """The tracker of what a call on constants returned."""
    if type(value) in LITERALS:
        return ConstantVariable(value)
    return VariableTracker.build(tx, value)


NONE = ConstantVariable(None)
TRUE = ConstantVariable(True)
FALSE = ConstantVariable(False)


class EnumVariable(ConstantVariable):
    """A member of an enumeration."""

    __slots__ = ()
