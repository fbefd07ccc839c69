"""Devices: which there are, which one is current, what they can do."""

from __future__ import annotations

import torch
from torch import _C
from torch.cuda._init import _lazy_init, is_available


def _index(device, optional=True, allow_cpu=False):
    """The index of a device argument; None and "cuda" are the current device."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        device = device.index
    if isinstance(device, bool) or not (device is None or hasattr(device, "__index__")):
        raise ValueError(
            "Expected a torch.device with a specified index or an integer, but got:" + repr(device)
        )
    if device is None:
        if not optional:
            raise ValueError("Expected a torch.device with a specified index or an integer")
        return current_device()
    return device.__index__()


def device_count() -> int:
    """How many devices can be used; zero where there is no driver."""
    return _C._cuda_getDeviceCount() if _C._has_cuda else 0


def current_device() -> int:
    """The index of the device that is current on this thread."""
    _lazy_init()
    return _C._cuda_getDevice()


def set_device(device) -> None:
    """Makes a device current. A negative index changes nothing."""
    index = _index(device)
    if index >= 0:
        _lazy_init()
        _C._cuda_setDevice(index)


class device:
    """`with torch.cuda.device(1):` makes a device current; None or a negative index changes
    nothing."""

    def __init__(self, device) -> None:
        self.idx = -1 if device is None else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            _lazy_init()
            self.prev_idx = _C._cuda_exchangeDevice(self.idx)

    def __exit__(self, *exc_info) -> bool:
        if self.idx >= 0:
            _C._cuda_exchangeDevice(self.prev_idx)
        return False


class device_of(device):
    """Makes the device of a tensor or storage current; nothing for those on the CPU."""

    def __init__(self, obj) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class _CudaDeviceProperties:
    def __init__(self, values) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def get_device_properties(device=None) -> _CudaDeviceProperties:
    """Name, memory, multiprocessors and the like of a device."""
    _lazy_init()
    index = _index(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    values = _C._cuda_getDeviceProperties(index)
    for name in ("is_integrated", "is_multi_gpu_board"):
        values[name] = int(values[name])
    return _CudaDeviceProperties(values)


def get_device_name(device=None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    """The compute capability of a device, such as (9, 0)."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device, peer_device) -> bool:
    """Whether kernels of one device can reach the memory of another."""
    _lazy_init()
    first, second = _index(device), _index(peer_device)
    for index in (first, second):
        if not 0 <= index < device_count():
            raise AssertionError(
                "Invalid peer device id" if index is second else "Invalid device id"
            )
    return _C._cuda_canDeviceAccessPeer(first, second)


def synchronize(device=None) -> None:
    """Waits for all work on a device; raises what kernels met meanwhile."""
    _lazy_init()
    _C._cuda_synchronize(_index(device))


def is_bf16_supported(including_emulation=True) -> bool:
    """Whether the current device computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current device has tensor cores for TF32."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The architectures device code was compiled for when the library was built; others compile
    at run time."""
    return ["sm_90"] if is_available() else []


def get_gencode_flags() -> str:
    """The same as options of nvcc."""
    return " ".join(
        f"-gencode compute={arch.replace('sm', 'compute')},code={arch}" for arch in get_arch_list()
    )
