"""The table of functions for TorchScript graphs: entry points that raise."""

from __future__ import annotations

from torch.onnx import _legacy

__all__ = ["get_registered_op", "register_op"]


def register_op(*args: object, **kwargs: object) -> None:
    """Raises."""
    _legacy.refuse("torch.onnx.symbolic_registry.register_op", _legacy._TABLE)


def get_registered_op(*args: object, **kwargs: object) -> None:
    """Raises."""
    _legacy.refuse("torch.onnx.symbolic_registry.get_registered_op", _legacy._TABLE)
