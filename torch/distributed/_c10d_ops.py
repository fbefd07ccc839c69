"""The collectives as operators that name their group: torch.ops.c10d, which writes to its
arguments, and torch.ops.c10d_functional, the older form of functional collectives, which names a
group by its ranks. Modes and counters know collectives by these names."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed import _functional_collectives as _functional
from torch.distributed import distributed_c10d as _core

Tensor = torch.Tensor
_ops = torch.ops._c10d_functional

_written = torch.library.Library("c10d", "DEF")
_named = torch.library.Library("c10d_functional", "DEF")

# Schema of each operator, and the call of the group's method that it stands for.
_IN_PLACE: tuple[tuple[str, Any], ...] = (
    (
        "allreduce_(Tensor(a!)[] tensors, str group_name, str reduce_op='sum') -> ()",
        lambda g, tensors, op: g.allreduce(tensors, op=_functional._reduction(op)),
    ),
    (
        "allreduce_coalesced_(Tensor(a!)[] tensors, str group_name, str reduce_op='sum') -> ()",
        lambda g, tensors, op: g.allreduce_coalesced(
            tensors, _coalesced_options(_functional._reduction(op))
        ),
    ),
    (
        "broadcast_(Tensor(a!)[] tensors, str group_name, int root_rank=0) -> ()",
        lambda g, tensors, root: g.broadcast(tensors, root),
    ),
    (
        "reduce_(Tensor(a!)[] tensors, str group_name, int root_rank=0, str reduce_op='sum') -> ()",
        lambda g, tensors, root, op: g.reduce(tensors, root, _functional._reduction(op)),
    ),
    (
        "allgather_(Tensor(a!)[] outputs, str group_name, Tensor input) -> ()",
        lambda g, outputs, input: g.allgather([outputs], [input]),
    ),
    (
        "_allgather_base_(Tensor(a!) output, str group_name, Tensor input) -> ()",
        lambda g, output, input: g._allgather_base(output, input),
    ),
    (
        "allgather_into_tensor_coalesced_(Tensor(a!)[] outputs, str group_name, "
        "Tensor[] inputs) -> ()",
        lambda g, outputs, inputs: g.allgather_into_tensor_coalesced(outputs, inputs),
    ),
    (
        "gather_(Tensor(a!)[] outputs, str group_name, Tensor input, int root_rank=0) -> ()",
        lambda g, outputs, input, root: g.gather([outputs] if outputs else [], [input], root),
    ),
    (
        "scatter_(Tensor(a!) output, str group_name, Tensor[] inputs, int root_rank=0) -> ()",
        lambda g, output, inputs, root: g.scatter([output], [inputs] if inputs else [], root),
    ),
    (
        "reduce_scatter_(Tensor(a!) output, str group_name, Tensor[] inputs, "
        "str reduce_op='sum') -> ()",
        lambda g, output, inputs, op: g.reduce_scatter(
            [output], [inputs], op=_functional._reduction(op)
        ),
    ),
    (
        "_reduce_scatter_base_(Tensor(a!) output, str group_name, Tensor input, "
        "str reduce_op='sum') -> ()",
        lambda g, output, input, op: g._reduce_scatter_base(
            output, input, _scatter_options(_functional._reduction(op))
        ),
    ),
    (
        "reduce_scatter_tensor_coalesced_(Tensor(a!)[] outputs, str group_name, Tensor[] inputs, "
        "str reduce_op='sum') -> ()",
        lambda g, outputs, inputs, op: g.reduce_scatter_tensor_coalesced(
            outputs, inputs, _scatter_options(_functional._reduction(op))
        ),
    ),
    (
        "alltoall_(Tensor(a!)[] outputs, str group_name, Tensor[] inputs) -> ()",
        lambda g, outputs, inputs: g.alltoall(outputs, inputs),
    ),
    (
        "alltoall_base_(Tensor(a!) output, str group_name, Tensor input, int[] output_splits, "
        "int[] input_splits) -> ()",
        lambda g, output, input, out, into: g.alltoall_base(output, input, out, into),
    ),
    (
        "send(Tensor[] tensors, str group_name, int dst, int tag=0) -> ()",
        lambda g, tensors, dst, tag: g.send(tensors, dst, tag),
    ),
    (
        "recv_(Tensor(a!)[] tensors, str group_name, int src, int tag=0) -> ()",
        lambda g, tensors, src, tag: g.recv(tensors, src, tag),
    ),
    (
        "recv_any_source_(Tensor(a!)[] tensors, str group_name, int tag=0) -> ()",
        lambda g, tensors, tag: g.recv_anysource(tensors, tag),
    ),
    ("barrier(Tensor[] tensors, str group_name) -> ()", lambda g, tensors: g.barrier()),
)


def _scatter_options(op: Any) -> Any:
    made = _core.ReduceScatterOptions()
    made.reduceOp = op
    return made


def _coalesced_options(op: Any) -> Any:
    made = _core.AllreduceCoalescedOptions()
    made.reduceOp = op
    return made


def _runner(call: Any) -> Any:
    def run(first: Any, group_name: str, *rest: Any) -> None:
        work = call(_core._resolve_process_group(group_name), first, *rest)
        if work is not None:
            work.wait()

    return run


for _schema, _call in _IN_PLACE:
    _name = _schema.partition("(")[0]
    _written.define(_schema)
    for _key in ("CPU", "CUDA"):
        _written.impl(_name, _runner(_call), _key)


# ---- groups by their ranks -----------------------------------------------------------------------
def _group_name(tag: str, ranks: list[int], size: int) -> str:
    return _core._find_or_create_pg_by_ranks_and_tag(tag, ranks, size).group_name


_BY_RANKS: tuple[tuple[str, Any], ...] = (
    ("broadcast(Tensor self, int src, {})", lambda name, n, x, src: _ops.broadcast(x, src, name)),
    (
        "all_reduce(Tensor self, str reduceOp, {})",
        lambda name, n, x, op: _ops.all_reduce(x, op, name),
    ),
    (
        "all_reduce_coalesced(Tensor[] self, str reduceOp, {})",
        lambda name, n, x, op: _ops.all_reduce_coalesced(x, op, name),
    ),
    (
        "all_gather_into_tensor(Tensor shard, {})",
        lambda name, n, x: _ops.all_gather_into_tensor(x, n, name),
    ),
    (
        "reduce_scatter_tensor(Tensor input, str reduceOp, {})",
        lambda name, n, x, op: _ops.reduce_scatter_tensor(x, op, n, name),
    ),
    (
        "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, "
        "{})",
        lambda name, n, x, out, into: _ops.all_to_all_single(x, out, into, name),
    ),
)


def _by_ranks(call: Any) -> Any:
    def run(*args: Any) -> Any:
        *given, tag, ranks, size = args
        return call(_group_name(tag, ranks, size), size, *given)

    return run


for _schema, _call in _BY_RANKS:
    _name = _schema.partition("(")[0]
    _many = "[]" if "coalesced" in _name else ""
    _named.define(_schema.format("str tag, int[] ranks, int group_size") + f" -> Tensor{_many}")
    for _key in ("CPU", "CUDA", "Meta"):
        _named.impl(_name, _by_ranks(_call), _key)
_named.define("wait_tensor(Tensor self) -> Tensor")
for _key in ("CPU", "CUDA", "Meta"):
    _named.impl("wait_tensor", lambda tensor: _ops.wait_tensor(tensor), _key)
