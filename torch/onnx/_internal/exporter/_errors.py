"""What the exporter raises. The classes are public as torch.onnx.errors."""

from __future__ import annotations

__all__ = ["ConversionError", "OnnxExporterError", "TorchExportError"]


class OnnxExporterError(RuntimeError):
    """What exporting raises."""


class TorchExportError(OnnxExporterError):
    """torch.export could not make a program of the model."""


class ConversionError(OnnxExporterError):
    """A program could not be translated."""
