"""Flattening by a given spec: what generated code of functions with nested arguments calls."""

from collections.abc import Callable
from typing import Any

from torch.utils._pytree import PyTree, TreeSpec, tree_flatten

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFuncSpec = Callable[[PyTree, TreeSpec], list]
FlattenFuncExactMatchSpec = Callable[[PyTree, TreeSpec], bool]

SUPPORTED_NODES: dict[type, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Says how a container is taken apart by a spec: flatten_fn_spec(value, spec) -> children."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(
    pytree: PyTree, spec: TreeSpec, exact_structural_match: bool = False
) -> list[Any]:
    """The leaves of a value by the spec it was traced with. What the spec does not name, such as
    more keys of a dict, is left out, unless an exact match is asked for."""
    if spec.is_leaf():
        return [pytree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None:
        return _flatten_unregistered(pytree, spec)
    children = flatten(pytree, spec)
    if exact_structural_match:
        matches = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
        if matches is not None and not matches(pytree, spec):
            raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    leaves: list[Any] = []
    for child, child_spec in zip(children, spec.children_specs, strict=True):
        leaves += tree_flatten_spec(child, child_spec, exact_structural_match)
    return leaves


def _flatten_unregistered(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    leaves, found = tree_flatten(pytree)
    if found.type is not spec.type or len(leaves) != spec.num_leaves:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register "
            "one with torch.fx._pytree.register_pytree_flatten_spec. If you have serialized your "
            "model, make sure that any custom pytrees have been registered before loading it."
        )
    return leaves


def _by_keys(value: Any, spec: TreeSpec) -> list[Any]:
    return [value[key] for key in spec.context]


def _by_position(value: Any, spec: TreeSpec) -> list[Any]:
    # By index alone, since a proxy has no length.
    return [value[i] for i in range(spec.num_children)]


def _same_keys(value: Any, spec: TreeSpec) -> bool:
    return len(value) == spec.num_children and set(value) == set(spec.context)


def _same_length(value: Any, spec: TreeSpec) -> bool:
    return len(value) == spec.num_children


def _register_builtins() -> None:
    from collections import OrderedDict, namedtuple

    register_pytree_flatten_spec(dict, _by_keys, _same_keys)
    register_pytree_flatten_spec(OrderedDict, _by_keys, _same_keys)
    register_pytree_flatten_spec(list, _by_position, _same_length)
    register_pytree_flatten_spec(tuple, _by_position, _same_length)
    register_pytree_flatten_spec(namedtuple, _by_position, _same_length)


_register_builtins()
