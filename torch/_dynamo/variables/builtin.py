"""What calls of Python's builtin functions and of functions of the standard library that are
written in C do. Each rule is one function under `trace_rules.handler`."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import itertools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

from torch._dynamo import trace_rules
from torch._dynamo.exc import (
    ObservedException,
    SkipFrame,
    raise_error,
    raise_observed,
    unimplemented,
)
from torch._dynamo.operators import INPLACE, SPECIAL
from torch._dynamo.trace_rules import handler
from torch._dynamo.variables import iter as iterators
from torch._dynamo.variables.base import Args, KnownObjectVariable, Kwargs, VariableTracker
from torch._dynamo.variables.constant import FALSE, NONE, TRUE, ConstantVariable, wrap_result
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.exceptions import TracebackVariable
from torch._dynamo.variables.functions import (
    NestedUserFunctionVariable,
    UserFunctionVariable,
    UserMethodVariable,
)
from torch._dynamo.variables.iter import IteratorVariable
from torch._dynamo.variables.keys import PartsKey, has_known_hash
from torch._dynamo.variables.lists import ListVariable, TupleVariable
from torch._dynamo.variables.partials import FunctoolsPartialVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedObjectVariable,
    c_base,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame


class BuiltinVariable(KnownObjectVariable):
    """A function that C code defines."""

    __slots__ = ()

    def describe(self) -> str:
        return getattr(self.value, "__name__", repr(self.value))

    def as_proxy(self) -> object:
        return self.value

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise_observed(tx, error)
        return VariableTracker.build(tx, found)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        rule = trace_rules.lookup(self.value)
        return tx.call_by_rule(rule, self, self.value, args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__call__":
            return self.call_function(tx, args, kwargs)
        return self.getattr(tx, name).call_function(tx, args, kwargs)


def call_c_function(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker | None:
    """An unbound method of a builtin class, such as list.append: a method call on its object."""
    if isinstance(fn, types.MethodDescriptorType | types.WrapperDescriptorType) and args:
        owner, name = fn.__objclass__, fn.__name__
        obj = args[0]
        if isinstance(obj, UserDefinedObjectVariable) and issubclass(obj.cls, owner):
            if obj.contents is not None and owner is not object:
                _refuse_of_base(fn, obj.contents.python_type())
            return obj.call_c_method(tx, name, args[1:], kwargs)
        kind = obj.python_type()
        if issubclass(kind, owner):
            if not isinstance(obj, TensorVariable):
                if type(obj) is ConstantVariable and owner is not object:
                    return fold(tx, fn, args, kwargs)
                _refuse_of_base(fn, kind)
            return obj.call_method(tx, name, args[1:], kwargs)
    if isinstance(fn, types.ClassMethodDescriptorType):
        return None
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type):
        return VariableTracker.build(tx, owner).call_method(tx, fn.__name__, args, kwargs)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return VariableTracker.build(tx, owner).call_method(tx, fn.__name__, args, kwargs)
    return None


def refuse_arguments(
    tx: Frame, value: object, args: Args, kwargs: Kwargs, otherwise: str
) -> NoReturn:
    """Raises what Python says of a call with a wrong number of arguments, or wrong names."""
    if getattr(value, "__module__", None) == "builtins":
        try:
            value(*[object() for _ in args], **{name: object() for name in kwargs})
        except TypeError as error:
            raise_observed(tx, error)
    raise_error(tx, TypeError, otherwise)


def _refuse_of_base(fn: Callable, kind: type) -> None:
    """Breaks at a method of a base class that the class has replaced: dict.pop(OrderedDict())."""
    own = getattr(kind, fn.__name__, fn)
    if own is not fn and getattr(own, "__objclass__", None) is not None:
        unimplemented(
            "method of a base class", f"{fn}", f"`{kind.__name__}` has a method of that name itself"
        )


def fold(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker | None:
    """A call on constants; None where an argument is not one."""
    if not all(a.is_python_constant() for a in (*args, *kwargs.values())):
        return None
    values = [a.as_python_constant() for a in args]
    named = {k: v.as_python_constant() for k, v in kwargs.items()}
    try:
        return wrap_result(tx, fn(*values, **named))
    except Exception as error:
        raise_observed(tx, error)


# ---- builtins


@handler(len)
def _len(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return tx.length(vt)


@handler(isinstance)
def _isinstance(tx: Frame, vt: VariableTracker, kinds: VariableTracker) -> VariableTracker:
    own = vt.python_type()
    for kind in _each_kind(kinds.as_python_constant()):
        custom = getattr(type(kind), "__instancecheck__", type.__instancecheck__)
        if custom is not type.__instancecheck__ and isinstance(custom, types.FunctionType):
            if isinstance(vt, TensorVariable):
                found = (
                    _isinstance_of_fake(vt, kind)
                    if vt.real is None
                    else (isinstance(vt.real, kind))
                )
                if found:
                    return TRUE
                continue
            if own is kind:
                return TRUE
            if _is_of_program(custom):
                check = VariableTracker.build(tx, custom)
                found = check.call_function(tx, [VariableTracker.build(tx, kind), vt], {})
                if tx.truth(found):
                    return TRUE
                continue
            if not _abstract_check(own, kind):
                continue
            return TRUE
        if not isinstance(kind, type | types.UnionType):
            fold(tx, isinstance, [NONE, ConstantVariable(kind)], {})  # says what is wrong
        elif issubclass(own, kind):
            return TRUE
    return FALSE


def _each_kind(kinds: object) -> Iterator[object]:
    """The classes that `isinstance` compares with: tuples may be nested."""
    if isinstance(kinds, tuple):
        for kind in kinds:
            yield from _each_kind(kind)
    else:
        yield kinds


def _is_of_program(check: types.FunctionType) -> bool:
    """Whether the program defines a check, and not a library such as abc or typing."""
    standard = str(check.__module__).partition(".")[0] in sys.stdlib_module_names
    return not standard and not trace_rules.is_library_file(check.__code__.co_filename)


def _isinstance_of_fake(vt: TensorVariable, kind: type) -> bool:
    try:
        return isinstance(vt.fake, kind) or issubclass(vt.cls, kind)
    except TypeError:
        return False


def _abstract_check(own: type, kind: type) -> bool:
    try:
        return issubclass(own, kind)
    except TypeError:
        unimplemented("isinstance", f"{own}, {kind}", "a check that reads the object")


@handler(issubclass)
def _issubclass(tx: Frame, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    known = a.is_python_constant() and b.is_python_constant()
    wanted = b.as_python_constant() if known else ()
    for kind in wanted if isinstance(wanted, tuple) else (wanted,):
        custom = getattr(type(kind), "__subclasscheck__", None)
        if isinstance(custom, types.FunctionType) and _is_of_program(custom):
            unimplemented("issubclass", f"{a!r}, {b!r}", "a check that the program defines")
    return _folded(tx, issubclass, [a, b], {})


def _folded(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    found = fold(tx, fn, args, kwargs)
    if found is None:
        unimplemented(fn.__name__, f"{args}, {kwargs}", "an argument is not known while tracing")
    return found


@handler(callable)
def _callable(tx: Frame, vt: VariableTracker) -> VariableTracker:
    if isinstance(vt, UserDefinedObjectVariable):
        return ConstantVariable(class_attribute(vt.cls, "__call__") is not _MISSING)
    if vt.is_python_constant():
        return ConstantVariable(callable(vt.as_python_constant()))
    return ConstantVariable(class_attribute(vt.python_type(), "__call__") is not _MISSING)


@handler(getattr)
def _getattr(
    tx: Frame, obj: VariableTracker, name: VariableTracker, default: VariableTracker | None = None
) -> VariableTracker:
    key = name.as_python_constant()
    if not isinstance(key, str):
        raise_error(
            tx, TypeError, f"attribute name must be string, not {name.python_type().__name__!r}"
        )
    if default is None:
        return obj.getattr(tx, key)
    try:
        return obj.getattr(tx, key)
    except ObservedException as error:
        if not issubclass(error.value.python_type(), AttributeError):
            raise
        return default


@handler(hasattr)
def _hasattr(tx: Frame, obj: VariableTracker, name: VariableTracker) -> VariableTracker:
    return ConstantVariable(tx.has_attribute(obj, name.as_python_constant()))


@handler(setattr)
def _setattr(
    tx: Frame, obj: VariableTracker, name: VariableTracker, value: VariableTracker
) -> VariableTracker:
    obj.setattr(tx, name.as_python_constant(), value)
    return NONE


@handler(delattr)
def _delattr(tx: Frame, obj: VariableTracker, name: VariableTracker) -> VariableTracker:
    obj.delattr(tx, name.as_python_constant())
    return NONE


@handler(iter)
def _iter(
    tx: Frame, vt: VariableTracker, sentinel: VariableTracker | None = None
) -> VariableTracker:
    if sentinel is None:
        return tx.make_iterator(vt)
    if not tx.truth(_callable(tx, vt)):
        raise_error(tx, TypeError, "iter(v, w): v must be callable")
    return iterators.CallUntilVariable(tx, vt, sentinel)


@handler(next)
def _next(
    tx: Frame, vt: VariableTracker, default: VariableTracker | None = None
) -> VariableTracker:
    if default is None:
        return tx.next(vt)
    try:
        return tx.next(vt)
    except ObservedException as error:
        if not iterators.stops(error):
            raise
        return default


@handler(any)
def _any(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return ConstantVariable(any(tx.truth(item.realize()) for item in vt.iterate(tx)))


@handler(all)
def _all(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return ConstantVariable(all(tx.truth(item.realize()) for item in vt.iterate(tx)))


@handler(sum)
def _sum(tx: Frame, vt: VariableTracker, start: VariableTracker | None = None) -> VariableTracker:
    total = start or ConstantVariable(0)
    for item in vt.iterate(tx):
        item = item.realize()
        if (
            start is None
            and isinstance(item, TensorVariable)
            and total.is_same(ConstantVariable(0))
        ):
            start = total = tx.binary(operator.add, total, item)
            continue
        total = tx.binary(operator.add, total, item)
    return total


def _extreme(op: Callable) -> Callable:
    def run(
        tx: Frame,
        *args: VariableTracker,
        key: VariableTracker | None = None,
        default: VariableTracker | None = None,
    ) -> VariableTracker:
        if not args:
            refuse_arguments(tx, op, (), {}, f"{op.__name__} expected at least 1 argument, got 0")
        items = args[0].unpack(tx) if len(args) == 1 else list(args)
        if key is not None and key.is_same(NONE):
            key = None
        if not items:
            if default is not None:
                return default
            raise_error(tx, ValueError, f"{op.__name__}() arg is an empty sequence")
        if key is None and any(isinstance(i, SymNodeVariable) for i in items):
            return _symbolic_extreme(tx, op, items)
        if any(isinstance(i, TensorVariable) for i in items) and len(items) == 2 and key is None:
            import torch

            target = torch.maximum if op is max else torch.minimum
            if all(isinstance(i, TensorVariable) for i in items):
                return tx.out.call(tx, target, items, {})
            tensor, other = items if isinstance(items[0], TensorVariable) else items[::-1]
            return tx.out.call(tx, torch.clamp, [tensor], {"min" if op is max else "max": other})
        marks = items if key is None else [key.call_function(tx, [i], {}) for i in items]
        best = 0
        compare = operator.gt if op is max else operator.lt
        for i in range(1, len(items)):
            if tx.truth(tx.binary(compare, marks[i], marks[best])):
                best = i
        return items[best]

    return run


def _symbolic_extreme(tx: Frame, op: Callable, items: Args) -> VariableTracker:
    import torch

    target = torch.sym_max if op is max else torch.sym_min
    better = operator.gt if op is max else operator.lt
    best = items[0]
    for item in items[1:]:
        if item.python_type() is best.python_type():
            best = tx.out.call(tx, target, [best, item], {})
        elif tx.truth(tx.binary(better, item, best)):
            # The result is of the type of the one that is taken.
            best = item
    return best


trace_rules.register(max, _extreme(max))
trace_rules.register(min, _extreme(min))


@handler(abs, operator.abs)
def _abs(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return tx.unary(abs, vt)


@handler(divmod)
def _divmod(tx: Frame, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    if isinstance(a, UserDefinedObjectVariable) or isinstance(b, UserDefinedObjectVariable):
        return tx.binary(divmod, a, b)
    return fold(tx, divmod, [a, b], {}) or TupleVariable(
        [tx.binary(operator.floordiv, a, b), tx.binary(operator.mod, a, b)]
    )


@handler(pow)
def _pow(
    tx: Frame, a: VariableTracker, b: VariableTracker, mod: VariableTracker | None = None
) -> VariableTracker:
    if mod is None:
        return tx.binary(operator.pow, a, b)
    if mod.is_same(NONE):
        return tx.binary(operator.pow, a, b)
    if isinstance(a, UserDefinedObjectVariable):
        found = a.special(tx, "__pow__")
        if found is not None:
            result = found.call_function(tx, [b, mod], {})
            if result.is_same(ConstantVariable(NotImplemented)) is False:
                return result
    return _folded(tx, pow, [a, b, mod], {})


@handler(round)
def _round(
    tx: Frame, vt: VariableTracker, ndigits: VariableTracker | None = None
) -> VariableTracker:
    args = [vt] if ndigits is None else [vt, ndigits]
    if isinstance(vt, TensorVariable):
        return tx.out.call_method(
            tx, "round", [vt], {} if ndigits is None else {"decimals": ndigits}
        )
    found = fold(tx, round, args, {})
    if found is not None:
        return found
    if isinstance(vt, UserDefinedObjectVariable):
        return vt.call_method(tx, "__round__", args[1:], {})
    return tx.out.call(tx, round, args, {})


@handler(repr)
def _repr(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return tx.text(vt, "__repr__")


@handler(format)
def _format(tx: Frame, vt: VariableTracker, spec: VariableTracker | None = None) -> VariableTracker:
    return tx.formatted(vt, "" if spec is None else spec.as_python_constant())


@handler(id)
def _id(tx: Frame, vt: VariableTracker) -> VariableTracker:
    value = getattr(vt, "value", None)
    if value is None:
        value = getattr(vt, "real", None)
    if value is None or (vt.source is None and not vt.is_python_constant()):
        return FakeIdVariable(vt)
    if vt.source is not None:
        tx.out.guard(vt.source, "ID_MATCH", value)
    return ConstantVariable(id(value))


class FakeIdVariable(VariableTracker):
    """id() of an object that the trace made: it can be compared and be a key, and is no number."""

    __slots__ = ("vt",)

    def __init__(self, vt: VariableTracker) -> None:
        super().__init__(None)
        self.vt = vt

    def python_type(self) -> type:
        return int

    def is_mutable(self) -> bool:
        return False

    def hash_key(self, tx: Frame) -> object:
        return PartsKey(("id", id(self.vt)))

    def truth(self, tx: Frame) -> bool:
        return True

    def is_same(self, other: VariableTracker) -> bool | None:
        return isinstance(other, FakeIdVariable) and other.vt is self.vt


@handler(locals)
def _locals(tx: Frame) -> VariableTracker:
    names = {**tx.locals, **{n: c.load(tx) for n, c in tx.cells.items()}}
    pairs = [(ConstantVariable(n), v.realize()) for n, v in names.items() if v is not None]
    return ConstDictVariable.of(tx, pairs)


@handler(hash)
def _hash(tx: Frame, vt: VariableTracker) -> VariableTracker:
    found = fold(tx, hash, [vt], {}) if not isinstance(vt, UserDefinedObjectVariable) else None
    if found is not None:
        return found
    key = vt.hash_key(tx)
    if not has_known_hash(key):
        unimplemented("hash", f"hash({vt!r})", "the address of an object is not known")
    return ConstantVariable(hash(key))


@handler(sorted)
def _sorted(tx: Frame, vt: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return ListVariable(tx.sort(vt.unpack(tx), kwargs))


@handler(vars)
def _vars(tx: Frame, vt: VariableTracker | None = None) -> VariableTracker:
    if vt is not None and not tx.has_attribute(vt, "__dict__"):
        raise_error(tx, TypeError, "vars() argument must have __dict__ attribute")
    return _locals(tx) if vt is None else vt.getattr(tx, "__dict__")


@handler(eval, exec)
def _run_text(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    if len(args) < 2 or args[1].is_same(NONE):
        if tx.parent is None:
            raise SkipFrame("code made at run time reads the variables of its frame")
    unimplemented("eval or exec", f"{args}", "the program runs code that it makes at run time")


@handler(dir)
def _dir(tx: Frame, vt: VariableTracker | None = None) -> VariableTracker:
    if vt is None:
        return ListVariable(tx.sort(_locals(tx).unpack(tx), {}))
    return fold(tx, dir, [vt], {}) or unimplemented("dir", repr(vt), "names of an object")


@handler(globals)
def _globals(tx: Frame) -> VariableTracker:
    unimplemented("globals()", "globals()", "the names of the module as a dictionary")


@handler(builtins.print)
def _print(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    trace_rules.refuse(print, "it writes to the terminal while the graph is captured")


# ---- operator


def _register_operators() -> None:
    def binary(op: Callable) -> Callable:
        return lambda tx, a, b: tx.binary(op, a, b)

    for op in (*(op for op in SPECIAL if op is not divmod), *INPLACE):
        trace_rules.register(op, binary(op))
    for op in (operator.neg, operator.pos, operator.invert, operator.not_):
        trace_rules.register(op, lambda tx, a, op=op: tx.unary(op, a))
    trace_rules.register(operator.inv, lambda tx, a: tx.unary(operator.invert, a))


@handler(operator.getitem)
def _getitem(tx: Frame, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
    return obj.getitem(tx, key)


@handler(operator.setitem)
def _setitem(
    tx: Frame, obj: VariableTracker, key: VariableTracker, value: VariableTracker
) -> VariableTracker:
    obj.setitem(tx, key, value)
    return NONE


@handler(operator.delitem)
def _delitem(tx: Frame, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
    return obj.call_method(tx, "__delitem__", [key], {})


@handler(operator.contains)
def _contains(tx: Frame, obj: VariableTracker, item: VariableTracker) -> VariableTracker:
    return tx.contains(item, obj)


@handler(operator.is_)
def _is(tx: Frame, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return tx.identical(a, b)


@handler(operator.is_not)
def _is_not(tx: Frame, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return tx.unary(operator.not_, tx.identical(a, b))


@handler(operator.truth)
def _truth(tx: Frame, a: VariableTracker) -> VariableTracker:
    return ConstantVariable(tx.truth(a))


@handler(operator.length_hint)
def _length_hint(
    tx: Frame, a: VariableTracker, default: VariableTracker | None = None
) -> VariableTracker:
    try:
        return tx.length(a)
    except ObservedException as error:
        if not issubclass(error.value.python_type(), TypeError):
            raise
    if not isinstance(a, UserDefinedObjectVariable):
        if class_attribute(a.python_type(), "__length_hint__") is not _MISSING:
            unimplemented("length hint", repr(a), "how many values are left is not known")
    else:
        found = a.special(tx, "__length_hint__")
        if found is not None:
            hint = found.call_function(tx, [], {})
            if not issubclass(hint.python_type(), int):
                unimplemented("length hint", repr(hint), "an object instead of a number")
            return hint
    return ConstantVariable(0) if default is None else default


@handler(operator.index)
def _index(tx: Frame, a: VariableTracker) -> VariableTracker:
    if isinstance(a, SymNodeVariable):
        return a
    return ConstantVariable(tx.as_integer(a))


# ---- functools, itertools, copy, inspect


@handler(functools.reduce)
def _reduce(
    tx: Frame,
    fn: VariableTracker,
    items: VariableTracker,
    initial: VariableTracker | None = None,
) -> VariableTracker:
    total = initial
    for item in items.iterate(tx):
        total = (
            item.realize() if total is None else fn.call_function(tx, [total, item.realize()], {})
        )
    if total is None:
        raise_error(tx, TypeError, "reduce() of empty iterable with no initial value")
    return total


@handler(functools.wraps)
def _wraps(
    tx: Frame, wrapped: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    update = BuiltinVariable(functools.update_wrapper)
    given = dict(zip(("assigned", "updated"), args, strict=False))
    return FunctoolsPartialVariable(update, [], {"wrapped": wrapped, **given, **kwargs})


@handler(functools.update_wrapper)
def _update_wrapper(
    tx: Frame,
    wrapper: VariableTracker,
    wrapped: VariableTracker,
    assigned: VariableTracker | None = None,
    updated: VariableTracker | None = None,
) -> VariableTracker:
    names = functools.WRAPPER_ASSIGNMENTS if assigned is None else assigned.as_python_constant()
    if not isinstance(wrapper, NestedUserFunctionVariable):
        unimplemented("functools.wraps", repr(wrapper), "it changes an existing function")
    for name in names:
        if tx.has_attribute(wrapped, name):
            wrapper.setattr(tx, name, wrapped.getattr(tx, name))
    tables = functools.WRAPPER_UPDATES if updated is None else updated.as_python_constant()
    for name in tables:
        new = wrapped.getattr(tx, name) if tx.has_attribute(wrapped, name) else None
        if name != "__dict__" or not isinstance(new, ConstDictVariable | None):
            new = new or ConstDictVariable({})
            wrapper.getattr(tx, name).call_method(tx, "update", [new], {})
            continue
        for key, value in new.pairs(tx) if new is not None else ():
            wrapper.setattr(tx, key.as_python_constant(), value)
    wrapper.setattr(tx, "__wrapped__", wrapped)
    return wrapper


for _class in (inspect.Signature, inspect.Parameter):
    for _property in vars(_class).values():
        if isinstance(_property, property):
            trace_rules.register(_property.fget, trace_rules.INLINE)


@handler(inspect.signature)
def _signature(tx: Frame, fn: VariableTracker) -> VariableTracker:
    if isinstance(fn, UserMethodVariable) and isinstance(fn.func, UserFunctionVariable):
        # Only the function has a signature; the object takes its first place.
        bound = types.MethodType(fn.func.fn, object())
        return VariableTracker.build(tx, inspect.signature(bound))
    return fold(tx, inspect.signature, [fn], {}) or unimplemented(
        "inspect.signature", repr(fn), "the signature of a function made in the trace"
    )


for _pure in (
    inspect.isfunction, inspect.ismethod, inspect.isclass, inspect.isbuiltin, inspect.ismodule,
    inspect.isgeneratorfunction, inspect.getattr_static,
):  # fmt: skip
    trace_rules.register(_pure, trace_rules.CONSTANT)
del _pure


@handler(copy.copy)
def _copy(tx: Frame, vt: VariableTracker) -> VariableTracker:
    if isinstance(vt, ConstantVariable) or (vt.is_python_constant() and not vt.is_mutable()):
        return vt
    if isinstance(vt, ListVariable | ConstDictVariable):
        return vt.call_method(tx, "copy", [], {})
    if type(vt) is TupleVariable:
        return vt
    if (
        isinstance(vt, UserDefinedObjectVariable)
        and vt.contents is None
        and c_base(vt.cls) is object
        and not tx.overrides(vt, "__copy__", "__reduce_ex__", "__reduce__", "__getstate__")
    ):
        from torch._dynamo.variables.user_defined import dict_of

        made = UserDefinedObjectVariable(vt.cls)
        for key, value in dict_of(tx, vt).pairs(tx):
            made.attrs[key.as_python_constant()] = value
        return made
    unimplemented("copy.copy", repr(vt), "copying this object")


@handler(copy.deepcopy)
def _deepcopy(
    tx: Frame, vt: VariableTracker, memo: VariableTracker | None = None
) -> VariableTracker:
    return _deep(tx, vt, {})


def _deep(tx: Frame, vt: VariableTracker, memo: dict[int, VariableTracker]) -> VariableTracker:
    from torch._dynamo.variables.misc import InstanceDictVariable

    vt = vt.realize()
    found = memo.get(id(vt))
    if found is not None:
        return found
    if isinstance(vt, ConstantVariable) or (vt.is_python_constant() and not vt.is_mutable()):
        return vt
    if isinstance(vt, ListVariable):
        made: VariableTracker = ListVariable([])
        memo[id(vt)] = made
        made.items.extend(_deep(tx, item, memo) for item in vt.items)
        return made
    if type(vt) is TupleVariable:
        return TupleVariable([_deep(tx, item, memo) for item in vt.items])
    if type(vt) is ConstDictVariable or isinstance(vt, InstanceDictVariable):
        pairs = [(_deep(tx, k, memo), _deep(tx, v, memo)) for k, v in vt.pairs(tx)]
        return ConstDictVariable.of(tx, pairs, vt.cls)
    if (
        isinstance(vt, TensorVariable)
        and not vt.fake.requires_grad
        and not vt.cls.__dict__.get("__deepcopy__")
    ):
        return vt.call_method(tx, "clone", [], {})
    if (
        isinstance(vt, UserDefinedObjectVariable)
        and vt.contents is None
        and c_base(vt.cls) is object
        and not tx.overrides(vt, "__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__")
    ):
        from torch._dynamo.variables.user_defined import dict_of

        made = UserDefinedObjectVariable(vt.cls)
        memo[id(vt)] = made
        for key, value in dict_of(tx, vt).pairs(tx):
            made.attrs[key.as_python_constant()] = _deep(tx, value, memo)
        return made
    unimplemented("copy.deepcopy", repr(vt), "copying this object")


@handler(collections.namedtuple)
def _namedtuple(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    # It asks its caller's frame for the module.
    module = {"module": ConstantVariable(tx.globals.get("__name__", "__main__"))}
    return _folded(tx, collections.namedtuple, list(args), {**module, **kwargs})


@handler(itertools.tee)
def _tee(tx: Frame, vt: VariableTracker, n: VariableTracker | None = None) -> VariableTracker:
    count = 2 if n is None else tx.as_index(n)
    parts = itertools.tee(vt.iterate(tx), count)
    return TupleVariable([IteratorVariable(part, itertools._tee, False) for part in parts])


@handler(sys.exc_info)
def _exc_info(tx: Frame) -> VariableTracker:
    if tx.handling is None:
        return TupleVariable([NONE, NONE, NONE])
    kind = VariableTracker.build(tx, tx.handling.python_type())
    return TupleVariable([kind, tx.handling, TracebackVariable()])


if hasattr(sys, "exception"):

    @handler(sys.exception)
    def _exception(tx: Frame) -> VariableTracker:
        return tx.handling or NONE


_register_operators()
