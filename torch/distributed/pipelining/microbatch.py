"""Cutting the arguments of a step into microbatches, and joining their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """The dimension along which a tensor is cut."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each dimension."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each name."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """A value that every microbatch gets as it is."""


_FIRST = TensorChunkSpec(0)


def _cut(value: Any, spec: Any, count: int) -> list[Any]:
    """The parts of one value: tensors are cut, everything else is for all."""
    if not isinstance(value, torch.Tensor) or isinstance(spec, _Replicate) or spec is _Replicate:
        return [value] * count
    dim = (spec or _FIRST).split_dim
    if value.size(dim) < count:
        raise RuntimeError(
            f"a tensor of shape {tuple(value.shape)} cannot be cut into {count} microbatches along "
            f"dimension {dim}"
        )
    return list(torch.tensor_split(value, count, dim))


def _cut_all(values: Any, specs: Any, count: int) -> list[Any]:
    flat, tree = pytree.tree_flatten(values)
    if specs is None:
        each: Sequence[Any] = [None] * len(flat)
    else:
        each = pytree.tree_leaves(
            specs, is_leaf=lambda one: isinstance(one, (TensorChunkSpec, _Replicate)) or one is None
        )
        if len(each) != len(flat):
            raise ValueError(f"{len(each)} chunk specs were given for {len(flat)} arguments")
    parts = [_cut(value, spec, count) for value, spec in zip(flat, each, strict=True)]
    return [pytree.tree_unflatten([part[i] for part in parts], tree) for i in range(count)]


def split_args_kwargs_into_chunks(
    args: tuple,
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[tuple], list[dict[str, Any]]]:
    """The arguments of each microbatch; tensors are cut along their first dimension unless the spec
    says otherwise."""
    return (
        _cut_all(tuple(args), args_chunk_spec, chunks),
        _cut_all(dict(kwargs or {}), kwargs_chunk_spec, chunks),
    )


def merge_chunks(chunks: list[Any], chunk_spec: Any = None) -> Any:
    """The results of microbatches as one: tensors are joined, of other values the last is taken."""
    flats = [pytree.tree_flatten(chunk) for chunk in chunks]
    tree = flats[0][1]
    specs = pytree.tree_leaves(chunk_spec) if chunk_spec is not None else []
    joined = []
    for i, values in enumerate(zip(*(flat for flat, _ in flats), strict=True)):
        if not isinstance(values[0], torch.Tensor):
            joined.append(values[-1])
            continue
        dim = specs[i].split_dim if i < len(specs) else 0
        joined.append(torch.cat(values, dim) if values[0].ndim else torch.stack(values))
    return pytree.tree_unflatten(joined, tree)
