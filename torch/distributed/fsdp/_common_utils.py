"""The state of a module that is sharded, by the name that programs know."""

from __future__ import annotations

from torch import nn
from torch.distributed.fsdp._fully_shard._module import ModuleState, state_of

__all__ = ["_FSDPState", "_get_module_fsdp_state"]

_FSDPState = ModuleState


def _get_module_fsdp_state(module: nn.Module) -> ModuleState | None:
    """The state of a module that is a unit; None for others."""
    return state_of(module)
