"""The operator schema of a Python function, from its annotations."""

import collections.abc
import functools
import inspect
import operator
import types
import typing

import torch

_BASE = {
    torch.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    torch.types.Number: "Scalar",
    torch.dtype: "ScalarType",
    torch.device: "Device",
}
_LISTABLE = {
    torch.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    torch.types.Number: "Scalar",
}
_LISTS = (list, collections.abc.Sequence)
_NUMBERS = {frozenset((int, float, bool)), frozenset((int, float))}


# What a function may be annotated to return, with the word that schemas have for it.
SUPPORTED_RETURN_TYPES = {
    torch.Tensor: "Tensor",
    list[torch.Tensor]: "Tensor[]",
    typing.List[torch.Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt",
    float: "float",
    bool: "bool",
    torch.types.Number: "Scalar",
}


def _unwrap_optional(annotation):
    """The type inside Optional[...] and whether there was one."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = typing.get_args(annotation)
        rest = [m for m in members if m is not type(None)]
        if len(rest) < len(members):
            return (rest[0] if len(rest) == 1 else functools.reduce(operator.or_, rest)), True
    return annotation, False


def _schema_type(annotation):
    """The schema's word for an annotation, or None."""
    if annotation in _BASE:
        return _BASE[annotation]
    inner, optional = _unwrap_optional(annotation)
    if optional:
        word = _schema_type(inner)
        return None if word is None else word + "?"
    origin = typing.get_origin(annotation)
    if (
        origin in (typing.Union, types.UnionType)
        and frozenset(typing.get_args(annotation)) in _NUMBERS
    ):
        return "Scalar"
    if origin in _LISTS:
        (item,) = typing.get_args(annotation) or (None,)
        inner, optional = _unwrap_optional(item)
        if inner in _LISTABLE and (not optional or inner is torch.Tensor):
            return _LISTABLE[inner] + ("?[]" if optional else "[]")
    return None


def _mutated(word, index):
    if word.startswith("Tensor?"):
        return f"Tensor(a{index}!)?" + word.removeprefix("Tensor?")
    return f"Tensor(a{index}!)" + word.removeprefix("Tensor")


def _default(value, name, error):
    if value is inspect.Parameter.empty:
        return ""
    if value is None or isinstance(value, (bool, int, float)):
        return f"={value}"
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, torch.dtype):
        return "=" + str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return f'="{value}"'
    return error(f"Parameter {name} has an unsupported default value type {type(value)}.")


def _return_schema(annotation, error):
    if annotation is inspect.Signature.empty:
        error("No return type annotation was provided. Please add one.")
    if annotation is None or annotation is type(None):
        return "()"
    words = SUPPORTED_RETURN_TYPES
    if annotation in words:
        return words[annotation]
    if typing.get_origin(annotation) is tuple:
        parts = [words.get(item) for item in typing.get_args(annotation)]
        if all(parts):
            return "(" + ", ".join(parts) + ")"
    return error(
        f"Return has unsupported type {annotation}. The valid types are: {list(words)} and "
        "tuples of them."
    )


def _check_mutates(mutates_args, signature, error) -> None:
    if isinstance(mutates_args, str):
        if mutates_args != "unknown":
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are "
                "mutated or the string 'unknown'. "
            )
        return
    unknown = set(mutates_args) - set(signature.parameters)
    if unknown:
        error(
            f"{unknown} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain "
            "the names of all args that the custom op mutates, or just the string 'unknown' if "
            "you don't know."
        )


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()) -> str:
    """The schema "(Tensor x, ...) -> Tensor" of a function, read from its annotations.

    mutates_args: the names of the arguments that are written to, or "unknown" for all tensors."""
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as exception:
        raise ValueError(
            f"infer_schema(func): Unsupported type annotation: it is not a type. ({exception})"
        ) from exception

    def error(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    _check_mutates(mutates_args, signature, error)
    parts, keyword_only = [], False
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            error("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.annotation is inspect.Parameter.empty:
            error(f"Parameter {name} must have a type annotation.")
        annotation = hints.get(name, parameter.annotation)
        if parameter.default is None and annotation is not parameter.annotation:
            # Old versions of get_type_hints wrap annotations with a default of None in Optional.
            annotation = (
                _unwrap_optional(annotation)[0]
                if not _unwrap_optional(parameter.annotation)[1]
                else annotation
            )
        word = _schema_type(annotation)
        if word is None:
            error(
                f"Parameter {name} has unsupported type {annotation}. The valid types are: "
                f"{list(_BASE)}, Optional and lists of them."
            )
        mutates = word.startswith("Tensor") if mutates_args == "unknown" else name in mutates_args
        if mutates and not word.startswith("Tensor"):
            error(
                f"Parameter {name} is in mutable_args but only Tensors or collections of "
                "Tensors can be mutated"
            )
        word = _mutated(word, index) if mutates else word
        parts.append(f"{word} {name}{_default(parameter.default, name, error)}")
    returns = _return_schema(hints.get("return", signature.return_annotation), error)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"
