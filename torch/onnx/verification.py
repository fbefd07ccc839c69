"""Whether a model computes what its program does."""

from __future__ import annotations

from torch.onnx._internal.exporter._verification import VerificationInfo, verify_onnx_program

__all__ = ["VerificationInfo", "verify_onnx_program"]
