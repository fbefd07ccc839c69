"""The collectives on tensors. Each checks its arguments, turns global ranks into ranks of the group
and hands the work to it; with async_op the caller gets the work, else it is waited for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ProcessGroup,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    Work,
)
from torch.distributed import distributed_c10d as _core

__all__ = [
    "P2POp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "gather", "irecv", "isend", "monitored_barrier", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip

Tensor = torch.Tensor
Group = ProcessGroup | None
Reduction = ReduceOp.RedOpType | ReduceOp


# ---- arguments -----------------------------------------------------------------------------------
def _check_tensor(param: Any, name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(param)} instead."
        )


def _check_tensor_list(param: Any, name: str) -> None:
    if not isinstance(param, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(param)} instead."
        )
    if not all(isinstance(one, Tensor) for one in param):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(param)} with elements of type "
            f"{[type(one) for one in param]}."
        )


def _check_same_dtype(*tensors: Any) -> None:
    dtypes: set[torch.dtype] = set()
    for one in tensors:
        dtypes.update(t.dtype for t in ([one] if isinstance(one, Tensor) else one))
    if len(dtypes) > 1:
        raise ValueError(
            f"Invalid usage of tensors with different dtypes: found {', '.join(map(str, dtypes))}"
        )


def _root(
    group: ProcessGroup, global_rank: int | None, group_rank: int | None, default: int | None = None
) -> int:
    """The rank within the group, given as a global one or as one of the group."""
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both the global rank and the rank within the group")
    if group_rank is not None:
        return group_rank
    if global_rank is None:
        global_rank = default
    if global_rank is None:
        raise ValueError("Must specify the global rank or the rank within the group")
    if group is _core.GroupMember.WORLD:
        return global_rank
    return _core.get_group_rank(group, global_rank)


def _outside(group: Any, name: str) -> bool:
    if not _core._rank_not_in_group(group):
        return False
    _core._warn_not_in_group(name)
    return True


def _ended(work: Work | None, async_op: bool) -> Work | None:
    if async_op or work is None:
        return work if async_op else None
    work.wait()
    return None


def _options(cls: Callable[[], Any], async_op: bool, **fields: Any) -> Any:
    made = cls()
    made.asyncOp = async_op
    for name, value in fields.items():
        setattr(made, name, value)
    return made


# ---- point to point ------------------------------------------------------------------------------
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts to send a tensor to a rank."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "isend"):
        return None
    pg = _core._group_or_default(group)
    to = _root(pg, dst, group_dst)
    if to == pg.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as "
            "the rank of the current process."
        )
    return pg.send([tensor], to, tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts to receive a tensor from a rank, or from whoever sends first."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "irecv"):
        return None
    pg = _core._group_or_default(group)
    if src is None and group_src is None:
        return pg.recv_anysource([tensor], tag)
    return pg.recv([tensor], _root(pg, src, group_src), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to a rank."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor; returns the global rank that sent it, -1 outside of the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    pg = _core._group_or_default(group)
    return _core.get_global_rank(pg, work._source_rank() if group_src is None else group_src)


class P2POp:
    """A send or receive for batch_isend_irecv."""

    def __init__(
        self,
        op: Callable,
        tensor: Tensor,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _core._group_or_default(group)
        self.group_peer = _root(self.group, peer, group_peer)
        self.peer = _core.get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        me = _core.get_rank(self.group)
        name = self.op.__name__
        return (
            f"P2POp({name} pg={self.group.group_name}, group_src={me}, "
            f"group_dst={self.group_peer},  {self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts several sends and receives."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``: it is empty")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    group, device = p2p_op_list[0].group, p2p_op_list[0].tensor.device
    # Transfers of NCCL wait for each other unless they are started as one.
    backend = group._get_backend(device) if isinstance(group, ProcessGroup) else None
    as_one = getattr(backend, "supports_coalescing", False)
    works = []
    if as_one:
        group._start_coalescing(device)
    try:
        for op in p2p_op_list:
            if op.op is isend:
                work = isend(op.tensor, group=op.group, tag=op.tag, group_dst=op.group_peer)
            else:
                work = irecv(op.tensor, group=op.group, tag=op.tag, group_src=op.group_peer)
            if work is not None:
                works.append(work)
    finally:
        if as_one:
            group._end_coalescing(device)
    return works


# ---- one to all and back -------------------------------------------------------------------------
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Sends a tensor of one rank to all."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    pg = _core._group_or_default(group)
    opts = _options(BroadcastOptions, async_op, rootRank=_root(pg, src, group_src), rootTensor=0)
    return _ended(pg.broadcast([tensor], opts), async_op)


def all_reduce(
    tensor: Tensor, op: Reduction = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all ranks, in place."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    _check_complex(tensor, op)
    pg = _core._group_or_default(group)
    if pg in _core._world.pg_coalesce_state:
        _core._world.pg_coalesce_state[pg].append(("all_reduce", tensor, None, op))
        return _Coalesced() if async_op else None
    opts = _options(AllreduceOptions, async_op, reduceOp=op)
    return _ended(pg.allreduce([tensor], opts), async_op)


def _check_complex(tensor: Tensor, op: Reduction) -> None:
    if tensor.is_complex() and not _core.supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")


def all_reduce_coalesced(
    tensors: list[Tensor],
    op: Reduction = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Any:
    """Reduces several tensors over all ranks, in place, as one operation."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _check_same_dtype([torch.view_as_real(t) if t.is_complex() else t for t in tensors])
    if _outside(group, "all_reduce_coalesced"):
        return None
    for one in tensors:
        _check_complex(one, op)
    opts = _options(AllreduceCoalescedOptions, async_op, reduceOp=op)
    work = _core._group_or_default(group).allreduce_coalesced(list(tensors), opts)
    return work.get_future() if async_op else _ended(work, False)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Reduction = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all ranks; one rank gets the result."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    pg = _core._group_or_default(group)
    opts = _options(ReduceOptions, async_op, reduceOp=op, rootRank=_root(pg, dst, group_dst))
    return _ended(pg.reduce([tensor], opts), async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """One rank gets every rank's tensor."""
    _check_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    else:
        gather_list = []
    _check_same_dtype(tensor, gather_list)
    if _outside(group, "gather"):
        return None
    pg = _core._group_or_default(group)
    root = _root(pg, dst, group_dst, 0)
    if pg.rank() == root and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if pg.rank() != root and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    opts = _options(GatherOptions, async_op, rootRank=root)
    outputs = [gather_list] if pg.rank() == root else []
    return _ended(pg.gather(outputs, [tensor], opts), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """One rank sends a tensor to each rank."""
    _check_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_same_dtype(tensor, scatter_list)
    if _outside(group, "scatter"):
        return None
    pg = _core._group_or_default(group)
    root = _root(pg, src, group_src, 0)
    if pg.rank() == root and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if pg.rank() != root and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    opts = _options(ScatterOptions, async_op, rootRank=root)
    inputs = [scatter_list] if pg.rank() == root else []
    return _ended(pg.scatter([tensor], inputs, opts), async_op)


# ---- all to all ----------------------------------------------------------------------------------
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Every rank gets every rank's tensor."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if _outside(group, "all_gather"):
        return None
    pg = _core._group_or_default(group)
    opts = _options(AllgatherOptions, async_op)
    return _ended(pg.allgather([list(tensor_list)], [tensor], opts), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Every rank gets every rank's tensor, one after the other in one."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    _check_same_dtype(output_tensor, input_tensor)
    if _outside(group, "all_gather_into_tensor"):
        return None
    pg = _core._group_or_default(group)
    if pg in _core._world.pg_coalesce_state:
        entry = ("all_gather_into_tensor", input_tensor, output_tensor, None)
        _core._world.pg_coalesce_state[pg].append(entry)
        return _Coalesced() if async_op else None
    opts = _options(AllgatherOptions, async_op)
    return _ended(pg._allgather_base(output_tensor, input_tensor, opts), async_op)


_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Any:
    """Every rank gets every rank's list of tensors."""
    if _outside(group, "all_gather_coalesced"):
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for one in output_tensor_lists:
        _check_tensor_list(one, "output_tensor_lists")
        _check_same_dtype(one)
    pg = _core._group_or_default(group)
    opts = _options(AllgatherOptions, async_op)
    work = pg.allgather_coalesced(output_tensor_lists, input_tensor_list, opts)
    return work.get_future() if async_op else _ended(work, False)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Reduction = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces one tensor per rank over all ranks; each rank gets its own."""
    _check_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_same_dtype(output, input_list)
    if _outside(group, "reduce_scatter"):
        return None
    pg = _core._group_or_default(group)
    opts = _options(ReduceScatterOptions, async_op, reduceOp=op)
    return _ended(pg.reduce_scatter([output], [list(input_list)], opts), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Reduction = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces a tensor over all ranks; each rank gets its part."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_same_dtype(output, input)
    if _outside(group, "reduce_scatter_tensor"):
        return None
    pg = _core._group_or_default(group)
    if pg in _core._world.pg_coalesce_state:
        entry = ("reduce_scatter_tensor", input, output, op)
        _core._world.pg_coalesce_state[pg].append(entry)
        return _Coalesced() if async_op else None
    opts = _options(ReduceScatterOptions, async_op, reduceOp=op)
    return _ended(pg._reduce_scatter_base(output, input, opts), async_op)


_reduce_scatter_base = reduce_scatter_tensor


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Every rank sends a part of its tensor to each rank."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_same_dtype(output, input)
    if _outside(group, "all_to_all_single"):
        return None
    # Splits count rows of memory.
    if not (output.is_contiguous() and input.is_contiguous()):
        raise ValueError("Tensors must be contiguous")
    pg = _core._group_or_default(group)
    opts = _options(AllToAllOptions, async_op)
    splits = (_numbers(output_split_sizes), _numbers(input_split_sizes))
    return _ended(pg.alltoall_base(output, input, *splits, opts), async_op)


def _numbers(splits: Sequence[int] | Tensor | None) -> list[int]:
    if isinstance(splits, Tensor):
        return splits.tolist()
    return [] if splits is None else [int(one) for one in splits]


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Every rank sends one tensor to each rank."""
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    if _outside(group, "all_to_all"):
        return None
    pg = _core._group_or_default(group)
    opts = _options(AllToAllOptions, async_op)
    return _ended(pg.alltoall(output_tensor_list, input_tensor_list, opts), async_op)


# ---- barriers ------------------------------------------------------------------------------------
def barrier(
    group: Group = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until every rank has come here."""
    if _outside(group, "barrier"):
        return None
    opts = _options(BarrierOptions, async_op)
    if timeout is not None:
        _core._check_valid_timeout(timeout)
        opts.timeout = timeout
    if device_ids is not None:
        if not isinstance(device_ids, list):
            raise TypeError("Invalid function argument: device_ids type should be List[int]")
        opts.device_ids = device_ids
    pg = _core._group_or_default(group)
    return _ended(pg.barrier(opts=opts), async_op)


def monitored_barrier(
    group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier whose error says which ranks did not come; for the Gloo backend."""
    if _core._rank_not_in_group(group):
        _core._warn_not_in_group("monitored_barrier")
        return
    if _core.get_backend(group) not in ("gloo", "cpu:gloo"):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    if timeout is None:
        timeout = _core.default_pg_timeout
    elif isinstance(timeout, float):
        warnings.warn("Please specify timeout arg as a timedelta.", stacklevel=2)
        timeout = timedelta(seconds=timeout)
    _core._check_valid_timeout(timeout)
    pg = _core._group_or_default(group)
    pg.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


# ---- coalescing ----------------------------------------------------------------------------------
class _Coalesced(Work):
    """Stands for work that the manager around the call will start and wait for."""

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """The manager waits."""
        return True


class _CoalescingManager:
    """The work of the operations inside a _coalescing_manager block."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Adds work to wait for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for all of it."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: Group = None, device: torch.device | None = None, async_ops: bool | None = False
) -> Iterator[_CoalescingManager]:
    """Operations of one kind inside the block become one."""
    pg = _core._group_or_default(group)
    if pg in _core._world.pg_coalesce_state:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    found = _core._world.pg_coalesce_state[pg] = []
    manager = _CoalescingManager()
    try:
        yield manager
    finally:
        _core._world.pg_coalesce_state.pop(pg)
    kinds = {entry[0] for entry in found}
    if len(kinds) > 1:
        raise AssertionError(f"Coalescing different kinds of operations is not possible: {kinds}")
    if found:
        manager.append(_start_together(pg, found, bool(async_ops)))
    if not async_ops:
        manager.wait()


def _start_together(pg: ProcessGroup, found: list[tuple], async_op: bool) -> Work:
    kind, op = found[0][0], found[0][3]
    inputs, outputs = [entry[1] for entry in found], [entry[2] for entry in found]
    if kind == "all_reduce":
        opts = _options(AllreduceCoalescedOptions, async_op, reduceOp=op)
        return pg.allreduce_coalesced(inputs, opts)
    if kind == "all_gather_into_tensor":
        opts = _options(AllgatherOptions, async_op)
        return pg.allgather_into_tensor_coalesced(outputs, inputs, opts)
    opts = _options(ReduceScatterOptions, async_op, reduceOp=op)
    return pg.reduce_scatter_tensor_coalesced(outputs, inputs, opts)
