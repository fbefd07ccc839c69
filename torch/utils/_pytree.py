"""Trees of containers with values at their leaves: flattening, mapping, and rebuilding.

A container type is known by how it is taken apart and put together (register_pytree_node);
everything else is a leaf, None included. A TreeSpec is the tree without its leaves.
"""

# ruff: noqa: F401
import enum
import json
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from torch._C import _pytree as _impl
from torch.utils._pytree_nodes import (
    BUILTIN_TYPES,
    CONSTANT_NODES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    _deregister_pytree_node,
    _dict_flatten_with_keys,
    _get_node_type,
    _list_flatten_with_keys,
    _node_type,
    _register_namedtuple,
    _register_pytree_node,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1

# Names for annotations: what a tree and what a container's context may be.
PyTree = Any
Context = Any
DumpableContext = Any
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]

# ---- specs ---------------------------------------------------------------------------------------
# -------------


class TreeSpec(_impl.SpecBase):
    """The structure of a tree: a container's type, its context and the specs of its children
    (`type`, `context`, `children_specs`, and their numbers, are fields of the C type)."""

    __slots__ = ()

    def __reduce__(self):
        return TreeSpec, (self.type, self.context, self.children_specs)

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    def children(self):
        """The specs of the children."""
        return list(self.children_specs)

    def child(self, index):
        """The spec of one child."""
        return self.children_specs[index]

    def __repr__(self, indent=0) -> str:
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

    def __hash__(self) -> int:
        context = tuple(self.context) if isinstance(self.context, list) else self.context
        if self.type is defaultdict:
            context = (self.context[0], tuple(self.context[1]))
        return hash((self.type, context, tuple(self.children_specs)))

    def unflatten(self, leaves):
        """The tree with these leaves."""
        return _impl.unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """The parts of `tree` where this spec has leaves; the structure above them has to be the
        same.
        """
        parts = []
        self._flatten_up_to(tree, parts)
        return parts

    def _flatten_up_to(self, tree, parts) -> None:
        if self.type is None:
            parts.append(tree)
            return
        node_type = _node_type(tree)
        if node_type is not self.type and not {node_type, self.type} <= {
            dict,
            OrderedDict,
            defaultdict,
        }:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {node_type!r}.")
        children, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if self.type in (dict, OrderedDict, defaultdict):
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(
                    f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}."
                )
            children = [tree[key] for key in keys]
        elif context != self.context and self.type is not deque:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for child, spec in zip(children, self.children_specs, strict=True):
            spec._flatten_up_to(child, parts)


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __reduce__(self):
        return LeafSpec, ()


PyTreeSpec = TreeSpec
_LEAF = LeafSpec()
_impl.setup(SUPPORTED_NODES, _node_type, TreeSpec, _LEAF)


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


# ---- trees ---------------------------------------------------------------------------------------
# -------------


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Whether `tree` is a leaf: no known container, or is_leaf says so."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree and its spec."""
    return _impl.flatten(tree, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of a spec with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of TreeSpec but got item of type "
            f"{type(treespec)}."
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
    return _impl.leaves(tree, is_leaf)


def tree_structure(tree, is_leaf=None):
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with func applied to each leaf, and to what stands in its place in `rests`."""
    if not rests:
        return _impl.map(func, tree, is_leaf)
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(list(map(func, *columns)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func for each leaf and returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for items in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*items)
    return tree


def _predicate(wanted):
    """A function that tells whether a value is wanted."""
    import types

    if isinstance(wanted, (type, tuple, types.UnionType)):
        return lambda value: isinstance(value, wanted)
    if callable(wanted):
        return wanted
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is applied to values of the types (or for which the predicate
    holds) alone."""
    matches = _predicate(type_or_types_or_pred)

    def decorate(func):
        return lambda value: func(value) if matches(value) else value

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map for the leaves of given types alone."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_ for the leaves of given types alone."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    """Whether pred holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether pred holds for every leaf of the types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether pred holds for some leaf of the types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a prefix of a tree, repeated for all that stands below; None if it is no
    prefix.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result += part
    return result


# ---- paths ---------------------------------------------------------------------------------------
# -------------


def _leaves_with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node_type = _node_type(tree)
    with_keys = SUPPORTED_NODES[node_type].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node_type}. Please pass a "
            "flatten_with_keys_fn "
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
    columns = list(zip(*pairs, strict=True)) if pairs else [(), ()]
    columns += [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(list(map(func, *columns)))


def keystr(kp) -> str:
    """A path as text: [0]['a'].x"""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---- specs as text
# --------------------------------------------------------------------------------------------


def _enum_to_json(value):
    """How JSON holds a member of an enumeration, which may be the key of a dict."""
    if not isinstance(value, enum.Enum):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    kind = type(value)
    return {"__enum__": True, "class": f"{kind.__module__}:{kind.__qualname__}", "name": value.name}


def _enum_from_json(data):
    if data.get("__enum__") is not True:
        return data
    module, _, path = data["class"].partition(":")
    # Only what the program has imported: a file must not make it run a module of the file's choice.
    found = sys.modules.get(module)
    if found is None:
        raise NotImplementedError(
            f"Deserializing {data['class']!r}: import the module {module!r} before."
        )
    for part in path.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise NotImplementedError(f"Deserializing {data['class']!r}, which is no enumeration.")
    return found[data["name"]]


def _spec_to_json(spec):
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES[spec.type]
    dump = known.to_dumpable_context
    given = spec.context if dump is None else dump(spec.context)
    context = json.dumps(given, default=_enum_to_json)
    children = [_spec_to_json(child) for child in spec.children_specs]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def treespec_dumps(treespec, protocol=None):
    """A spec as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected a TreeSpec, got {type(treespec)}."
        )
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _spec_to_json(treespec)))


def _spec_from_json(data):
    if data["type"] is None:
        return _LEAF
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(data["type"])
    if cls is None:
        raise NotImplementedError(
            f"Deserializing {data['type']!r}, which is not registered as pytree node."
        )
    load = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    context = json.loads(data["context"], object_hook=_enum_from_json)
    children = [_spec_from_json(child) for child in data["children_spec"]]
    return TreeSpec(cls, context if load is None else load(context), children)


def treespec_loads(serialized):
    """The spec that treespec_dumps wrote."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _spec_from_json(data)


def treespec_pprint(treespec) -> str:
    """A spec with stars for its leaves, as Python would print the tree."""

    class _Star:
        def __repr__(self) -> str:
            return "*"

    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


# Names that other packages import from here: how each container is taken apart and put together.
_dict_flatten = SUPPORTED_NODES[dict].flatten_fn
_dict_unflatten = SUPPORTED_NODES[dict].unflatten_fn
_list_flatten = SUPPORTED_NODES[list].flatten_fn
_list_unflatten = SUPPORTED_NODES[list].unflatten_fn
_namedtuple_flatten = SUPPORTED_NODES[namedtuple].flatten_fn
_namedtuple_unflatten = SUPPORTED_NODES[namedtuple].unflatten_fn
_namedtuple_flatten_with_keys = SUPPORTED_NODES[namedtuple].flatten_with_keys_fn
_ordereddict_flatten = _odict_flatten = SUPPORTED_NODES[OrderedDict].flatten_fn
_ordereddict_unflatten = _odict_unflatten = SUPPORTED_NODES[OrderedDict].unflatten_fn
_ordereddict_flatten_with_keys = SUPPORTED_NODES[OrderedDict].flatten_with_keys_fn
_defaultdict_flatten = SUPPORTED_NODES[defaultdict].flatten_fn
_defaultdict_unflatten = SUPPORTED_NODES[defaultdict].unflatten_fn
_defaultdict_flatten_with_keys = SUPPORTED_NODES[defaultdict].flatten_with_keys_fn
_deque_flatten = SUPPORTED_NODES[deque].flatten_fn
_deque_unflatten = SUPPORTED_NODES[deque].unflatten_fn
_deque_flatten_with_keys = SUPPORTED_NODES[deque].flatten_with_keys_fn
_is_leaf = tree_is_leaf
_is_namedtuple_instance = is_namedtuple_instance
