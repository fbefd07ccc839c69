"""Programs as graphs that can be stored and run without their Python: `export` runs a module once
on tensors without data and returns an ExportedProgram, `save` and `load` keep it in a `.pt2`
archive."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO

import torch
from torch.export import dynamic_shapes as dynamic_shapes
from torch.export import exported_program as exported_program
from torch.export import graph_signature as graph_signature
from torch.export.decomp_utils import CustomDecompTable
from torch.export.dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from torch.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from torch.export.graph_signature import ExportBackwardSignature, ExportGraphSignature
from torch.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "export_for_training",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

Shapes = dict | tuple | list | ShapesCollection | AdditionalInputs | None
File = str | os.PathLike | IO[bytes]


def export(
    mod: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: Shapes = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that mod(*args, **kwargs) is, for all inputs of the same sizes, or of sizes that
    `dynamic_shapes` lets vary. With `strict` the bytecode is traced instead of being run."""
    from torch.export._trace import _export

    return _export(
        mod,
        args,
        kwargs,
        dynamic_shapes,
        strict=strict,
        preserve_module_call_signature=preserve_module_call_signature,
        pre_dispatch=True,
        prefer_deferred_runtime_asserts_over_guards=prefer_deferred_runtime_asserts_over_guards,
    )


def export_for_training(
    mod: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: Shapes = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """As `export`."""
    return export(
        mod,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        strict=strict,
        preserve_module_call_signature=preserve_module_call_signature,
        prefer_deferred_runtime_asserts_over_guards=prefer_deferred_runtime_asserts_over_guards,
    )


def draft_export(
    mod: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: Shapes = None,
    preserve_module_call_signature: Sequence[str] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """As `export`, but what would be an error is decided by the example and reported: the program
    has the report as `_report`."""
    from torch.export._draft_export import draft_export as drafted

    return drafted(
        mod,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        preserve_module_call_signature=preserve_module_call_signature,
        strict=strict,
    )


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, object] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program to a `.pt2` archive."""
    from torch.export.pt2_archive._program import save_program

    save_program(ep, f, extra_files, opset_version)


def load(
    f: File,
    *,
    extra_files: dict[str, object] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Reads a program from a `.pt2` archive. Nothing in the archive is executed."""
    from torch.export.pt2_archive._program import load_program

    return load_program(f, extra_files, expected_opset_version)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Makes a dataclass known as a nested input or output."""
    import dataclasses

    from torch.utils import _pytree as pytree

    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
