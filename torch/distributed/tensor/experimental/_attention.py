"""Attention over a sequence that is cut among processes. Inside of `context_parallel` each process
has a part of the tokens, and scaled_dot_product_attention lets its queries see the keys of all:
they are gathered at once, or travel around a ring while a running softmax is kept. With a causal
mask the first tokens have little to do and the last much; each process therefore gets one piece
from the front and one from the back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.nn.functional import all_gather
from torch.overrides import TorchFunctionMode

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

Tensor = torch.Tensor


class _RotateMethod(Enum):
    ALL_TO_ALL = auto()
    ALL_GATHER = auto()


@dataclass
class _Options:
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER
    enable_load_balance: bool = True


_cp_options = _Options()
_METHODS = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values come to the other processes: "allgather" or "alltoall" (a ring)."""
    if rotate_method not in _METHODS:
        raise NotImplementedError(
            f"set_rotate_method: unknown method {rotate_method!r}, expected one of {list(_METHODS)}"
        )
    _cp_options.rotate_method = _METHODS[rotate_method]


def _positions(rank: int, size: int, length: int, balanced: bool) -> Tensor:
    """Which tokens of the whole a process has."""
    pieces = 2 * size if balanced else size
    if length % pieces:
        raise ValueError(
            f"context_parallel: a sequence of {length} tokens cannot be cut into {pieces} equal "
            f"pieces for {size} processes"
        )
    at = torch.arange(length).chunk(pieces)
    return torch.cat([at[rank], at[pieces - 1 - rank]]) if balanced else at[rank]


class _Rotate(torch.autograd.Function):
    """Hands a tensor to the next process of the ring; gradients go back the other way."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: _core.ProcessGroup, step: int) -> Tensor:
        ctx.group, ctx.step = group, step
        rank, size = group.rank(), group.size()
        tensor = tensor.contiguous()
        received = torch.empty_like(tensor)
        to, source = (_core.get_global_rank(group, (rank + way) % size) for way in (step, -step))
        for work in _core.batch_isend_irecv(
            [
                _core.P2POp(_core.isend, tensor, to, group),
                _core.P2POp(_core.irecv, received, source, group),
            ]
        ):
            work.wait()
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Rotate.apply(grad, ctx.group, -ctx.step), None, None


@dataclass
class _Call:
    """One call of attention on this process's part."""

    group: _core.ProcessGroup
    balanced: bool
    causal: bool
    scale: float

    def mask(self, length: int, source: int) -> Tensor | None:
        """Which keys of a process this one's queries see; None for all."""
        if not self.causal:
            return None
        size = self.group.size()
        mine = _positions(self.group.rank(), size, length * size, self.balanced)
        theirs = _positions(source, size, length * size, self.balanced)
        return mine[:, None] >= theirs[None, :]

    def gathered(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention to the keys of all processes at once."""
        keys, values = (torch.cat(all_gather(t.contiguous(), self.group), -2) for t in (key, value))
        masks = [self.mask(query.size(-2), rank) for rank in range(self.group.size())]
        mask = torch.cat(masks, 1).to(query.device) if self.causal else None
        return F.scaled_dot_product_attention(query, keys, values, mask, scale=self.scale)

    def ring(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention to the keys of one process after the other, beginning with the own."""
        size, rank = self.group.size(), self.group.rank()
        total, weight, top = None, None, None
        for step in range(size):
            if step:
                key, value = _Rotate.apply(torch.stack([key, value]), self.group, 1).unbind(0)
            scores = query @ key.transpose(-2, -1) * self.scale
            mask = self.mask(query.size(-2), (rank - step) % size)
            if mask is not None:
                scores = scores.masked_fill(~mask.to(scores.device), -math.inf)
            # The largest score only keeps exp in range: it drops out of the result.
            highest = scores.detach().amax(-1, keepdim=True)
            above = highest if top is None else torch.maximum(top, highest)
            grown = (scores - above).exp()
            here, mass = grown @ value, grown.sum(-1, keepdim=True)
            if top is None:
                total, weight = here, mass
            else:
                fade = (top - above).exp()
                total, weight = total * fade + here, weight * fade + mass
            top = above
        return total / weight


class _Distributed(TorchFunctionMode):
    """Makes scaled_dot_product_attention see the tokens of all processes."""

    def __init__(self, group: _core.ProcessGroup, options: _Options) -> None:
        super().__init__()
        self._group, self._options = group, options

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if attn_mask is not None or dropout_p:
            raise NotImplementedError(
                "context_parallel: scaled_dot_product_attention with attn_mask or dropout_p"
            )
        if query.size(-2) != key.size(-2):
            raise NotImplementedError(
                "context_parallel: queries and keys of different lengths, "
                f"{query.size(-2)} and {key.size(-2)}"
            )
        if enable_gqa:
            times = query.size(-3) // key.size(-3)
            key, value = (t.repeat_interleave(times, -3) for t in (key, value))
        factor = query.size(-1) ** -0.5 if scale is None else scale
        call = _Call(self._group, self._options.enable_load_balance, is_causal, factor)
        is_ring = self._options.rotate_method is _RotateMethod.ALL_TO_ALL
        return (call.ring if is_ring else call.gathered)(query, key, value)


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: list[Tensor] | None = None,
    buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:
    """Inside, the buffers hold this process's tokens, and attention sees those of all. At the end
    they are whole again, except those of no_restore_buffers."""
    cut, dims = list(buffers or ()), list(buffer_seq_dims or ())
    kept = list(no_restore_buffers or ())
    if len(cut) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    for one in kept:
        if not any(one is other for other in cut):
            raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    options = _Options(_cp_options.rotate_method, _cp_options.enable_load_balance)
    group = mesh.get_group()
    whole = []
    with torch.no_grad():
        for tensor, dim in zip(cut, dims, strict=True):
            at = _positions(
                group.rank(), group.size(), tensor.size(dim), options.enable_load_balance
            )
            whole.append(None if any(tensor is one for one in kept) else tensor.clone())
            part = tensor.index_select(dim, at.to(tensor.device))
            tensor.resize_(part.shape).copy_(part)
    try:
        with _Distributed(group, options):
            yield
    finally:
        with torch.no_grad():
            for tensor, before in zip(cut, whole, strict=True):
                if before is not None:
                    tensor.resize_(before.shape).copy_(before)


@torch.no_grad()
def context_parallel_unshard(
    mesh: DeviceMesh, buffers: list[Tensor], seq_dims: list[int]
) -> list[Tensor]:
    """Tensors that are cut along a sequence, whole and in order."""
    group = mesh.get_group()
    size, found = group.size(), []
    for tensor, dim in zip(buffers, seq_dims, strict=True):
        parts = [torch.empty_like(tensor.contiguous()) for _ in range(size)]
        _core.all_gather(parts, tensor.contiguous(), group=group)
        length = tensor.size(dim) * size
        order = [
            _positions(rank, size, length, _cp_options.enable_load_balance) for rank in range(size)
        ]
        back = torch.cat(order).argsort().to(tensor.device)
        found.append(torch.cat(parts, dim).index_select(dim, back))
    return found
