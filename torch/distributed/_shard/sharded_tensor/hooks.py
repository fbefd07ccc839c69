"""Sharded tensors that are attributes of modules, in the states of these modules."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed._shard.sharded_tensor.api import ShardedTensor


def state_dict_hook(
    module: nn.Module, destination: dict[str, Any], prefix: str, local_metadata: Any
) -> None:
    """Adds them to a state; for Module._register_state_dict_hook."""
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            if isinstance(value, ShardedTensor):
                destination[prefix + ".".join(filter(None, (name, attribute)))] = value


def pre_load_state_dict_hook(
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Sets them from a state, before the rest is loaded."""
    for name, part in module.named_modules():
        for attribute, value in list(vars(part).items()):
            key = prefix + ".".join(filter(None, (name, attribute)))
            if isinstance(value, ShardedTensor) and isinstance(state_dict.get(key), ShardedTensor):
                setattr(part, attribute, state_dict[key])
