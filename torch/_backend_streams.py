"""torch.Stream and torch.Event of devices that other packages bring (see
torch.utils.backend_registration): the same methods, over the guard that the package registered in
C++. torch.Stream(device) and torch.Event(device) make these for such a device."""

from __future__ import annotations

import torch
from torch import _C

__all__ = ["Event", "Stream", "current_stream"]


def _indexed(device: torch.device | str | int | None) -> torch.device:
    """The device with an index: the current one's where it has none."""
    device = torch.device(device)
    return torch.device(device.type, _C._backend_current_device(device))


def _device_of(kind: int, index: int | None) -> torch.device:
    """The device by the numbers that C++ has for it."""
    names = {number: name for name, number in KINDS.items()}
    name = names[kind] if kind in names else _C._get_privateuse1_backend_name()
    return torch.device(name) if index is None or index < 0 else torch.device(name, index)


class Stream(torch.Stream):
    """A queue of work on a device of another package."""

    def __init__(
        self,
        device: torch.device | str | None = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        if "_id" in self.__dict__:  # made by torch.Stream(), whose call initialises once more
            return
        if device is None and device_type is not None:
            device = _device_of(device_type, device_index)
        self._device = _indexed(device)
        made = _C._backend_stream_new(self._device, priority) if stream_id is None else stream_id
        self._id = made
        self._outer: list[tuple[int, int]] = []

    @property
    def device(self) -> torch.device:
        """Where the work runs."""
        return self._device

    @property
    def device_index(self) -> int:
        """The index of the device."""
        return self._device.index

    @property
    def device_type(self) -> int:
        """The number of the kind of device."""
        return KINDS.get(self._device.type, _PRIVATE_KIND)

    @property
    def stream_id(self) -> int:
        """The number that the package gave the stream."""
        return self._id

    def query(self) -> bool:
        """Whether all that was queued has run."""
        return _C._backend_stream_query(self._device, self._id)

    def synchronize(self) -> None:
        """Waits until all that was queued has run."""
        _C._backend_stream_synchronize(self._device, self._id)

    def wait_event(self, event: Event) -> None:
        """Work queued from now on starts after the event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work queued from now on starts after what is queued on the other stream."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Marks what is queued so far and returns the mark."""
        event = Event(self._device) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        before = _C._backend_exchange_device(self._device)
        self._outer.append((before, _C._backend_stream_exchange(self._device, self._id)))
        return self

    def __exit__(self, *exc_info: object) -> None:
        device, stream = self._outer.pop()
        _C._backend_stream_exchange(self._device, stream)
        if device >= 0:
            _C._backend_exchange_device(torch.device(self._device.type, device))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self._device, self._id) == (other._device, other._id)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self._device, self._id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self._device.type}, "
            f"device_index={self._device.index}, stream_id={self._id}"
        )


class Event(torch.Event):
    """A mark in the work of a stream on a device of another package."""

    def __init__(
        self,
        device: torch.device | str | None = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if "_event" in self.__dict__:  # made by torch.Event(), whose call initialises once more
            return
        self._device = _indexed(device)
        self._event = _C._backend_event_new(self._device, int(enable_timing))

    def _stream(self, stream: Stream | None) -> Stream:
        return current_stream(self._device) if stream is None else stream

    @property
    def device(self) -> torch.device:
        """Of the stream it marks."""
        return self._device

    @property
    def event_id(self) -> int:
        """The address of the package's event; 0 until it is recorded."""
        return _C._backend_event_id(event=self._event)

    def record(self, stream: Stream | None = None) -> None:
        """Marks what is queued on a stream so far."""
        stream = self._stream(stream)
        _C._backend_event_record(stream.device, stream.stream_id, self._event)
        self._device = stream.device

    def wait(self, stream: Stream | None = None) -> None:
        """Lets a stream wait for the mark."""
        stream = self._stream(stream)
        _C._backend_event_block(stream.device, stream.stream_id, self._event)

    def query(self) -> bool:
        """Whether the marked work has run."""
        return _C._backend_event_query(event=self._event)

    def synchronize(self) -> None:
        """Waits for the marked work."""
        _C._backend_event_synchronize(event=self._event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        return _C._backend_event_elapsed(event=self._event, other=end_event._event)

    def __repr__(self) -> str:
        return f"torch.Event device_type={self._device.type}, device_index={self._device.index}"


def current_stream(device: torch.device | str | int | None) -> Stream:
    """The stream on which work for a device is queued now."""
    device = _indexed(device)
    return Stream(device, stream_id=_C._backend_stream_current(device))


def for_accelerator(name: str, args: tuple, kwargs: dict | None) -> Stream | Event:
    """torch.Stream() or torch.Event() without a device: of the accelerator."""
    return globals()[name](torch.accelerator.current_accelerator(), *args, **(kwargs or {}))


# Kinds of devices as C++ numbers them, those that are preferred as the accelerator first. The one
# left to other packages may have any name.
_PRIVATE_KIND = 20
KINDS = {"mtia": 19, "maia": 8, "xpu": 12, "hpu": 15, "xla": 9, "ipu": 18, "ve": 16, "lazy": 17}
