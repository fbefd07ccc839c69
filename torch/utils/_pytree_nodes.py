"""The containers that pytrees know: how each is taken apart and put together, and the paths
into it."""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import torch

SUPPORTED_NODES = {}
SUPPORTED_SERIALIZED_TYPES = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}
CONSTANT_NODES = set()
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step of a path into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step of a path into a mapping."""

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step of a path to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        """The attribute."""
        return getattr(obj, self.name)


@dataclasses.dataclass(frozen=True)
class NodeDef:
    """How a container is taken apart and put together."""

    type: object
    flatten_fn: object
    unflatten_fn: object
    flatten_with_keys_fn: object = None


@dataclasses.dataclass(frozen=True)
class _SerializeNodeDef:
    typ: object
    serialized_type_name: str
    to_dumpable_context: object = None
    from_dumpable_context: object = None


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Makes `cls` a container.

    flatten_fn(value) -> (children, context); unflatten_fn(children, context) -> value;
    flatten_with_keys_fn(value) -> ([(key, child)], context). The context must be comparable;
    to_dumpable_context and from_dumpable_context turn it into something that JSON can hold and
    back."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _register(
    cls, flatten, unflatten, with_keys, name=None, to_dumpable=None, from_dumpable=None
) -> None:
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, with_keys)
    name = name or f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable, from_dumpable)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    to_str_fn=None,
    maybe_from_str_fn=None,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """The old name of register_pytree_node; the two functions for text have no effect."""
    warnings.warn(
        "torch.utils._pytree._register_pytree_node is deprecated. Please use "
        "torch.utils._pytree.register_pytree_node instead.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.",
            stacklevel=2,
        )
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


# The classes made by namedtuple that specs as text may name, and their names.
_NAMEDTUPLES = {}
_NAMEDTUPLE_NAMES = {}


def _register_namedtuple(cls, *, serialized_type_name) -> None:
    """Gives a class made by namedtuple the name that specs as text know it by."""
    if not is_namedtuple_class(cls):
        raise TypeError(f"{cls} is not a class made by namedtuple")
    known = _NAMEDTUPLES.get(serialized_type_name, cls)
    if known is not cls:
        raise ValueError(f"{serialized_type_name} is the name of {known} already")
    _NAMEDTUPLES[serialized_type_name] = cls
    _NAMEDTUPLE_NAMES[cls] = serialized_type_name


def _name_of_namedtuple(cls):
    if cls not in _NAMEDTUPLE_NAMES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls}: it has no name for that. Please "
            "register using `_register_namedtuple`."
        )
    return _NAMEDTUPLE_NAMES[cls]


def _namedtuple_of_name(name):
    if name not in _NAMEDTUPLES:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name!r}, which is not registered. "
            "Please register using `_register_namedtuple`."
        )
    return _NAMEDTUPLES[name]


def _deregister_pytree_node(cls) -> None:
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls, *, field_names=None, drop_field_names=None, serialized_type_name=None
) -> None:
    """Makes a dataclass a container of its fields."""
    drop = set(drop_field_names or ())
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError("field_names must be specified with a list of all fields of the class")
        field_names = [f.name for f in dataclasses.fields(cls) if f.init]
    names = [name for name in field_names if name not in drop]

    def flatten(obj):
        present = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [getattr(obj, name) for name in present], [present, absent]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj):
        values, context = flatten(obj)
        return [
            (GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)
        ], context

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


class ConstantNode:
    """The context of a constant: a container without children that compares by its value."""

    def __init__(self, value) -> None:
        self.value = value

    def __eq__(self, other):
        return isinstance(other, ConstantNode) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def register_constant(cls) -> None:
    """Makes `cls` a container without children, so that its values belong to the structure of a
    tree.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default __eq__: {cls}")
    if cls.__hash__ is None:
        raise TypeError(f"register_constant(cls) expects `cls` to have a __hash__: {cls}")
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda children, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls) -> bool:
    """Whether register_constant knows cls."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---- the containers of the standard library
# -------------------------------------------------------------------


def is_namedtuple_class(cls) -> bool:
    """Whether cls was made by namedtuple."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(fields, tuple)
        and all(isinstance(name, str) for name in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj) -> bool:
    """Whether obj is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether obj is a named tuple or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls) -> bool:
    """Whether cls is a struct sequence, as the results of torch.max and the like are."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(
            isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields")
        )
    )


def is_structseq_instance(obj):
    """Whether obj is a struct sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj):
    """Whether obj is a struct sequence or the class of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _indexed(flatten):
    def with_keys(value):
        children, context = flatten(value)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return with_keys


def _keyed(flatten):
    def with_keys(value):
        children, context = flatten(value)
        keys = context[1] if isinstance(value, defaultdict) else context
        return [
            (MappingKey(key), child) for key, child in zip(keys, children, strict=True)
        ], context

    return with_keys


def _flatten_sequence(value) -> tuple[list[object], None]:
    return list(value), None


def _flatten_dict(value) -> tuple[list[int], list[str]]:
    return list(value.values()), list(value.keys())


def _tuple_unflatten(values, context):
    return tuple(values)


# Containers made elsewhere that behave like these name them when they register themselves.
_tuple_flatten = _flatten_sequence
_list_flatten_with_keys = _indexed(_flatten_sequence)
_tuple_flatten_with_keys = _indexed(_flatten_sequence)
_dict_flatten_with_keys = _keyed(_flatten_dict)


def _flatten_namedtuple(value):
    return list(value), type(value)


def _flatten_namedtuple_with_keys(value):
    return [(GetAttrKey(name), getattr(value, name)) for name in value._fields], type(value)


def _flatten_defaultdict(value):
    return list(value.values()), [value.default_factory, list(value.keys())]


def _flatten_deque(value) -> tuple[list[int], int]:
    return list(value), value.maxlen


_register(
    tuple, _flatten_sequence, lambda v, c: tuple(v), _indexed(_flatten_sequence), "builtins.tuple"
)
_register(
    list, _flatten_sequence, lambda v, c: list(v), _indexed(_flatten_sequence), "builtins.list"
)
_register(
    dict,
    _flatten_dict,
    lambda v, c: dict(zip(c, v, strict=True)),
    _keyed(_flatten_dict),
    "builtins.dict",
)
_register(
    namedtuple,
    _flatten_namedtuple,
    lambda v, c: c(*v),
    _flatten_namedtuple_with_keys,
    "collections.namedtuple",
    lambda c: _name_of_namedtuple(c),
    lambda name: _namedtuple_of_name(name),
)
_register(
    OrderedDict,
    _flatten_dict,
    lambda v, c: OrderedDict(zip(c, v, strict=True)),
    _keyed(_flatten_dict),
    "collections.OrderedDict",
)
_register(
    defaultdict,
    _flatten_defaultdict,
    lambda v, c: defaultdict(c[0], zip(c[1], v, strict=True)),
    _keyed(_flatten_defaultdict),
    "collections.defaultdict",
    lambda c: [f"{c[0].__module__}.{c[0].__qualname__}" if c[0] else None, c[1]],
    lambda c: [_class_by_name(c[0]) if c[0] else None, c[1]],
)
_register(
    deque,
    _flatten_deque,
    lambda v, c: deque(v, maxlen=c),
    _indexed(_flatten_deque),
    "collections.deque",
)


_register(
    torch.Size,
    _flatten_sequence,
    lambda v, c: tuple(v),
    _indexed(_flatten_sequence),
    "torch.Size",
)


def _class_by_name(name):
    from importlib import import_module

    module, _, qualname = name.rpartition(".")
    found = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _node_type(tree):
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    return namedtuple if is_namedtuple_class(cls) else _structseq_type(cls)


_get_node_type = _node_type


def _structseq_type(cls):
    """Struct sequences become containers when they are first met."""
    if is_structseq_class(cls):
        _register(cls, _flatten_sequence, lambda v, c, cls=cls: cls(v), _indexed(_flatten_sequence))
    return cls
