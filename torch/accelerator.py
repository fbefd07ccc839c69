"""The machine's accelerator by whatever name: here always CUDA."""

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


def current_accelerator(check_available=False):
    """The kind of accelerator the library was built for, or None; with check_available only when
    there is one."""
    if not torch._C._has_cuda or (check_available and not is_available()):
        return None
    return torch.device("cuda")


def is_available():
    """Whether there is an accelerator that can be used."""
    return torch.cuda.is_available()


def device_count():
    """How many accelerators there are."""
    return torch.cuda.device_count()


def current_device_index():
    """The index of the current accelerator."""
    return torch.cuda.current_device()


def set_device_index(device) -> None:
    """Makes an accelerator current."""
    torch.cuda.set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


def current_stream(device=None):
    """The stream on which work for an accelerator is queued."""
    return torch.cuda.current_stream(device)


def set_stream(stream) -> None:
    """Makes a stream current."""
    torch.cuda.set_stream(stream)


def synchronize(device=None) -> None:
    """Waits for all work on an accelerator."""
    torch.cuda.synchronize(device)


def get_memory_info(device_index=None):
    """Free and total bytes of an accelerator."""
    return torch.cuda.mem_get_info(device_index)


class device_index:
    """A context in which an accelerator is current; None changes nothing."""

    def __init__(self, device) -> None:
        self._context = torch.cuda.device(device)
        self.idx = device

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *exc_info) -> None:
        self._context.__exit__(*exc_info)


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the driver."""
    torch.cuda.empty_cache()


def memory_stats(device_index=None):
    """The allocator's counts."""
    return torch.cuda.memory_stats(device_index)


def memory_allocated(device_index=None):
    """Bytes that tensors hold."""
    return torch.cuda.memory_allocated(device_index)


def max_memory_allocated(device_index=None):
    """The most bytes that tensors held."""
    return torch.cuda.max_memory_allocated(device_index)


def memory_reserved(device_index=None):
    """Bytes that this process holds."""
    return torch.cuda.memory_reserved(device_index)


def max_memory_reserved(device_index=None):
    """The most bytes that this process held."""
    return torch.cuda.max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index=None) -> None:
    """Sets the counts of all that was ever allocated and freed to zero."""
    torch.cuda.reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None) -> None:
    """Peaks count from now on."""
    torch.cuda.reset_peak_memory_stats(device_index)
