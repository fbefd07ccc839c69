"""Calls of classes. Builtin classes have a rule each; classes written in Python go through
`__new__` and `__init__` as type.__call__ does."""

from __future__ import annotations

import collections
import enum
import functools
import inspect
import itertools
import operator
import random
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._dynamo import trace_rules
from torch._dynamo.exc import raise_error, raise_observed, unimplemented
from torch._dynamo.polyfills import own_class
from torch._dynamo.variables import iter as iterators
from torch._dynamo.variables import numpy_arrays, random_numbers
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.builtin import BuiltinVariable, fold, refuse_arguments
from torch._dynamo.variables.constant import (
    FALSE,
    NONE,
    ConstantVariable,
    is_constant_type,
)
from torch._dynamo.variables.dicts import (
    ConstDictVariable,
    DefaultDictVariable,
    pairs_of,
)
from torch._dynamo.variables.exceptions import ExceptionVariable
from torch._dynamo.variables.functions import UserMethodVariable
from torch._dynamo.variables.iter import CallIteratorVariable, IteratorVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    DequeVariable,
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.misc import GetAttrVariable, SuperVariable, WeakRefVariable
from torch._dynamo.variables.partials import FunctoolsPartialVariable
from torch._dynamo.variables.sets import SetVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable, plain_in_graph
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
    c_base,
    class_attribute,
    class_function_source,
)

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame

_RULES: dict[type, Callable[..., VariableTracker]] = {}
# Builtin classes that classes written in Python derive from, with the tracker of their contents.
_CONTENTS: tuple[tuple[type, Callable[[type], VariableTracker]], ...] = (
    (collections.OrderedDict, lambda cls: ConstDictVariable({}, cls=collections.OrderedDict)),
    (collections.defaultdict, lambda cls: DefaultDictVariable({}, NONE)),
    (dict, lambda cls: ConstDictVariable({})),
    (list, lambda cls: ListVariable([])),
    (collections.deque, lambda cls: DequeVariable([])),
    (tuple, lambda cls: TupleVariable([])),
    (frozenset, lambda cls: SetVariable({}, cls=frozenset)),
    (set, lambda cls: SetVariable({})),
)


def rule(*classes: type) -> Callable[[Callable], Callable]:
    """A decorator: what a call of each of these classes does."""

    def mark(fn: Callable) -> Callable:
        for cls in classes:
            _RULES[cls] = fn
        return fn

    return mark


def construct(
    tx: Frame, cls: UserDefinedClassVariable, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """cls(...)"""
    value = cls.value
    found = _RULES.get(value)
    if found is not None:
        try:
            return found(tx, *args, **kwargs)
        except TypeError as error:
            if "positional argument" in str(error) or "keyword argument" in str(error):
                refuse_arguments(tx, value, args, kwargs, f"{value.__name__}: wrong arguments")
            raise
    explicit = trace_rules.explicit(value)
    if explicit is not None:
        return tx.call_by_rule(explicit, cls, value, args, kwargs)
    meta = class_attribute(type(value), "__call__")
    if isinstance(meta, types.FunctionType) and type(value) is not type:
        return _with_metaclass(tx, cls, meta, args, kwargs)
    return instantiate(tx, cls, args, kwargs)


def _with_metaclass(
    tx: Frame, cls: UserDefinedClassVariable, meta: types.FunctionType, args: Args, kwargs: Kwargs
) -> VariableTracker:
    value = cls.value
    if isinstance(value, enum.EnumMeta):
        return fold(tx, value, args, kwargs) or unimplemented(
            "enumeration", f"{value}({args})", "the value of a member is not known"
        )
    if issubclass(value, torch.Tensor):
        return _tensor_of_class(tx, cls, args, kwargs)
    function = VariableTracker.build(tx, meta)
    return function.call_function(tx, [cls, *args], kwargs)


def _tensor_of_class(
    tx: Frame, cls: UserDefinedClassVariable, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """cls(tensor) for a class of tensors."""
    value = cls.value
    own = [class_attribute(value, name) for name in ("__new__", "__init__")]
    python = any(isinstance(getattr(f, "__func__", f), types.FunctionType) for f in own)
    if plain_in_graph(value) and not python and len(args) == 1 and not kwargs:
        if isinstance(args[0], TensorVariable):
            plain = args[0].call_method(tx, "detach", [], {})
            return plain.call_method(tx, "as_subclass", [cls], {})
    return tx.call_by_rule(trace_rules.GRAPH, cls, value, args, kwargs)


def instantiate(
    tx: Frame, cls: UserDefinedClassVariable, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """type.__call__"""
    value = cls.value
    from torch._dynamo.variables import ctx_manager

    manager = ctx_manager.create(tx, value, args, kwargs)
    if manager is not None:
        return manager
    if is_namedtuple(value):
        return _namedtuple(tx, value, args, kwargs)
    if issubclass(value, tuple) and hasattr(value, "n_fields"):
        return NamedTupleVariable(args[0].unpack(tx), value)
    if issubclass(value, torch.Tensor):
        return _tensor_of_class(tx, cls, args, kwargs)
    if numpy_arrays.is_numpy(value):
        return numpy_arrays.construct(tx, value, args, kwargs)
    if is_constant_type(value):
        return fold(tx, value, args, kwargs) or unimplemented(
            "constructor", f"{value}({args})", "an argument is not known while tracing"
        )
    maker = class_attribute(value, "__new__")
    maker = maker.__func__ if isinstance(maker, staticmethod) else maker
    if isinstance(maker, types.FunctionType):
        obj = VariableTracker.build(tx, maker).call_function(tx, [cls, *args], kwargs)
        if not issubclass(obj.python_type(), value):
            return obj
    else:
        obj = new_object(tx, value, args, kwargs)
    return initialise(tx, obj, args, kwargs)


def initialise(tx: Frame, obj: VariableTracker, args: Args, kwargs: Kwargs) -> VariableTracker:
    """obj.__init__(...)"""
    init = class_attribute(obj.python_type(), "__init__")
    if isinstance(init, types.FunctionType):
        source = class_function_source(tx, obj.python_type(), "__init__", init)
        function = VariableTracker.build(tx, init, source)
        result = function.call_function(tx, [obj, *args], kwargs).realize()
        if result.is_same(NONE) is False:
            kind = result.python_type().__name__
            raise_error(tx, TypeError, f"__init__() should return None, not {kind!r}")
    elif isinstance(obj, ExceptionVariable):
        obj.initialise(tx, args, kwargs)
    elif init is object.__init__:
        maker = class_attribute(obj.python_type(), "__new__")
        if (args or kwargs) and maker is object.__new__:
            raise_error(tx, TypeError, f"{obj.python_type().__name__}() takes no arguments")
    elif isinstance(obj, UserDefinedObjectVariable) and obj.contents is not None:
        if obj.contents.is_mutable():
            obj.call_contents(tx, "__init__", args, kwargs)
    elif getattr(init, "__objclass__", None) is not torch._C._ModuleBase:
        unimplemented(
            "constructor",
            f"{obj.python_type()}.__init__",
            f"`{obj.python_type().__qualname__}` is initialised by C code",
        )
    return obj


def new_object(tx: Frame, cls: type, args: Args, kwargs: Kwargs) -> VariableTracker:
    """cls.__new__(cls, ...) of a base class in C"""
    last = class_attribute(cls, "__del__")
    if isinstance(last, types.FunctionType) and not tx.out.options.fullgraph:
        if not trace_rules.is_library_file(last.__code__.co_filename):
            unimplemented("__del__", f"{cls}", "what an object does at its end is not traced")
    if issubclass(cls, BaseException):
        if hasattr(cls, "subgroup"):
            unimplemented("exception group", f"{cls}", "groups of exceptions are not modelled")
        return ExceptionVariable.new(tx, cls, args)
    if issubclass(cls, torch.nn.Module):
        from torch._dynamo.variables.nn_module import UnspecializedNNModuleVariable

        return UnspecializedNNModuleVariable(cls)
    if is_namedtuple(cls):
        return NamedTupleVariable(args[0].unpack(tx), cls)
    if inspect.isabstract(cls):
        try:
            object.__new__(cls)
        except TypeError as error:
            raise_observed(tx, error)
    obj = UserDefinedObjectVariable(cls)
    for base, make in _CONTENTS:
        if issubclass(cls, base):
            contents = make(base)
            if base is tuple:
                contents = TupleVariable(args[0].unpack(tx) if args else [])
                obj.init_args = [TupleVariable(contents.items)]
            elif base is frozenset:
                contents = SetVariable.of(tx, args[0].unpack(tx) if args else [], frozenset)
                obj.init_args = [TupleVariable(list(contents.items.values()))]
            obj.hold(tx, contents)
            return obj
    base = c_base(cls)
    if base is not object and base.__name__ not in ("Generic", "Protocol"):
        unimplemented(
            "constructor", f"{cls}", f"it derives from `{base.__qualname__}`, written in C"
        )
    return obj


def is_namedtuple(cls: type) -> bool:
    """Whether a class is one of collections.namedtuple itself."""
    return (
        issubclass(cls, tuple)
        and hasattr(cls, "_fields")
        and cls.__bases__ == (tuple,)
        and hasattr(cls, "_make")
    )


def _namedtuple(tx: Frame, cls: type, args: Args, kwargs: Kwargs) -> VariableTracker:
    fields = cls._fields
    try:
        cls(*(None for _ in args), **dict.fromkeys(kwargs))
    except TypeError as error:
        raise_observed(tx, error)
    values = {**dict(zip(fields, args, strict=False)), **kwargs}
    for name in fields:
        if name not in values:
            values[name] = VariableTracker.build(tx, cls._field_defaults[name])
    return NamedTupleVariable([values[name] for name in fields], cls)


# ---- builtin classes


@rule(list)
def _list(tx: Frame, items: VariableTracker | None = None) -> VariableTracker:
    return ListVariable(items.unpack(tx) if items is not None else [])


@rule(tuple)
def _tuple(tx: Frame, items: VariableTracker | None = None) -> VariableTracker:
    if type(items) is TupleVariable:
        return items
    return TupleVariable(items.unpack(tx) if items is not None else [])


@rule(torch.Size)
def _size(tx: Frame, items: VariableTracker | None = None) -> VariableTracker:
    return SizeVariable(items.unpack(tx) if items is not None else [])


@rule(set)
def _set(tx: Frame, items: VariableTracker | None = None) -> VariableTracker:
    return SetVariable.copy_of(tx, items) if items is not None else SetVariable({})


@rule(frozenset)
def _frozenset(tx: Frame, items: VariableTracker | None = None) -> VariableTracker:
    if items is None:
        return SetVariable({}, cls=frozenset)
    return SetVariable.copy_of(tx, items, frozenset)


def _dict_of(tx: Frame, cls: type, args: Args, kwargs: Kwargs) -> ConstDictVariable:
    made = ConstDictVariable({}, cls=cls)
    for key, value in pairs_of(tx, args[0]) if args else ():
        made.setitem(tx, key, value)
    for key, value in kwargs.items():
        made.setitem(tx, ConstantVariable(key), value)
    return made


@rule(dict)
def _dict(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return _dict_of(tx, dict, list(args), kwargs)


@rule(collections.OrderedDict)
def _ordered(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return _dict_of(tx, collections.OrderedDict, list(args), kwargs)


@rule(types.MappingProxyType)
def _proxy(tx: Frame, mapping: VariableTracker) -> VariableTracker:
    return ConstDictVariable(mapping.items, cls=types.MappingProxyType)


@rule(collections.defaultdict)
def _defaultdict(
    tx: Frame,
    factory: VariableTracker = NONE,
    *args: VariableTracker,
    **kwargs: VariableTracker,
) -> VariableTracker:
    return DefaultDictVariable(_dict_of(tx, dict, list(args), kwargs).items, factory)


@rule(collections.deque)
def _deque(
    tx: Frame, items: VariableTracker | None = None, maxlen: VariableTracker = NONE
) -> VariableTracker:
    values = items.unpack(tx) if items is not None else []
    most = _as_constant(maxlen).as_python_constant()
    if most is not None and len(values) > most:
        del values[: len(values) - most]
    return DequeVariable(values, maxlen=most)


@rule(weakref.ref)
def _weak_reference(
    tx: Frame, referent: VariableTracker, callback: VariableTracker = NONE
) -> VariableTracker:
    if not callback.is_same(NONE):
        unimplemented("weakref.ref", repr(callback), "a weak reference that calls a function")
    return WeakRefVariable(referent)


@rule(random.Random)
def _random(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return random_numbers.construct(tx, list(args), kwargs)


@rule(range)
def _range(tx: Frame, *args: VariableTracker) -> VariableTracker:
    try:
        return RangeVariable(range(*[tx.as_index(a) for a in args]))
    except (TypeError, ValueError) as error:
        raise_observed(tx, error)


@rule(slice)
def _slice(tx: Frame, *args: VariableTracker) -> VariableTracker:
    if not 1 <= len(args) <= 3:
        bound = "at least 1 argument" if not args else "at most 3 arguments"
        raise_error(tx, TypeError, f"slice expected {bound}, got {len(args)}")
    return SliceVariable(list(args))


@rule(enumerate)
def _enumerate(
    tx: Frame, iterable: VariableTracker, start: VariableTracker | None = None
) -> VariableTracker:
    first = 0 if start is None else tx.as_integer(start)
    inner = tx.make_iterator(iterable)
    return iterators.EnumerateVariable(inner, tx.iterate_result(inner), first)


def _iter(tx: Frame, vt: VariableTracker) -> object:
    return tx.iterate_result(tx.make_iterator(vt))


def _is_pure_iterable(vt: VariableTracker) -> bool:
    """Whether walking over a value has no effect but on iterators."""
    if isinstance(vt, IteratorVariable):
        return vt.pure
    return isinstance(vt, BaseListVariable | ConstantVariable | ConstDictVariable | SetVariable)


@rule(itertools.compress)
def _compress(tx: Frame, data: VariableTracker, selectors: VariableTracker) -> VariableTracker:
    values = (
        item.realize()
        for item, kept in zip(_iter(tx, data), _iter(tx, selectors), strict=False)
        if tx.truth(kept.realize())
    )
    return IteratorVariable(values, itertools.compress, False)


@rule(zip)
def _zip(tx: Frame, *args: VariableTracker, strict: VariableTracker = FALSE) -> VariableTracker:
    parts = [tx.make_iterator(a) for a in args]
    exact = tx.truth(strict)
    values = iterators.zip_values(tx, [tx.iterate_result(p) for p in parts], exact)
    return CallIteratorVariable(values, zip, parts, {"strict": True} if exact else None)


@rule(map)
def _map(
    tx: Frame, fn: VariableTracker, first: VariableTracker, *rest: VariableTracker
) -> VariableTracker:
    parts = [tx.make_iterator(a) for a in (first, *rest)]
    values = iterators.map_values(tx, fn, [tx.iterate_result(p) for p in parts])
    return CallIteratorVariable(values, map, [fn, *parts])


@rule(filter)
def _filter(tx: Frame, fn: VariableTracker, items: VariableTracker) -> VariableTracker:
    inner = tx.make_iterator(items)
    values = iterators.filter_values(tx, fn, tx.iterate_result(inner))
    return CallIteratorVariable(values, filter, [fn, inner])


@rule(reversed)
def _reversed(tx: Frame, vt: VariableTracker) -> VariableTracker:
    if isinstance(vt, UserDefinedObjectVariable):
        found = vt.special(tx, "__reversed__")
        if found is not None:
            return found.call_function(tx, [], {})
        if vt.contents is not None and not isinstance(vt.contents, TupleVariable):
            return _reversed(tx, vt.contents)
    kind = vt.python_type()
    if all(class_attribute(kind, name) is _MISSING for name in ("__reversed__", "__getitem__")):
        raise_error(tx, TypeError, f"{kind.__name__!r} object is not reversible")
    if isinstance(vt, BaseListVariable) and kind in (list, tuple):
        return tx.make_reversed(vt)
    if isinstance(vt, BaseListVariable | UserDefinedObjectVariable | ConstantVariable):
        count = tx.as_index(tx.length(vt))
        items = (vt.getitem(tx, ConstantVariable(i)) for i in range(count - 1, -1, -1))
        return IteratorVariable(items, reversed)
    return vt.call_method(tx, "__reversed__", [], {})


@rule(type)
def _type(tx: Frame, vt: VariableTracker, *rest: VariableTracker) -> VariableTracker:
    if rest:
        # Every call makes a class of its own.
        unimplemented("new class", f"type({vt!r})", "a class is made in the compiled function")
    if isinstance(vt, UserDefinedObjectVariable):
        return vt.class_tracker(tx)
    return VariableTracker.build(tx, vt.python_type())


@rule(object)
def _object(tx: Frame) -> VariableTracker:
    return UserDefinedObjectVariable(object)


@rule(super)
def _super(tx: Frame, *args: VariableTracker) -> VariableTracker:
    if not args:
        cell = tx.cells.get("__class__")
        first = tx.program.origin.co_varnames[0]
        obj = tx.locals.get(first) or tx.cells[first].load(tx)
        args = (cell.load(tx), obj.realize())
    start, obj = args[0].as_python_constant(), args[1]
    if not isinstance(start, type):
        kind = type(start).__name__
        raise_error(tx, TypeError, f"super() argument 1 must be a type, not {kind}")
    is_class = isinstance(obj, UserDefinedClassVariable) and issubclass(obj.value, start)
    if not is_class and not issubclass(obj.python_type(), start):
        text = "super(type, obj): obj must be an instance or subtype of type"
        raise_error(tx, TypeError, text)
    return SuperVariable(start, obj)


@rule(bool)
def _bool(tx: Frame, vt: VariableTracker = FALSE) -> VariableTracker:
    found = vt.truth(tx)
    if found is True or found is False:
        return ConstantVariable(found)
    if isinstance(found, SymNodeVariable):
        return ConstantVariable(found.truth(tx))
    if isinstance(found, TensorVariable):
        unimplemented("Data-dependent branching", f"bool({vt!r})", "the truth of a tensor's data")
    raise_error(tx, TypeError, "__bool__ should return bool")


def _as_constant(vt: VariableTracker) -> VariableTracker:
    """A number that varies as what it is now."""
    return ConstantVariable(vt.evaluate()) if isinstance(vt, SymNodeVariable) else vt


def _number(cls: type, special: str) -> Callable:
    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        if len(args) + len(kwargs) > 1 or cls is complex:
            args = tuple(map(_as_constant, args))
            kwargs = {name: _as_constant(vt) for name, vt in kwargs.items()}
            found = fold(tx, cls, list(args), kwargs)
            if found is not None:
                return found
            if len(args) + len(kwargs) > 1:
                unimplemented("number", f"{cls}({args})", "the number is not known while tracing")
        if args and isinstance(args[0], SymNodeVariable):
            if args[0].python_type() is cls:
                return args[0]
            target = torch.sym_float if cls is float else torch.sym_int
            return tx.out.call(tx, target, [args[0]], {})
        if args and isinstance(args[0], TensorVariable):
            item = args[0].call_method(tx, "item", [], {})
            if isinstance(item, ConstantVariable):
                return ConstantVariable(cls(item.value))
            if item.python_type() is cls:
                return item
            return run(tx, item)
        if args and isinstance(args[0], UserDefinedObjectVariable):
            for name in (special, "__index__"):
                found = args[0].special(tx, name)
                if found is not None:
                    return found.call_function(tx, [], {})
        found = fold(tx, cls, list(args), kwargs)
        if found is None:
            unimplemented("number", f"{cls}({args})", "the number is not known while tracing")
        return found

    return run


_RULES[int] = _number(int, "__int__")
_RULES[float] = _number(float, "__float__")
_RULES[complex] = _number(complex, "__complex__")


@rule(str)
def _str(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    if len(args) == 1 and not kwargs:
        return tx.text(args[0], "__str__")
    return fold(tx, str, list(args), kwargs) or unimplemented(
        "constructor", f"str({args})", "an argument is not known while tracing"
    )


@rule(functools.partial)
def _partial(
    tx: Frame, fn: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    if isinstance(fn, FunctoolsPartialVariable):
        return FunctoolsPartialVariable(fn.func, [*fn.args, *args], {**fn.keywords, **kwargs})
    return FunctoolsPartialVariable(fn, list(args), kwargs)


@rule(types.MethodType)
def _method(tx: Frame, fn: VariableTracker, obj: VariableTracker) -> VariableTracker:
    return UserMethodVariable(fn, obj)


@rule(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def _getter(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    unimplemented("operator getter", f"{args}", "made in the compiled function")


def _getter_of(cls: type) -> Callable:
    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        from torch._dynamo import polyfills

        make = getattr(polyfills, cls.__name__)
        return VariableTracker.build(tx, make).call_function(tx, list(args), kwargs)

    return run


for _cls in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
    _RULES[_cls] = _getter_of(_cls)


# ---- itertools


def _structural(cls: type) -> Callable:
    """Functions of itertools that move items and look at none: Python's own, on trackers."""

    def run(tx: Frame, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        numbers = [a.value for a in args if type(a) is ConstantVariable and type(a.value) is int]
        lists = [
            a.unpack(tx)
            for a in args
            if not a.is_python_constant()
            or not (isinstance(a, ConstantVariable) and type(a.value) in (int, type(None)))
        ]
        named = {k: v.as_python_constant() for k, v in kwargs.items()}
        rows = cls(*lists, *numbers, **named)
        return IteratorVariable((TupleVariable(list(row)) for row in rows), cls)

    return run


for _cls in (
    itertools.product, itertools.permutations, itertools.combinations,
    itertools.combinations_with_replacement, itertools.pairwise,
):  # fmt: skip
    _RULES[_cls] = _structural(_cls)
del _cls


@rule(itertools.chain)
def _chain(tx: Frame, *args: VariableTracker) -> VariableTracker:
    its = (item for a in args for item in _iter(tx, a))
    return IteratorVariable(its, itertools.chain, all(_is_pure_iterable(a) for a in args))


@rule(itertools.islice)
def _islice(tx: Frame, vt: VariableTracker, *args: VariableTracker) -> VariableTracker:
    bounds = [tx.as_index(a) for a in args]
    try:
        values = itertools.islice(_iter(tx, vt), *bounds)
        return IteratorVariable(values, itertools.islice, _is_pure_iterable(vt))
    except ValueError as error:
        raise_observed(tx, error)


@rule(itertools.count)
def _count(
    tx: Frame, start: VariableTracker | None = None, step: VariableTracker | None = None
) -> VariableTracker:
    start, step = start or ConstantVariable(0), step or ConstantVariable(1)
    by_one = isinstance(step, ConstantVariable) and type(step.value) is int and step.value == 1
    if by_one and start.python_type() is bool and isinstance(start, ConstantVariable):
        start = ConstantVariable(int(start.value))  # counted as a number of C
    return iterators.CountIteratorVariable(start, step)


@rule(itertools.repeat)
def _repeat(
    tx: Frame, vt: VariableTracker, times: VariableTracker | None = None
) -> VariableTracker:
    if times is None:
        return iterators.RepeatIteratorVariable(vt)
    return IteratorVariable(itertools.repeat(vt, tx.as_index(times)), itertools.repeat)


@rule(itertools.cycle)
def _cycle(tx: Frame, vt: VariableTracker) -> VariableTracker:
    return IteratorVariable(itertools.cycle(_iter(tx, vt)), itertools.cycle, False)


@rule(itertools.zip_longest)
def _zip_longest(
    tx: Frame, *args: VariableTracker, fillvalue: VariableTracker = NONE
) -> VariableTracker:
    rows = itertools.zip_longest(*[_iter(tx, a) for a in args], fillvalue=fillvalue)
    values = (TupleVariable([i.realize() for i in row]) for row in rows)
    return IteratorVariable(values, itertools.zip_longest, all(map(_is_pure_iterable, args)))


@rule(itertools.accumulate)
def _accumulate(
    tx: Frame,
    vt: VariableTracker,
    func: VariableTracker = NONE,
    initial: VariableTracker = NONE,
) -> VariableTracker:
    if func.is_same(NONE):
        add = lambda a, b: tx.binary(operator.add, a, b)
    else:
        add = lambda a, b: func.call_function(tx, [a, b], {})
    first = None if initial.is_same(NONE) else initial
    values = iterators.accumulate_values(tx, _iter(tx, vt), add, first)
    return IteratorVariable(values, itertools.accumulate, False)


@rule(itertools.takewhile)
def _takewhile(tx: Frame, fn: VariableTracker, vt: VariableTracker) -> VariableTracker:
    return IteratorVariable(
        iterators.take_or_drop(tx, fn, _iter(tx, vt), True), itertools.takewhile, False
    )


@rule(itertools.dropwhile)
def _dropwhile(tx: Frame, fn: VariableTracker, vt: VariableTracker) -> VariableTracker:
    return IteratorVariable(
        iterators.take_or_drop(tx, fn, _iter(tx, vt), False), itertools.dropwhile, False
    )


@rule(itertools.starmap)
def _starmap(tx: Frame, fn: VariableTracker, vt: VariableTracker) -> VariableTracker:
    values = (fn.call_function(tx, row.unpack(tx), {}) for row in _iter(tx, vt))
    return IteratorVariable(values, itertools.starmap, False)


@rule(itertools.filterfalse)
def _filterfalse(tx: Frame, fn: VariableTracker, vt: VariableTracker) -> VariableTracker:
    everything = fn.is_same(NONE)
    values = (
        item
        for item in _iter(tx, vt)
        if not tx.truth(item if everything else fn.call_function(tx, [item], {}))
    )
    return IteratorVariable(values, itertools.filterfalse, False)


@rule(itertools.groupby)
def _groupby(tx: Frame, vt: VariableTracker, key: VariableTracker | None = None) -> VariableTracker:
    if key is not None and key.is_same(NONE):
        key = None
    return IteratorVariable(iterators.Groups(tx, _iter(tx, vt), key), itertools.groupby, False)


# ---- methods of classes that C code defines


def class_method(
    tx: Frame, cls: UserDefinedClassVariable, name: str, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """cls.name(...)"""
    value = cls.value
    if name == "__call__":
        return cls.call_function(tx, args, kwargs)
    if name == "__new__":
        made = args[0].as_python_constant()
        return new_object(tx, made, args[1:], kwargs)
    if name == "fromkeys" and issubclass(value, dict):
        if value is not dict and value is not collections.OrderedDict:
            function = VariableTracker.build(tx, own_class.table_of_keys)
            return function.call_function(tx, [cls, *args], kwargs)
        default = args[1] if len(args) > 1 else NONE
        return ConstDictVariable.of(tx, [(key, default) for key in args[0].unpack(tx)], value)
    if name == "from_iterable" and value is itertools.chain:
        its = (item for part in _iter(tx, args[0]) for item in _iter(tx, part.realize()))
        return IteratorVariable(its, itertools.chain, False)
    if name == "_make" and is_namedtuple(value):
        return NamedTupleVariable(args[0].unpack(tx), value)
    if name == "apply" and issubclass(value, torch.autograd.Function):
        from torch._dynamo.variables.torch import apply_autograd_function

        return apply_autograd_function(tx, cls, args, kwargs)
    raw = class_attribute(value, name)
    if raw is not _MISSING:
        bound = cls.getattr(tx, name)
        if type(bound) is not GetAttrVariable:
            return bound.call_function(tx, args, kwargs)
    found = fold(tx, getattr(value, name), args, kwargs) if _is_pure(value, name) else None
    if found is not None:
        return found
    method = getattr(value, name)
    if trace_rules.explicit(method) is not None:
        return BuiltinVariable(method).call_function(tx, args, kwargs)
    unimplemented(
        "method of a class", f"{value}.{name}", f"`{name}` of `{value.__qualname__}` is C code"
    )


def _is_pure(cls: type, name: str) -> bool:
    return cls in (int, float, str, bytes, dict, complex) or name in (
        "__subclasses__",
        "mro",
        "__subclasscheck__",
        "__instancecheck__",
    )


def c_base_method(
    tx: Frame, obj: VariableTracker, name: str, raw: object, args: Args, kwargs: Kwargs
) -> VariableTracker:
    """super().name(...) where the method is C code."""
    if name == "__new__":
        cls = args[0].as_python_constant()
        return new_object(tx, cls, args[1:], kwargs)
    if name == "__init__":
        if raw is object.__init__:
            return NONE
        if isinstance(obj, ExceptionVariable):
            obj.initialise(tx, args, kwargs)
            return NONE
        if isinstance(obj, UserDefinedObjectVariable) and obj.contents is not None:
            if obj.contents.is_mutable():
                obj.call_contents(tx, "__init__", args, kwargs)
            return NONE
        if getattr(raw, "__objclass__", None) is object:
            return NONE
    if name == "__init_subclass__":
        return NONE
    if name == "__call__" and getattr(raw, "__objclass__", None) is type:
        return instantiate(tx, obj, args, kwargs)
    if isinstance(obj, UserDefinedObjectVariable):
        return obj.call_c_method(tx, name, args, kwargs)
    if isinstance(obj, UserDefinedClassVariable):
        return class_method(tx, obj, name, args, kwargs)
    if isinstance(obj, TensorVariable):
        if name == "__torch_function__":
            unimplemented("__torch_function__", repr(obj), "overrides of torch functions")
        return tx.out.call_method(tx, name, [obj, *args], kwargs)
    return obj.call_method(tx, name, args, kwargs)
