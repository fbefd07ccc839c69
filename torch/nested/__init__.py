"""Nested tensors: the names. Making one raises NotImplementedError."""

from torch import _later

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
globals().update(_later.names(__name__, " ".join(__all__)))
