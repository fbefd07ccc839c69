"""ONNX export: the names. Exporting raises NotImplementedError."""

import enum

from torch import _later
from torch.version import __version__

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
]


# Who wrote a file, as files say it.
producer_name = "pytorch"
producer_version = __version__


class OnnxExporterError(RuntimeError):
    """What exporting raises."""


class OperatorExportTypes(enum.IntEnum):
    """How operators without an ONNX form are exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.IntEnum):
    """In which mode a module is exported."""

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


def is_in_onnx_export() -> bool:
    """Whether an export runs: never."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """Whether ONNX Runtime can be a backend: no."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version) -> None:
    """Tells the exporter about an operator; kept for an exporter to come."""
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version) -> None:
    """Takes back register_custom_op_symbolic."""
    _symbolics.pop((symbolic_name, opset_version), None)


_symbolics = {}
_SUBMODULES = _later.install(
    __name__,
    """
    operators: shape_as_tensor reshape_from_tensor_shape
    symbolic_opset9: select
    symbolic_opset11: select squeeze unsqueeze
    symbolic_registry: register_op get_registered_op
    utils: export unconvertible_ops
    errors: OnnxExporterError UnsupportedOperatorError SymbolicValueError
    ops: symbolic symbolic_multi_out
    """,
)
globals().update(_later.names(__name__, "ExportableModule InputObserver ONNXProgram export"))
__getattr__ = _later.submodules(__name__, _SUBMODULES)
