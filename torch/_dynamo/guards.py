"""Guard records of a trace as a guard tree: a manager for each source, and on it the conditions."""

from __future__ import annotations

import enum
import functools
import math
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch._C._dynamo import guards as _guards
from torch._dynamo.shape_guards import ShapeCompiler
from torch._dynamo.source import (
    AttrSource,
    ClassDictSource,
    ClosureSource,
    ContainedItemSource,
    DictKeySource,
    GetItemSource,
    GlobalSource,
    LocalSource,
    TensorProperty,
    TensorPropertySource,
    TorchFunctionModeStackSource,
    TupleIteratorGetItemSource,
    TypeSource,
    WeakRefCallSource,
)
from torch._dynamo.variables.constant import is_constant_type
from torch._dynamo.variables.dicts import keys_in_order
from torch._dynamo.variables.sets import walk_set
from torch._functorch import pyfunctorch

if TYPE_CHECKING:
    from torch._dynamo.output_graph import OutputGraph
    from torch._guards import Source

GuardManager = _guards.GuardManager
RootGuardManager = _guards.RootGuardManager
# Called with each new tree by tests that look at it.
guard_manager_testing_hook_fn: Callable | None = None


class GuardRecord(NamedTuple):
    """A condition on the running program: `kind` names the check, `value` what it compares."""

    source: Source | None
    kind: str
    value: object


class GuardManagerWrapper:
    """A tree as text, with the smaller tree that is checked first where there is one."""

    def __init__(self, root: RootGuardManager | None = None) -> None:
        self.root = root if root is not None else RootGuardManager()
        self.diff_guard_root: RootGuardManager | None = None

    def __str__(self) -> str:
        lines = ["TREE_GUARD_MANAGER:"]
        self._write(self.root, 0, lines)
        return "\n".join(lines)

    def _write(self, manager: GuardManager, depth: int, lines: list[str]) -> None:
        lines.append(f"{'| ' * depth}+- {type(manager).__name__}: source={manager.get_source()}")
        for leaf in manager.get_leaf_guards():
            texts = ", ".join(leaf.verbose_code_parts())
            lines.append(f"{'| ' * (depth + 1)}+- {type(leaf).__name__}: {texts}")
        for child in manager.get_child_managers():
            self._write(child, depth + 1, lines)


class GuardManagerType(enum.Enum):
    """Which kind of manager a part of a value gets."""

    GUARD_MANAGER = 1
    DICT_GUARD_MANAGER = 2
    DICT_SUBCLASS_GUARD_MANAGER = 3


class GuardBuilder:
    """Builds the tree of one compiled function."""

    def __init__(self, code: types.CodeType, fn_globals: dict[str, object]) -> None:
        self.root = RootGuardManager()
        self.globals = fn_globals
        self._managers: dict[Source, GuardManager] = {}
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self._places = {n: i for i, n in enumerate(code.co_varnames[:count])}
        self._cells = {n: count + i for i, n in enumerate(code.co_freevars)}
        self.texts: list[str] = []

    def manager(self, source: Source) -> GuardManager:
        """The manager of a source."""
        found = self._managers.get(source)
        if found is None:
            found = self._managers[source] = self._make(source)
        return found

    def _make(self, source: Source) -> GuardManager:
        name = source.name()
        if isinstance(source, LocalSource):
            place = self._places[source.local_name]
            return self.root.frame_local_manager((source.local_name, place), name)
        if isinstance(source, ClosureSource):
            place = self._cells[source.cell_name]
            return self.root.frame_local_manager((source.cell_name, place), name)
        if isinstance(source, GlobalSource):
            names = self.root.globals_dict_manager(self.globals, "G")
            return names.dict_getitem_manager(source.global_name, name)
        if isinstance(source, TorchFunctionModeStackSource):
            names = self.root.globals_dict_manager(self.globals, "G")
            place = source.ind
            return names.lambda_manager(lambda _: torch._C._get_function_stack_at(place), name)
        base = self.manager(source.base)
        if isinstance(source, AttrSource):
            return self._attribute(base, source.member, name)
        if isinstance(source, TupleIteratorGetItemSource):
            return base.tuple_iterator_getitem_manager(source.index, name)
        if isinstance(source, GetItemSource):
            if isinstance(source.index, DictKeySource):
                place = source.index.index
                return base.lambda_manager(lambda d: list(dict.values(d))[place], name)
            if isinstance(source, ContainedItemSource):
                read = functools.partial(_contained, source.cls.__getitem__, source.index)
                return base.lambda_manager(read, name)
            return base.getitem_manager(source.index, name)
        if isinstance(source, WeakRefCallSource):
            return base.weakref_call_manager(name)
        if isinstance(source, TypeSource):
            return base.type_manager(name)
        if isinstance(source, ClassDictSource):
            owner = base.type_mro_manager().tuple_getitem_manager(source.place)
            return owner.type_dict_manager(source.member, name)
        if isinstance(source, DictKeySource):
            return base.dict_key_manager(source.index, name)
        if isinstance(source, TensorPropertySource):
            if source.prop is TensorProperty.SIZE:
                return base.tensor_size_manager(source.idx, name)
            if source.prop is TensorProperty.STRIDE:
                return base.tensor_stride_manager(source.idx, name)
            return base.tensor_storage_offset_manager(name)
        raise AssertionError(f"no guard manager for {source!r}")

    def _attribute(self, base: GuardManager, member: str, name: str) -> GuardManager:
        special = _SPECIAL_ATTRIBUTES.get(member)
        if special is not None:
            return getattr(base, special)(name)
        for part in member.split("."):
            base = base.getattr_manager(part, name)
        return base

    def add(self, record: GuardRecord) -> None:
        """Adds the condition of a record."""
        name = record.source.name()
        text = _RULES[record.kind](self, self.manager(record.source), record.value, name)
        self.texts.append(text)


def _contained(read: Callable, index: object, container: object) -> object:
    return read(container, index)


_SPECIAL_ATTRIBUTES = {
    "__defaults__": "func_defaults_manager",
    "__kwdefaults__": "func_kwdefaults_manager",
    "__closure__": "func_closure_manager",
    "__code__": "func_code_manager",
    "cell_contents": "cell_contents_manager",
    "grad": "grad_manager",
    "__dict__": "get_generic_dict_manager",
}


def _constant(b: GuardBuilder, m: GuardManager, value: object, name: str) -> str:
    if value is None:
        m.add_none_match_guard([f"{name} is None"])
        return f"{name} is None"
    if value is True:
        m.add_true_match_guard([f"{name} == True"])
        return f"{name} == True"
    if value is False:
        m.add_false_match_guard([f"{name} == False"])
        return f"{name} == False"
    if isinstance(value, float) and math.isnan(value):
        m.add_float_is_nan_guard([f"math.isnan({name})"])
        return f"math.isnan({name})"
    m.add_equals_match_guard(value, [f"{name} == {value!r}"])
    return f"{name} == {value!r}"


def _type(b: GuardBuilder, m: GuardManager, value: type, name: str) -> str:
    text = f"___check_type_id({name}, {id(value)})"
    m.add_type_match_guard(id(value), [text])
    return text


def _identity(b: GuardBuilder, m: GuardManager, value: object, name: str) -> str:
    text = f"___check_obj_id({name}, {id(value)})"
    try:
        weakref.ref(value)
    except TypeError:
        m.add_id_match_guard(id(value), [text])
    else:
        m.add_object_match_guard(value, [text])
    return text


def _function(b: GuardBuilder, m: GuardManager, value: types.FunctionType, name: str) -> str:
    code = value.__code__
    if not name.startswith("L["):
        _identity(b, m, value, name)
        return _code(b, m, code, name)
    # A function made anew for each call is the same as long as its code is; its cells and default
    # values have guards of their own.
    _type(b, m, types.FunctionType, name)
    _code(b, m, code, name)
    count = len(value.__defaults__ or ())
    if count:
        m.func_defaults_manager(f"{name}.__defaults__").add_length_check_guard(
            count, [f"len({name}.__defaults__) == {count}"]
        )
    else:
        m.func_defaults_manager(f"{name}.__defaults__").add_none_match_guard(
            [f"{name}.__defaults__ is None"]
        )
    return f"___check_obj_id({name}.__code__, {id(code)})"


def _code(b: GuardBuilder, m: GuardManager, code: types.CodeType, name: str) -> str:
    text = f"___check_obj_id({name}.__code__, {id(code)})"
    m.func_code_manager(f"{name}.__code__").add_object_match_guard(code, [text])
    return text


def _length(b: GuardBuilder, m: GuardManager, value: int, name: str) -> str:
    text = f"len({name}) == {value}"
    m.add_length_check_guard(value, [text])
    return text


def _keys(b: GuardBuilder, m: GuardManager, value: dict, name: str) -> str:
    keys = keys_in_order(value) if isinstance(value, dict) else list(value)
    if all(_plain_key(k) for k in keys):
        text = f"list(dict.keys({name})) == {keys!r}"
        m.add_dict_keys_guard(keys, [text])
    else:
        text = f"len({name}) == {len(keys)}"
        m.add_dict_length_check_guard(len(keys), [text])
        for place, key in enumerate(keys):
            if _plain_key(key):
                m.dict_key_manager(place).add_equals_match_guard(key, [f"{name} key {key!r}"])
    return text


def _plain_key(key: object) -> bool:
    if isinstance(key, tuple):
        return all(_plain_key(item) for item in key)
    return is_constant_type(type(key)) or isinstance(key, type)


def _tensor(b: GuardBuilder, m: GuardManager, value: tuple, name: str) -> str:
    tensor, sizes, strides = value
    text = f"check_tensor({name})"
    m.add_tensor_match_guard(tensor, sizes, strides, name, [text])
    return text


def _absent(b: GuardBuilder, m: GuardManager, value: str, name: str) -> str:
    text = f"not ___dict_contains({value!r}, {name}.__dict__)"
    m.get_generic_dict_manager(f"{name}.__dict__").add_dict_contains_guard(False, value, [text])
    return text


def _present(b: GuardBuilder, m: GuardManager, value: str, name: str) -> str:
    text = f"___dict_contains({value!r}, {name}.__dict__)"
    m.get_generic_dict_manager(f"{name}.__dict__").add_dict_contains_guard(True, value, [text])
    return text


def _without(b: GuardBuilder, m: GuardManager, value: str, name: str) -> str:
    text = f"not hasattr({name}, {value!r})"
    m.add_no_hasattr_guard(value, [text])
    return text


def _alias(b: GuardBuilder, m: GuardManager, value: Source, name: str) -> str:
    text = f"{name} is {value.name()}"
    _guards.install_object_aliasing_guard(m, b.manager(value), [text])
    return text


def _left(b: GuardBuilder, m: GuardManager, value: tuple[int, type], name: str) -> str:
    count, kind = value
    text = f"___tuple_iterator_len({name}) == {count}"
    m.add_tuple_iterator_length_guard(count, id(kind), [text])
    return text


def _range_left(b: GuardBuilder, m: GuardManager, value: Iterator, name: str) -> str:
    text = f"{name} is at the same place of the same range"
    m.add_range_iterator_match_guard(value, [text])
    return text


def _not_nan(b: GuardBuilder, m: GuardManager, value: None, name: str) -> str:
    text = f"not math.isnan({name})"
    m.add_lambda_guard(_is_number, [text])
    return text


def _is_number(value: float) -> bool:
    return value == value


def _order(b: GuardBuilder, m: GuardManager, value: list, name: str) -> str:
    text = f"list({name}) == {value!r}"
    m.add_lambda_guard(functools.partial(_is_walked_as, value), [text])
    return text


def _is_walked_as(order: list, value: set) -> bool:
    return list(value) == order


def _members(b: GuardBuilder, m: GuardManager, value: set, name: str) -> str:
    text = f"set({name}) == {set(walk_set(value))!r}"
    m.add_lambda_guard(functools.partial(_has_members, _typed_members(value)), [text])
    return text


def _has_members(wanted: frozenset, value: set) -> bool:
    return _typed_members(value) == wanted


def _typed_members(value: set) -> frozenset:
    return frozenset(map(_typed, walk_set(value)))


def _typed(value: object) -> tuple:
    """A constant that is equal to those of its own type alone: 1, True and 1.0 are three."""
    if isinstance(value, tuple):
        return type(value), tuple(map(_typed, value))
    return type(value), repr(value) if type(value) is float else value


def _equals(b: GuardBuilder, m: GuardManager, value: object, name: str) -> str:
    m.add_equals_match_guard(value, [f"{name} == {value!r}"])
    return f"{name} == {value!r}"


_RULES: dict[str, Callable[[GuardBuilder, GuardManager, object, str], str]] = {
    "CONSTANT_MATCH": _constant,
    "EQUALS_MATCH": _equals,
    "TYPE_MATCH": _type,
    "ID_MATCH": _identity,
    "FUNCTION_MATCH": _function,
    "SEQUENCE_LENGTH": _length,
    "DICT_KEYS": _keys,
    "TENSOR_MATCH": _tensor,
    "NOT_PRESENT_IN_GENERIC_DICT": _absent,
    "PRESENT_IN_GENERIC_DICT": _present,
    "NO_ATTRIBUTE": _without,
    "OBJECT_ALIASING": _alias,
    "TUPLE_ITERATOR_LEN": _left,
    "NOT_NAN": _not_nan,
    "RANGE_ITERATOR": _range_left,
    "SET_ORDER": _order,
    "SET_MEMBERS": _members,
}


def build(
    code: types.CodeType, fn_globals: dict[str, object], out: OutputGraph
) -> tuple[RootGuardManager, list[str]]:
    """The guard tree of a trace, and its conditions in words."""
    builder = tree_of(
        code, fn_globals, out.guards.values(), out.tensor_sources, out.distinct, out.apart
    )
    if out.shared_memory is not None:
        out.shared_memory.install(builder)
    _add_classes(builder, out)
    for name in sorted(out.builtins_read):
        names = builder.root.globals_dict_manager(fn_globals, "G")
        names.add_dict_contains_guard(False, name, [f"{name!r} not in G"])
    _add_shapes(builder, out)
    if out.uses_transforms():
        state = out.transforms
        text = f"torch._functorch.pyfunctorch.compare_functorch_state({state})"
        check = functools.partial(_same_transforms, state)
        builder.root.add_epilogue_lambda_guard(check, [text])
        builder.texts.append(text)
    if guard_manager_testing_hook_fn is not None:
        guard_manager_testing_hook_fn(GuardManagerWrapper(builder.root), out.values, builder)
    return builder.root, builder.texts


def tree_of(
    code: types.CodeType,
    fn_globals: dict[str, object],
    records: Iterable[GuardRecord],
    tensors: Sequence[Source],
    distinct: Sequence[Sequence[Source]],
    apart: Sequence[Sequence[Source]],
) -> GuardBuilder:
    """The tree of conditions, of tensors that are different ones, of groups of objects of which
    no two are the same, and of groups of tensors of which no two have an element in common."""
    builder = GuardBuilder(code, fn_globals)
    builder.root.add_global_state_guard(["___check_global_state()"])
    for record in records:
        builder.add(record)
    if len(tensors) > 1:
        names = [source.name() for source in tensors]
        _guards.install_no_tensor_aliasing_guard(
            [builder.manager(source) for source in tensors],
            names,
            [f"check_no_aliasing({', '.join(names)})"],
        )
    for sources in distinct:
        names = [source.name() for source in sources]
        text = f"no two of ({', '.join(names)}) are one object"
        managers = [builder.manager(source) for source in sources]
        _guards.install_no_object_aliasing_guard(managers, names, [text])
        builder.texts.append(text)
    for sources in apart:
        names = [source.name() for source in sources]
        text = f"no two of ({', '.join(names)}) share memory"
        managers = [builder.manager(source) for source in sources]
        _guards.install_no_overlap_guard(managers, names, [text])
        builder.texts.append(text)
    return builder


def _add_classes(builder: GuardBuilder, out: OutputGraph) -> None:
    """What the trace found in classes of the program, as one condition."""
    from torch._dynamo.variables import user_defined

    rows = user_defined.rows_of_reads(out.class_reads)
    if rows:
        text = f"unchanged classes: {', '.join(cls.__qualname__ for cls, *_ in rows)}"
        builder.root.add_class_reads_guard(rows, user_defined._MISSING, user_defined.OWNED, [text])


def _same_transforms(state: list[tuple], frame: object) -> bool:
    return pyfunctorch.compare_functorch_state(state)


def _add_shapes(builder: GuardBuilder, out: OutputGraph) -> None:
    """Relations between sizes, as one condition on the frame."""
    if not out.shape_sources:
        return
    values, sources, contexts = (list(column) for column in zip(*out.shape_sources, strict=True))
    texts = out.shape_env.produce_guards(
        values, sources, input_contexts=contexts, ignore_static=True
    )
    if not texts:
        return
    whole = [
        source
        for value, source in zip(values, sources, strict=True)
        if isinstance(value, (torch.Tensor, torch.SymInt, int))
    ]
    out.shape_texts = (texts, whole)
    rest = add_shape_texts(builder, texts, whole)
    if rest:
        joined = " and ".join(f"({text})" for text in rest)
        scope = {"G": builder.globals, "torch": torch, "math": math}
        check = eval(f"lambda L: {joined}", scope)
        builder.root.add_epilogue_lambda_guard(check, rest)


def add_shape_texts(
    builder: GuardBuilder, texts: Sequence[str], whole: Sequence[Source]
) -> list[str]:
    """Adds conditions on sizes as one program; returns those that no program can state."""
    builder.texts.extend(texts)
    compiler = ShapeCompiler(list(whole))
    stated = [text for text in texts if compiler.add(text)]
    if stated:
        compiler.install(builder.root, builder.manager, stated)
    return [text for text in texts if text not in stated]
