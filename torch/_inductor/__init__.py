"""The compiler behind torch.compile's backend "inductor": torch._inductor.compile and its settings.
docs/inductor.md says how it works."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from torch import _later
from torch._inductor import config
from torch.compiler import cudagraph_mark_step_begin  # noqa: F401

if TYPE_CHECKING:
    import io

    from torch import fx
    from torch._inductor.package import AOTICompiledModel
    from torch.export import ExportedProgram

__all__ = [
    "aot_compile",
    "aoti_compile_and_package",
    "aoti_load_package",
    "compile",
    "config",
    "list_mode_options",
    "list_options",
    "standalone_compile",
]

_FILES = """cache_keys cache_store choices codecache codegen compile_fx compiler_bisector
constant_folding cpp_builder cpu_vec_isa custom_graph_pass debug decomposition exc flex freezing
freezing_utils function_cache fx_passes graph graph_cache graph_codec ir lowering metrics mock_cache
ops_handler package pattern_matcher runtime select_algorithm test_case test_operators utils
virtualized wrapper_benchmark"""
__getattr__ = _later.submodules(__name__, set(_FILES.split()))


def compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: dict[str, object] | None = None,
) -> Callable:
    """A compiled form of a graph of flat inputs and outputs, with settings for this graph."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, example_inputs, config_patches=options)


def aot_compile(
    gm: fx.GraphModule,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    *,
    options: dict[str, object] | None = None,
) -> str | list[str]:
    """Compiles a graph with state, as `ExportedProgram.module()` gives it, into a file that
    `torch._export.aot_load` and C++ programs load; its path. With the option
    `aot_inductor.package` it returns the paths of the files that `package_aoti` takes."""
    from torch._inductor.package import _compile

    return _compile.aot_compile(gm, args, kwargs, options=options)


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    _deprecated_unused_args: object = None,
    _deprecated_unused_kwargs: object = None,
    *,
    package_path: str | os.PathLike | io.IOBase | None = None,
    inductor_configs: dict[str, object] | None = None,
) -> str | os.PathLike | io.IOBase:
    """Compiles an exported program into a package (`.pt2`) that runs with and without Python; the
    path of the package."""
    from torch._inductor.package import _compile
    from torch.export import ExportedProgram

    if not isinstance(exported_program, ExportedProgram):
        raise ValueError("Only ExportedProgram is supported")
    if exported_program.example_inputs is None:
        raise RuntimeError(
            "exported_program.example_inputs is required to be set in order for AOTInductor "
            "compilation."
        )
    if _deprecated_unused_args is not None or _deprecated_unused_kwargs is not None:
        warnings.warn(
            "You no longer need to specify args/kwargs to aoti_compile_and_package as we can get "
            "this information from exported_program.example_inputs.",
            stacklevel=2,
        )
    named = isinstance(package_path, (str, os.PathLike))
    if named and not os.fspath(package_path).endswith(".pt2"):
        raise AssertionError(
            f"Expect package path to be a file ending in .pt2 or a buffer, got {package_path}"
        )
    return _compile.compile_and_package(exported_program, package_path, inductor_configs)


def aoti_load_package(
    path: str | os.PathLike | io.IOBase,
    run_single_threaded: bool = False,
    device_index: int = -1,
) -> AOTICompiledModel:
    """The model of a package as a function of the arguments it was exported with."""
    from torch._inductor.package import load_package

    return load_package(path, run_single_threaded=run_single_threaded, device_index=device_index)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, object]:
    """The settings that a mode of torch.compile stands for; without one, those of every mode."""
    modes: dict[str, dict[str, object]] = {
        "default": {},
        "reduce-overhead": {"triton.cudagraphs": True},
        "max-autotune-no-cudagraphs": {
            "max_autotune": True,
            "coordinate_descent_tuning": True,
        },
        "max-autotune": {
            "max_autotune": True,
            "triton.cudagraphs": True,
            "coordinate_descent_tuning": True,
        },
    }
    if mode is not None and mode not in modes:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(modes)}")
    return modes[mode] if mode else modes


def list_options() -> list[str]:
    """Names of the settings that torch.compile(options=...) takes."""
    return [name for name in config.get_config_copy() if not name.startswith("_")]


def standalone_compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    dynamic_shapes: str = "from_graph",
    options: dict[str, object] | None = None,
) -> Callable:
    """A graph compiled without torch.compile: a function of the graph's inputs that returns its
    outputs. `dynamic_shapes` says where the sizes come from: the example inputs, the graph or the
    trace that is going on."""
    kinds = ("from_example_inputs", "from_graph", "from_tracing_context")
    if dynamic_shapes not in kinds:
        raise ValueError(f"standalone_compile: dynamic_shapes must be one of {kinds}")
    inputs = list(example_inputs)
    if dynamic_shapes == "from_graph":
        held = [n.meta.get("val", n.meta.get("example_value")) for n in gm.graph.nodes
                if n.op == "placeholder"]  # fmt: skip
        inputs = [x if h is None else h for h, x in zip(held, inputs, strict=True)]
    return compile(gm, inputs, options)
