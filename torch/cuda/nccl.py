"""Collective operations over several GPUs of one process, by the NCCL library. The library is
loaded when first asked; programs of several processes use torch.distributed instead."""

from __future__ import annotations

import collections.abc
import ctypes
import functools
import glob
import importlib.util
import os
from collections.abc import Sequence

import torch

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]

SUM = 0
_TYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.bool: 1,
    torch.int32: 2,
    torch.int64: 4,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bfloat16: 9,
}


def _candidates() -> list[str]:
    """Where the library may be: with the system's own, then in the vendor's Python package."""
    found = ["libnccl.so.2"]
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        found += glob.glob(os.path.join(folder, "nccl", "lib", "libnccl.so*"))
    return found


@functools.cache
def _library() -> ctypes.CDLL:
    errors = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            errors.append(str(error))
            continue
        library.ncclGetErrorString.restype = ctypes.c_char_p
        return library
    raise RuntimeError("NCCL cannot be loaded: " + "; ".join(errors))


def _check(status, call) -> None:
    if status != 0:
        text = _library().ncclGetErrorString(status).decode()
        raise RuntimeError(f"NCCL error in {call}: {text}")


def version() -> tuple[int, int, int]:
    """The version of the library."""
    number = ctypes.c_int()
    _check(_library().ncclGetVersion(ctypes.byref(number)), "ncclGetVersion")
    major, rest = divmod(number.value, 10000)
    return (major, rest // 100, rest % 100)


def is_available(tensors) -> bool:
    """Whether NCCL can reduce these tensors: dense ones, each on a GPU of its own."""
    devices = set()
    for tensor in tensors:
        if tensor.is_sparse or not tensor.is_cuda or not tensor.is_contiguous():
            return False
        if tensor.get_device() in devices or tensor.dtype not in _TYPES:
            return False
        devices.add(tensor.get_device())
    try:
        _library()
    except RuntimeError:
        return False
    return True


@functools.cache
def _communicators(devices: tuple[int, ...]) -> tuple[ctypes.c_void_p, ...]:
    made = (ctypes.c_void_p * len(devices))()
    numbers = (ctypes.c_int * len(devices))(*devices)
    _check(_library().ncclCommInitAll(made, len(devices), numbers), "ncclCommInitAll")
    return tuple(ctypes.c_void_p(handle) for handle in made)


def _check_tensors(tensors: Sequence[torch.Tensor], name: str) -> None:
    if not tensors:
        raise ValueError(f"torch.cuda.nccl.{name}: expected at least one tensor")
    if not is_available(tensors):
        raise RuntimeError(
            f"torch.cuda.nccl.{name}: expected contiguous dense tensors, each on a GPU of its own, "
            f"got {[(str(t.device), str(t.dtype)) for t in tensors]}"
        )


def _run(name, call, inputs, outputs, counts, *arguments) -> None:
    """One call for each tensor, as one group."""
    _check_tensors(inputs, name)
    _check_tensors(outputs, name)
    handles = _communicators(tuple(t.get_device() for t in inputs))
    function = getattr(_library(), call)
    _check(_library().ncclGroupStart(), "ncclGroupStart")
    try:
        for handle, source, target in zip(handles, inputs, outputs, strict=True):
            with torch.cuda.device(source.device):
                stream = torch.cuda.current_stream(source.device).cuda_stream
                status = function(
                    ctypes.c_void_p(source.data_ptr()),
                    ctypes.c_void_p(target.data_ptr()),
                    ctypes.c_size_t(counts),
                    ctypes.c_int(_TYPES[source.dtype]),
                    *(ctypes.c_int(a) for a in arguments),
                    handle,
                    ctypes.c_void_p(stream),
                )
            _check(status, call)
    finally:
        _check(_library().ncclGroupEnd(), "ncclGroupEnd")


def _as_list(tensors, name) -> list[torch.Tensor]:
    if not isinstance(tensors, collections.abc.Container) or isinstance(tensors, torch.Tensor):
        raise TypeError(f"torch.cuda.nccl.{name}: inputs should be a collection of tensors")
    return list(tensors)


def all_reduce(inputs, outputs=None, op=SUM, streams=None, comms=None) -> None:
    """Every output becomes the sum (or another fold) of all inputs; the inputs themselves where
    there are no outputs."""
    inputs = _as_list(inputs, "all_reduce")
    targets = inputs if outputs is None else _as_list(outputs, "all_reduce")
    _run("all_reduce", "ncclAllReduce", inputs, targets, inputs[0].numel(), op)


def reduce(inputs, output=None, root=0, op=SUM, streams=None, comms=None) -> None:
    """The tensor `output`, by default the root's input, becomes the fold of all inputs."""
    inputs = _as_list(inputs, "reduce")
    targets = [output if output is not None and i == root else t for i, t in enumerate(inputs)]
    _run("reduce", "ncclReduce", inputs, targets, inputs[0].numel(), op, root)


def broadcast(inputs, root=0, streams=None, comms=None) -> None:
    """Every tensor becomes a copy of the root's."""
    inputs = _as_list(inputs, "broadcast")
    _run("broadcast", "ncclBroadcast", inputs, inputs, inputs[0].numel(), root)


def all_gather(inputs, outputs, streams=None, comms=None) -> None:
    """Every output becomes all inputs, one after the other."""
    inputs, outputs = _as_list(inputs, "all_gather"), _as_list(outputs, "all_gather")
    _run("all_gather", "ncclAllGather", inputs, outputs, inputs[0].numel())


def reduce_scatter(inputs, outputs, op=SUM, streams=None, comms=None) -> None:
    """Output i becomes piece i of the fold of all inputs."""
    inputs, outputs = _as_list(inputs, "reduce_scatter"), _as_list(outputs, "reduce_scatter")
    _run("reduce_scatter", "ncclReduceScatter", inputs, outputs, outputs[0].numel(), op)
