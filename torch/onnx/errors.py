"""What exporting to ONNX raises."""

from __future__ import annotations

from torch.onnx._internal.exporter._errors import OnnxExporterError

__all__ = [
    "OnnxExporterError",
    "OnnxExporterWarning",
    "SymbolicValueError",
    "UnsupportedOperatorError",
]


class OnnxExporterWarning(UserWarning):
    """What an export could not do as it was asked to."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator has no form in a version of ONNX."""

    def __init__(self, name: str, version: int, supported_version: int | None) -> None:
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported."
        if supported_version is not None:
            text += f" Version {supported_version} and later have it: try one of them."
        super().__init__(text)


class SymbolicValueError(OnnxExporterError):
    """A value of a graph is not what a translation can take."""

    def __init__(self, msg: str, value: object) -> None:
        super().__init__(f"{msg}  [Caused by the value '{value}' (type '{type(value).__name__}').]")
