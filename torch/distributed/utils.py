"""Small things that parallel modules share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn
from torch._C._distributed_c10d import _broadcast_coalesced
from torch.utils._pytree import tree_map

__all__: list[str] = []


def _sync_module_states(
    module: nn.Module,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Collection[str],
    broadcast_buffers: bool = True,
) -> None:
    """All ranks get the parameters, and buffers, of the module of rank `src`."""
    ignored = set(params_and_buffers_to_ignore)
    states = [p.detach() for name, p in module.named_parameters() if name not in ignored]
    if broadcast_buffers:
        states += [b.detach() for name, b in module.named_buffers() if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group: Any, module_states: list[torch.Tensor], broadcast_bucket_size: int, src: int
) -> None:
    if module_states:
        _broadcast_coalesced(process_group, module_states, broadcast_bucket_size, src)


def _apply_to_tensors(fn: Callable[[torch.Tensor], Any], container: Any) -> Any:
    """The container with fn applied to its tensors."""
    return tree_map(lambda one: fn(one) if isinstance(one, torch.Tensor) else one, container)


def _cast_forward_inputs(dtype: torch.dtype | None, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments with their floating tensors in `dtype`."""
    if dtype is None:
        return args, kwargs

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)
