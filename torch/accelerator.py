"""The machine's accelerator by whatever name: the device of another package where one registered
itself (torch.utils.rename_privateuse1_backend), else CUDA."""

import torch

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def _other_kind() -> str | None:
    """The kind of device that another package brings, or None."""
    from torch._backend_streams import KINDS

    kinds = (torch._C._get_privateuse1_backend_name(), *KINDS)
    return next((kind for kind in kinds if torch._C._backend_exists(kind)), None)


def _module():
    """Where the functions of the accelerator are: torch.cuda, or the module of the other kind."""
    kind = _other_kind()
    return torch.cuda if kind is None else getattr(torch, kind)


def current_accelerator(check_available=False):
    """The kind of accelerator the library was built for, or None; with check_available only when
    there is one."""
    kind = _other_kind()
    if kind is not None:
        return torch.device(kind) if device_count() or not check_available else None
    if not torch._C._has_cuda or (check_available and not is_available()):
        return None
    return torch.device("cuda")


def _of_kind(kind: str, device: torch.device | str | int | None) -> torch.device:
    """A device of the kind by an index or a name; without either the current one."""
    if isinstance(device, int):
        return torch.device(kind, device)
    return torch.device(kind if device is None else device)


def is_available():
    """Whether there is an accelerator that can be used."""
    return torch.cuda.is_available() if _other_kind() is None else device_count() > 0


def device_count():
    """How many accelerators there are."""
    kind = _other_kind()
    return torch.cuda.device_count() if kind is None else torch._C._backend_device_count(kind)


def current_device_index():
    """The index of the current accelerator."""
    kind = _other_kind()
    return torch.cuda.current_device() if kind is None else torch._C._backend_current_device(kind)


def set_device_index(device) -> None:
    """Makes an accelerator current."""
    kind = _other_kind()
    if kind is None:
        torch.cuda.set_device(device)
    else:
        torch._C._backend_exchange_device(_of_kind(kind, device))


current_device_idx = current_device_index
set_device_idx = set_device_index


def current_stream(device=None):
    """The stream on which work for an accelerator is queued."""
    kind = _other_kind()
    if kind is None:
        return torch.cuda.current_stream(device)
    from torch._backend_streams import current_stream

    return current_stream(_of_kind(kind, device))


def set_stream(stream) -> None:
    """Makes a stream current."""
    if _other_kind() is None:
        torch.cuda.set_stream(stream)
    else:
        torch._C._backend_exchange_device(stream.device)
        torch._C._backend_stream_exchange(stream.device, stream.stream_id)


def synchronize(device=None) -> None:
    """Waits for all work on an accelerator."""
    kind = _other_kind()
    if kind is None:
        torch.cuda.synchronize(device)
    else:
        torch._C._backend_synchronize(_of_kind(kind, device))


def get_memory_info(device_index=None):
    """Free and total bytes of an accelerator."""
    return _module().mem_get_info(device_index)


class _OtherDevice:
    """device_index of a device of another package."""

    def __init__(self, index: int | None) -> None:
        self._kind = torch.device(_other_kind()).type
        self._index = index
        self._outer: list[int] = []

    def __enter__(self) -> None:
        target = _of_kind(self._kind, self._index)
        self._outer.append(torch._C._backend_exchange_device(target))

    def __exit__(self, *exc_info: object) -> None:
        before = self._outer.pop()
        if before >= 0:
            torch._C._backend_exchange_device(torch.device(self._kind, before))


class device_index:
    """A context in which an accelerator is current; None changes nothing."""

    def __init__(self, device) -> None:
        self._context = torch.cuda.device(device) if _other_kind() is None else _OtherDevice(device)
        self.idx = device

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *exc_info) -> None:
        self._context.__exit__(*exc_info)


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the driver."""
    _module().empty_cache()


def memory_stats(device_index=None):
    """The allocator's counts."""
    return _module().memory_stats(device_index)


def memory_allocated(device_index=None):
    """Bytes that tensors hold."""
    return _module().memory_allocated(device_index)


def max_memory_allocated(device_index=None):
    """The most bytes that tensors held."""
    return _module().max_memory_allocated(device_index)


def memory_reserved(device_index=None):
    """Bytes that this process holds."""
    return _module().memory_reserved(device_index)


def max_memory_reserved(device_index=None):
    """The most bytes that this process held."""
    return _module().max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index=None) -> None:
    """Sets the counts of all that was ever allocated and freed to zero."""
    _module().reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None) -> None:
    """Peaks count from now on."""
    _module().reset_peak_memory_stats(device_index)
