"""Signatures of operators and modules, and arguments sorted by them. A builtin function of torch
stands for the operator of its name; each overload is one signature."""

import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.fx._compatibility import compatibility

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """Arguments after sorting."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# ---- signatures
_WORD_TYPES: dict[str, Any] = {
    "Tensor": torch.Tensor,
    "int": int,
    "SymInt": int,
    "float": float,
    "SymFloat": float,
    "bool": bool,
    "SymBool": bool,
    "number": numbers.Number,
    "Scalar": numbers.Number,
    "str": str,
    "Device": torch.device,
    "ScalarType": torch.dtype,
    "Layout": torch.layout,
    "MemoryFormat": torch.memory_format,
    "Generator": torch.Generator,
    "complex": complex,
    "Stream": torch.Stream,
    "NoneType": type(None),
    "Any": typing.Any,
}


_GENERICS = {
    "List": typing.List,  # noqa: UP006
    "Tuple": typing.Tuple,  # noqa: UP006
    "Dict": typing.Dict,  # noqa: UP006
    "Optional": typing.Optional,
}


def _type_of_text(text: str) -> Any:
    """`int[2]?` or `List[int]` as a Python type."""
    text = text.strip()
    head, bracket, rest = text.partition("[")
    if head in _GENERICS and bracket:
        inner = tuple(map(_type_of_text, _split_commas(rest[:-1])))
        return _GENERICS[head][inner if len(inner) > 1 else inner[0]]
    if text.endswith("?"):
        return typing.Optional[_type_of_text(text[:-1])]  # noqa: UP045
    if text.endswith("]"):
        return typing.List[_type_of_text(text[: text.rindex("[")])]  # noqa: UP006
    return _WORD_TYPES.get(text.split("(")[0], typing.Any)


def _split_commas(text: str) -> list[str]:
    """The parts between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _torchscript_type_to_python_type(ts_type: Any) -> Any:
    """The Python type of a type of a schema."""
    return _type_of_text(str(ts_type))


def _python_type(argument: Any) -> Any:
    kind = _type_of_text(str(argument.type))
    # A list of fixed length may be given as one number.
    if getattr(argument, "N", None) and typing.get_origin(kind) is list:
        return typing.Union[kind, typing.get_args(kind)[0]]  # noqa: UP007
    return kind


def _torchscript_schema_to_signature(schema: Any) -> inspect.Signature:
    """The signature of a schema. The receiver of a method is called `input`."""
    params = []
    for argument in schema.arguments:
        keyword = argument.kwarg_only
        kind = (
            inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        name = argument.name
        if name == "self":
            name = "input"
        elif name == "from":
            # A keyword of Python: only its place can be given.
            kind = inspect.Parameter.POSITIONAL_ONLY
            params = [p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for p in params]
        default = (
            argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        )
        params.append(
            inspect.Parameter(name, kind, default=default, annotation=_python_type(argument))
        )
    returned = [_type_of_text(str(r.type)) for r in schema.returns]
    if not returned:
        result: Any = None
    else:
        result = returned[0] if len(returned) == 1 else tuple(returned)
    return inspect.Signature(params, return_annotation=result)


# Functions of `operator` that stand for an operator of another name.
_OPERATOR_NAMES = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "bitwise_not",
    "mod": "remainder",
    "lshift": "__lshift__",
    "rshift": "__rshift__",
}
_PREFIX_OF_MODULE = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def _packet_of(op: Callable) -> Any:
    """The operator that a function stands for, or None."""
    name = getattr(op, "__name__", None)
    if name is None:
        return None
    module = getattr(op, "__module__", None) or "torch"
    if module == "_operator":
        name = _OPERATOR_NAMES.get(name, name)
    elif not isinstance(op, types.BuiltinFunctionType):
        return None
    candidates = [name]
    if module in _PREFIX_OF_MODULE:
        candidates.insert(0, _PREFIX_OF_MODULE[module] + name)
    for candidate in candidates:
        packet = getattr(torch.ops.aten, candidate, None)
        if packet is not None:
            return packet
    return None


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of the overloads of an operator: a list, None for what is no operator. With
    return_schemas, a pair with the list of schemas."""
    if isinstance(op, torch._ops.OpOverload):
        schemas = [op._schema]
    elif isinstance(op, torch._ops.OpOverloadPacket):
        schemas = [getattr(op, name)._schema for name in op.overloads()]
    else:
        packet = _packet_of(op)
        if packet is None:
            return (None, None) if return_schemas else None
        schemas = [getattr(packet, name)._schema for name in packet.overloads()]
    schemas = [schema for schema in schemas if schema is not None]
    signatures = [_torchscript_schema_to_signature(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(target: Callable, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError if a call surely writes to an argument: every overload that takes these
    arguments does."""
    if not (
        isinstance(
            target, (types.BuiltinFunctionType, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
        )
    ):
        return
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures:
        return
    matching = []
    for signature, schema in zip(signatures, schemas, strict=True):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        matching.append(schema)
    if matching and all(schema.is_mutable for schema in matching):
        raise RuntimeError(
            f"Tried to trace mutable operation {matching[0]}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


# ---- types
@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types: `[int, int]` is List[int], where one type covers all;
    anything else is returned itself."""
    if not isinstance(x, list | tuple):
        return x
    head = typing.List if isinstance(x, list) else typing.Tuple  # noqa: UP006

    def made(inner: Any) -> Any:
        return head[inner] if isinstance(x, list) else head[inner, ...]

    if not x:
        return made(typing.Any)
    widest = x[0]
    for other in x[1:]:
        if not (isinstance(widest, type) and isinstance(other, type)):
            same = widest == other
        elif issubclass(other, widest):
            same = True
        elif issubclass(widest, other):
            widest, same = other, True
        else:
            same = False
        if not same:
            return made(typing.Any)
    return made(widest)


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is list


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether a value of one type may be passed where another is declared."""
    if signature_type is argument_type or signature_type == argument_type:
        return True
    if signature_type is typing.Any:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union or origin is types.UnionType:
        options = typing.get_args(signature_type)
        if typing.get_origin(argument_type) is typing.Union:
            given = typing.get_args(argument_type)
            return all(any(type_matches(o, g) for o in options) for g in given)
        return any(type_matches(option, argument_type) for option in options)
    if _is_list(signature_type):
        return _matches_list(typing.get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is torch.dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float, bool, complex):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def _matches_list(item: Any, argument_type: Any) -> bool:
    if item is int and argument_type is int:  # one number for all dimensions
        return True
    origin = typing.get_origin(argument_type)
    if origin not in (list, tuple):
        return False
    inner = [a for a in typing.get_args(argument_type) if a is not ...]
    return bool(inner) and all(type_matches(item, a) for a in inner)


# ---- sorting arguments
@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Arguments of a call by the parameters of the function: all by keyword, or in their places.
    Where several overloads take them, the types given decide; None where nothing does."""
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(target, types.BuiltinFunctionType | torch._ops.OpOverload):
        if isinstance(target, torch._ops.OpOverloadPacket):
            return _by_overload(
                target, args, kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if not callable(target):
            raise AssertionError(f"not callable: {target!r}")
        return _by_python_signature(target, args, kwargs, normalize_to_only_use_kwargs)
    return _by_overload(target, args, kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)


def _by_python_signature(
    target: Callable, args: tuple, kwargs: dict, only_kwargs: bool
) -> ArgsKwargsPair | None:
    # Functions with a dispatcher inside have their signature on the function itself.
    inner = target
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):
        return None
    return _bound(signature, args, kwargs, only_kwargs)


def _by_overload(
    target: Callable,
    args: tuple,
    kwargs: dict,
    arg_types: tuple | None,
    kwarg_types: dict | None,
    only_kwargs: bool,
) -> ArgsKwargsPair | None:
    signatures = get_signature_for_torch_op(target)
    if not signatures:
        return None
    fitting = [s for s in signatures if _binds(s, args, kwargs)]
    if len(fitting) > 1 and (arg_types is not None or kwarg_types is not None):
        typed = [s for s in fitting if _types_fit(s, arg_types or (), kwarg_types or {})]
        if not typed:
            return None
        fitting = typed[:1]
    elif len(fitting) > 1:
        # Overloads that sort the arguments alike leave no doubt.
        sorted_ = [_bound(s, args, kwargs, True) for s in fitting]
        if any(set(b.kwargs) != set(sorted_[0].kwargs) for b in sorted_[1:] if b and sorted_[0]):
            shown = [str(s) for s in fitting]
            raise RuntimeError(
                f"Tried to normalize arguments to {torch.typename(target)} but the schema match "
                f"was ambiguous! Please provide argument types to the normalize_arguments() call. "
                f"Available schemas:\n" + "\n".join(shown)
            )
    return _bound(fitting[0], args, kwargs, only_kwargs) if fitting else None


def _binds(signature: inspect.Signature, args: tuple, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _types_fit(signature: inspect.Signature, arg_types: tuple, kwarg_types: dict) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(
        type_matches(signature.parameters[name].annotation, given)
        for name, given in bound.arguments.items()
    )


def _bound(
    signature: inspect.Signature, args: tuple, kwargs: dict, only_kwargs: bool
) -> ArgsKwargsPair | None:
    """The arguments with defaults, in the order of the signature."""
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    if only_kwargs and inspect.Parameter.POSITIONAL_ONLY in kinds:
        only_kwargs = False
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if only_kwargs:
        return ArgsKwargsPair((), dict(bound.arguments))
    given = len(args)
    names = list(signature.parameters)
    positional = tuple(bound.arguments[name] for name in names[:given])
    return ArgsKwargsPair(positional, {name: bound.arguments[name] for name in names[given:]})


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Arguments of a call of a submodule by the parameters of its forward; None for modules that
    are not of torch.nn."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from None
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(module.forward)
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
