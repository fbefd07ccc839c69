"""The default device: a mode that gives factory functions the device they were not told."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._contextlib import context_decorator

_global = None


@functools.cache
def _factories():
    """The functions whose `device` argument decides where the result lives."""
    names = (
        "arange asarray as_tensor bartlett_window blackman_window empty empty_permuted "
        "empty_strided eye "
        "fft.fftfreq fft.rfftfreq frombuffer from_file full hamming_window hann_window "
        "kaiser_window linspace "
        "logspace ones rand randint randn randperm range scalar_tensor sparse_bsc_tensor "
        "sparse_bsr_tensor "
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor "
        "tril_indices "
        "triu_indices zeros"
    ).split()
    found = set()
    for name in names:
        owner = torch
        for part in name.split("."):
            owner = getattr(owner, part, None)
            if owner is None:
                break
        if owner is not None:
            found.add(owner)
    return found


def _makes_tensor(
    func: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> bool:
    """Whether the call makes a tensor from nothing. torch.normal does so from two numbers; with a
    tensor of means or deviations it draws on that tensor's device."""
    if func is torch.normal:
        given = (*args[:2], kwargs.get("mean"), kwargs.get("std"))
        return not any(isinstance(value, torch.Tensor) for value in given)
    return func in _factories()


class DeviceContext(TorchFunctionMode):
    """What `with torch.device(...)` and torch.set_default_device enter."""

    def __init__(self, device) -> None:
        self.device = torch.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        told = kwargs.get("device") is not None or "out" in kwargs
        if not told and _makes_tensor(func, args, kwargs):
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def set_global_device(device) -> None:
    """Installs (or, for None, removes) the process-wide default beneath all other modes."""
    global _global
    if _global is not None:
        _remove(_global)
        _global = None
    if device is None:
        return
    context = DeviceContext(device)
    above = _pop_all()
    torch._C._push_on_torch_function_stack(context)
    for mode in above:
        torch._C._push_on_torch_function_stack(mode)
    _global = context


def _pop_all() -> list[DeviceContext]:
    modes = []
    while torch._C._len_torch_function_stack():
        modes.append(torch._C._pop_torch_function_stack())
    return modes[::-1]


def _remove(context) -> None:
    for mode in _pop_all():
        if mode is not context:
            torch._C._push_on_torch_function_stack(mode)


def current_device() -> torch.device:
    """The device of the innermost active DeviceContext, or the CPU."""
    for k in reversed(range(torch._C._len_torch_function_stack())):
        mode = torch._C._get_function_stack_at(k)
        if isinstance(mode, DeviceContext):
            return mode.device
    return torch.device("cpu")


def device_decorator(device, func):
    """`func` run with a default device."""
    return context_decorator(lambda: DeviceContext(device), func)


def set_device(device):
    """A decorator: functions run with the device as default."""
    return functools.partial(device_decorator, torch.device(device))
