"""Collectives that gradients flow through."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import Function
from torch.distributed import ReduceOp, group

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

Tensor = torch.Tensor
Reduction = ReduceOp.RedOpType | ReduceOp


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Reduction, group: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.op = group, op
        tensor = tensor.clone()
        dist.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        tensor = tensor.clone()
        dist.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if dist.get_rank() == ctx.src else torch.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Reduction, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        dist.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Tensor], *tensors: Tensor) -> tuple:
        ctx.group = group
        ctx.shapes = [tensor.shape for tensor in tensors]
        dist.all_to_all(outputs, [tensor.contiguous() for tensor in tensors], group=group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        back = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, back, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: Tensor, out_splits: list, in_splits: list, tensor: Tensor
    ) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        ctx.splits = (in_splits, out_splits)
        dist.all_to_all_single(output, tensor.contiguous(), out_splits, in_splits, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        back = grad.new_empty(ctx.shape)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, back, *ctx.splits, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple:
        ctx.group = group
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor.contiguous(), group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        out = torch.empty_like(grads[0])
        dist.reduce_scatter(out, [grad.contiguous() for grad in grads], group=ctx.group)
        return None, out


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Reduction, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        dist.reduce_scatter(output, [t.contiguous() for t in tensors], op, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple:
        ctx.dst, ctx.group = dst, group
        parts = [torch.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        here = dist.get_rank() == dst
        dist.gather(tensor.contiguous(), parts if here else None, dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        output = torch.zeros_like(tensors[0])
        here = dist.get_rank() == src
        parts = [tensor.contiguous() for tensor in tensors] if here else None
        dist.scatter(output, parts, src, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


def broadcast(tensor: Tensor, src: int, group: Any = group.WORLD) -> Tensor:
    """Rank src's tensor, on every rank."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """Every rank's tensor, on rank dst."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = group.WORLD) -> Tensor:
    """One of rank src's tensors for each rank."""
    return _Scatter.apply(src, group, *tensors)


def reduce(
    tensor: Tensor, dst: int, op: Reduction = ReduceOp.SUM, group: Any = group.WORLD
) -> Tensor:
    """The tensors of all ranks reduced, on rank dst."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Reduction = ReduceOp.SUM, group: Any = group.WORLD
) -> Tensor:
    """One tensor per rank reduced over all ranks; this rank's."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Tensor, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """Every rank's tensor."""
    return _AllGather.apply(group, tensor)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = group.WORLD
) -> tuple[Tensor, ...]:
    """One tensor from each rank for this one."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = group.WORLD,
) -> Tensor:
    """A part of each rank's tensor for this one."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Reduction = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """The tensors of all ranks reduced, on every rank."""
    return _AllReduce.apply(op, group, tensor)
