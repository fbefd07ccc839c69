"""The kinds of quantization."""

from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """When the grid of a value is found, and what is quantized at all."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


def _get_quant_type_to_str(quant_type: QuantType) -> str:
    """The word for a kind in configurations."""
    return {
        QuantType.STATIC: "static",
        QuantType.DYNAMIC: "dynamic",
        QuantType.QAT: "qat",
        QuantType.WEIGHT_ONLY: "weight_only",
    }[quant_type]


def _quant_type_from_str(name: str) -> QuantType:
    """The kind that a word names."""
    for kind in QuantType:
        if _get_quant_type_to_str(kind) == name:
            return kind
    raise ValueError(f"Unknown QuantType name '{name}'")
