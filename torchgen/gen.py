"""Command line of the generator: reads the yaml files, asks each emitter for its files, writes
those that changed.

A file whose content is the same is not touched, so that the build recompiles only what an edit
really changed; files of an earlier run that are no longer produced are removed. The output depends
on the inputs alone.
"""

from __future__ import annotations

import argparse
import os
import sys

from . import (
    derivatives,
    emit_autograd,
    emit_bindings,
    emit_cuda,
    emit_docs,
    emit_kernels,
    emit_limits,
    emit_ops,
    emit_pointwise,
    emit_public,
    emit_pyi,
    python_sigs,
)
from .errors import GenError
from .model import Model, Pointwise, load

_MANIFEST = "torchgen.manifest"


def hand_written_methods() -> frozenset[str]:
    """Operators whose Tensor method is declared in ATen/core/Tensor.h."""
    path = os.path.join(os.path.dirname(__file__), "core_methods.txt")
    with open(path, encoding="utf-8") as stream:
        lines = (line.split("#")[0].strip() for line in stream)
        return frozenset(line for line in lines if line)


def generate(
    model: Model,
    formulas: derivatives.Derivatives | None = None,
    pointwise_tables: dict[str, Pointwise] | None = None,
) -> dict[str, str]:
    """All generated files, path below the output folder to content. Without formulas the operators
    have no autograd kernels."""
    functions = python_sigs.build(model)
    files: dict[str, str] = {}
    files.update(emit_ops.emit(model, hand_written_methods()))
    files.update(emit_public.emit(model))
    files.update(emit_kernels.emit(model, formulas))
    files.update(emit_autograd.emit(model, formulas))
    files.update(emit_pointwise.emit(model))
    files.update(emit_cuda.emit(model, pointwise_tables or {}))
    files.update(emit_bindings.emit(model, functions))
    files.update(emit_pyi.emit(model, functions))
    files.update(emit_docs.emit(model))
    return files


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def write_if_changed(path: str, text: str) -> bool:
    if _read(path) == text:
        return False
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    # A reader, or an interrupted run, never sees half a file.
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, path)
    return True


def write_all(files: dict[str, str], out: str) -> int:
    """Writes the files and removes what an earlier run left. Returns how many files changed."""
    changed = sum(
        write_if_changed(os.path.join(out, name), text) for name, text in sorted(files.items())
    )
    manifest = os.path.join(out, _MANIFEST)
    for name in (_read(manifest) or "").splitlines():
        if name not in files and os.path.exists(os.path.join(out, name)):
            os.remove(os.path.join(out, name))
            changed += 1
    write_if_changed(manifest, "".join(f"{name}\n" for name in sorted(files)))
    return changed


def outputs_cmake(files: dict[str, str], out: str) -> str:
    """The lists of generated files that CMake compiles, by the target they belong to."""
    groups: dict[str, list[str]] = {
        "GEN_TORCH_SOURCES": [],
        "GEN_SIMD_SOURCES": [],
        "GEN_PYTHON_SOURCES": [],
        "GEN_HEADERS": [],
        "GEN_CUDA_PROGRAMS": [],
    }
    for name in sorted(files):
        if name.endswith(".simd.cpp"):
            group = "GEN_SIMD_SOURCES"
        elif name.startswith("torch/csrc/python/") and name.endswith(".cpp"):
            group = "GEN_PYTHON_SOURCES"
        elif name.endswith(".cpp"):
            group = "GEN_TORCH_SOURCES"
        elif name.endswith((".h", ".inc")):
            group = "GEN_HEADERS"
        elif name.endswith(".cu"):
            group = "GEN_CUDA_PROGRAMS"
        else:
            continue
        groups[group].append(os.path.join(out, name))
    parts = []
    for group, names in groups.items():
        listed = "".join(f'\n  "{name}"' for name in names)
        parts.append(f"set({group}{listed})\n")
    return "".join(parts)


def drop_cuda(model: Model) -> None:
    """Forgets the kernels for CUDA, which a build without it has no files for."""
    for op in model.ops:
        op.kernels = [k for k in op.kernels if k.key != "CUDA"]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torchgen.gen", description=__doc__.splitlines()[0])
    parser.add_argument("--yaml", required=True, help="native_functions.yaml")
    parser.add_argument("--derivatives", default="", help="derivatives.yaml; may be absent")
    parser.add_argument("--out", required=True, help="folder of the generated files")
    parser.add_argument(
        "--outputs-cmake", default="", help="write the list of outputs here and nothing else"
    )
    parser.add_argument(
        "--without-cuda", action="store_true", help="leave out the kernels for CUDA"
    )
    options = parser.parse_args(argv)
    try:
        model = load(options.yaml)
        formulas = None
        if options.derivatives and os.path.exists(options.derivatives):
            formulas = derivatives.load(options.derivatives, model)
            model.derivatives = frozenset(formulas.by_op)
        # The page describes the tree, whatever this build leaves out.
        limits = emit_limits.emit(model, formulas)
        if options.without_cuda:
            drop_cuda(model)
        beside = os.path.join(os.path.dirname(options.yaml), "pointwise_tables.yaml")
        hand_written = emit_cuda.load_tables(beside) if os.path.exists(beside) else {}
        files = {**generate(model, formulas, hand_written), **limits}
    except GenError as error:
        print(error, file=sys.stderr)
        return 1
    if options.outputs_cmake:
        write_if_changed(options.outputs_cmake, outputs_cmake(files, options.out))
    else:
        write_all(files, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
