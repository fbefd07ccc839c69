"""torch.onnx.export in steps: the program, its model, what the user wants of both."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.export.exported_program import ExportedProgram
from torch.onnx._internal.exporter import _capture_strategies, _compat, _errors, _reporting
from torch.onnx._internal.exporter._onnx_program import ONNXProgram

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["Request", "export"]

_LIBRARY_VERSION = 18  # what onnxscript's library is written for
_OWN_SINCE = 23  # where translations to newer operators begin


@dataclasses.dataclass
class Request:
    """What the user asked for beside the model."""

    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    opset_version: int = 20
    dynamic_shapes: object = None
    custom_translation_table: Mapping | None = None
    optimize: bool = True
    verify: bool = False
    report: bool = False
    profile: bool = False
    dump_exported_program: bool = False
    artifacts_dir: str | os.PathLike = "."
    verbose: bool | None = None
    described: object = None  # sizes with their names, where the program was made here


def _check_packages() -> None:
    """Raises if a package that exports need is not installed."""
    missing = []
    for name in ("onnx", "onnx_ir", "onnxscript"):
        try:
            __import__(name)
        except ImportError:
            missing.append(name.replace("_", "-"))
    if missing:
        raise ModuleNotFoundError(
            f"torch.onnx.export needs the packages {', '.join(missing)}: "
            "install them with `pip install onnx onnxscript`"
        )


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    """torch.onnx.is_in_onnx_export() is true inside."""
    before = torch.onnx._exporting
    torch.onnx._exporting = True
    try:
        yield
    finally:
        torch.onnx._exporting = before


def export(
    model: nn.Module | ExportedProgram | Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    request: Request,
) -> ONNXProgram:
    """The model of a module or program."""
    _check_packages()
    steps = _reporting.Steps(request.verbose, request.profile)
    program = None
    try:
        with _exporting():
            program = _program(model, args, kwargs, request, steps)
            if request.dump_exported_program:
                path = os.path.join(request.artifacts_dir, "exported_program.pt2")
                torch.export.save(program, path)
            made = _model(program, request, steps)
        found = _verified(made, args, kwargs, steps) if request.verify else []
    except Exception as error:
        if request.report:
            _reporting.write(request.artifacts_dir, steps, program, None, [], error)
        raise
    if request.report:
        _reporting.write(request.artifacts_dir, steps, program, made, found, None)
    return made


def _program(
    model: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    request: Request,
    steps: _reporting.Steps,
) -> ExportedProgram:
    if isinstance(model, ExportedProgram):
        return model
    shapes, request.described = _compat.without_names(request.dynamic_shapes)
    failures: list[tuple[str, Exception]] = []
    for strategy in _capture_strategies.strategies_for(model):
        try:
            with steps.step(f"Obtain model graph with {strategy.describes}"):
                result = strategy(model, args, kwargs=kwargs, dynamic_shapes=shapes)
                if result.exception is not None:
                    raise result.exception
        except Exception as error:
            failures.append((strategy.describes, error))
            continue
        return result.exported_program
    tried = "\n".join(f"- {name}: {type(error).__name__}: {error}" for name, error in failures)
    raise _errors.TorchExportError(
        f"Failed to export the model with torch.export. What was tried:\n{tried}\n"
        "torch.export.draft_export shows what in the model is in the way."
    ) from failures[0][1]


def _model(program: ExportedProgram, request: Request, steps: _reporting.Steps) -> ONNXProgram:
    from onnxscript._framework_apis import torch_2_9

    from torch.onnx._internal.exporter._core import Translator, prepared
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    wanted = request.opset_version
    version = wanted if wanted >= _OWN_SINCE else _LIBRARY_VERSION
    with steps.step("Run decompositions"):
        registry = ONNXRegistry.from_torchlib(version, request.custom_translation_table)
        lowered = prepared(program, registry)
    with steps.step("Translate the graph into ONNX"):
        names = _compat.axis_names(program, request.described)
        model = Translator(lowered, registry, names).model()
        _tidy(model)
        _rename(model, request)
    if request.optimize:
        with steps.step("Optimize the model"):
            model = torch_2_9.optimize(model)
    if version != wanted:
        with steps.step(f"Convert the model to opset {wanted}"):
            model = torch_2_9.convert_version(model, wanted) or model
    return ONNXProgram(model, program)


def _tidy(model: ir.Model) -> None:
    """Functions of the library become nodes of the graph; what nothing uses goes."""
    from onnx_ir.passes import common

    passes = ["RemoveUnusedNodes", "TopologicalSort", "NameFix", "RemoveUnusedOpsets"]
    if model.functions:
        passes = ["Inline", "RemoveUnusedFunctions", *passes]
    for name in passes:
        getattr(common, f"{name}Pass")()(model)


def _rename(model: ir.Model, request: Request) -> None:
    """Gives inputs and outputs the names that the user wants, and others to whoever has them."""
    graph = model.graph
    pairs = [*zip(graph.inputs, request.input_names or (), strict=False)]
    pairs += zip(graph.outputs, request.output_names or (), strict=False)
    if not pairs:
        return
    wanted = {name for _, name in pairs}
    chosen = {id(value) for value, _ in pairs}
    every = [*graph.inputs, *graph.initializers.values()]
    for node in graph.all_nodes():
        every.extend(node.outputs)
    for value in every:
        if value.name in wanted and id(value) not in chosen:
            value.name = f"{value.name}_inner"
    for place, (value, _) in enumerate(pairs):
        value.name = f"_{place}_of_the_interface"
    for value, name in pairs:
        value.name = name


def _verified(
    made: ONNXProgram,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    steps: _reporting.Steps,
) -> list[object]:
    from torch.onnx._internal.exporter._verification import verify_onnx_program

    with steps.step("Verify output accuracy"):
        given = (args, dict(kwargs or {})) if args or kwargs else (None, None)
        found = verify_onnx_program(made, *given)
    for info in found:
        if info.max_abs_diff > 1e-2 and info.max_rel_diff > 1e-1:
            warnings.warn(
                f"Output '{info.name}' differs by {info.max_abs_diff:.3g} (relative "
                f"{info.max_rel_diff:.3g}) from the program's.",
                stacklevel=4,
            )
    return found
