"""Functions of the program: those that exist before the trace, those it makes, bound methods
and cells. Calling one runs its bytecode in a frame of its own (inlining)."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import trace_rules
from torch._dynamo.exc import raise_error, raise_observed, unimplemented
from torch._dynamo.source import AttrSource, GetItemSource
from torch._dynamo.variables.base import Args, KnownObjectVariable, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.dicts import (
    AttributeDictVariable,
    ConstDictVariable,
    PartDictVariable,
)
from torch._dynamo.variables.keys import PartsKey
from torch._dynamo.variables.lists import TupleVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_VARARGS, _VARKEYWORDS = 0x04, 0x08


class CellVariable(VariableTracker):
    """A cell: the variable of a function that other functions share. `real` is the running
    program's cell, for those that exist before the trace."""

    __slots__ = ("contents", "name", "real")

    def __init__(
        self,
        name: str,
        contents: VariableTracker | None = None,
        real: types.CellType | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(source)
        self.name = name
        self.contents = contents
        self.real = real

    def python_type(self) -> type:
        return types.CellType

    def load(self, tx: Frame) -> VariableTracker | None:
        """What it holds; None while unbound."""
        if self.contents is None and self.real is not None and not self.changed:
            try:
                value = self.real.cell_contents
            except ValueError:
                if self.source is not None:
                    tx.out.guard(self.source, "NO_ATTRIBUTE", "cell_contents")
                return None
            source = AttrSource(self.source, "cell_contents") if self.source else None
            self.contents = VariableTracker.build(tx, value, source)
            tx.out.note_orphan(self.contents)
        return None if self.contents is None else self.contents.realize()

    def store(self, tx: Frame, value: VariableTracker | None) -> None:
        """Puts a value into it."""
        tx.check_inside(self)
        if self.real is None:
            tx.note_new(self)
        elif not self.changed:
            tx.out.side_effects.note_cell(self)
        self.contents = value
        self.changed = True

    def children(self) -> Iterator[VariableTracker]:
        if self.contents is not None:
            yield self.contents

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "cell_contents":
            found = self.load(tx)
            if found is None:
                raise_error(tx, ValueError, "Cell is empty")
            return found
        return super().getattr(tx, name)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if name != "cell_contents":
            super().setattr(tx, name, value)
        self.store(tx, value)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.new_cell(self)


class BaseUserFunctionVariable(VariableTracker):
    """Something with code of its own."""

    __slots__ = ()

    def is_mutable(self) -> bool:
        return False

    def code(self) -> types.CodeType:
        """The bytecode."""
        raise NotImplementedError

    def globals(self) -> dict[str, object]:
        """The module's names."""
        raise NotImplementedError

    def name(self) -> str:
        """The name in messages."""
        return self.code().co_name

    def describe(self) -> str:
        return self.name()

    def truth(self, tx: Frame) -> bool:
        return True

    def defaults(self, tx: Frame) -> Args:
        """Default values of the last positional parameters."""
        return []

    def kwdefaults(self, tx: Frame) -> Kwargs:
        """Default values of parameters that are given by name."""
        return {}

    def cells(self, tx: Frame) -> list[CellVariable]:
        """The cells of the free variables."""
        return []

    def bind(self, tx: Frame, args: Args, kwargs: Kwargs) -> dict[str, VariableTracker]:
        """The parameters with their values, as a call would have them."""
        code = self.code()
        names = code.co_varnames
        count, only = code.co_argcount, code.co_kwonlyargcount
        bound: dict[str, VariableTracker] = dict(zip(names[:count], args, strict=False))
        rest = dict(kwargs)
        if len(args) > count and not code.co_flags & _VARARGS:
            self._refuse(tx, args, kwargs)
        keywords = {}
        for name, value in rest.items():
            if name in names[code.co_posonlyargcount : count + only]:
                if name in bound:
                    self._refuse(tx, args, kwargs)
                bound[name] = value
            elif code.co_flags & _VARKEYWORDS:
                keywords[name] = value
            else:
                self._refuse(tx, args, kwargs)
        if not self._fill_defaults(tx, bound, names, count, only):
            self._refuse(tx, args, kwargs)
        place = count + only
        if code.co_flags & _VARARGS:
            bound[names[place]] = TupleVariable(list(args[count:]))
            place += 1
        if code.co_flags & _VARKEYWORDS:
            pairs = [(ConstantVariable(k), v) for k, v in keywords.items()]
            bound[names[place]] = ConstDictVariable.of(tx, pairs)
        return bound

    def _fill_defaults(
        self,
        tx: Frame,
        bound: dict[str, VariableTracker],
        names: tuple[str, ...],
        count: int,
        only: int,
    ) -> bool:
        """Adds default values; false where a parameter has none."""
        missing = [name for name in names[:count] if name not in bound]
        if missing:
            defaults = self.defaults(tx)
            given = dict(zip(names[count - len(defaults) : count], defaults, strict=True))
            if any(name not in given for name in missing):
                return False
            for name in missing:
                bound[name] = given[name]
        missing = [name for name in names[count : count + only] if name not in bound]
        if missing:
            named = self.kwdefaults(tx)
            if any(name not in named for name in missing):
                return False
            for name in missing:
                bound[name] = named[name]
        return True

    def _refuse(self, tx: Frame, args: Args, kwargs: Kwargs) -> None:
        """Raises the error of a call that cannot be bound. Python words it, for a function with the
        same parameters; what is in it does not run."""
        code = self.code()
        cells = tuple(types.CellType() for _ in code.co_freevars)
        defaults = (None,) * len(self.defaults(tx))
        same = types.FunctionType(code, {}, code.co_name, defaults, cells)
        same.__kwdefaults__ = dict.fromkeys(self.kwdefaults(tx))
        same.__qualname__ = self.name()
        try:
            same(*[None] * len(args), **dict.fromkeys(kwargs))
        except TypeError as error:
            raise_observed(tx, error)
        raise AssertionError(f"{self!r} can be called so")

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.inline(self, args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__call__":
            return self.call_function(tx, args, kwargs)
        if name == "__get__" and args:
            if args[0].is_same(NONE):
                return self
            return UserMethodVariable(self, args[0])
        return self.getattr(tx, name).call_function(tx, args, kwargs)


class UserFunctionVariable(BaseUserFunctionVariable):
    """A function that exists before the trace."""

    __slots__ = ("fn",)

    def __init__(self, fn: types.FunctionType, source: Source | None = None) -> None:
        super().__init__(source)
        self.fn = fn

    def python_type(self) -> type:
        return types.FunctionType

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> object:
        return self.fn

    def as_proxy(self) -> object:
        return self.fn

    def hash_key(self, tx: Frame) -> object:
        return self.fn

    def code(self) -> types.CodeType:
        return self.fn.__code__

    def globals(self) -> dict[str, object]:
        return self.fn.__globals__

    def name(self) -> str:
        return self.fn.__qualname__

    def _part(self, name: str, index: object) -> Source | None:
        if self.source is None:
            return None
        return GetItemSource(AttrSource(self.source, name), index)

    def defaults(self, tx: Frame) -> Args:
        stored = tx.out.side_effects.attribute(self.fn, "__defaults__")
        if stored is not None:
            return [] if stored.is_same(NONE) else stored.unpack(tx)
        values = self.fn.__defaults__ or ()
        return [
            tx.out.note_orphan(VariableTracker.build(tx, value, self._part("__defaults__", i)))
            for i, value in enumerate(values)
        ]

    def kwdefaults(self, tx: Frame) -> Kwargs:
        values = self.fn.__kwdefaults__ or {}
        if values:
            tx.out.note_own_dict(values)
        return {
            name: tx.out.note_orphan(
                VariableTracker.build(tx, value, self._part("__kwdefaults__", name))
            )
            for name, value in values.items()
        }

    def cells(self, tx: Frame) -> list[CellVariable]:
        names = self.fn.__code__.co_freevars
        return [
            tx.out.cell(cell, name, self._part("__closure__", i))
            for i, (name, cell) in enumerate(zip(names, self.fn.__closure__ or (), strict=True))
        ]

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        stored = tx.out.side_effects.attribute(self.fn, name)
        if stored is not None:
            return stored
        tx.out.check_own_dict(vars(self.fn))
        if name == "__get__" or name == "__call__":
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        if name == "__closure__":
            cells = self.cells(tx)
            return TupleVariable(list(cells)) if cells else NONE
        if name == "__defaults__" and self.fn.__defaults__ is not None:
            return TupleVariable(self.defaults(tx))
        if name == "__kwdefaults__" and self.fn.__kwdefaults__:
            return PartDictVariable(tx, self, name, self.kwdefaults(tx))
        try:
            found = getattr(self.fn, name)
        except AttributeError as error:
            if self.source is not None:
                tx.out.guard(self.source, "NOT_PRESENT_IN_GENERIC_DICT", name)
            raise_observed(tx, error)
        return VariableTracker.build(
            tx, found, AttrSource(self.source, name) if self.source else None
        )

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if self.source is None:
            super().setattr(tx, name, value)
        _check_part(self, name, value)
        if name not in _OF_FUNCTIONS:
            tx.out.note_own_dict(vars(self.fn))
        tx.out.side_effects.set_attribute(self.fn, self, name, value)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        rule = trace_rules.lookup(self.fn)
        if rule is not trace_rules.INLINE:
            return tx.call_by_rule(rule, self, self.fn, args, kwargs)
        return tx.inline(self, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.const(self.fn)


class CachedFunctionVariable(UserFunctionVariable):
    """A function that functools.lru_cache wraps. Its own function is traced, and the cache is left
    alone; what has side effects runs as it is, since they happen once."""

    __slots__ = ("wrapper",)

    def __init__(self, wrapper: functools._lru_cache_wrapper) -> None:
        super().__init__(wrapper.__wrapped__)
        self.wrapper = wrapper

    def python_type(self) -> type:
        return functools._lru_cache_wrapper

    def as_python_constant(self) -> object:
        return self.wrapper

    def hash_key(self, tx: Frame) -> object:
        return self.wrapper

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name.startswith("cache_"):
            unimplemented("functools.lru_cache", f"{self!r}.{name}", "the state of a cache")
        return super().getattr(tx, name)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        VariableTracker.setattr(self, tx, name, value)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        call = super().call_function
        result, changed = tx.with_effects(lambda: call(tx, args, kwargs))
        if changed and not tx.out.options.fullgraph:
            unimplemented("functools.lru_cache", repr(self), "a cached function changes something")
        return result

    def reconstruct(self, cg: Codegen) -> str:
        return cg.const(self.wrapper)


class NestedUserFunctionVariable(BaseUserFunctionVariable):
    """A function that the traced program made."""

    __slots__ = (
        "annotations",
        "attrs",
        "closure",
        "code_vt",
        "default_values",
        "fn_globals",
        "kwdefault_values",
        "kwdefaults_dict",
        "own_dict",
        "qualname",
    )

    def __init__(self, code: types.CodeType, fn_globals: dict[str, object]) -> None:
        super().__init__(None)
        self.code_vt = code
        self.fn_globals = fn_globals
        self.qualname = getattr(code, "co_qualname", code.co_name)
        self.default_values: Args = []
        self.kwdefault_values: Kwargs = {}
        self.kwdefaults_dict: PartDictVariable | None = None
        self.closure: list[CellVariable] = []
        self.annotations: VariableTracker | None = None
        self.attrs: Kwargs = {}
        # Its __dict__, once somebody asked for it.
        self.own_dict: FunctionDictVariable | None = None

    def python_type(self) -> type:
        return types.FunctionType

    def is_mutable(self) -> bool:
        return True

    def code(self) -> types.CodeType:
        return self.code_vt

    def globals(self) -> dict[str, object]:
        return self.fn_globals

    def name(self) -> str:
        return self.qualname

    def defaults(self, tx: Frame) -> Args:
        return self.default_values

    def kwdefaults(self, tx: Frame) -> Kwargs:
        return self.kwdefault_values

    def cells(self, tx: Frame) -> list[CellVariable]:
        return self.closure

    def hash_key(self, tx: Frame) -> object:
        return self

    def children(self) -> Iterator[VariableTracker]:
        yield from self.default_values
        yield from self.kwdefault_values.values()
        yield from self.closure
        yield from self.attrs.values()

    def is_python_constant(self) -> bool:
        return False

    def plain_function(self) -> types.FunctionType:
        """The function itself, where all it needs is known while tracing."""
        if any(
            not v.is_python_constant()
            for v in (*self.default_values, *self.kwdefault_values.values())
        ):
            unimplemented("nested function", repr(self), "its default values are not constants")
        if self.closure:
            unimplemented("nested function", repr(self), "it shares variables with the trace")
        fn = types.FunctionType(
            self.code_vt,
            self.fn_globals,
            self.code_vt.co_name,
            tuple(v.as_python_constant() for v in self.default_values) or None,
        )
        fn.__kwdefaults__ = {
            k: v.as_python_constant() for k, v in self.kwdefault_values.items()
        } or None
        return fn

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name in self.attrs:
            return self.attrs[name]
        if name in ("__get__", "__call__"):
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        if name == "__name__":
            return ConstantVariable(self.code_vt.co_name)
        if name == "__qualname__":
            return ConstantVariable(self.qualname)
        if name == "__module__":
            return ConstantVariable(self.fn_globals.get("__name__"))
        if name == "__doc__":
            consts = self.code_vt.co_consts
            return ConstantVariable(consts[0] if consts and isinstance(consts[0], str) else None)
        if name == "__code__":
            return ConstantVariable(self.code_vt)
        if name == "__defaults__":
            return TupleVariable(list(self.default_values)) if self.default_values else NONE
        if name == "__kwdefaults__":
            if not self.kwdefault_values:
                return NONE
            if self.kwdefaults_dict is None:
                self.kwdefaults_dict = PartDictVariable(tx, self, name, self.kwdefault_values)
            return self.kwdefaults_dict
        if name == "__closure__":
            return TupleVariable(list(self.closure)) if self.closure else NONE
        if name == "__annotations__":
            return self.annotations or ConstDictVariable({})
        if name == "__type_params__":
            return TupleVariable([])
        if name == "__dict__":
            if self.own_dict is None:
                self.own_dict = FunctionDictVariable.of_function(self)
            return self.own_dict
        raise_error(tx, AttributeError, f"'function' object has no attribute {name!r}")

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if name == "__defaults__":
            self.default_values = [] if value.is_same(NONE) else value.unpack(tx)
        elif name == "__qualname__" and value.is_python_constant():
            self.qualname = value.as_python_constant()
            self.attrs[name] = value
        else:
            _check_part(self, name, value)
            self.attrs[name] = value
            if self.own_dict is not None and name not in _OF_FUNCTIONS:
                self.own_dict.note(name, value)

    def reconstruct(self, cg: Codegen) -> str:
        defaults = "".join(f"{cg.expr(v)}, " for v in self.default_values)
        closure = "".join(f"{cg.expr(cell)}, " for cell in self.closure)
        made = cg.name_for(
            f"{cg.const(types.FunctionType)}({cg.const(self.code_vt)}, "
            f"{cg.const(self.fn_globals)}, {self.code_vt.co_name!r}, "
            f"({defaults}) or None, ({closure}) or None)"
        )
        cg.made(self, made)
        if self.kwdefault_values:
            inner = ", ".join(f"{k!r}: {cg.expr(v)}" for k, v in self.kwdefault_values.items())
            cg.load(f"{made}.__kwdefaults__ = {{{inner}}}")
        if self.qualname != getattr(self.code_vt, "co_qualname", self.code_vt.co_name):
            cg.load(f"{made}.__qualname__ = {self.qualname!r}")
        if self.annotations is not None:
            cg.load(f"{made}.__annotations__ = {cg.expr(self.annotations)}")
        for name, value in self.attrs.items():
            cg.load(f"{made}.{name} = {cg.expr(value)}")
        return made


# Parts of a function that may be any object, and those that have to be of a class.
_FREE_PARTS = frozenset({"__doc__", "__module__", "__wrapped__"})
_TYPED_PARTS = {
    "__name__": str,
    "__qualname__": str,
    "__defaults__": tuple,
    "__annotations__": dict,
}
_PARTS = frozenset(vars(types.FunctionType)) - _FREE_PARTS
# Names that are never in the __dict__ of a function.
_OF_FUNCTIONS = _PARTS | {"__doc__", "__module__"}


def _check_part(fn: BaseUserFunctionVariable, name: str, value: VariableTracker) -> None:
    """Breaks where a part of a function is set in a way that Python may refuse."""
    if name not in _PARTS or value.python_type() is _TYPED_PARTS.get(name):
        return
    if name == "__defaults__" and value.is_same(NONE):
        return
    unimplemented("function", f"{fn!r}.{name} = {value!r}", "a part that C code checks")


class FunctionDictVariable(AttributeDictVariable):
    """The __dict__ of a function that the trace made."""

    __slots__ = ("fn",)

    @staticmethod
    def of_function(fn: NestedUserFunctionVariable) -> FunctionDictVariable:
        """The attributes that are no parts of the function."""
        made = FunctionDictVariable({})
        made.fn = fn
        for name, value in fn.attrs.items():
            if name not in _OF_FUNCTIONS:
                made.note(name, value)
        return made

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        name = self.name_of(key)
        if name in _OF_FUNCTIONS:
            unimplemented(
                "function", f"{self.fn!r}.__dict__[{name!r}]", "functions have such a part"
            )
        self.fn.setattr(tx, name, value)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in ("clear", "pop", "popitem", "__delitem__"):
            unimplemented("function", f"{self.fn!r}.__dict__.{name}", "attributes are taken away")
        return super().call_method(tx, name, args, kwargs)

    def delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        unimplemented("function", f"del {self.fn!r}.__dict__[...]", "attributes are taken away")

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.fn)}.__dict__"


class UserMethodVariable(BaseUserFunctionVariable):
    """A function bound to an object."""

    __slots__ = ("func", "obj")

    def __init__(
        self, func: VariableTracker, obj: VariableTracker, source: Source | None = None
    ) -> None:
        super().__init__(source)
        self.func = func
        self.obj = obj

    def python_type(self) -> type:
        return types.MethodType

    def code(self) -> types.CodeType:
        return self.func.code()

    def globals(self) -> dict[str, object]:
        return self.func.globals()

    def name(self) -> str:
        return self.func.describe()

    def hash_key(self, tx: Frame) -> object:
        return PartsKey(("method", self.func.hash_key(tx), self.obj.hash_key(tx)))

    def children(self) -> Iterator[VariableTracker]:
        yield self.func
        yield self.obj

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.func.call_function(tx, [self.obj, *args], kwargs)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "__self__":
            return self.obj
        if name == "__func__":
            return self.func
        if name == "__call__":
            return self
        return self.func.getattr(tx, name)

    def is_same(self, other: VariableTracker) -> bool | None:
        return self is other

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(types.MethodType)}({cg.expr(self.func)}, {cg.expr(self.obj)})"


class DeferredCallVariable(KnownObjectVariable):
    """A callable that tells the world something and returns None, such as a method of a logger
    that writes each message once: it is called after the graph."""

    __slots__ = ()

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        from torch._dynamo.variables.constant import NONE

        if kwargs or not all(a.is_python_constant() for a in args):
            trace_rules.refuse(self.value, "it is called with values that are not constants")
        tx.out.side_effects.calls.append((self.value, list(args), {}))
        return NONE


class SkipFunctionVariable(KnownObjectVariable):
    """A callable that is not traced: a call of it breaks the graph."""

    __slots__ = ("reason",)

    def __init__(
        self, value: object, source: Source | None = None, reason: str | None = None
    ) -> None:
        super().__init__(value, source)
        self.reason = reason

    def describe(self) -> str:
        return getattr(self.value, "__qualname__", None) or repr(self.value)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise_observed(tx, error)
        return VariableTracker.build(
            tx, found, AttrSource(self.source, name) if self.source else None
        )

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        rule = trace_rules.lookup(self.value)
        if rule in (trace_rules.IGNORE, trace_rules.LATER):
            return tx.call_by_rule(rule, self, self.value, args, kwargs)
        trace_rules.refuse(self.value, self.reason)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call_function(tx, args, kwargs)
