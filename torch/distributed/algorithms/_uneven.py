"""DistributedDataParallel when some ranks have fewer inputs: what a rank that has none left does in
the iterations of the others, and what sparse gradients need beside the buckets of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._distributed.reducer import GradBucket, broadcast_coalesced
from torch.distributed.algorithms.join import JoinHook

Tensor = torch.Tensor


def highest_rank(model: Any, takes_part: bool) -> int:
    """The highest rank of a model's group among those that take part."""
    own = model.process_group.rank() if takes_part else -1
    found = torch.tensor([own], device=model.device)
    dist.all_reduce(found, dist.ReduceOp.MAX, group=model.process_group)
    return int(found)


def exchanges_gradients(model: Any, wanted: bool) -> bool:
    """Whether a rank's pass will exchange gradients."""
    count = torch.tensor([int(wanted)], device=model.device)
    dist.all_reduce(count, group=model.process_group)
    return int(count) > 0


class DataParallelJoinHook(JoinHook):
    """Shadows of a forward and backward pass; at the end all get what the last ranks have."""

    def __init__(self, model: Any, divide_by_initial_world_size: bool) -> None:
        self._model, self._rounds = model, 0
        model._divides_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Takes part in one iteration of the ranks that have inputs left."""
        model = self._model
        had_pass = self._rounds > 0 or bool(model.reducer._arrival())
        self._rounds += 1
        if had_pass:
            model.reducer._rebuild_buckets(shadows=True)
        model._sync_buffers(takes_part=False)
        if not exchanges_gradients(model, False):
            return
        reducer = model.reducer
        futures = [self._zeros(i) for i in range(reducer._bucket_count())]
        if model.find_unused_parameters or model.static_graph:
            used = torch.zeros(len(reducer._params), dtype=torch.int32)
            reducer._add_up(used)
        for future in futures:
            future.wait()

    def _zeros(self, index: int) -> Any:
        flat, gradients, parameters = self._model.reducer._bucket(index)
        empty = torch.zeros_like(flat)
        views = [empty.narrow(0, 0, 0)] * len(gradients)
        at = 0
        for i, gradient in enumerate(gradients):
            views[i] = empty[at : at + gradient.numel()].view(gradient.shape)
            at += gradient.numel()
        bucket = GradBucket(index, self._model.reducer._bucket_count(), (empty, views, parameters))
        return self._model.reducer._run_comm_hook(bucket)

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks get parameters and buffers of one that joined last."""
        model = self._model
        model._leave_join()
        root = highest_rank(model, is_last_joiner)
        states = [p.detach() for _, p in model._named_parameters()] + model._buffers_to_send()
        broadcast_coalesced(model.process_group, states, 250 << 20, root)


def average_sparse(model: Any, hook_of: Callable[[], Any]) -> Callable[[Tensor], None]:
    """A hook on a parameter whose gradients are sparse: they are averaged when they are complete,
    by the model's hook on communication where there is one."""

    def average(parameter: Tensor) -> None:
        if not model._exchanges:
            return
        grad, hook = parameter.grad, hook_of()
        if hook is not None:
            future = hook(GradBucket(0, 1, (grad, [grad], [parameter])))
            value = future.wait()
            parameter.grad = value[0] if isinstance(value, (list, tuple)) else value
            return
        total = grad.coalesce().clone() if grad.is_sparse else grad.clone()
        model.process_group.allreduce([total]).wait()
        parameter.grad = total / model.process_group.size()

    return average
