"""Streams and events."""

from __future__ import annotations

from torch import _C
from torch.cuda._devices import _index
from torch.cuda._init import _lazy_init, is_available

__all__ = ["Event", "ExternalStream", "Stream"]

_StreamBase = _C.Stream if _C._has_cuda else object
_EventBase = _C.Event if _C._has_cuda else object


class Stream(_StreamBase):
    """A queue of work on a device, taken from a pool of 32 per device and priority.

    priority: 0, or less for a stream whose work is started first."""

    def __new__(cls, device=None, priority=0, **kwargs) -> Stream:
        _lazy_init()
        if kwargs:
            return super().__new__(cls, device, priority, **kwargs)
        return super().__new__(cls, f"cuda:{_index(device)}", priority)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made and keeps; `stream_ptr` is its cudaStream_t."""

    def __new__(cls, stream_ptr, device=None, **kwargs) -> ExternalStream:
        _lazy_init()
        return super().__new__(cls, stream_ptr=stream_ptr, device_index=_index(device), **kwargs)


class Event(_EventBase):
    """A mark in a stream, made by its first record().

    enable_timing: elapsed_time() can be asked.
    blocking: synchronize() lets other threads have the core while it waits."""

    def __new__(
        cls, enable_timing=False, blocking=False, interprocess=False, external=False
    ) -> Event:
        if external:
            raise NotImplementedError("torch.cuda.Event(external=True) is not implemented")
        if not _C._has_cuda:
            _lazy_init()
        return super().__new__(
            cls, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )

    def __repr__(self) -> str:
        if self.cuda_event:
            return f"<torch.cuda.Event {self.cuda_event:#x}>"
        return "<torch.cuda.Event uninitialized>"


class StreamContext:
    """`with torch.cuda.stream(s):` queues work on s and makes its device current. None changes
    nothing."""

    def __init__(self, stream) -> None:
        self.stream = stream
        self._saved = None

    def __enter__(self) -> None:
        if self.stream is None or not is_available():
            return
        self._saved = (_C._cuda_getDevice(), current_stream(self.stream.device))
        _C._cuda_setStream(self.stream)

    def __exit__(self, *exc_info) -> None:
        if self._saved is None:
            return
        device, stream = self._saved
        self._saved = None
        _C._cuda_setStream(stream)
        _C._cuda_setDevice(device)


def stream(stream) -> StreamContext:
    """A context in which a stream is current."""
    return StreamContext(stream)


def set_stream(stream) -> None:
    """Makes a stream, and its device, current. None changes nothing."""
    if stream is not None:
        _C._cuda_setStream(stream)


def current_stream(device=None) -> Stream:
    """The stream on which work for a device is queued."""
    _lazy_init()
    return _C._cuda_getCurrentStream(_index(device))


def default_stream(device=None) -> Stream:
    """The stream that is current at first."""
    _lazy_init()
    return _C._cuda_getDefaultStream(_index(device))


def get_stream_from_external(data_ptr, device=None) -> Stream:
    """The stream with the given cudaStream_t."""
    return ExternalStream(data_ptr, device)


def is_current_stream_capturing() -> bool:
    """Whether work is recorded into a graph instead of run."""
    return _C._has_cuda and _C._cuda_isCurrentStreamCapturing()
