"""What older programs import from here."""

from __future__ import annotations

from torch.onnx import _legacy
from torch.onnx import export as export

__all__ = ["export", "unconvertible_ops"]


def unconvertible_ops(*args: object, **kwargs: object) -> None:
    """Raises."""
    _legacy.refuse("torch.onnx.utils.unconvertible_ops", "torch.onnx.export(report=True)")
