"""Collectives as functions: they return new tensors and name their group, so that graphs can hold
them. The operators are torch.ops._c10d_functional's; each starts its work, and wait_tensor waits
for it. The functions here return tensors that wait on first use, or within a graph at once."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work, _resolve_process_group
from torch.distributed import distributed_c10d as _core
from torch.utils._pytree import tree_map_only

__all__ = [
    "all_gather_tensor", "all_reduce", "all_reduce_coalesced", "all_to_all_single",
    "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_tensor",
    "wait_tensor",
]  # fmt: skip

Tensor = torch.Tensor
Group = Any  # a group, ranks, a mesh, or a mesh and a dimension

_REDUCTIONS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.AVG,
    "product": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "band": dist.ReduceOp.BAND,
    "bor": dist.ReduceOp.BOR,
    "bxor": dist.ReduceOp.BXOR,
}

# Work that was started and not waited for, by the memory it writes.
_pending: dict[int, Work] = {}


def _started(tensor: Tensor, work: Work | None) -> Tensor:
    if work is not None and tensor.numel():
        _pending[tensor.untyped_storage().data_ptr()] = work
    return tensor


def _reduction(name: str) -> Any:
    found = _REDUCTIONS.get(name.lower())
    if found is None:
        raise ValueError(f"Invalid reduce operation {name}; known are {', '.join(_REDUCTIONS)}")
    return found


# ---- operators -----------------------------------------------------------------------------------
_library = torch.library.Library("_c10d_functional", "DEF")


def _define(schema: str) -> Any:
    """Makes an operator of a function; on tensors without data its shape function runs instead."""
    name = schema.partition("(")[0]
    _library.define(schema)

    def register(function: Any) -> Any:
        _library.impl(name, function, "CPU")
        _library.impl(name, function, "CUDA")
        return function

    return register


@_define("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor")
def _all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    return _all_reduce_(input.clone(memory_format=torch.contiguous_format), reduce_op, group_name)


@_define("all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)")
def _all_reduce_(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    group = _resolve_process_group(group_name)
    return _started(input, dist.all_reduce(input, _reduction(reduce_op), group, async_op=True))


@_define("all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]")
def _all_reduce_coalesced(inputs: list[Tensor], reduce_op: str, group_name: str) -> list[Tensor]:
    return [_all_reduce(tensor, reduce_op, group_name) for tensor in inputs]


@_define("all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor")
def _all_gather(input: Tensor, group_size: int, group_name: str) -> Tensor:
    group = _resolve_process_group(group_name)
    input = input.contiguous()
    output = _gathered_like(input, group_size)
    return _started(output, dist.all_gather_into_tensor(output, input, group, async_op=True))


@_define(
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor"
)
def _reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    group = _resolve_process_group(group_name)
    input = input.contiguous()
    output = _scattered_like(input, group_size)
    op = _reduction(reduce_op)
    return _started(output, dist.reduce_scatter_tensor(output, input, op, group, async_op=True))


@_define(
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, "
    "str group_name) -> Tensor"
)
def _all_to_all(
    input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int], group_name: str
) -> Tensor:
    group = _resolve_process_group(group_name)
    input = input.contiguous()
    output = input.new_empty((sum(output_split_sizes), *input.shape[1:]))
    work = dist.all_to_all_single(
        output, input, output_split_sizes, input_split_sizes, group, async_op=True
    )
    return _started(output, work)


@_define("broadcast(Tensor input, int src, str group_name) -> Tensor")
def _broadcast(input: Tensor, src: int, group_name: str) -> Tensor:
    return _broadcast_(input.clone(memory_format=torch.contiguous_format), src, group_name)


@_define("broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)")
def _broadcast_(input: Tensor, src: int, group_name: str) -> Tensor:
    group = _resolve_process_group(group_name)
    return _started(input, dist.broadcast(input, group=group, group_src=src, async_op=True))


@_define("wait_tensor(Tensor tensor) -> Tensor")
def _wait_tensor(tensor: Tensor) -> Tensor:
    work = _pending.pop(tensor.untyped_storage().data_ptr(), None) if tensor.numel() else None
    if work is not None:
        work.wait()
    return tensor


def _gathered_like(input: Tensor, group_size: int) -> Tensor:
    shape = list(input.shape) or [1]
    return input.new_empty((shape[0] * group_size, *shape[1:]))


def _scattered_like(input: Tensor, group_size: int) -> Tensor:
    return input.new_empty((input.shape[0] // group_size, *input.shape[1:]))


for _name, _shape in (
    ("all_reduce", lambda input, op, group: torch.empty_like(input)),
    ("all_reduce_", lambda input, op, group: input),
    ("all_reduce_coalesced", lambda inputs, op, group: [torch.empty_like(t) for t in inputs]),
    ("all_gather_into_tensor", lambda input, size, group: _gathered_like(input, size)),
    ("reduce_scatter_tensor", lambda input, op, size, group: _scattered_like(input, size)),
    (
        "all_to_all_single",
        lambda input, out, into, group: input.new_empty((sum(out), *input.shape[1:])),
    ),
    ("broadcast", lambda input, src, group: torch.empty_like(input)),
    ("broadcast_", lambda input, src, group: input),
    ("wait_tensor", lambda tensor: tensor),
):
    _library.impl(_name, _shape, "Meta")

_ops = torch.ops._c10d_functional


# ---- functions -----------------------------------------------------------------------------------
class AsyncCollectiveTensor(torch.Tensor):
    """The result of a collective that may still run: the first operator that reads it waits, and
    views of it do not. Views share the work with what they are of."""

    elem: Tensor
    _work: list[Work]  # empty when the collective has ended

    @staticmethod
    def __new__(cls, elem: Tensor, work: list[Work] | None = None) -> AsyncCollectiveTensor:
        """Wraps the memory that a collective writes."""
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        made.elem = elem
        found = _pending.pop(elem.untyped_storage().data_ptr(), None) if elem.numel() else None
        made._work = ([] if found is None else [found]) if work is None else work
        return made

    @property
    def completed(self) -> bool:
        """Whether the collective has been waited for."""
        return not self._work

    def wait(self) -> Tensor:
        """The values, as a plain tensor."""
        return self.trigger_wait()

    def trigger_wait(self) -> Tensor:
        """The values, as a plain tensor."""
        while self._work:
            self._work[-1].wait()
            self._work.clear()
        return self.elem

    def tolist(self) -> Any:
        """The values as numbers in lists."""
        return self.wait().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The values as an array."""
        return self.wait().numpy(force=force)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"AsyncCollectiveTensor({self.wait()})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Waits, and runs the operator on plain tensors; a view of one argument stays a promise."""
        if func in _VIEWS and isinstance(args[0], cls):
            return cls(func(args[0].elem, *args[1:], **(kwargs or {})), args[0]._work)
        plain = tree_map_only(cls, cls.trigger_wait, (args, kwargs or {}))
        return func(*plain[0], **plain[1])


_aten = torch.ops.aten
_VIEWS = {
    _aten.view.default, _aten._unsafe_view.default, _aten.slice.Tensor, _aten.select.int,
    _aten.t.default, _aten.transpose.int, _aten.permute.default, _aten.squeeze.dim,
    _aten.unsqueeze.default, _aten.expand.default, _aten.as_strided.default, _aten.alias.default,
    _aten.detach.default,
}  # fmt: skip


def _handed(tensor: Tensor) -> Tensor:
    """The result of a collective as the caller gets it: waited for on first use, or at once where a
    graph is traced, which holds the wait as an operator."""
    traces = type(tensor) is not torch.Tensor or tensor.is_meta or torch.compiler.is_compiling()
    if traces or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None:
        return wait_tensor(tensor)
    return AsyncCollectiveTensor(tensor)


def _resolve_group_name(group: Group, tag: str = "") -> str:
    """The name of a group given in one of several ways."""
    from torch.distributed.device_mesh import DeviceMesh

    if isinstance(group, dist.ProcessGroup):
        return group.group_name
    if isinstance(group, str):
        return group
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together")
        return group.get_group(0).group_name
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1]).group_name
    if isinstance(group, list):
        flat = [rank for one in group for rank in (one if isinstance(one, list) else [one])]
        size = len(group[0]) if isinstance(group[0], list) else len(group)
        return _core._find_or_create_pg_by_ranks_and_tag(tag, flat, size).group_name
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _size(name: str) -> int:
    return _core._get_group_size_by_name(name)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, when its collective has ended."""
    if isinstance(tensor, AsyncCollectiveTensor):
        return tensor.wait()
    return _ops.wait_tensor(tensor)


def broadcast(self: Tensor, src: int, group: Group, tag: str = "") -> Tensor:
    """Rank src's tensor."""
    return _handed(_ops.broadcast(self, src, _resolve_group_name(group, tag)))


def all_reduce(self: Tensor, reduceOp: str, group: Group, tag: str = "") -> Tensor:
    """The tensors of all ranks reduced."""
    return _handed(_ops.all_reduce(self, reduceOp.lower(), _resolve_group_name(group, tag)))


def all_reduce_coalesced(
    self: list[Tensor], reduceOp: str, group: Group, tag: str = ""
) -> list[Tensor]:
    """Several tensors of all ranks reduced."""
    name = _resolve_group_name(group, tag)
    return [_handed(t) for t in _ops.all_reduce_coalesced(self, reduceOp.lower(), name)]


def all_gather_tensor(self: Tensor, gather_dim: int, group: Group, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along a dimension."""
    name = _resolve_group_name(group, tag)
    size = _size(name)
    whole = _ops.all_gather_into_tensor(self.contiguous(), size, name)
    if gather_dim:
        return torch.cat(wait_tensor(whole).chunk(size), gather_dim)
    return _handed(whole)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Group, tag: str = ""
) -> Tensor:
    """This rank's part along a dimension of the tensors of all ranks reduced."""
    name = _resolve_group_name(group, tag)
    size = _size(name)
    if self.size(scatter_dim) % size:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of "
            f"group_size {size}"
        )
    if scatter_dim:
        self = torch.cat(self.chunk(size, scatter_dim))
    op = reduceOp.lower()
    return _handed(_ops.reduce_scatter_tensor(self.contiguous(), op, size, name))


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Group,
    tag: str = "",
) -> Tensor:
    """A part of each rank's tensor."""
    name = _resolve_group_name(group, tag)
    equal = [self.shape[0] // _size(name)] * _size(name)
    out, into = output_split_sizes or equal, input_split_sizes or equal
    return _handed(_ops.all_to_all_single(self, out, into, name))


def permute_tensor(self: Tensor, src_dst: list[int], group: Group, tag: str = "") -> Tensor:
    """The tensor of the rank r for which src_dst[r] is this rank."""
    name = _resolve_group_name(group, tag)
    group = _resolve_process_group(name)
    me, count = group.rank(), self.shape[0]
    into, out = [0] * group.size(), [0] * group.size()
    into[src_dst[me]] = count
    out[src_dst.index(me)] = count
    return all_to_all_single(self, out, into, name)


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, out: list[int], into: list[int], name: str) -> Tensor:
        ctx.splits, ctx.name = (into, out), name
        return wait_tensor(all_to_all_single(tensor, out, into, name))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        sent = all_to_all_single(grad.contiguous(), *ctx.splits, ctx.name)
        return wait_tensor(sent), None, None, None


def all_to_all_single_autograd(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Group,
    tag: str = "",
) -> Tensor:
    """all_to_all_single that gradients flow through."""
    name = _resolve_group_name(group, tag)
    equal = [self.shape[0] // _size(name)] * _size(name)
    return _AllToAll.apply(self, output_split_sizes or equal, input_split_sizes or equal, name)
