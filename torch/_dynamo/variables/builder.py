"""From Python values to trackers. A value of the running program comes with its source, and what
the trace relies on becomes a guard: the type and length of a container, the keys of a
dictionary, the value of a constant, the properties of a tensor."""

from __future__ import annotations

import collections
import copy
import enum
import functools
import math
import operator
import os
import random
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.eval_frame import CompiledFunction, DisabledFunction
from torch._dynamo import polyfills, trace_rules
from torch._dynamo.exc import unimplemented
from torch._dynamo.source import (
    AttrSource,
    ContainedItemSource,
    DictKeySource,
    GetItemSource,
    TensorProperty,
    TensorPropertySource,
    TupleIteratorGetItemSource,
    WeakRefCallSource,
)
from torch._dynamo.variables.base import LazyVariableTracker, VariableTracker
from torch._dynamo.variables.builtin import BuiltinVariable
from torch._dynamo.variables.constant import (
    LITERALS,
    ConstantVariable,
    EnumVariable,
    is_constant_type,
)
from torch._dynamo.variables.construction import _CONTENTS, is_namedtuple
from torch._dynamo.variables.dicts import ConstDictVariable, DefaultDictVariable, keys_in_order
from torch._dynamo.variables.exceptions import ExceptionVariable
from torch._dynamo.variables.functions import (
    CachedFunctionVariable,
    SkipFunctionVariable,
    UserFunctionVariable,
    UserMethodVariable,
)
from torch._dynamo.variables.iter import _LONGEST, ExistingIteratorVariable
from torch._dynamo.variables.lists import (
    DequeVariable,
    ExistingListVariable,
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.misc import (
    PythonModuleVariable,
    TypingVariable,
    UnknownVariable,
    WeakRefVariable,
)
from torch._dynamo.variables.numpy_arrays import is_numpy
from torch._dynamo.variables.partials import FunctoolsPartialVariable
from torch._dynamo.variables.sets import SetVariable, walk_set
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable, plain_in_graph
from torch._dynamo.variables.user_defined import (
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
    instance_dict,
)
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    RelaxedUnspecConstraint,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
)
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_BUILTIN_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
)
_TYPING = (
    typing._GenericAlias,
    typing._SpecialForm,
    types.GenericAlias,
    types.UnionType,
    typing.TypeVar,
    typing._BaseGenericAlias,
)
_EXACT: dict[type, Callable] = {}
# Members of a set that are equal to themselves alone.
_MEMBERS = (type, types.FunctionType, types.BuiltinFunctionType)


def wrap(tx: Frame, value: object, source: Source | None = None) -> VariableTracker:
    """The tracker of a value."""
    cls = type(value)
    if cls in LITERALS:
        return _literal(tx, value, source)
    known = tx.out.known.get(id(value))
    if known is not None:
        if source is not None and known.source is not None and known.source != source:
            tx.out.guard(source, "OBJECT_ALIASING", known.source)
        return known
    rule = _EXACT.get(cls)
    if rule is not None:
        made = rule(tx, value, source)
    else:
        made = _by_base(tx, value, source)
    if source is not None and made.is_mutable():
        tx.out.known[id(value)] = made
        tx.out.keep.append(value)
    return made


def wrap_constant(value: object) -> VariableTracker:
    """The tracker of a constant of the code, or of a container of such."""
    if isinstance(value, tuple):
        return TupleVariable([wrap_constant(item) for item in value])
    if isinstance(value, frozenset):
        members = {item: wrap_constant(item) for item in value}
        return SetVariable(members, cls=frozenset, order=value)
    return ConstantVariable(value)


def _guard(tx: Frame, source: Source | None, kind: str, value: object) -> None:
    if source is not None:
        tx.out.guard(source, kind, value)


def _literal(tx: Frame, value: object, source: Source | None) -> VariableTracker:
    if source is None:
        return ConstantVariable(value)
    cls = type(value)
    if cls is int or cls is float:
        made = _maybe_symbolic(tx, value, source)
        if made is not None:
            return made
    tx.out.guard(source, "CONSTANT_MATCH", value)
    return ConstantVariable(value, source)


def _maybe_symbolic(tx: Frame, value: int | float, source: Source) -> VariableTracker | None:
    options = tx.out.options
    if not _may_be_symbol(value) or not options.may_be_dynamic(source, value):
        options.saw_number(source, value)
        return None
    if not options.saw_number(source, value):
        return None
    if value in (0, 1) and options.state.get(source.name()) is not None:
        # Asked for from the start: programs test for these two. Where others came before, as in
        # layers that count from 0, one more graph for each would be compiled.
        return None
    known = tx.out.symbol_inputs.get(source)
    if known is not None:
        return known
    number = tx.out.shape_env.create_input_number(value, source)
    tx.out.guard(source, "TYPE_MATCH", type(value))
    if type(value) is float:
        # Comparisons that held while tracing hold otherwise for what is no number.
        tx.out.guard(source, "NOT_NAN", None)
    node = tx.out.add_input(source, value, number)
    tx.out.symbol_nodes[str(number)] = node
    tx.out.shape_sources.append((number, source, None))
    made = SymNodeVariable(node, number, source)
    tx.out.symbol_inputs[source] = made
    return made


def _may_be_symbol(value: int | float) -> bool:
    from torch._dynamo import config

    if type(value) is float:
        # A symbol that is zero would hold for both zeros.
        return not config.specialize_float and math.isfinite(value) and value != 0
    # Symbols are numbers of 64 bits.
    fits = type(value) is int and -(2**62) <= value < 2**62
    return fits and not config.specialize_int


def _item_source(container: object, source: Source, key: object) -> Source:
    """Where an item is found, whatever __getitem__ the class of the container has."""
    for cls in (dict, list, tuple, collections.deque):
        if isinstance(container, cls) and type(container).__getitem__ is not cls.__getitem__:
            return ContainedItemSource(source, key, cls)
    return GetItemSource(source, key)


def _item(
    tx: Frame, value: object, source: Source | None, key: object, container: object = None
) -> VariableTracker:
    if source is None:
        return wrap(tx, value)
    part = _item_source(container, source, key)
    if id(value) in tx.out.known and type(value) not in LITERALS:
        return wrap(tx, value, part)
    return LazyVariableTracker(tx, value, part)


# ---- containers


def _list(tx: Frame, value: list, source: Source | None) -> VariableTracker:
    if source is None:
        return ListVariable([_item(tx, item, None, i) for i, item in enumerate(value)])

    def read() -> list[VariableTracker]:
        tx.out.guard(source, "SEQUENCE_LENGTH", len(value))
        return [_item(tx, item, source, i) for i, item in enumerate(value)]

    tx.out.guard(source, "TYPE_MATCH", type(value))
    made = ExistingListVariable(read, source)
    tx.out.known[id(value)] = made
    tx.out.keep.append(value)
    return made


def _tuple(tx: Frame, value: tuple, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, source, "SEQUENCE_LENGTH", len(value))
    items = [_item(tx, item, source, i) for i, item in enumerate(value)]
    return TupleVariable(items, source)


def _size(tx: Frame, value: torch.Size, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, source, "SEQUENCE_LENGTH", len(value))
    items = [_item(tx, item, source, i) for i, item in enumerate(value)]
    return SizeVariable(items, source)


def _deque(tx: Frame, value: collections.deque, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, source, "SEQUENCE_LENGTH", len(value))
    if source is not None:
        _guard(tx, AttrSource(source, "maxlen"), "CONSTANT_MATCH", value.maxlen)
    items = [_item(tx, item, source, i) for i, item in enumerate(value)]
    return DequeVariable(items, source, value.maxlen)


def _tuple_iterator(tx: Frame, value: Iterator, source: Source | None) -> VariableTracker:
    items = list(copy.copy(value))
    if source is None:
        return UnknownVariable(value, source)
    _guard(tx, source, "TUPLE_ITERATOR_LEN", (len(items), type(value)))
    parts = [
        LazyVariableTracker(tx, item, TupleIteratorGetItemSource(source, i))
        for i, item in enumerate(items)
    ]
    return ExistingIteratorVariable(parts, source)


def _range_iterator(tx: Frame, value: Iterator, source: Source | None) -> VariableTracker:
    if source is None or operator.length_hint(value) > _LONGEST:
        return UnknownVariable(value, source)
    _guard(tx, source, "RANGE_ITERATOR", copy.copy(value))
    items = [ConstantVariable(item) for item in copy.copy(value)]
    return ExistingIteratorVariable(items, source, type(value))


def _entries(tx: Frame, value: dict, source: Source | None) -> dict:
    entries = {}
    keys = keys_in_order(value)
    moved = any(a is not b for a, b in zip(keys, dict.keys(value), strict=True))
    for place, key in enumerate(keys):
        item = dict.__getitem__(value, key)
        constant = is_constant_type(type(key)) or isinstance(key, tuple | frozenset)
        if moved and source is not None and not constant:
            unimplemented("ordered dictionary", f"{key!r}", "keys that are objects were moved")
        if source is None or constant:
            hashed = wrap(tx, key)
            part = _item_source(value, source, key) if source is not None else None
        else:
            hashed = wrap(tx, key, DictKeySource(source, place))
            part = _item_source(value, source, DictKeySource(source, place))
        vt = (
            wrap(tx, item)
            if part is None
            else (
                wrap(tx, item, part)
                if id(item) in tx.out.known and type(item) not in LITERALS
                else LazyVariableTracker(tx, item, part)
            )
        )
        entries[hashed.hash_key(tx)] = (hashed, vt)
    return entries


def _dict(tx: Frame, value: dict, source: Source | None) -> VariableTracker:
    if "__builtins__" in value:
        # The names of a module, which the trace reads and writes by other ways.
        return UnknownVariable(value, source)
    if id(value) in tx.out.own_dicts:
        tx.out.refuse_own_dict(value)
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, source, "DICT_KEYS", value)
    made = ConstDictVariable({}, source, type(value))
    if source is not None:
        tx.out.known[id(value)] = made
        tx.out.keep.append(value)
    made.items.update(_entries(tx, value, source))
    return made


def _defaultdict(tx: Frame, value: dict, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, source, "DICT_KEYS", value)
    factory = wrap(
        tx,
        value.default_factory,
        AttrSource(source, "default_factory") if source is not None else None,
    )
    return DefaultDictVariable(_entries(tx, value, source), factory, source)


def _mapping_proxy(
    tx: Frame, value: types.MappingProxyType, source: Source | None
) -> VariableTracker:
    if source is not None:
        return UnknownVariable(value, source)
    return ConstDictVariable(_entries(tx, dict(value), None), None, types.MappingProxyType)


def _has_constant_members(value: set | frozenset) -> bool:
    return all(is_constant_type(type(i)) or isinstance(i, _MEMBERS) for i in walk_set(value))


def _set(tx: Frame, value: set, source: Source | None) -> VariableTracker:
    if source is not None:
        if not _has_constant_members(value):
            return UnknownVariable(value, source)
        # Equal sets may have other members: 1, True and 1.0.
        plain = all(isinstance(i, str | type | types.FunctionType) for i in value)
        kind = "EQUALS_MATCH" if plain else "SET_MEMBERS"
        tx.out.guard(source, "TYPE_MATCH", type(value))
        tx.out.guard(source, kind, type(value)(value))
    order = value.copy()
    if list(order) != list(value):
        # Made anew, a set that once was larger is walked in another order.
        return UnknownVariable(value, source)
    items = {}
    for item in value:
        vt = wrap(tx, item)
        items[vt.hash_key(tx)] = vt
    return SetVariable(items, source, type(value), order)


def _range(tx: Frame, value: range, source: Source | None) -> VariableTracker:
    _guard(tx, source, "EQUALS_MATCH", value)
    return RangeVariable(value, source)


def _slice(tx: Frame, value: slice, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", slice)
    items = [
        wrap(tx, getattr(value, n), AttrSource(source, n) if source is not None else None)
        for n in ("start", "stop", "step")
    ]
    return SliceVariable(items, source)


# ---- functions, classes, modules


def _function(tx: Frame, value: types.FunctionType, source: Source | None) -> VariableTracker:
    if source is not None:
        tx.out.guard(source, "FUNCTION_MATCH", value)
    return UserFunctionVariable(value, source)


def _method(tx: Frame, value: types.MethodType, source: Source | None) -> VariableTracker:
    if not isinstance(value.__func__, types.FunctionType) and is_numpy(value):
        _guard(tx, source, "TYPE_MATCH", types.MethodType)
        return BuiltinVariable(value, source)
    obj = wrap(tx, value.__self__, AttrSource(source, "__self__") if source else None)
    func = wrap(tx, value.__func__, AttrSource(source, "__func__") if source else None)
    _guard(tx, source, "TYPE_MATCH", types.MethodType)
    return UserMethodVariable(func, obj, source)


def _builtin(tx: Frame, value: object, source: Source | None) -> VariableTracker:
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        from torch._dynamo.variables.misc import GetAttrVariable

        inner = AttrSource(source, "__self__") if source else None
        return GetAttrVariable(wrap(tx, owner, inner), value.__name__, source)
    if owner is not None and not isinstance(owner, types.ModuleType | type):
        from torch._dynamo.variables.misc import GetAttrVariable

        obj = wrap(tx, owner, AttrSource(source, "__self__") if source else None)
        return GetAttrVariable(obj, value.__name__, source)
    if source is not None:
        tx.out.guard(source, "ID_MATCH", value)
    return BuiltinVariable(value, source)


def _class(tx: Frame, value: type, source: Source | None) -> VariableTracker:
    if source is not None:
        tx.out.guard(source, "ID_MATCH", value)
        tx.out.class_sources.setdefault(value, source)
    return UserDefinedClassVariable(value, source)


def _module(tx: Frame, value: types.ModuleType, source: Source | None) -> VariableTracker:
    if source is not None:
        tx.out.guard(source, "ID_MATCH", value)
        library = trace_rules.is_library_file(getattr(value, "__file__", None) or "")
        if library and value is not os:  # whose environment changes
            source = None
    return PythonModuleVariable(value, source)


def _partial(tx: Frame, value: functools.partial, source: Source | None) -> VariableTracker:
    _guard(tx, source, "TYPE_MATCH", type(value))

    def part(name: str, item: object, key: object = None) -> VariableTracker:
        if source is None:
            return wrap(tx, item)
        inner = AttrSource(source, name)
        return wrap(tx, item, inner if key is None else GetItemSource(inner, key))

    tx.out.note_own_dict(value.keywords)
    if source is not None:
        tx.out.guard(AttrSource(source, "args"), "SEQUENCE_LENGTH", len(value.args))
        tx.out.guard(AttrSource(source, "keywords"), "DICT_KEYS", value.keywords)
    args = [part("args", item, i) for i, item in enumerate(value.args)]
    keywords = {k: part("keywords", item, k) for k, item in value.keywords.items()}
    return FunctoolsPartialVariable(part("func", value.func), args, keywords, source, value)


def _weak_reference(
    tx: Frame, value: weakref.ReferenceType, source: Source | None
) -> VariableTracker:
    referent = value()
    if source is None:
        return WeakRefVariable(wrap(tx, referent), source)
    _guard(tx, source, "TYPE_MATCH", type(value))
    return WeakRefVariable(LazyVariableTracker(tx, referent, WeakRefCallSource(source)), source)


def _constant(tx: Frame, value: object, source: Source | None) -> VariableTracker:
    _guard(tx, source, "EQUALS_MATCH", value)
    return ConstantVariable(value, source)


_EXACT.update(
    {
        list: _list,
        tuple: _tuple,
        dict: _dict,
        set: _set,
        frozenset: _set,
        torch.Size: _size,
        collections.deque: _deque,
        collections.OrderedDict: _dict,
        collections.defaultdict: _defaultdict,
        types.MappingProxyType: _mapping_proxy,
        type(iter(())): _tuple_iterator,
        type(iter(range(0))): _range_iterator,
        range: _range,
        slice: _slice,
        types.FunctionType: _function,
        types.MethodType: _method,
        types.ModuleType: _module,
        functools.partial: _partial,
        weakref.ReferenceType: _weak_reference,
        type: _class,
        torch.dtype: _constant,
        torch.device: _constant,
        torch.layout: _constant,
        torch.memory_format: _constant,
    }
)


# ---- everything else


def _by_base(tx: Frame, value: object, source: Source | None) -> VariableTracker:
    from torch._dynamo.variables import ctx_manager, numpy_arrays, random_numbers
    from torch._dynamo.variables.nn_module import UnspecializedNNModuleVariable

    cls = type(value)
    if isinstance(value, torch.Tensor):
        return wrap_tensor(tx, value, source)
    if isinstance(value, torch.nn.Module):
        return UnspecializedNNModuleVariable.of(tx, value, source)
    if isinstance(value, type):
        return _class(tx, value, source)
    if isinstance(value, _BUILTIN_FUNCTIONS):
        return _builtin(tx, value, source)
    if isinstance(value, enum.Enum):
        _guard(tx, source, "ID_MATCH", value)
        return EnumVariable(value, source)
    if is_constant_type(cls):
        return _constant(tx, value, source)
    if isinstance(value, _TYPING):
        return TypingVariable(value, source)
    if isinstance(value, types.ModuleType):
        return _module(tx, value, source)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        unimplemented("symbolic number", str(value), "a symbolic number from outside of the trace")
    if isinstance(
        value,
        torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator,
    ):
        return BuiltinVariable(value)
    if isinstance(value, torch._C._ScriptFunctionBase):
        _guard(tx, source, "ID_MATCH", value)
        return BuiltinVariable(value, source)
    if isinstance(value, functools._lru_cache_wrapper):
        if not isinstance(value.__wrapped__, types.FunctionType):
            return UnknownVariable(value, source)
        # Its function, with what that refers to, is this one's alone.
        _guard(tx, source, "ID_MATCH", value)
        return CachedFunctionVariable(value)
    if isinstance(value, BaseException):
        _guard(tx, source, "TYPE_MATCH", cls)
        where = AttrSource(source, "args") if source is not None else None
        _guard(tx, where, "SEQUENCE_LENGTH", len(value.args))
        args = [_item(tx, a, where, i) for i, a in enumerate(value.args)]
        return ExceptionVariable(cls, args, value, source)
    if isinstance(value, torch._ops._OpNamespace | torch._ops._Ops):
        return PythonModuleVariable(value)
    if isinstance(value, CompiledFunction):
        inner = AttrSource(source, "__wrapped__") if source is not None else None
        return wrap(tx, value.__wrapped__, inner)
    if isinstance(value, DisabledFunction):
        _guard(tx, source, "ID_MATCH", value)
        reason = getattr(value, "_torchdynamo_disable_msg", None)
        return SkipFunctionVariable(value, source, reason)
    if cls is random.Random:
        return random_numbers.wrap(tx, value, source)
    if cls.__module__.partition(".")[0] == "numpy":
        found = numpy_arrays.wrap(tx, value, source)
        if found is not None:
            return found
    manager = ctx_manager.existing(tx, value, source)
    if manager is not None:
        return manager
    if callable(value) and is_numpy(value):
        _guard(tx, source, "ID_MATCH", value)
        return BuiltinVariable(value, source)
    if isinstance(value, tuple):
        found = _tuple_subclass(tx, value, source)
        if found is not None:
            return found
    return _object(tx, value, source)


def remember(tx: Frame, value: object, made: VariableTracker) -> None:
    """Another look at the object finds the same tracker."""
    tx.out.known[id(value)] = made
    tx.out.keep.append(value)


def _tuple_subclass(tx: Frame, value: tuple, source: Source | None) -> VariableTracker | None:
    cls = type(value)
    if not (is_namedtuple(cls) or hasattr(cls, "n_fields")):
        return None
    _guard(tx, source, "TYPE_MATCH", cls)
    items = [_item(tx, item, source, i) for i, item in enumerate(value)]
    return NamedTupleVariable(items, cls, source)


def _object(tx: Frame, value: object, source: Source | None) -> VariableTracker:
    cls = type(value)
    if not cls.__flags__ & (1 << 9) and not hasattr(value, "__dict__"):
        _guard(tx, source, "TYPE_MATCH", cls)
        return UnknownVariable(value, source)
    if source is not None and cls is not object:
        tx.out.guard(source, "TYPE_MATCH", cls)
    own = instance_dict(value)
    if own is not None and own is not value:
        # An object and its dictionary as two values of the program would be traced apart.
        tx.out.note_own_dict(own)
    made = UserDefinedObjectVariable(cls, value, source)
    tx.out.known[id(value)] = made
    tx.out.keep.append(value)
    for base, _ in _CONTENTS:
        if isinstance(value, base):
            made.hold(tx, _contents(tx, value, base, source))
            break
    return made


def _contents(tx: Frame, value: object, base: type, source: Source | None) -> VariableTracker:
    if base is dict or base is collections.OrderedDict:
        _guard(tx, source, "DICT_KEYS", value)
        return ConstDictVariable(_entries(tx, value, source), None, base)
    if base is collections.defaultdict:
        _guard(tx, source, "DICT_KEYS", value)
        factory = AttrSource(source, "default_factory") if source is not None else None
        return DefaultDictVariable(
            _entries(tx, value, source), wrap(tx, value.default_factory, factory)
        )
    if base in (set, frozenset):
        if source is not None:
            if not _has_constant_members(value):
                unimplemented("set", repr(type(value)), "its members are objects")
            tx.out.guard(source, "SET_MEMBERS", base(base.__iter__(value)))
        members = SetVariable({i: wrap(tx, i) for i in base.__iter__(value)}, None, base)
        members.entry = dict(members.items)
        return members
    _guard(tx, source, "SEQUENCE_LENGTH", base.__len__(value))
    items = [_item(tx, item, source, i, value) for i, item in enumerate(base.__iter__(value))]
    if base is collections.deque:
        if source is not None:
            _guard(tx, AttrSource(source, "maxlen"), "CONSTANT_MATCH", value.maxlen)
        return DequeVariable(items, None, value.maxlen)
    return ListVariable(items) if base is list else TupleVariable(items)


# ---- tensors


def wrap_tensor(tx: Frame, value: torch.Tensor, source: Source | None) -> VariableTracker:
    """A tensor of the running program: an input of the graph."""
    out = tx.out
    if source is None:
        return _constant_tensor(tx, value)
    if (
        type(value) not in (torch.Tensor, torch.nn.Parameter)
        and not _plain_subclass(value)
        and getattr(value, "fake_mode", None) is not out.fake_mode
    ):
        if plain_in_graph(type(value)) and not has_dispatch(type(value)):
            return _plain_input(tx, value, source)
        if value.is_nested or not is_traceable_wrapper_subclass(value):
            unimplemented(
                "tensor subclass", f"{type(value)}", f"tensors of the class {type(value).__name__}"
            )
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        unimplemented("layout of a tensor", f"{value.layout}", "only dense tensors are traced")
    context = out.options.symbolic_context(value, source)
    try:
        if getattr(value, "fake_mode", None) is out.fake_mode:
            fake = value
        elif context is None:
            fake = out.fake_mode.from_tensor(value, static_shapes=True, source=source)
        else:
            fake = out.fake_mode.from_tensor(value, source=source, symbolic_context=context)
    except NotImplementedError as error:
        if out.transforms:
            name = f"torch.func.{out.transforms[-1][0].lower()}"
            unimplemented(
                f"Calling {name}(compiled_fn) function from eager mode is not supported",
                f"{type(value)} under {out.transforms}",
                "The tensors of a transform have no memory of their own to trace from.",
                (f"Compile the function that calls {name} instead.",),
            )
        unimplemented("fake tensor", f"{type(value)}", str(error))
    sizes = tuple(fake.shape)
    if any(isinstance(s, torch.SymInt) for s in sizes):
        bind_symbols(tx, fake, source, value)
        out.shape_sources.append((fake, source, context))
    known = [None if isinstance(s, torch.SymInt) else int(s) for s in sizes]
    steps = [None if isinstance(s, torch.SymInt) else int(s) for s in fake.stride()]
    out.guard(source, "TENSOR_MATCH", (value, known, steps))
    node = out.add_input(source, value, fake)
    node.meta["tensor_dict"] = dict(value.__dict__)
    out.tensor_sources.append(source)
    made = TensorVariable(node, fake, source, value)
    out.known[id(value)] = made
    out.keep.append(value)
    return made


def has_dispatch(cls: type) -> bool:
    """Whether a class defines __torch_dispatch__."""
    return cls.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl


def _plain_input(tx: Frame, value: torch.Tensor, source: Source) -> VariableTracker:
    """A tensor of a class that takes over calls: the graph gets the plain tensor."""
    out = tx.out
    plain = polyfills.as_subclass(value, torch.Tensor)
    with torch._C.DisableTorchFunctionSubclass():
        known, steps = [int(s) for s in plain.shape], list(plain.stride())
        fake = out.fake_mode.from_tensor(plain, static_shapes=True, source=source)
        out.guard(source, "TENSOR_MATCH", (value, known, steps))
    node = out.add_input(source, plain, fake)
    node.meta["made_plain"] = True
    out.tensor_sources.append(source)
    out.overridable = True
    made = TensorVariable(node, fake, source, value)
    out.known[id(value)] = made
    out.keep.append(value)
    return made


def _plain_subclass(value: torch.Tensor) -> bool:
    """Whether a subclass adds nothing that the trace would miss."""
    cls = type(value)
    return (
        cls.__torch_function__ is torch._C._disabled_torch_function_impl
        and not hasattr(cls, "__torch_dispatch__")
    ) or cls.__name__ in ("Buffer",)


def _constant_tensor(tx: Frame, value: torch.Tensor) -> VariableTracker:
    return wrap_tensor(tx, value, tx.out.alias(f"_tensor_constant_{id(value)}", value))


def bind_symbols(tx: Frame, fake: torch.Tensor, source: Source, value: torch.Tensor) -> None:
    """Gives each new symbol among the sizes and strides an input of the graph."""
    parts = [(TensorProperty.SIZE, i, s, value.size(i)) for i, s in enumerate(fake.size())] + [
        (TensorProperty.STRIDE, i, s, value.stride(i)) for i, s in enumerate(fake.stride())
    ]
    for prop, i, size, number in parts:
        name = str(size)
        if isinstance(size, torch.SymInt) and name.isidentifier():
            if name not in tx.out.symbol_nodes:
                node = tx.out.add_symbol(name, TensorPropertySource(source, prop, i), number, size)
                tx.out.symbol_nodes[name] = node


def size_of(tx: Frame, tensor: TensorVariable, dim: int) -> VariableTracker:
    """One size of a tensor."""
    size = tensor.fake.size(dim)
    if not isinstance(size, torch.SymInt):
        return ConstantVariable(size)
    node = tx.out.symbol_nodes.get(str(size))
    if node is None:
        node = tx.out.graph.create_node(
            "call_function", torch.ops.aten.sym_size.int, (tensor.node, dim), {}
        )
        node.meta["example_value"] = size
    return SymNodeVariable.create(node, size)


def dynamic_context(
    dims: list[DimDynamic],
    promised: set[int],
    ranges: dict[int, tuple[int | None, int | None]],
) -> StatelessSymbolicContext:
    """The context of a tensor whose sizes may be symbols; those promised must not be fixed, and
    every value within its range must be permitted."""
    promises: list[object] = [
        RelaxedUnspecConstraint(warn_only=False) if i in promised else None
        for i in range(len(dims))
    ]
    if ranges:
        from torch.utils._sympy.numbers import int_oo
        from torch.utils._sympy.value_ranges import ValueRanges
    for i, (least, most) in ranges.items():
        allowed = ValueRanges(2 if least is None else least, int_oo if most is None else most)
        promises[i] = StrictMinMaxConstraint(vr=allowed, warn_only=False)
    return StatelessSymbolicContext(dynamic_sizes=dims, constraint_sizes=promises)
