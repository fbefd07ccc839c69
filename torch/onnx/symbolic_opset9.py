"""Functions for TorchScript graphs, opset 9: they raise and say what takes their place."""

from __future__ import annotations

from torch.onnx import _legacy

__all__ = ["select", "squeeze", "unsqueeze"]


def select(g: object, self: object, dim: object, index: object) -> None:
    """Raises."""
    _legacy.refuse(f"{__name__}.select", _legacy._TABLE)


def squeeze(g: object, self: object, dim: object = None) -> None:
    """Raises."""
    _legacy.refuse(f"{__name__}.squeeze", _legacy._TABLE)


def unsqueeze(g: object, self: object, dim: object) -> None:
    """Raises."""
    _legacy.refuse(f"{__name__}.unsqueeze", _legacy._TABLE)
