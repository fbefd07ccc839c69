"""Parts below torch.export: verifier, serialisation, passes, example cases; and models that are
compiled into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["aot_compile", "aot_load"]


def aot_compile(
    f: nn.Module | Callable,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: dict | tuple | list | None = None,
    options: dict[str, object] | None = None,
    remove_runtime_assertions: bool = False,
    disable_constraint_solver: bool = False,
    same_signature: bool = True,
) -> str | list[str]:
    """Exports a module or function and compiles it; the path of the file that `aot_load` reads."""
    import torch
    from torch._inductor import aot_compile as compile_graph
    from torch._inductor import config
    from torch.export import export

    if not isinstance(f, torch.nn.Module):
        f = _called(f)
    with torch.no_grad(), config.patch(options or {}):
        program = export(f, args, dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False)
        module = program.module(check_guards=False)
        return compile_graph(module, tuple(args), dict(kwargs or {}))


def aot_load(so_path: str, device: str) -> Callable:
    """A compiled model as a function of the arguments it was exported with."""
    import torch
    from torch._inductor.package import AOTICompiledModel

    wanted = torch.device(device)
    if wanted.type not in ("cpu", "cuda"):
        raise RuntimeError("Unsupported device " + device)
    index = -1 if wanted.index is None or wanted.type == "cpu" else wanted.index
    loader = torch._C._aoti.AOTIModelPackageLoader(so_path, "model", False, 1, index)
    return AOTICompiledModel(loader)


def _called(f: Callable) -> nn.Module:
    from torch import nn

    class Function(nn.Module):
        """A function as a module."""

        def forward(self, *args: object, **kwargs: object) -> object:
            return f(*args, **kwargs)

    return Function()
