"""replicate: what DistributedDataParallel does, without a module around the module. Its parts run
as hooks before and after the module's own forward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.distributed._composable.contract import _State, contract
from torch.nn.parallel import DistributedDataParallel

__all__ = ["replicate"]


class _ReplicateState(_State):
    """The wrapper that does the work. It is not part of the module tree."""

    def __init__(self) -> None:
        self.ddp: DistributedDataParallel | None = None
        self.arguments: dict[str, Any] = {}

    def start(self, module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Before forward; the first time, when parameters are where they stay, the wrapper is
        made."""
        if self.ddp is None:
            self.ddp = DistributedDataParallel(module, **self.arguments)
        return self.ddp._before_forward(args, kwargs)

    def end(self, module: nn.Module, args: tuple, output: Any) -> Any:
        """After forward."""
        return self.ddp._after_forward(output)


def _ignored_names(module: nn.Module, modules: Iterable[nn.Module]) -> set[str]:
    inner = {one for root in modules for one in root.modules()}
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, one in module.named_modules()
        if one in inner
        for name in (*one._parameters, *one._buffers)
    }


@contract(state_cls=_ReplicateState)
def replicate(
    module: nn.Module,
    ignored_modules: Iterable[nn.Module] | None = None,
    device_id: int | torch.device | None = None,
    **kwargs: Any,
) -> nn.Module:
    """Averages the gradients of a module over all processes; further arguments are those of
    DistributedDataParallel."""
    if device_id is not None and not isinstance(device_id, (int, torch.device)):
        raise RuntimeError(
            f"Expected device_id to be int or torch.device, but got {type(device_id)}"
        )
    state = replicate.state(module)
    names = _ignored_names(module, ignored_modules or ())
    if names:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    on_cpu = device_id is None or (isinstance(device_id, torch.device) and device_id.type == "cpu")
    state.arguments = {**kwargs, "device_ids": None if on_cpu else [device_id]}
    module.register_forward_pre_hook(state.start, with_kwargs=True, prepend=True)
    module.register_forward_hook(state.end)
    return module
