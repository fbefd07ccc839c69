"""A device kind whose name PyTorch has and whose backend another package brings: the functions of
torch.mtia and the like. They work through the guard that the package registered in C++; until one
is registered the module answers as one of an absent device (torch._absent_device)."""

from __future__ import annotations

import contextlib

import torch
from torch import _C

_NAMES = (
    "current_device current_stream default_stream device_count init is_available is_initialized "
    "set_device set_stream stream synchronize"
)


class _Functions:
    """The functions of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def _device(self, device: torch.device | str | int | None = None) -> torch.device:
        """A device of the kind with an index: the current one's where none is given."""
        if isinstance(device, int):
            return torch.device(self.kind, device)
        found = torch.device(self.kind if device is None else device)
        if found.type != self.kind:
            raise ValueError(f"expected a device of the kind {self.kind}, got {found}")
        return torch.device(self.kind, _C._backend_current_device(found))

    def is_available(self) -> bool:
        """Whether there is such a device."""
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        """Whether the device is in use: from when its package is loaded."""
        return True

    def init(self) -> None:
        """Makes the device ready, which it is from when its package is loaded."""

    def device_count(self) -> int:
        """How many such devices there are."""
        return _C._backend_device_count(self.kind)

    def current_device(self) -> int:
        """The index of the current device."""
        return _C._backend_current_device(self.kind)

    def set_device(self, device: torch.device | str | int) -> None:
        """Makes a device current; a negative number changes nothing."""
        if not isinstance(device, int) or device >= 0:
            _C._backend_exchange_device(self._device(device))

    def current_stream(self, device: torch.device | str | int | None = None) -> torch.Stream:
        """The stream on which work for a device is queued now."""
        from torch._backend_streams import current_stream

        return current_stream(self._device(device))

    def default_stream(self, device: torch.device | str | int | None = None) -> torch.Stream:
        """The stream that a device has from the start."""
        from torch._backend_streams import Stream

        return Stream(self._device(device), stream_id=0)

    def set_stream(self, stream: torch.Stream | None) -> None:
        """Makes a stream current on its device."""
        if stream is not None:
            _C._backend_stream_exchange(stream.device, stream.stream_id)

    def stream(self, stream: torch.Stream | None):
        """A context in which a stream, and its device, are current."""
        return contextlib.nullcontext() if stream is None else stream

    def synchronize(self, device: torch.device | str | int | None = None) -> None:
        """Waits for all work on a device."""
        _C._backend_synchronize(self._device(device))


def _device_context(kind: str, absent: type):
    functions = _Functions(kind)

    class device:
        """Makes a device current for a block; None and negative numbers leave it."""

        def __new__(cls, device):
            return object.__new__(cls) if _C._backend_exists(kind) else absent(device)

        def __init__(self, device) -> None:
            wanted = device is not None and device != -1
            self._target = functions._device(device) if wanted else None

        def __enter__(self) -> None:
            if self._target is not None:
                self._before = _C._backend_exchange_device(self._target)

        def __exit__(self, type, value, traceback) -> bool:
            if self._target is not None and self._before >= 0:
                _C._backend_exchange_device(torch.device(kind, self._before))
            return False

    return device


def _class(kind: str, name: str, absent: type):
    """Stream or Event: what torch._backend_streams has, for a device of this kind by default."""

    class made(absent):
        __doc__ = f"{name} of a device that another package brings."

        def __new__(cls, device=None, *args, **kwargs):
            if not _C._backend_exists(kind):
                return object.__new__(cls)
            from torch import _backend_streams

            target = _Functions(kind)._device(device)
            return getattr(_backend_streams, name)(target, *args, **kwargs)

    made.__name__ = made.__qualname__ = name
    return made


def fill(namespace: dict[str, object], kind: str, title: str) -> None:
    """Puts the functions of a kind into a module's namespace."""
    from torch import _absent_device

    _absent_device.fill(namespace, title)
    functions = _Functions(kind)
    for name in _NAMES.split():
        namespace[name] = _either(
            kind, getattr(functions, name), namespace[name], name, namespace["__name__"]
        )
    for name in ("Stream", "Event"):
        namespace[name] = _class(kind, name, namespace[name])
        namespace[name].__module__ = namespace["__name__"]
    namespace["device"] = _device_context(kind, namespace["device"])


def _either(kind: str, present, absent, name: str, module: str):
    def function(*args, **kwargs):
        return (present if _C._backend_exists(kind) else absent)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = present.__doc__
    return function
