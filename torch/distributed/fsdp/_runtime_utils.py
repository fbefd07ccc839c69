"""Parts of a forward pass, for programs that call them by themselves."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed.fsdp._fully_shard._module import ModuleState

__all__ = ["_lazy_init", "_root_pre_forward"]


def _lazy_init(state: ModuleState, root_module: nn.Module) -> ModuleState:
    """Finds the units below a root, once."""
    state._begin()
    return state


def _root_pre_forward(
    state: ModuleState, module: nn.Module, args: Any, kwargs: Any
) -> tuple[Any, Any]:
    """Makes a root ready for a forward pass: its units are known and its inputs where they belong;
    for a unit that is no root, nothing."""
    state._begin()
    if not state.is_root:
        return args, kwargs
    return state.before_forward(module, args, kwargs)
