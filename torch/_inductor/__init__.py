"""The compiler behind torch.compile's backend "inductor": torch._inductor.compile and its settings.
docs/inductor.md says how it works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from torch import _later
from torch._inductor import config
from torch.compiler import cudagraph_mark_step_begin  # noqa: F401

if TYPE_CHECKING:
    from torch import fx

__all__ = [
    "aoti_compile_and_package",
    "aoti_load_package",
    "compile",
    "config",
    "list_mode_options",
    "list_options",
]

globals().update(
    _later.names(__name__, "aoti_compile_and_package aoti_load_package standalone_compile")
)
_SUBMODULES = _later.install(
    __name__,
    """
    codecache: extract_tensor_metadata_for_cache_key
    cpp_builder: get_cpp_compiler
    cpu_vec_isa: pick_vec_isa
    package: load_package package_aoti
    runtime.cache_dir_utils: cache_dir
    utils: fresh_inductor_cache fresh_cache
    """,
)
__getattr__ = _later.submodules(
    __name__, _SUBMODULES | {"exc", "compile_fx", "graph", "metrics", "test_case"}
)


def compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: dict[str, object] | None = None,
) -> Callable:
    """A compiled form of a graph of flat inputs and outputs, with settings for this graph."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, example_inputs, config_patches=options)


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
    names = [n for n in vars(config) if not n.startswith("_") and n not in ("patch", "sys")]
    found: list[str] = []
    for name in names:
        value = getattr(config, name)
        if isinstance(value, config.Group):
            found.extend(f"{name}.{inner}" for inner in vars(value))
        elif not isinstance(value, type):
            found.append(name)
    return found
