"""What the driver's management library (NVML) knows of a device: load, temperature, power, clocks
and the processes that use it. The library comes with the driver; it is loaded when first asked."""

from __future__ import annotations

import ctypes
import functools
import os

import torch

__all__ = [
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
]

_SM_CLOCK, _GPU_SENSOR = 1, 0
_INSUFFICIENT_SIZE = 7


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        raise ModuleNotFoundError(
            "NVML (libnvidia-ml.so.1), which comes with the NVIDIA driver, cannot be loaded: "
            f"{error}"
        ) from error
    library.nvmlErrorString.restype = ctypes.c_char_p
    _check(library.nvmlInit_v2(), "nvmlInit", library)
    return library


def _check(status, call, library=None) -> None:
    if status != 0:
        text = (library or _library()).nvmlErrorString(status).decode()
        raise RuntimeError(f"{call} failed: {text}")


def _physical_index(device) -> int:
    """The number NVML gives a device: CUDA_VISIBLE_DEVICES hides some and orders the rest."""
    index = torch.cuda._devices._index(device)
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not named:
        return index
    chosen = [word.strip() for word in named.split(",")]
    if index < len(chosen) and chosen[index].isdigit():
        return int(chosen[index])
    return index


def _handle(device) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    index = ctypes.c_uint(_physical_index(device))
    status = _library().nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
    _check(status, "nvmlDeviceGetHandleByIndex")
    return handle


def _number(call, device, *arguments) -> int:
    value = ctypes.c_uint()
    status = getattr(_library(), call)(_handle(device), *arguments, ctypes.byref(value))
    _check(status, call)
    return value.value


def _rates(device) -> _Utilization:
    rates = _Utilization()
    status = _library().nvmlDeviceGetUtilizationRates(_handle(device), ctypes.byref(rates))
    _check(status, "nvmlDeviceGetUtilizationRates")
    return rates


def utilization(device=None) -> int:
    """The share of the last sample period, in percent, in which kernels ran."""
    return _rates(device).gpu


def memory_usage(device=None) -> int:
    """The share of the last sample period, in percent, in which memory was read or written."""
    return _rates(device).memory


def temperature(device=None) -> int:
    """Degrees Celsius of the GPU's sensor."""
    return _number("nvmlDeviceGetTemperature", device, ctypes.c_uint(_GPU_SENSOR))


def power_draw(device=None) -> int:
    """Milliwatts."""
    return _number("nvmlDeviceGetPowerUsage", device)


def clock_rate(device=None) -> int:
    """The clock of the multiprocessors now, in MHz."""
    return _number("nvmlDeviceGetClockInfo", device, ctypes.c_uint(_SM_CLOCK))


def device_memory_used(device=None) -> int:
    """Bytes of a device that are in use, over all processes."""
    memory = _Memory()
    status = _library().nvmlDeviceGetMemoryInfo(_handle(device), ctypes.byref(memory))
    _check(status, "nvmlDeviceGetMemoryInfo")
    return memory.used


def list_gpu_processes(device=None) -> str:
    """Which processes compute on a device, and how much of its memory they have."""
    index = _physical_index(device)
    count, processes = ctypes.c_uint(16), (_Process * 16)()
    while True:
        status = _library().nvmlDeviceGetComputeRunningProcesses_v3(
            _handle(device), ctypes.byref(count), processes
        )
        if status != _INSUFFICIENT_SIZE:
            break
        processes = (_Process * (count.value + 8))()
        count.value = len(processes)
    _check(status, "nvmlDeviceGetComputeRunningProcesses")
    lines = [f"GPU:{index}"]
    if count.value == 0:
        lines.append("no processes are running")
    for process in processes[: count.value]:
        mebibytes = process.used / (1024 * 1024)
        lines.append(f"process {process.pid:>10d} uses {mebibytes:>12.3f} MB GPU memory")
    return "\n".join(lines)
