"""Trees of containers with values at their leaves: flattening, mapping, and rebuilding.

A container type is known by how it is taken apart and put together (register_pytree_node); everything else is a leaf,
None included. A TreeSpec is the tree without its leaves.
"""

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple

import torch

SUPPORTED_NODES = {}
SUPPORTED_SERIALIZED_TYPES = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}
CONSTANT_NODES = set()
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step of a path into a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step of a path into a mapping."""

    key: object

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step of a path to an attribute."""

    name: str

    def __str__(self):
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
):
    """Makes `cls` a container.

    flatten_fn(value) -> (children, context); unflatten_fn(children, context) -> value; flatten_with_keys_fn(value) ->
    ([(key, child)], context). The context must be comparable; to_dumpable_context and from_dumpable_context turn it
    into something that JSON can hold and back."""
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


def _register(cls, flatten, unflatten, with_keys, name=None, to_dumpable=None, from_dumpable=None):
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, with_keys)
    name = name or f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable, from_dumpable)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    CONSTANT_NODES.discard(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
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
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    def with_keys(obj):
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values)], context

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


class ConstantNode:
    """The context of a constant: a container without children that compares by its value."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, ConstantNode) and self.value == other.value

    def __hash__(self):
        return hash(self.value)


def register_constant(cls):
    """Makes `cls` a container without children, so that its values belong to the structure of a tree."""
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


def is_constant_class(cls):
    """Whether register_constant knows cls."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---- the containers of the standard library -------------------------------------------------------------------


def is_namedtuple_class(cls):
    """Whether cls was made by namedtuple."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(fields, tuple)
        and all(isinstance(name, str) for name in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj):
    """Whether obj is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether obj is a named tuple or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    """Whether cls is a struct sequence, as the results of torch.max and the like are."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields"))
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
        return [(MappingKey(key), child) for key, child in zip(keys, children)], context

    return with_keys


def _flatten_sequence(value):
    return list(value), None


def _flatten_dict(value):
    return list(value.values()), list(value.keys())


def _flatten_namedtuple(value):
    return list(value), type(value)


def _flatten_namedtuple_with_keys(value):
    return [(GetAttrKey(name), getattr(value, name)) for name in value._fields], type(value)


def _flatten_defaultdict(value):
    return list(value.values()), [value.default_factory, list(value.keys())]


def _flatten_deque(value):
    return list(value), value.maxlen


_register(tuple, _flatten_sequence, lambda v, c: tuple(v), _indexed(_flatten_sequence), "builtins.tuple")
_register(list, _flatten_sequence, lambda v, c: list(v), _indexed(_flatten_sequence), "builtins.list")
_register(dict, _flatten_dict, lambda v, c: dict(zip(c, v)), _keyed(_flatten_dict), "builtins.dict")
_register(
    namedtuple,
    _flatten_namedtuple,
    lambda v, c: c(*v),
    _flatten_namedtuple_with_keys,
    "collections.namedtuple",
    lambda c: f"{c.__module__}.{c.__qualname__}",
    lambda name: _class_by_name(name),
)
_register(
    OrderedDict,
    _flatten_dict,
    lambda v, c: OrderedDict(zip(c, v)),
    _keyed(_flatten_dict),
    "collections.OrderedDict",
)
_register(
    defaultdict,
    _flatten_defaultdict,
    lambda v, c: defaultdict(c[0], zip(c[1], v)),
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
    torch.Size, _flatten_sequence, lambda v, c: torch.Size(v), _indexed(_flatten_sequence), "torch.Size"
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


# ---- specs ----------------------------------------------------------------------------------------------------


class TreeSpec:
    """The structure of a tree: a container's type, its context and the specs of its children."""

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs):
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(spec.num_nodes for spec in children_specs)

    def is_leaf(self):
        """Whether this is the spec of a leaf."""
        return self.type is None

    def children(self):
        """The specs of the children."""
        return list(self.children_specs)

    def child(self, index):
        """The spec of one child."""
        return self.children_specs[index]

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        inner = indent + 2
        parts = [spec.__repr__(inner) for spec in self.children_specs]
        text = (",\n" + " " * inner).join(parts)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{text}])"

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self):
        context = tuple(self.context) if isinstance(self.context, list) else self.context
        if self.type is defaultdict:
            context = (self.context[0], tuple(self.context[1]))
        return hash((self.type, context, tuple(self.children_specs)))

    def unflatten(self, leaves):
        """The tree with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        children = [spec._build(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree):
        """The parts of `tree` where this spec has leaves; the structure above them has to be the same."""
        parts = []
        self._flatten_up_to(tree, parts)
        return parts

    def _flatten_up_to(self, tree, parts):
        if self.type is None:
            parts.append(tree)
            return
        node_type = _node_type(tree)
        if node_type is not self.type and not {node_type, self.type} <= {dict, OrderedDict, defaultdict}:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {node_type!r}.")
        children, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if self.type in (dict, OrderedDict, defaultdict):
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif context != self.context and self.type is not deque:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for child, spec in zip(children, self.children_specs):
            spec._flatten_up_to(child, parts)


PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None, [])


def LeafSpec():
    """The spec of a leaf."""
    return _LEAF


def treespec_leaf():
    """The spec of a leaf."""
    return _LEAF


def treespec_tuple(iterable=(), /):
    """The spec of a tuple with children of the given specs."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    """The spec of a dict with children of the given specs."""
    members = dict(mapping, **kwargs)
    return TreeSpec(dict, list(members), list(members.values()))


# ---- trees ----------------------------------------------------------------------------------------------------


def tree_is_leaf(tree, is_leaf=None):
    """Whether `tree` is a leaf: no known container, or is_leaf says so."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _node_type(tree) not in SUPPORTED_NODES


def _flatten(tree, leaves, is_leaf):
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    node_type = _node_type(tree)
    node = SUPPORTED_NODES.get(node_type)
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(node_type, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree and its spec."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of a spec with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterates over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with func applied to each leaf, and to what stands in its place in `rests`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(list(map(func, *columns)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func for each leaf and returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for items in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests]):
        func(*items)
    return tree


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is applied to values of the types (or for which the predicate holds) alone."""
    import types

    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def matches(value):
            return isinstance(value, type_or_types_or_pred)

    elif callable(type_or_types_or_pred):
        matches = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return lambda value: func(value) if matches(value) else value

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map for the leaves of given types alone."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_ for the leaves of given types alone."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether pred holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred holds for every leaf of the types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred holds for some leaf of the types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a prefix of a tree, repeated for all that stands below; None if it is no prefix."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result += part
    return result


# ---- paths ----------------------------------------------------------------------------------------------------


def _leaves_with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node_type = _node_type(tree)
    with_keys = SUPPORTED_NODES[node_type].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node_type}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _leaves_with_path((*path, key), child, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """The leaves with the path to each."""
    return list(_leaves_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """The leaves with the path to each, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map whose function gets the path of the leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = list(zip(*pairs)) if pairs else [(), ()]
    columns += [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(list(map(func, *columns)))


def keystr(kp):
    """A path as text: [0]['a'].x"""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---- specs as text --------------------------------------------------------------------------------------------


def _spec_to_json(spec):
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES[spec.type]
    dump = known.to_dumpable_context
    context = json.dumps(spec.context if dump is None else dump(spec.context))
    children = [_spec_to_json(child) for child in spec.children_specs]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def treespec_dumps(treespec, protocol=None):
    """A spec as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec, protocol): Expected a TreeSpec, got {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _spec_to_json(treespec)))


def _spec_from_json(data):
    if data["type"] is None:
        return _LEAF
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(data["type"])
    if cls is None:
        raise NotImplementedError(f"Deserializing {data['type']!r}, which is not registered as pytree node.")
    load = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    context = json.loads(data["context"])
    children = [_spec_from_json(child) for child in data["children_spec"]]
    return TreeSpec(cls, context if load is None else load(context), children)


def treespec_loads(serialized):
    """The spec that treespec_dumps wrote."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _spec_from_json(data)


def treespec_pprint(treespec):
    """A spec with stars for its leaves, as Python would print the tree."""

    class _Star:
        def __repr__(self):
            return "*"

    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))
