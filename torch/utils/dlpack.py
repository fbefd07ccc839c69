"""Exchange of tensors with other libraries through DLPack."""

from __future__ import annotations

import enum

import torch
from torch import _C

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers for kinds of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


_KINDS = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA}


def to_dlpack(data, *, dl_device=None, copy=None):
    """A capsule that shares the memory of a tensor; each capsule can be consumed once. With copy,
    of a copy of it."""
    if dl_device is not None and tuple(dl_device) != device_of(data):
        raise BufferError(f"cannot export a tensor on {data.device} to the device {dl_device}")
    return _C._to_dlpack(data.clone() if copy else data)


def device_of(tensor) -> tuple[DLDeviceType, int]:
    """The kind and the number of a tensor's device."""
    kind = _KINDS.get(tensor.device.type)
    if kind is None:
        raise ValueError(f"Unknown device type {tensor.device.type} for Dlpack")
    return kind, tensor.device.index or 0


def export(tensor, stream, max_version, dl_device, copy):
    """What Tensor.__dlpack__ does."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if tensor.layout is not torch.strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if dl_device is not None and tuple(dl_device) != tuple(device_of(tensor)):
        if copy is False:
            raise BufferError(f"the tensor is on {tensor.device}: another device needs a copy")
        kind = next((name for name, code in _KINDS.items() if code == dl_device[0]), None)
        if kind is None:
            raise BufferError(f"tensors cannot be moved to the DLPack device {tuple(dl_device)}")
        tensor, copy = tensor.to(torch.device(kind, dl_device[1]) if kind == "cuda" else kind), None
        copied = True
    else:
        copied = bool(copy)
        if copied:
            tensor = tensor.clone()
    if tensor.device.type == "cuda":
        torch.cuda._synchronize_for_export(tensor, stream)
    elif stream not in (None, -1):
        raise ValueError(f"stream must be None or -1 for a tensor on {tensor.device}, got {stream}")
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    return _C._to_dlpack(tensor, versioned=versioned, copied=copied)


def from_dlpack(ext_tensor, *, device=None, copy=None) -> torch.Tensor:
    """A tensor that shares the memory of an object with __dlpack__, or of a capsule."""
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        return _C._from_dlpack(ext_tensor)
    kwargs = {"max_version": (1, 0)}
    if copy is not None:
        kwargs["copy"] = copy
    if device is not None:
        device = torch.device(device)
        kwargs["dl_device"] = (_KINDS[device.type], device.index or 0)
    kind, index = ext_tensor.__dlpack_device__()
    if kind == DLDeviceType.kDLCUDA:
        stream = torch.cuda.current_stream(f"cuda:{index}").cuda_stream
        # The legacy default stream has the number 1 in the standard.
        kwargs["stream"] = stream or 1
    try:
        capsule = ext_tensor.__dlpack__(**kwargs)
    except TypeError:
        # Exporters of the first version of the standard know none of the newer arguments.
        kwargs.pop("max_version")
        capsule = ext_tensor.__dlpack__(**kwargs)
    return _C._from_dlpack(capsule)
