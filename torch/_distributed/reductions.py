"""all_reduce of what the engines do not take: several tensors of one rank, which are reduced among
themselves too, and sparse tensors. Both are done when the call returns."""

from __future__ import annotations

from typing import Any

import torch
from torch._distributed import options as _o
from torch._distributed.work import Work, create_work_from_future
from torch.futures import Future

Tensor = torch.Tensor

_LOCAL = {
    _o.RedOpType.SUM: torch.add,
    _o.RedOpType.AVG: torch.add,
    _o.RedOpType.PRODUCT: torch.mul,
    _o.RedOpType.MIN: torch.minimum,
    _o.RedOpType.MAX: torch.maximum,
    _o.RedOpType.BAND: torch.bitwise_and,
    _o.RedOpType.BOR: torch.bitwise_or,
    _o.RedOpType.BXOR: torch.bitwise_xor,
}


def check_alike(tensors: list[Tensor]) -> None:
    """Tensors of one rank that are reduced must have one dtype and one size."""
    first = tensors[0]
    for i, tensor in enumerate(tensors[1:]):
        if (tensor.dtype, tensor.layout, tensor.device) != (
            first.dtype,
            first.layout,
            first.device,
        ):
            raise RuntimeError(
                f"allreduce: invalid tensor type at index {i} (expected {first.dtype} on "
                f"{first.device}, got {tensor.dtype} on {tensor.device})"
            )
        if tensor.shape != first.shape:
            raise RuntimeError(
                f"allreduce: invalid tensor size at index {i} (expected {tuple(first.shape)}, got "
                f"{tuple(tensor.shape)})"
            )


def reduce_several(group: Any, tensors: list[Tensor], opts: Any) -> Any:
    """Reduces all tensors of all ranks; each of the list becomes the result."""
    check_alike(tensors)
    kind, _ = _o.kind_and_factor(opts.reduceOp)
    local = _LOCAL.get(_o.RedOpType(kind))
    if local is None:
        raise NotImplementedError(f"allreduce of several tensors is not implemented for {kind}")
    for tensor in tensors[1:]:
        tensors[0].copy_(local(tensors[0], tensor))
    group.allreduce(tensors[:1], opts).wait()
    for tensor in tensors[1:]:
        tensor.copy_(tensors[0])
    return _done(tensors)


def _done(tensors: list[Tensor]) -> Work:
    future = Future()
    future.set_result(tensors)
    return create_work_from_future(future)


def reduce_sparse(group: Any, tensors: list[Tensor], opts: Any) -> Any:
    """Adds up sparse tensors: ranks have different numbers of elements, so the numbers go first,
    then indices and values of as many as the most has."""
    kind, _ = _o.kind_and_factor(opts.reduceOp)
    if _o.RedOpType(kind) != _o.RedOpType.SUM:
        raise RuntimeError(
            "allreduce: unsupported reduction operation (allreduce of sparse tensors only works "
            "with ReduceOp.SUM)"
        )
    check_alike(tensors)
    mine = tensors[0]
    for tensor in tensors[1:]:
        mine = mine + tensor
    mine = mine.coalesce()
    shape = torch.tensor([mine.sparse_dim(), mine._nnz(), *mine.shape])
    every = [torch.empty_like(shape) for _ in range(group.size())]
    group.allgather([every], [shape]).wait()
    for rank, other in enumerate(every):
        if other[0] != shape[0] or not torch.equal(other[2:], shape[2:]):
            raise RuntimeError(
                f"allreduce: sparse tensor of size {tuple(other[2:].tolist())} on rank {rank} and "
                f"{tuple(mine.shape)} on rank {group.rank()}"
            )
    counts = [int(other[1]) for other in every]
    most = max(counts)
    parts = []
    for part, dim in ((mine._indices(), 1), (mine._values(), 0)):
        size = list(part.shape)
        size[dim] = most
        sent = part.new_zeros(size)
        sent.narrow(dim, 0, part.size(dim)).copy_(part)
        got = [torch.empty_like(sent) for _ in counts]
        group.allgather([got], [sent]).wait()
        parts.append(
            torch.cat([t.narrow(dim, 0, n) for t, n in zip(got, counts, strict=True)], dim)
        )
    total = torch.sparse_coo_tensor(*parts, mine.shape).coalesce()
    for tensor in tensors:
        tensor.copy_(total)
    return _done(tensors)
