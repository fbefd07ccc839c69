"""Specs of arguments: keywords in the order of a spec, and comparison by a rule of the caller's."""

from __future__ import annotations

from collections.abc import Callable

from torch.utils._pytree import Context, TreeSpec

__all__ = ["is_equivalent", "reorder_kwargs"]


def reorder_kwargs(user_kwargs: dict[str, object], spec: TreeSpec) -> dict[str, object]:
    """Keyword arguments in the order of a spec of (args, kwargs)."""
    if spec.type is not tuple or spec.num_children != 2:
        raise AssertionError(f"expected the spec of (args, kwargs), got {spec}")
    wanted = spec.children_specs[1]
    if wanted.type is not dict:
        raise AssertionError(f"expected a dict of keyword arguments, got {wanted.type}")
    if set(user_kwargs) != set(wanted.context):
        raise ValueError(
            "Ran into a kwarg keyword mismatch: Got the following keywords: "
            f"{list(user_kwargs)} but expected {list(wanted.context)}"
        )
    return {name: user_kwargs[name] for name in wanted.context}


def is_equivalent(
    spec1: TreeSpec,
    spec2: TreeSpec,
    equivalence_fn: Callable[[type | None, Context, type | None, Context], bool],
) -> bool:
    """Whether two specs are the same up to a rule about types and contexts of containers."""
    if not equivalence_fn(spec1.type, spec1.context, spec2.type, spec2.context):
        return False
    children = spec1.children_specs, spec2.children_specs
    if len(children[0]) != len(children[1]):
        return False
    return all(is_equivalent(a, b, equivalence_fn) for a, b in zip(*children, strict=True))
