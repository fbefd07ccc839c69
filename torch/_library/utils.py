"""Questions about operators and their schemas that code around them asks."""

from __future__ import annotations

import torch

__all__ = [
    "fill_defaults",
    "is_builtin",
    "is_functional_schema",
    "is_tensor_like_type",
    "is_tensorlist_like_type",
    "lookup_op",
    "mutates_and_returns_first_arg",
    "parse_namespace",
    "zip_schema",
]

Schema = torch._C.FunctionSchema


def parse_namespace(qualname: str) -> tuple[str, str]:
    """("ns", "name") of "ns::name"."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"Expected `qualname` to be of the form `namespace::name`, got {qualname}."
        )
    return parts[0], parts[1]


def lookup_op(qualname: str) -> torch._ops.OpOverload:
    """The operator "ns::name" or "ns::name.overload"."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


def is_builtin(op: torch._ops.OpOverload) -> bool:
    """Whether an operator is one of torch's own."""
    return op.namespace in {"aten", "prim", "prims"}


def _parsed(schema: object) -> Schema:
    return schema if isinstance(schema, Schema) else torch._C.parse_schema(str(schema))


def is_functional_schema(schema: object) -> bool:
    """Whether an operator writes nothing, returns something, and nothing that it was given."""
    schema = _parsed(schema)
    if schema.is_mutable or not schema.returns:
        return False
    return all(entry.alias_info is None for entry in schema.returns)


def _without_optional(kind: torch._C.Type) -> torch._C.Type:
    return kind.getElementType() if kind.kind() == "OptionalType" else kind


def is_tensor_like_type(kind: torch._C.Type) -> bool:
    """Tensor and Tensor?."""
    return _without_optional(kind).kind() == "TensorType"


def is_tensorlist_like_type(kind: torch._C.Type) -> bool:
    """Tensor[], Tensor?[] and either of them with a question mark."""
    kind = _without_optional(kind)
    return kind.kind() == "ListType" and is_tensor_like_type(kind.getElementType())


def mutates_and_returns_first_arg(op: torch._ops.OpOverload) -> bool:
    """Whether an operator writes to its first argument alone and returns it, as add_ does."""
    schema = op._schema
    if len(schema.returns) != 1 or not schema.arguments:
        return False
    first, result = schema.arguments[0].alias_info, schema.returns[0].alias_info
    if first is None or result is None or not first.is_write or not result.is_write:
        return False
    if first.after_set != result.after_set:
        return False
    return all(a.alias_info is None or not a.alias_info.is_write for a in schema.arguments[1:])


def fill_defaults(
    schema: Schema, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a call with the defaults of those left out."""
    filled, named = list(args), dict(kwargs)
    for i, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            named.setdefault(argument.name, argument.default_value)
        elif i >= len(filled):
            filled.append(named.pop(argument.name, argument.default_value))
    return tuple(filled), named


def zip_schema(
    schema: Schema, args: tuple[object, ...], kwargs: dict[str, object]
) -> list[tuple[torch._C.Argument, object]]:
    """Pairs of an argument of the schema and its value, for those that were passed."""
    pairs = []
    for i, argument in enumerate(schema.arguments):
        if argument.name in kwargs:
            pairs.append((argument, kwargs[argument.name]))
        elif i < len(args) and not argument.kwarg_only:
            pairs.append((argument, args[i]))
    return pairs
