"""Names of the exporter for TorchScript graphs, which older programs import: its settings are
there, its entry points raise and say what takes their place."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable

from torch.onnx._internal.exporter._errors import OnnxExporterError

__all__ = [
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "member",
    "refuse",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class OperatorExportTypes(enum.IntEnum):
    """How operators without an ONNX form were exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.IntEnum):
    """In which mode a module was exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers for element types."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


def refuse(name: str, instead: str) -> None:
    """Raises for a part of the exporter for TorchScript graphs."""
    raise OnnxExporterError(
        f"{name} belongs to the exporter for TorchScript graphs, which this version does not "
        f"have; use {instead}"
    )


_TABLE = "torch.onnx.export(custom_translation_table={operator: function of onnxscript})"


_symbolics: dict[tuple[str, int], Callable[..., object]] = {}


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., object], opset_version: int
) -> None:
    """Keeps a function that translated a TorchScript operator. Packages call this when they are
    imported; exports take their translations from `custom_translation_table`."""
    if symbolic_name.count("::") != 1:
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the "
            "format domain::name, and should start with a letter and contain only alphanumerical "
            "characters"
        )
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back register_custom_op_symbolic."""
    _symbolics.pop((symbolic_name, opset_version), None)


_ENTRY_POINTS = {
    "dynamo_export": "torch.onnx.export",
    "export_to_pretty_string": "print(torch.onnx.export(...).model)",
    "select_model_mode_for_export": "model.eval() or model.train() before torch.onnx.export",
    "enable_fake_mode": "torch._subclasses.FakeTensorMode around the model",
}
_MODULES = ("symbolic_helper", "symbolic_opset9", "symbolic_opset11", "utils", "symbolic_registry")


def member(name: str) -> object:
    """An entry point that raises when it is called, or a module of older programs."""
    if name in _MODULES:
        return importlib.import_module(f"torch.onnx.{name}")
    instead = _ENTRY_POINTS.get(name)
    if instead is None:
        return None

    def raises(*args: object, **kwargs: object) -> None:
        refuse(f"torch.onnx.{name}", instead)

    raises.__name__ = raises.__qualname__ = name
    return raises
