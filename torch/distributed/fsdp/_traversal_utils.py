"""The units in a module."""

from __future__ import annotations

from torch import nn
from torch.distributed.fsdp._fully_shard._module import ModuleState, state_of

__all__ = ["_get_fsdp_handles", "_get_fsdp_states", "_get_fsdp_states_with_modules"]


def _get_fsdp_states_with_modules(
    module: nn.Module,
) -> tuple[list[ModuleState], list[nn.Module]]:
    """The states of the units in a module, itself included, and their modules."""
    states, modules = [], []
    for one in module.modules():
        state = state_of(one)
        if state is not None and all(state is not known for known in states):
            states.append(state)
            modules.append(one)
    return states, modules


def _get_fsdp_states(module: nn.Module) -> list[ModuleState]:
    """The states of the units in a module, itself included."""
    return _get_fsdp_states_with_modules(module)[0]


def _get_fsdp_handles(module: nn.Module) -> list:
    """The groups of parameters of these units."""
    return [state.unit for state in _get_fsdp_states(module) if state.unit is not None]
