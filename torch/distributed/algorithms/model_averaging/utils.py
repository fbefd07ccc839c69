"""The average of parameters over a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]

Params = Iterable[torch.nn.Parameter] | Iterable[dict[str, Any]]


@torch.no_grad()
def average_parameters(
    params: Iterable[torch.nn.Parameter], process_group: dist.ProcessGroup | None
) -> None:
    """Every rank gets the average of all ranks' parameters, in place. One collective moves those of
    a dtype and device together."""
    group = dist.group.WORLD if process_group is None else process_group
    alike: dict[tuple, list[torch.Tensor]] = {}
    for parameter in params:
        alike.setdefault((parameter.dtype, parameter.device), []).append(parameter.data)
    for tensors in alike.values():
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).div_(group.size())
        dist.all_reduce(flat, group=group)
        for tensor, part in zip(
            tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True
        ):
            tensor.copy_(part.view_as(tensor))


def get_params_to_average(params: Params) -> list[torch.nn.Parameter]:
    """The parameters that have gradients, of a list of parameters or of groups."""
    found = []
    for one in params:
        members = one["params"] if isinstance(one, dict) else [one]
        if not all(isinstance(member, torch.Tensor) for member in members):
            raise NotImplementedError(f"Parameter input of type {type(one)} is not supported")
        found += [member for member in members if member.grad is not None]
    return found


def average_parameters_or_parameter_groups(
    params: Params, process_group: dist.ProcessGroup | None
) -> None:
    """Averages the parameters that have gradients."""
    average_parameters(get_params_to_average(params), process_group)
