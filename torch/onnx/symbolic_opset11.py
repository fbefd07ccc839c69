"""Functions for TorchScript graphs, opset 11: those of opset 9."""

from __future__ import annotations

from torch.onnx.symbolic_opset9 import select, squeeze, unsqueeze

__all__ = ["select", "squeeze", "unsqueeze"]
