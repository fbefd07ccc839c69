"""parallelize_module: which style applies to which submodule."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, _mesh_resources
from torch.distributed.tensor.parallel.style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Applies a style to a module, or to its submodules by name: each step of a dotted name may
    have wildcards. The mesh has one dimension."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! If you have a "
            '2-D or N-D device_mesh, consider passing in device_mesh["tp"]'
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so "
            "this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if not path:
            raise ValueError("Expect module path to be non-empty, but got empty string!")
        found = _matching(module, path.split("."))
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
                f"'{path.split('.')[0]}' in module {type(module).__name__}",
                stacklevel=2,
            )
        for parent, name, child in found:
            done = parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
            if done is not child:
                parent.register_module(name, done)
    return module


def _matching(module: nn.Module, steps: list[str]) -> list[tuple[nn.Module, str, nn.Module]]:
    """(parent, name, module) of the submodules that the steps of a name lead to."""
    found = []
    for name, child in module.named_children():
        if not fnmatch(name, steps[0]):
            continue
        found.extend([(module, name, child)] if len(steps) == 1 else _matching(child, steps[1:]))
    return found
