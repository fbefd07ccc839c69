"""The type that the script language gives to a Python value: `List[int]` for [1, 2]. Tools that
sort arguments by the schema of an operator ask for it (torch.fx.operator_schemas)."""

from typing import Any

import torch

_SCALARS = {
    bool: "bool",
    int: "int",
    float: "float",
    complex: "complex",
    str: "str",
    type(None): "NoneType",
    torch.dtype: "int",
    torch.layout: "int",
    torch.memory_format: "int",
    torch.device: "Device",
}


class ValueType:
    """A type by its text."""

    def __init__(self, text: str) -> None:
        self.annotation_str = text

    def __str__(self) -> str:
        return self.annotation_str

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueType) and self.annotation_str == other.annotation_str

    def __hash__(self) -> int:
        return hash(self.annotation_str)


class InferredType:
    """A type, or the reason why there is none."""

    def __init__(self, kind: ValueType | None, reason: str) -> None:
        self._kind = kind
        self._reason = reason

    def success(self) -> bool:
        """Whether there is a type."""
        return self._kind is not None

    def type(self) -> ValueType:
        """The type."""
        if self._kind is None:
            raise RuntimeError(
                f"Tried to get the type from an InferredType but the type is null. "
                f"Reason: {self._reason}"
            )
        return self._kind

    def reason(self) -> str:
        """Why there is no type."""
        return self._reason


class _NoType(Exception):
    pass


def _text_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "Tensor"
    for kind, text in _SCALARS.items():
        if isinstance(value, kind):
            return text
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_text_of, value)) or '()'}]"
    if isinstance(value, list):
        return f"List[{_one_text(value)}]"
    if isinstance(value, dict):
        return f"Dict[{_one_text(value)}, {_one_text(value.values())}]"
    raise _NoType(
        f"Only tensors, numbers, texts and containers of them have a type, not {type(value)}"
    )


def _one_text(values: Any) -> str:
    """The type that all values of a container share."""
    texts = dict.fromkeys(map(_text_of, values))
    if not texts:
        raise _NoType("An empty container does not say what it holds")
    if len(texts) > 1:
        raise _NoType(f"A container holds values of several types: {', '.join(texts)}")
    return next(iter(texts))


def infer(value: Any) -> InferredType:
    """The type of a value."""
    try:
        return InferredType(ValueType(_text_of(value)), "")
    except _NoType as error:
        return InferredType(None, str(error))
