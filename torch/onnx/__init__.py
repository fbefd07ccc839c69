"""Export to ONNX: `export` makes a program by torch.export and translates it, on the packages onnx,
onnx_ir and onnxscript, which are loaded when something is exported. The exporter of TorchScript
graphs is not offered: what belongs to it raises and says what to use."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO

import torch
from torch.onnx import errors as errors
from torch.onnx import operators as operators
from torch.onnx import ops as ops
from torch.onnx._internal.exporter._errors import OnnxExporterError
from torch.onnx._internal.exporter._exportable import ExportableModule
from torch.onnx._internal.exporter._observer import InputObserver
from torch.onnx._internal.exporter._onnx_program import ONNXProgram
from torch.onnx._legacy import (
    OperatorExportTypes,
    TensorProtoDataType,
    TrainingMode,
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)
from torch.version import __version__

__all__ = [
    "ExportableModule",
    "InputObserver",
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "ops",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

# Who wrote a file, as files say it.
producer_name = "pytorch"
producer_version = __version__

_exporting = False
_OPSET = 20


def is_in_onnx_export() -> bool:
    """Whether an export runs."""
    return _exporting


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., object],
    args: tuple[object, ...] = (),
    f: str | os.PathLike | IO[bytes] | None = None,
    *,
    kwargs: Mapping[str, object] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict | tuple | list | None = None,
    custom_translation_table: Mapping[Callable[..., object], object] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
    fallback: bool = False,
) -> ONNXProgram:
    """The ONNX model of a module, a function or an exported program, written to `f` if it is given.
    Sizes that vary are named in `dynamic_shapes` (as torch.export takes it, or names as texts) or
    in `dynamic_axes`. `custom_translation_table` maps operators to functions of onnxscript."""
    from torch.onnx import _legacy
    from torch.onnx._internal.exporter import _compat, _export

    if not dynamo:
        _legacy.refuse("torch.onnx.export(dynamo=False)", "torch.onnx.export(dynamo=True)")
    if export_modules_as_functions:
        _legacy.refuse("export_modules_as_functions", "dynamo=True without it")
    if opset_version is not None and opset_version < 18:
        opset_version = max(int(opset_version), 15)
    given, named = _compat.arguments_of(model, args, kwargs)
    if dynamic_axes is not None and dynamic_shapes is None:
        dynamic_shapes = _compat.shapes_from_axes(
            model, given, named, dynamic_axes, input_names, output_names
        )
    elif isinstance(dynamic_shapes, dict):
        dynamic_shapes = _compat.by_parameter(model, given, named, dynamic_shapes, input_names)
    request = _export.Request(
        input_names=input_names,
        output_names=output_names,
        opset_version=_OPSET if opset_version is None else opset_version,
        dynamic_shapes=dynamic_shapes,
        custom_translation_table=custom_translation_table,
        optimize=optimize,
        verify=verify,
        report=report,
        profile=profile,
        dump_exported_program=dump_exported_program,
        artifacts_dir=artifacts_dir,
        verbose=verbose,
    )
    program = _export.export(model, given, named, request)
    if f is not None:
        program.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data and isinstance(f, (str, os.PathLike)),
        )
    return program


def __getattr__(name: str) -> object:
    from torch.onnx import _legacy

    if name == "verification":
        import torch.onnx.verification

        return torch.onnx.verification
    found = _legacy.member(name)
    if found is None:
        raise AttributeError(f"module 'torch.onnx' has no attribute {name!r}")
    return found
