"""Sizes that vary in the forms that users know: `dynamic_axes` of older programs, `dynamic_shapes`
with names as texts, and the names that a model's sizes get."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch.export import dynamic_shapes as shapes
from torch.export._names import name_of_path
from torch.export.dynamic_shapes import Dim, _DerivedDim, _DimHint, _DimHintType
from torch.export.exported_program import ExportedProgram

__all__ = ["arguments_of", "axis_names", "by_parameter", "shapes_from_axes", "without_names"]

Axes = Mapping[str, Mapping[int, str] | Sequence[int]]


@dataclasses.dataclass
class _NamedHint(_DimHint):
    """A size that may vary, and its name in the model."""

    axis: str = ""


def _named(axis: str, kind: _DimHintType) -> _NamedHint:
    return _NamedHint(kind, _factory=False, axis=axis)


def arguments_of(
    model: object, args: object, kwargs: Mapping[str, object] | None
) -> tuple[tuple[object, ...], dict[str, object]]:
    """args and kwargs of a call as users write them: one tensor stands for itself, and a dictionary
    at the end of args holds keywords."""
    if isinstance(args, (torch.Tensor, int, float, str)):
        args = (args,)
    given, named = list(args), dict(kwargs or {})
    if not named and given and isinstance(given[-1], dict):
        if _are_keywords(getattr(model, "forward", model), given):
            named = given.pop()
    return tuple(given), named


def _are_keywords(forward: Callable[..., object], given: Sequence[object]) -> bool:
    """Whether the dictionary at the end names parameters of a function that have no value yet."""
    last = given[-1]
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        return False
    if not all(isinstance(key, str) for key in last):
        return False
    free = list(parameters)[len(given) - 1 :]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if not last:
        return not free or open_ended
    return open_ended or all(key in free for key in last)


# ---- names of sizes


def without_names(dynamic_shapes: object) -> tuple[object, object]:
    """(what torch.export takes, the same with the names of sizes)."""
    if dynamic_shapes is None or isinstance(
        dynamic_shapes, (shapes.ShapesCollection, shapes.AdditionalInputs)
    ):
        return dynamic_shapes, None
    hints = pytree.tree_map(
        lambda d: _named(d, _DimHintType.DYNAMIC) if isinstance(d, str) else d,
        dynamic_shapes,
        is_leaf=lambda d: isinstance(d, (Dim, _DimHint, str)) or d is None,
    )
    return hints, hints


def axis_names(program: ExportedProgram, described: object) -> dict[str, str]:
    """{size as the program writes it: its name} for sizes of inputs that have one."""
    if described is None or program.example_inputs is None:
        return {}
    from torch.export.graph_signature import InputKind

    specs = program.graph_signature.input_specs
    nodes = program.graph.find_nodes(op="placeholder")
    inputs = [
        node for node, spec in zip(nodes, specs, strict=True) if spec.kind is InputKind.USER_INPUT
    ]
    names: dict[str, str] = {}
    said = _descriptions_of(program.example_inputs, described)
    for node, axes in zip(inputs, said, strict=False):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not axes:
            continue
        for place, dim in axes.items():
            size, name = value.shape[place], _axis_name(dim)
            if name and isinstance(size, torch.SymInt):
                text = str(size.node.expr)
                if re.fullmatch(r"\w+", text):
                    names.setdefault(text, name)
    return names


def _axis_name(dim: object) -> str | None:
    if isinstance(dim, _DerivedDim):
        return None
    return getattr(dim, "axis", None) or getattr(dim, "__name__", None)


def _descriptions_of(
    example: tuple[tuple, dict], described: object
) -> list[Mapping[int, object] | None]:
    """What is said of each leaf of the arguments, in order."""
    args, kwargs = example
    if isinstance(described, Mapping):
        positional = [k for k in described if k not in kwargs]
        parts = [described[k] for k in positional[: len(args)]]
        parts += [None] * (len(args) - len(parts))
        parts += [described.get(name) for name in kwargs]
    else:
        parts = list(described)
    found: list[Mapping[int, object] | None] = []
    for value, part in zip((*args, *kwargs.values()), parts, strict=False):
        found.extend(_of_leaves(value, part))
    return found


def _of_leaves(value: object, part: object) -> list[Mapping[int, object] | None]:
    if isinstance(value, torch.Tensor) or pytree.tree_is_leaf(value):
        if isinstance(part, Mapping):
            return [part]
        return [dict(enumerate(part)) if isinstance(part, (tuple, list)) else None]
    if part is None:
        return [None] * len(pytree.tree_leaves(value))
    if isinstance(value, Mapping):
        pairs = [(value[k], part.get(k) if isinstance(part, Mapping) else None) for k in value]
    else:
        said = list(part.values()) if isinstance(part, Mapping) else list(part)
        pairs = list(zip(value, said, strict=False))
    return [axes for one, about in pairs for axes in _of_leaves(one, about)]


# ---- from the older description


def shapes_from_axes(
    model: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    dynamic_axes: Axes,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None = None,
) -> object:
    """`dynamic_axes` as a description that torch.export takes. Sizes are left to what the program
    turns out to need, as the older form promised nothing about them."""
    leaves, spec = pytree.tree_flatten((args, dict(kwargs)))
    names = list(input_names or ())
    if len(names) < len(leaves):
        paths = shapes.input_paths(model, args, dict(kwargs))
        names += [name_of_path(path) for path in paths[len(names) :]]
    known = {*names, *(output_names or ())}
    unknown = [name for name in dynamic_axes if name not in known]
    if unknown:
        warnings.warn(
            f"dynamic_axes names {unknown}, which are no inputs ({names}) or outputs", stacklevel=4
        )
    described: list[object] = []
    for name, leaf in zip(names, leaves, strict=False):
        axes = dynamic_axes.get(name)
        if axes is None or not isinstance(leaf, torch.Tensor):
            described.append(None)
            continue
        if not isinstance(axes, Mapping):
            axes = {place: f"{name}_dim_{place}" for place in axes}
        described.append({k: _named(v, _DimHintType.AUTO) for k, v in axes.items()})
    given, named = pytree.tree_unflatten(described, spec)
    if not kwargs:
        return tuple(given)
    parameters = list(inspect.signature(getattr(model, "forward", model)).parameters)
    return {**dict(zip(parameters, given, strict=False)), **named}


def by_parameter(
    model: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    dynamic_shapes: dict,
    input_names: Sequence[str] | None,
) -> dict:
    """A description by the names that the model's inputs get, as one by parameters."""
    if isinstance(model, ExportedProgram):
        return dynamic_shapes
    known = list(shapes._combine_args(model, args, dict(kwargs)))
    if set(dynamic_shapes) <= set(known):
        return {name: dynamic_shapes.get(name) for name in known}
    names = list(input_names or ())
    if len(names) == len(known) and set(dynamic_shapes) <= set(names):
        return {k: dynamic_shapes.get(n) for k, n in zip(known, names, strict=True)}
    return dynamic_shapes


# ---- between the two descriptions, for programs that hold one and need the other


def _from_dynamic_shapes_to_dynamic_axes(
    dynamic_shapes: object, input_names: Sequence[str], exception: Exception | None = None
) -> dict[str, dict[int, str]]:
    """{input: {dimension: name}}"""
    if dynamic_shapes is None:
        return {}
    described = _flat_descriptions(dynamic_shapes)
    if len(input_names) < len(described):
        raise ValueError(
            "To construct dynamic_axes from dynamic_shapes, number of input names "
            f"({len(input_names)}) should not be less than the number of described inputs "
            f"({len(described)})"
        )
    found = {}
    for name, axes in zip(input_names, described, strict=False):
        if axes is not None:
            said = {k: d if isinstance(d, str) else _axis_name(d) for k, d in axes.items()}
            found[name] = {k: text for k, text in said.items() if text is not None}
    return found


def _flat_descriptions(part: object) -> list[Mapping[int, object] | None]:
    if part is None:
        return [None]
    if isinstance(part, Mapping):
        if part and all(isinstance(key, int) for key in part):
            return [part]
        part = list(part.values())
    sizes = all(d is None or isinstance(d, (Dim, _DimHint, str, int)) for d in part)
    if sizes and any(d is not None for d in part):
        return [dict(enumerate(part))]
    return [axes for one in part for axes in _flat_descriptions(one)]


def _unflatten_dynamic_shapes_with_inputs_tree(
    inputs: object, dynamic_shapes: Mapping[str, object]
) -> object:
    """Descriptions in order as a structure like that of the inputs."""
    return pytree.tree_unflatten(list(dynamic_shapes.values()), pytree.tree_structure(inputs))


def _from_dynamic_axes_to_dynamic_shapes(
    model: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    *,
    dynamic_axes: Axes | None = None,
    output_names: Sequence[str],
    input_names: Sequence[str] | None = None,
) -> object:
    """dynamic_axes as dynamic_shapes, in the order of the inputs."""
    if dynamic_axes is None:
        return None
    named = dict(kwargs or {})
    made = shapes_from_axes(model, args, named, dynamic_axes, input_names, output_names)
    return list(made.values()) if isinstance(made, dict) else made
