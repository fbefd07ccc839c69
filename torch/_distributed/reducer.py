"""Reducer: averages the gradients of a model over the ranks during its backward pass. The work is
C++ (torch/csrc/distributed/c10d/Reducer.h); here are buckets by size, hooks on communication and
what DistributedDataParallel needs besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import _c10d
from torch._distributed.group import ProcessGroup
from torch._distributed.options import AllreduceOptions, BroadcastOptions, BuiltinCommHookType
from torch.futures import Future

Tensor = torch.Tensor
FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """Gradients that are exchanged together."""

    def __init__(self, index: int, count: int, parts: tuple[Tensor, list[Tensor], list]) -> None:
        self._index, self._count = index, count
        self._buffer, self._gradients, self._parameters = parts

    def index(self) -> int:
        """The bucket's number; they are exchanged in this order."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as one flat tensor."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as parts of the flat tensor."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of the gradients."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether no bucket comes after this one."""
        return self._index == self._count - 1

    def set_buffer(self, tensor: Tensor) -> None:
        """Puts other values in the place of the gradients."""
        self._buffer.copy_(tensor)


def _result(future: Future) -> Tensor | None:
    if not hasattr(future, "wait"):
        raise RuntimeError(
            "DDP communication hook's callback must return a torch.futures.Future object, but got "
            f"{type(future).__module__}.{type(future).__qualname__}"
        )
    value = future.wait()
    return value[0] if isinstance(value, (list, tuple)) else value


class Reducer(_c10d._Reducer):
    """Hooks on the parameters that exchange their gradients bucket by bucket."""

    def __init__(
        self,
        params: Sequence[Tensor],
        bucket_indices: list[list[int]],
        per_bucket_size_limits: Sequence[int],
        process_group: ProcessGroup,
        expect_sparse_gradients: Sequence[bool] = (),
        bucket_bytes_cap: int = 25 << 20,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        param_to_name_mapping: dict[int, str] | None = None,
        first_bucket_bytes_cap: int = FIRST_BUCKET_BYTES,
        **rest: Any,
    ) -> None:
        super().__init__()
        self._params = list(params)
        self._group = process_group
        self._limits = (first_bucket_bytes_cap, bucket_bytes_cap)
        self._may_rebuild = not find_unused_parameters
        self._hook: Callable[[GradBucket], Future] | None = None
        names = param_to_name_mapping or {}
        self._open(
            self._params,
            bucket_indices,
            self._plain_exchange(),
            process_group.size(),
            find_unused_parameters,
            gradient_as_bucket_view,
            [names.get(i, "") for i in range(len(self._params))],
        )

    def _plain_exchange(self) -> Any:
        """The backend itself where it is C++, else calls of the group."""
        group = self._group
        overridden = type(group).allreduce is not ProcessGroup.allreduce
        backend = None if overridden else group._get_backend(self._params[0].device)
        if backend is not None and backend._own_rank is None:
            return backend
        return (lambda i: self._run_allreduce_hook(self._grad_bucket(i)), _result, self._add_up)

    def _grad_bucket(self, index: int) -> GradBucket:
        return GradBucket(index, self._bucket_count(), self._bucket(index))

    def _add_up(self, tensor: Tensor) -> None:
        self._group.allreduce([tensor]).wait()

    def _run_allreduce_hook(self, bucket: GradBucket) -> Future:
        return self._group.allreduce([bucket.buffer()]).get_future()

    def _run_comm_hook(self, bucket: GradBucket) -> Future:
        return self._hook(bucket) if self._hook else self._run_allreduce_hook(bucket)

    def register_comm_hook(self, hook: Callable[[GradBucket], Future]) -> None:
        """Gives the exchange of each bucket to a function that returns a future of the result;
        it does the division, too."""
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._hook = hook
        functions = (lambda i: hook(self._grad_bucket(i)), _result, self._add_up)
        self._set_exchange(functions, False)

    # How many forward passes have begun.
    forward_passes = 0

    def prepare_for_forward(self) -> None:
        """Counts a forward pass that begins; nothing else is kept between passes."""
        self.forward_passes += 1

    def prepare_for_backward(self, outputs: Tensor | Sequence[Tensor]) -> None:
        """The next backward pass exchanges its gradients."""
        self._prepare_for_backward([outputs] if isinstance(outputs, Tensor) else list(outputs))

    def _rebuild_buckets(self, shadows: bool = False) -> bool:
        """After the first pass: buckets in the order in which gradients came, which rank 0 says.
        A rank that `shadows` the passes of others may have had none itself."""
        order = self._arrival()
        if shadows and not order:
            order = list(range(len(self._params)))[::-1]
        if not self._may_rebuild or len(order) != len(self._params):
            return False
        self._may_rebuild = False
        told = torch.tensor(order, dtype=torch.int64)
        device = self._params[0].device
        told = told.to(device)
        self._group.broadcast([told], _root(0)).wait()
        order = told.tolist()
        tensors = [self._params[i] for i in order]
        buckets, _ = compute_bucket_assignment_by_size(tensors, list(self._limits))
        self._set_buckets([[order[k] for k in bucket] for bucket in buckets])
        return True


def _root(rank: int) -> BroadcastOptions:
    made = BroadcastOptions()
    made.rootRank, made.asyncOp = rank, False
    return made


def register_comm_hook(
    reducer: Reducer, state: Any, hook: Callable[[Any, GradBucket], Any]
) -> None:
    """Gives the exchange of gradients to hook(state, bucket)."""
    reducer.register_comm_hook(lambda bucket: hook(state, bucket))


def register_builtin_comm_hook(reducer: Reducer, kind: BuiltinCommHookType) -> None:
    """Gives the exchange of gradients to one of our own hooks."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    halves = kind == BuiltinCommHookType.FP16_COMPRESS
    hook = default_hooks.fp16_compress_hook if halves else default_hooks.allreduce_hook
    register_comm_hook(reducer, reducer._group, hook)


# ---- buckets and states --------------------------------------------------------------------------
def compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor],
    bucket_size: Sequence[int],
    expect_sparse_gradient: Sequence[bool] = (),
    tensor_indices: Sequence[int] = (),
    logger: Any = None,
) -> tuple[list[list[int]], list[int]]:
    """Indices of tensors in buckets of one dtype and device; a bucket is full at its limit, and the
    last limit holds for all further ones."""
    if not tensors:
        raise ValueError("compute_bucket_assignment_by_size: expected at least one tensor")
    open_buckets: dict[tuple, tuple[list[int], int, int]] = {}
    done: list[tuple[list[int], int]] = []
    opened: dict[tuple, int] = {}
    for i, tensor in enumerate(tensors):
        index = tensor_indices[i] if tensor_indices else i
        if expect_sparse_gradient and expect_sparse_gradient[index]:
            done.append(([index], 0))
            continue
        key = (tensor.dtype, tensor.device)
        number = opened.get(key, 0)
        limit = bucket_size[min(number, len(bucket_size) - 1)]
        members, size, _ = open_buckets.get(key, ([], 0, 0))
        members.append(index)
        size += tensor.numel() * tensor.element_size()
        open_buckets[key] = (members, size, limit)
        if size >= limit:
            done.append((members, limit))
            del open_buckets[key]
            opened[key] = number + 1
    done.extend((members, limit) for members, _, limit in open_buckets.values())
    if not tensor_indices:
        done.sort(key=lambda entry: min(entry[0]))
    return [members for members, _ in done], [limit for _, limit in done]


def broadcast_coalesced(
    group: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int, rank: int = 0
) -> None:
    """Gives the tensors the values that rank `rank` of the group has, in few messages."""
    if not tensors:
        return
    buckets, _ = compute_bucket_assignment_by_size(tensors, [buffer_size])
    with torch.no_grad():
        for bucket in buckets:
            members = [tensors[i].detach() for i in bucket]
            flat = torch.cat([tensor.reshape(-1) for tensor in members])
            group.broadcast([flat], _root(rank)).wait()
            if group.rank() == rank:
                continue
            at = 0
            for tensor in members:
                tensor.copy_(flat[at : at + tensor.numel()].view(tensor.shape))
                at += tensor.numel()


def verify_params_across_processes(
    group: ProcessGroup, params: Sequence[Tensor], logger: Any = None
) -> None:
    """Raises on every rank where its parameters differ in number or shape from those of rank 0."""
    device = params[0].device if params else torch.device("cpu")
    counts = torch.zeros(group.size(), dtype=torch.int64, device=device)
    group._allgather_base(counts, torch.tensor([len(params)], device=device)).wait()
    for rank, count in enumerate(counts.tolist()):
        if count != len(params):
            raise RuntimeError(
                "DDP expects same model across all ranks, but Rank "
                f"{group.rank()} has {len(params)} params, while rank {rank} has inconsistent "
                f"{count} params."
            )
    rows = [[p.dim(), *p.shape] for p in params]
    longest = max((len(row) for row in rows), default=1)
    # Every rank takes part in the exchange, whatever its shapes are.
    size = torch.tensor([longest], device=device)
    largest = AllreduceOptions()
    from torch._distributed.options import RedOpType

    largest.reduceOp = RedOpType.MAX
    group.allreduce([size], largest).wait()
    mine = torch.full((len(params), int(size)), -1, dtype=torch.int64)
    for i, row in enumerate(rows):
        mine[i, : len(row)] = torch.tensor(row, dtype=torch.int64)
    told = mine.to(device).clone()
    group.broadcast([told], _root(0)).wait()
    differ = (told.cpu() != mine).any(1).nonzero().flatten().tolist()
    anyone = torch.tensor([len(differ)], device=device)
    group.allreduce([anyone]).wait()
    if differ:
        i = differ[0]
        theirs = [n for n in told[i, 1:].tolist() if n >= 0]
        raise RuntimeError(
            f"[{group.rank()}]: params[{i}] in this process with sizes {list(params[i].shape)} "
            f"appears not to match sizes of the same param in process 0.\n  there: {theirs}"
        )
    if int(anyone):
        raise RuntimeError("DDP expects same model across all ranks: another rank's params differ")
