"""Memory that every rank of a group can read and write: each allocates the same, then all meet and
map the memory of the others. On the CPU it is shared memory of one machine; that stands in for
memory of GPUs, which raises NotImplementedError here. Flags in the same memory order the accesses:
each is set by one rank and cleared by one other, so that no atomic operation is needed."""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import distributed_c10d as _core

__all__ = ["empty", "enable_symm_mem_for_group", "get", "is_symm_mem_enabled_for_group", "put",
           "rendezvous"]  # fmt: skip

Tensor = torch.Tensor

_CHANNELS = 16
_MOST_RANKS = 256
_PAD_WORDS = _CHANNELS * _MOST_RANKS
_PAD_BYTES = 4 * _PAD_WORDS
_TIMEOUT_MS = 30_000

_enabled: set[str] = set()


def enable_symm_mem_for_group(group_name: str) -> None:
    """Groups need no preparation; the name is remembered for those who ask."""
    _core._resolve_process_group(group_name)
    _enabled.add(group_name)


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    """Whether the group was prepared, or has met."""
    return group_name in _enabled


class _Allocation:
    """Shared memory without a name: flags, then data. The other ranks open it through this process,
    until all have mapped it; nothing is left behind however the process ends."""

    def __init__(self, nbytes: int) -> None:
        handle = os.memfd_create("cresset-symm")
        self._finalizer = weakref.finalize(self, os.close, handle)
        # Memory that is promised and not there would be a crash later.
        os.posix_fallocate(handle, 0, _PAD_BYTES + max(nbytes, 1))
        self.path = f"/proc/{os.getpid()}/fd/{handle}"
        self.nbytes = nbytes
        self.memory = _mapped(self.path, nbytes)
        self.handles: dict[str, SymmetricMemory] = {}

    def close(self) -> None:
        """Everybody has it."""
        self._finalizer()


def _mapped(path: str, nbytes: int) -> Tensor:
    total = _PAD_BYTES + max(nbytes, 1)
    return torch.from_file(path, shared=True, size=total, dtype=torch.uint8)


_allocations: dict[int, _Allocation] = {}  # by the address of their memory


def empty(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """A tensor in memory that other ranks can map after rendezvous(). As the others may use it, the
    memory stays until the process ends."""
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    device = torch.device("cpu" if device is None else device)
    if device.type != "cpu":
        raise NotImplementedError(f"symmetric memory is not implemented on device {device}")
    dtype = torch.get_default_dtype() if dtype is None else dtype
    made = _Allocation(shape.numel() * dtype.itemsize)
    data = made.memory[_PAD_BYTES : _PAD_BYTES + made.nbytes]
    _allocations[made.memory.untyped_storage().data_ptr()] = made
    return data.view(dtype).view(shape)


def _allocation_of(tensor: Tensor) -> _Allocation:
    found = _allocations.get(tensor.untyped_storage().data_ptr())
    if found is None:
        raise RuntimeError(
            "the tensor is not in symmetric memory: make it with "
            "torch.distributed._symmetric_memory.empty()"
        )
    return found


class SymmetricMemory:
    """The memory of all ranks, as one of them sees it."""

    def __init__(self, group: Any, own: _Allocation, memories: list[Tensor]) -> None:
        self.rank, self.world_size = group.rank(), group.size()
        self.buffer_size, self.signal_pad_size = own.nbytes, _PAD_BYTES
        self._memories = memories
        self._pads = [memory[:_PAD_BYTES].view(torch.int32) for memory in memories]

    @property
    def buffer_ptrs(self) -> list[int]:
        """The addresses of all ranks' data in this process."""
        return [memory.data_ptr() + _PAD_BYTES for memory in self._memories]

    @property
    def signal_pad_ptrs(self) -> list[int]:
        """The addresses of all ranks' flags in this process."""
        return [memory.data_ptr() for memory in self._memories]

    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0
    ) -> Tensor:
        """A tensor in the memory of a rank."""
        self._check(rank)
        begin = storage_offset * dtype.itemsize
        end = begin + math.prod(sizes) * dtype.itemsize
        if begin < 0 or end > self.buffer_size:
            raise RuntimeError(
                f"get_buffer: bytes {begin} to {end} of a buffer of {self.buffer_size}"
            )
        data = self._memories[rank][_PAD_BYTES + begin : _PAD_BYTES + end]
        return data.view(dtype).view(torch.Size(sizes))

    def get_signal_pad(
        self,
        rank: int,
        sizes: Sequence[int] = (),
        dtype: torch.dtype = torch.int32,
        storage_offset: int = 0,
    ) -> Tensor:
        """The flags of a rank."""
        self._check(rank)
        whole = self._memories[rank][:_PAD_BYTES].view(dtype)[storage_offset:]
        return whole[: math.prod(sizes)].view(torch.Size(sizes)) if sizes else whole

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank {rank} is not in a group of {self.world_size}")

    def _await(self, pad: Tensor, place: int, value: int, other: int, limit: int) -> None:
        end = time.monotonic() + (limit or _TIMEOUT_MS) / 1000
        turn = 0
        while int(pad[place]) != value:
            turn += 1
            if turn % 64 == 0:
                time.sleep(0.0001)
                if time.monotonic() > end:
                    raise _core.DistBackendError(
                        f"Timed out waiting {limit or _TIMEOUT_MS}ms for rank {other} in "
                        f"symmetric memory of rank {self.rank} of {self.world_size}"
                    )

    def _place(self, channel: int, rank: int) -> int:
        if not 0 <= channel < _CHANNELS:
            raise ValueError(f"channel {channel}; there are {_CHANNELS}")
        return channel * _MOST_RANKS + rank

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Sets this rank's flag there, when the last one has been seen."""
        self._check(dst_rank)
        place = self._place(channel, self.rank)
        self._await(self._pads[dst_rank], place, 0, dst_rank, timeout_ms)
        self._pads[dst_rank][place] = 1

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for a rank's flag here, and clears it."""
        self._check(src_rank)
        place = self._place(channel, src_rank)
        self._await(self._pads[self.rank], place, 1, src_rank, timeout_ms)
        self._pads[self.rank][place] = 0

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits until all ranks have come here."""
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        for rank in others:
            self.put_signal(rank, channel, timeout_ms)
        for rank in others:
            self.wait_signal(rank, channel, timeout_ms)


def rendezvous(tensor: Tensor, group: Any = None) -> SymmetricMemory:
    """Maps the memory of all ranks; each calls it with a tensor of the same size."""
    pg = _core._resolve_process_group(group) if isinstance(group, str) else group
    pg = _core._group_or_default(pg)
    if pg.size() > _MOST_RANKS:
        raise NotImplementedError(f"symmetric memory of more than {_MOST_RANKS} ranks")
    own = _allocation_of(tensor)
    known = own.handles.get(pg.group_name)
    if known is not None:
        return known
    every: list[Any] = [None] * pg.size()
    _core.all_gather_object(every, (own.path, own.nbytes), group=pg)
    sizes = {nbytes for _, nbytes in every}
    if len(sizes) != 1:
        raise RuntimeError(
            f"rendezvous: the ranks have allocated different amounts: {[n for _, n in every]} bytes"
        )
    try:
        memories = [
            own.memory if rank == pg.rank() else _mapped(path, nbytes)
            for rank, (path, nbytes) in enumerate(every)
        ]
    finally:
        # Whoever cannot map lets the others know by leaving; none may close before all have.
        _core.barrier(pg)
    own.close()
    made = own.handles[pg.group_name] = SymmetricMemory(pg, own, memories)
    _enabled.add(pg.group_name)
    return made


def _offset(tensor: Tensor) -> int:
    return tensor.storage_offset() - _PAD_BYTES // tensor.element_size()


def _buffers(tensor: Tensor, group_name: str) -> tuple[SymmetricMemory, list[Tensor]]:
    if not tensor.is_contiguous():
        raise ValueError("tensors in symmetric memory must be contiguous here")
    handle = rendezvous(tensor, group_name)
    at = _offset(tensor)
    return handle, [
        handle.get_buffer(rank, tensor.shape, tensor.dtype, at) for rank in range(handle.world_size)
    ]


# ---- operations
def _reduced(parts: list[Tensor], reduce_op: str) -> Tensor:
    """In the order of ranks: the same bits everywhere."""
    if reduce_op not in ("sum", "avg"):
        raise NotImplementedError(f"symmetric memory reduces by sum or avg, not {reduce_op}")
    out = parts[0].clone()
    for part in parts[1:]:
        out += part
    return out / len(parts) if reduce_op == "avg" else out


def _one_shot_all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    handle, buffers = _buffers(input, group_name)
    handle.barrier()
    out = _reduced(buffers, reduce_op)
    handle.barrier()
    return out


def _two_shot_all_reduce_(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    handle, buffers = _buffers(input, group_name)
    size = -(-input.numel() // handle.world_size)
    mine = slice(handle.rank * size, (handle.rank + 1) * size)
    flat = [buffer.view(-1)[mine] for buffer in buffers]
    handle.barrier()
    if flat[0].numel():
        total = _reduced(flat, reduce_op)
        for part in flat:
            part.copy_(total)
    handle.barrier()
    return input


def _all_to_all_v(
    input: Tensor, out: Tensor, in_splits: Tensor, out_splits_offsets: Tensor, group_name: str
) -> None:
    """Rows for each rank, counted by in_splits; out_splits_offsets gets how many rows came from
    each, and where they begin in `out`. All but the last are in symmetric memory."""
    handle, inputs = _buffers(input, group_name)
    _, counts = _buffers(in_splits, group_name)
    handle.barrier()
    at = 0
    for rank in range(handle.world_size):
        splits = counts[rank].tolist()
        begin, count = sum(splits[: handle.rank]), splits[handle.rank]
        if at + count > out.size(0):
            raise RuntimeError(f"all_to_all_v: `out` has {out.size(0)} rows, {at + count} came")
        out[at : at + count].copy_(inputs[rank][begin : begin + count])
        out_splits_offsets[0, rank], out_splits_offsets[1, rank] = count, at
        at += count
    handle.barrier()


def put(tensor: Tensor, peer: int, group: Any = None) -> None:
    """Copies this rank's values to the same place at a peer."""
    handle = rendezvous(tensor, group)
    handle.get_buffer(peer, tensor.shape, tensor.dtype, _offset(tensor)).copy_(tensor)


def get(tensor: Tensor, peer: int, group: Any = None) -> None:
    """Copies a peer's values to the same place here."""
    handle = rendezvous(tensor, group)
    tensor.copy_(handle.get_buffer(peer, tensor.shape, tensor.dtype, _offset(tensor)))


_library = torch.library.Library("symm_mem", "DEF")
_OPERATORS = {
    "one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor":
        _one_shot_all_reduce,
    "two_shot_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)":
        _two_shot_all_reduce_,
    "all_to_all_vdev(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(b!) "
    "out_splits_offsets, str group_name) -> ()": _all_to_all_v,
}  # fmt: skip
for _schema, _function in _OPERATORS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CPU")
