"""The CPU in the shape of an accelerator, so that code written for either runs on both: streams
do nothing, there is one device and it is always ready.
"""

from __future__ import annotations

from contextlib import nullcontext as _nullcontext

import torch
from torch.cpu import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """The order of work on the CPU, which is the program's."""

    def __init__(self, priority=-1) -> None:
        self.priority = priority

    def wait_stream(self, stream) -> None:
        """Work is done when it returns: there is nothing to wait for."""

    def record_event(self):
        return Event()

    def wait_event(self, event) -> None:
        event.wait(self)


class Event:
    """A point in a stream; on the CPU it has always been reached."""

    def query(self) -> bool:
        return True

    def record(self, stream=None) -> None:
        """The point is here and now."""

    def synchronize(self) -> None:
        """Reached already."""

    def wait(self, stream=None) -> None:
        """Reached already."""


_stream = Stream()


class StreamContext:
    """Makes a stream current for the block."""

    def __init__(self, stream) -> None:
        self.stream = stream
        self.prev_stream = None

    def __enter__(self) -> None:
        global _stream
        self.prev_stream = _stream
        if self.stream is not None:
            _stream = self.stream

    def __exit__(self, type, value, traceback) -> None:
        global _stream
        _stream = self.prev_stream


def stream(stream):
    """A context in which stream is the current one."""
    return _nullcontext() if stream is None else StreamContext(stream)


def current_stream(device=None):
    return _stream


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def synchronize(device=None) -> None:
    """Work on the CPU is done when the call that asked for it returns."""


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device) -> None:
    """There is one CPU device; the call checks its argument."""
    if torch.device(device).type != "cpu":
        raise ValueError(f"torch.cpu.set_device takes a cpu device, not {device!r}")


def get_capabilities():
    """What the processor offers, by name."""
    return torch._C._cpu._get_cpu_capability()


def _init_amx() -> bool:
    """Whether tiles can be used."""
    return torch._C._cpu._init_amx()


def _is_avx2_supported() -> bool:
    """Whether the processor has AVX2 and fused multiplication."""
    return {"avx2", "fma"} <= torch.backends.cpu._flags()


def _is_avx512_supported() -> bool:
    """Whether the processor has the common part of AVX-512."""
    words = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
    return words <= torch.backends.cpu._flags()


def _is_avx512_bf16_supported() -> bool:
    """Whether the processor multiplies bfloat16 in AVX-512."""
    return _is_avx512_supported() and "avx512_bf16" in torch.backends.cpu._flags()


def _is_vnni_supported() -> bool:
    """Whether the processor multiplies 8-bit integers in AVX-512."""
    return _is_avx512_supported() and "avx512_vnni" in torch.backends.cpu._flags()


def _is_amx_tile_supported() -> bool:
    """Whether the processor multiplies tiles."""
    return "amx_tile" in torch.backends.cpu._flags()
