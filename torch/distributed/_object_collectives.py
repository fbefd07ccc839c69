"""Collectives on Python objects, which travel pickled: sizes first, then bytes. As with every
pickle, only ranks that trust each other may use them."""

from __future__ import annotations

import ctypes
import io
import pickle
from typing import Any

import torch
from torch._C._distributed_c10d import ProcessGroup
from torch.distributed import _collectives as _ops
from torch.distributed import distributed_c10d as _core

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip

Tensor = torch.Tensor
Group = ProcessGroup | None
_pickler, _unpickler = pickle.Pickler, pickle.Unpickler


def _object_to_tensor(
    obj: Any, device: torch.device | None = None, group: Group = None
) -> tuple[Tensor, Tensor]:
    buffer = io.BytesIO()
    _pickler(buffer).dump(obj)
    data = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
    size = torch.tensor([data.numel()], dtype=torch.int64)
    return data.to(device), size.to(device)


def _tensor_to_object(tensor: Tensor, tensor_size: int | Tensor, group: Group = None) -> Any:
    data = tensor.cpu()[: int(tensor_size)].contiguous()
    # NumPy need not be there, and a storage gives its bytes one by one.
    return _unpickler(io.BytesIO(ctypes.string_at(data.data_ptr(), data.numel()))).load()


def _padded(data: Tensor, length: int) -> Tensor:
    whole = torch.zeros(length, dtype=torch.uint8, device=data.device)
    whole[: data.numel()] = data
    return whole


def _place(group: Group, device: torch.device | None = None) -> torch.device:
    return device or _core._device_for_objects(group)


def _sizes_of_all(size: Tensor, group: Group, device: torch.device) -> list[int]:
    sizes = torch.zeros(_core.get_world_size(group), dtype=torch.int64, device=device)
    _ops.all_gather_into_tensor(sizes, size, group=group)
    return sizes.tolist()


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Every rank gets every rank's object, in `object_list`."""
    if _ops._outside(group, "all_gather_object"):
        return
    device = _place(group)
    data, size = _object_to_tensor(obj, device, group)
    sizes = _sizes_of_all(size, group, device)
    longest = max(sizes)
    data = _padded(data, longest)
    flat = torch.empty(longest * len(sizes), dtype=torch.uint8, device=device)
    _ops.all_gather_into_tensor(flat, data, group=group)
    for i, part in enumerate(flat.chunk(len(sizes)) if longest else [flat] * len(sizes)):
        object_list[i] = _tensor_to_object(part, sizes[i], group)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """One rank gets every rank's object."""
    if _ops._outside(group, "gather_object"):
        return
    pg = _core._group_or_default(group)
    root = _ops._root(pg, dst, group_dst, 0)
    here = pg.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    device = _place(group)
    data, size = _object_to_tensor(obj, device, group)
    sizes = _sizes_of_all(size, group, device)
    data = _padded(data, max(sizes))
    parts = [torch.empty_like(data) for _ in sizes] if here else None
    _ops.gather(data, parts, group=group, group_dst=root)
    if here:
        for i, part in enumerate(parts):
            object_gather_list[i] = _tensor_to_object(part, sizes[i], group)


def _packed(objects: list[Any], device: torch.device, group: Group) -> tuple[Tensor, Tensor]:
    """The bytes of all objects after each other, and their sizes."""
    pairs = [_object_to_tensor(obj, device, group) for obj in objects]
    data = torch.cat([data for data, _ in pairs]) if len(pairs) > 1 else pairs[0][0]
    return data, torch.cat([size for _, size in pairs])


def _unpacked(data: Tensor, sizes: Tensor, objects: list[Any], group: Group) -> None:
    at = 0
    for i, size in enumerate(sizes.tolist()):
        objects[i] = _tensor_to_object(data[at : at + size], size, group)
        at += size


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Group = None,
    device: torch.device | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to a rank."""
    if _ops._outside(group, "send_object_list"):
        return
    pg = _core._group_or_default(group)
    to = _ops._root(pg, dst, group_dst)
    if to == pg.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as "
            "the rank of the current process."
        )
    data, sizes = _packed(object_list, _place(group, device), group)
    _ops.send(sizes, group=group, group_dst=to)
    _ops.send(data, group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: torch.device | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects into the list; returns the global rank that sent them."""
    if _ops._outside(group, "recv_object_list"):
        return -1
    pg = _core._group_or_default(group)
    place = _place(group, device)
    sizes = torch.empty(len(object_list), dtype=torch.int64, device=place)
    sender = _ops.recv(sizes, src, group, group_src=group_src)
    data = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=place)
    _ops.recv(data, group=group, group_src=_core.get_group_rank(pg, sender))
    _unpacked(data, sizes, object_list, group)
    return sender


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: torch.device | None = None,
    group_src: int | None = None,
) -> None:
    """Sends objects of one rank to all."""
    if _ops._outside(group, "broadcast_object_list"):
        return
    pg = _core._group_or_default(group)
    root = _ops._root(pg, src, group_src, 0)
    place = _place(group, device)
    here = pg.rank() == root
    if here:
        data, sizes = _packed(object_list, place, group)
    else:
        sizes = torch.empty(len(object_list), dtype=torch.int64, device=place)
    _ops.broadcast(sizes, group=group, group_src=root)
    if not here:
        data = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=place)
    _ops.broadcast(data, group=group, group_src=root)
    if not here:
        _unpacked(data, sizes, object_list, group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
) -> None:
    """One rank sends an object to each rank, where it becomes the list's first element."""
    if _ops._outside(group, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    pg = _core._group_or_default(group)
    root = _ops._root(pg, src, group_src, 0)
    device = _place(group)
    longest = torch.zeros(1, dtype=torch.int64, device=device)
    parts = sizes = None
    if pg.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != pg.size():
            raise ValueError(
                f"scatter_object_input_list must have one object for each of {pg.size()} ranks"
            )
        pairs = [_object_to_tensor(obj, device, group) for obj in scatter_object_input_list]
        sizes = [size for _, size in pairs]
        longest[0] = max(int(size) for size in sizes)
        parts = [_padded(data, int(longest)) for data, _ in pairs]
    _ops.broadcast(longest, group=group, group_src=root)
    data = torch.empty(int(longest), dtype=torch.uint8, device=device)
    _ops.scatter(data, parts, group=group, group_src=root)
    size = torch.zeros(1, dtype=torch.int64, device=device)
    _ops.scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(data, size, group)
