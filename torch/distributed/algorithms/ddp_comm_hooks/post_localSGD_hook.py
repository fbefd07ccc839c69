"""Post-local SGD: after some steps gradients are averaged within a subgroup only, or not at all,
and an averager brings the parameters of all ranks together now and then."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The groups, and the step from which gradients stay within the subgroup."""

    __slots__ = [
        "iter",
        "post_local_gradient_allreduce",
        "process_group",
        "start_localSGD_iter",
        "subgroup",
    ]

    def __init__(
        self,
        process_group: dist.ProcessGroup | None,
        subgroup: dist.ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts a step with its last bucket."""
        self.iter += bool(bucket.is_last())


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future:
    """The average over all, later over the subgroup: without one, the ranks of this machine."""
    is_local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not is_local:
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
