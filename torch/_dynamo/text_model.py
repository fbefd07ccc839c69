"""Texts of values that are not constants: str, repr, format and %, as far as they can be shown
while tracing."""

from __future__ import annotations

import collections
import types

from torch._dynamo.exc import (
    ObservedException,
    Unsupported,
    raise_error,
    raise_observed,
    unimplemented,
)
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable, DefaultDictVariable
from torch._dynamo.variables.functions import UserMethodVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    DequeVariable,
    NamedTupleVariable,
    TupleVariable,
)
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedObjectVariable,
    class_attribute,
)


class TextModel:
    """What a frame knows of texts."""

    def format_text(self, text: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """text.format(...) with values that are not constants: as far as they can be shown."""
        shown = [self._showable(a) for a in args]
        named = {k: self._showable(v) for k, v in kwargs.items()}
        try:
            return ConstantVariable(text.format(*shown, **named))
        except (IndexError, KeyError, ValueError, AttributeError) as error:
            raise_observed(self, error)

    def percent_format(self, text: str, value: VariableTracker) -> VariableTracker:
        """text % value"""
        if isinstance(value, TupleVariable):
            shown: object = tuple(self._showable(item) for item in value.unpack(self))
        else:
            shown = self._showable(value)
        try:
            return ConstantVariable(text % shown)
        except (ObservedException, Unsupported):
            raise
        except Exception as error:
            if isinstance(shown, tuple) and any(isinstance(part, _Shown) for part in shown):
                unimplemented("text of an object", text, "a number is made of an object")
            raise_observed(self, error)

    def _showable(self, vt: VariableTracker) -> object:
        if vt.is_python_constant() and not isinstance(vt, UserDefinedObjectVariable):
            return vt.as_python_constant()
        return vt.evaluate() if isinstance(vt, SymNodeVariable) else _Shown(self, vt)

    def shown(self, vt: VariableTracker) -> object:
        """A value whose text Python can make: a constant, or the text of the object."""
        if vt.is_python_constant():
            return vt.as_python_constant()
        if isinstance(vt, SymNodeVariable):
            return vt.evaluate()
        return self.text(vt, "__str__").as_python_constant()

    def formatted(self, vt: VariableTracker, form: str) -> VariableTracker:
        """format(vt, form)"""
        if isinstance(vt, UserDefinedObjectVariable):
            raw = class_attribute(vt.cls, "__format__")
            if isinstance(raw, types.FunctionType):
                method = vt.bind(self, "__format__", raw)
                return method.call_function(self, [ConstantVariable(form)], {})
        known = vt.is_python_constant() or isinstance(vt, SymNodeVariable)
        if form and not known and vt.python_type().__format__ is object.__format__:
            kind = vt.python_type().__name__
            raise_error(self, TypeError, f"unsupported format string passed to {kind}.__format__")
        try:
            return ConstantVariable(format(self.shown(vt), form))
        except (ValueError, TypeError) as error:
            raise_observed(self, error)

    def text(self, vt: VariableTracker, name: str) -> VariableTracker:
        """str(vt) or repr(vt)"""
        if vt.is_python_constant() and not isinstance(vt, UserDefinedObjectVariable):
            value = vt.as_python_constant()
            return ConstantVariable(str(value) if name == "__str__" else repr(value))
        if isinstance(vt, SymNodeVariable):
            return ConstantVariable(str(vt.evaluate()))
        if isinstance(vt, UserDefinedObjectVariable):
            for method in (name, "__repr__") if name == "__str__" else (name,):
                raw = class_attribute(vt.cls, method)
                if isinstance(raw, types.FunctionType):
                    return vt.bind(self, method, raw).call_function(self, [], {})
                if raw is not getattr(object, method) and raw is not _MISSING:
                    return vt.call_c_method(self, method, [], {})
            if vt.value is not None and vt.source is not None and not self.overrides(vt, name):
                self.out.guard(vt.source, "ID_MATCH", vt.value)
                return ConstantVariable(object.__repr__(vt.value))
        if isinstance(vt, NamedTupleVariable) and self.overrides_text(vt):
            method = class_attribute(vt.tuple_cls, name if name == "__str__" else "__repr__")
            function = VariableTracker.build(self, method)
            return UserMethodVariable(function, vt).call_function(self, [], {})
        if isinstance(vt, BaseListVariable | ConstDictVariable) and not any(
            isinstance(x, TensorVariable) for x in vt.children()
        ):
            return self._text_of_container(vt)
        unimplemented(
            "text of an object", f"str({vt!r})", "the text of this value is not known while tracing"
        )

    def overrides_text(self, vt: NamedTupleVariable) -> bool:
        """Whether the program says how a named tuple is shown."""
        own = [class_attribute(vt.tuple_cls, name) for name in ("__str__", "__repr__")]
        return any(
            isinstance(f, types.FunctionType) and f.__code__.co_filename != collections.__file__
            for f in own
        )

    def _text_of_container(self, vt: VariableTracker) -> VariableTracker:
        class Shown:
            def __init__(self, text: str) -> None:
                self.text = text

            def __repr__(self) -> str:
                return self.text

        def plain(item: VariableTracker) -> Shown:
            return Shown(self.text(item.realize(), "__repr__").as_python_constant())

        if isinstance(vt, ConstDictVariable):
            shown = {plain(k): plain(v) for k, v in vt.items.values()}
            if isinstance(vt, DefaultDictVariable):
                factory = self.text(vt.default_factory, "__repr__").as_python_constant()
                return ConstantVariable(f"defaultdict({factory}, {shown!r})")
            return ConstantVariable(repr(shown if vt.cls is dict else vt.cls(shown)))
        items = [plain(item) for item in vt.items]
        if isinstance(vt, DequeVariable):
            return ConstantVariable(repr(collections.deque(items, vt.maxlen)))
        if isinstance(vt, NamedTupleVariable) and hasattr(vt.tuple_cls, "_make"):
            return ConstantVariable(repr(vt.tuple_cls._make(items)))
        return ConstantVariable(repr(tuple(items) if vt.cls is tuple else items))


class _Shown:
    """A value whose text the trace makes."""

    def __init__(self, tx: TextModel, vt: VariableTracker) -> None:
        self._tx, self._vt = tx, vt

    def __str__(self) -> str:
        return self._tx.text(self._vt, "__str__").as_python_constant()

    def __repr__(self) -> str:
        return self._tx.text(self._vt, "__repr__").as_python_constant()

    def __format__(self, form: str) -> str:
        return self._tx.formatted(self._vt, form).as_python_constant()

    def __getattr__(self, name: str) -> object:
        unimplemented("text of an object", f"{self._vt!r}.{name}", "a format that reads attributes")

    def __getitem__(self, key: object) -> object:
        unimplemented("text of an object", f"{self._vt!r}[{key}]", "a format that reads items")
