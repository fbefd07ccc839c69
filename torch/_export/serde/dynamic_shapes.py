"""Descriptions of sizes as plain data."""

from __future__ import annotations

import dataclasses

import torch
import torch.utils._pytree as pytree
from torch._dynamo.exc import UserError, UserErrorType
from torch.export.dynamic_shapes import Dim, _DerivedDim, _DimHint, _DimHintType, _read_fix
from torch.export.dynamic_shapes import match as matched

__all__ = ["DynamicShapesSpec", "RootDim"]


@dataclasses.dataclass
class RootDim:
    """A named size, and the sizes that are derived from it."""

    min: int
    max: int | None
    derived: list[str]


@dataclasses.dataclass
class DynamicShapesSpec:
    """A description of sizes without objects."""

    dynamic_shapes: dict | tuple | list | None
    dims: dict[str, RootDim]


def _error(text: str) -> UserError:
    return UserError(UserErrorType.INVALID_INPUT, text)


def _size(dim: object, dims: dict[str, RootDim]) -> object:
    if isinstance(dim, _DimHint):
        return f"_DimHint.{dim.type.name}"
    if not isinstance(dim, Dim):
        return dim
    root = dim._root()
    high = root.max if isinstance(root.max, int) else None
    row = dims.setdefault(root.__name__, RootDim(root.min, high, []))
    if isinstance(dim, _DerivedDim) and dim.__name__ not in row.derived:
        row.derived.append(dim.__name__)
    return dim.__name__


def _dump_dynamic_shapes(
    dynamic_shapes: dict | tuple | list | None,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    to_dict: bool | None = False,
) -> DynamicShapesSpec | dict[str, object]:
    """The description of the sizes of arguments as plain data."""
    dims: dict[str, RootDim] = {}
    values = [*args, *(kwargs or {}).values()]
    given = dynamic_shapes
    if isinstance(given, dict):
        given = list(given.values())
    combined = {f"{i}": value for i, value in enumerate(values)}
    list(matched(combined, given))

    def written(value: object, shape: object) -> object:
        if isinstance(value, torch.Tensor):
            if shape is None:
                return [None] * value.dim()
            if isinstance(shape, dict):
                return [_size(shape.get(i), dims) for i in range(value.dim())]
            return [_size(d, dims) for d in shape]
        if pytree.tree_is_leaf(value):
            return _size(shape, dims)
        node = pytree.SUPPORTED_NODES[pytree._get_node_type(value)]
        keyed, _ = node.flatten_with_keys_fn(value)
        if isinstance(value, dict):
            return {k.key: written(v, None if shape is None else shape[k.key]) for k, v in keyed}
        shapes = [None] * len(keyed) if shape is None else list(shape)
        parts = [written(v, s) for (_, v), s in zip(keyed, shapes, strict=True)]
        return tuple(parts) if isinstance(value, tuple) else parts

    shapes = [None] * len(values) if given is None else list(given)
    rows = tuple(written(v, s) for v, s in zip(values, shapes, strict=True))
    spec = DynamicShapesSpec(rows if given is not None else None, dims)
    return dataclasses.asdict(spec) if to_dict else spec


def _load_dynamic_shapes(
    spec: DynamicShapesSpec | dict[str, object], from_dict: bool | None = False
) -> dict | tuple | list | None:
    """The description of plain data."""
    if from_dict:
        if not isinstance(spec, dict):
            raise _error(f"With from_dict=True, expected `spec` to be a dict, got {type(spec)}")
        shapes, rows = spec["dynamic_shapes"], spec["dims"]
    else:
        if not isinstance(spec, DynamicShapesSpec):
            raise _error(f"Expected `spec` to be a DynamicShapesSpec, got {type(spec)}")
        shapes = spec.dynamic_shapes
        rows = {name: dataclasses.asdict(row) for name, row in spec.dims.items()}
    known: dict[str, object] = {}
    for name, row in rows.items():
        if type(row["min"]) is not int:
            raise _error(
                f"Expected dims in `spec['dims']` to map `min` to an int, got {name}: {row['min']}"
            )
        known[name] = Dim(name, min=row["min"], max=row["max"])
        for text in row["derived"]:
            try:
                known[text] = _read_fix(text, {name: known[name]})
            except (ValueError, NotImplementedError, SyntaxError, TypeError) as error:
                raise _error(
                    f"Expected derived expressions to be linear expressions, got {text}"
                ) from error

    def read(leaf: object) -> object:
        if not isinstance(leaf, str):
            return leaf
        if leaf.startswith("_DimHint."):
            return _DimHint(_DimHintType[leaf.split(".", 1)[1]])
        if leaf not in known:
            raise _error(
                "Expected dims in `spec['dynamic_shapes']` to be tracked in `spec['dims']`, got "
                f"{leaf} which is not in {rows.keys()}"
            )
        return known[leaf]

    return None if shapes is None else pytree.tree_map(read, shapes)
