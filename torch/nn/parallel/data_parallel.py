"""DataParallel: each device computes a part of the batch with a copy of the module. With one
device, or none, it is the module itself."""

from __future__ import annotations

from itertools import chain
from typing import Any, Generic, TypeVar

import torch
from torch.nn.modules.module import Module
from torch.nn.parallel.parallel_apply import parallel_apply
from torch.nn.parallel.replicate import replicate
from torch.nn.parallel.scatter_gather import _device, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


def _all_devices():
    return list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []


def _number(device) -> torch.device:
    device = _device(device)
    return device.index if device.type == "cuda" else device


def _one_at_least(scattered):
    """A module without arguments is still called, on the first device."""
    return scattered if any(scattered) else (((),), ({},))


class DataParallel(Module, Generic[T]):
    """Cuts the batch along dim over device_ids (all GPUs by default), calls a copy of the module
    on each and joins the results on output_device."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0) -> None:
        super().__init__()
        device_ids = _all_devices() if device_ids is None else list(device_ids)
        self.module = module
        self.device_ids = [_number(device) for device in device_ids]
        self.dim = dim
        if not self.device_ids:
            return
        self.output_device = self.device_ids[0] if output_device is None else _number(output_device)
        self.src_device_obj = _device(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs) -> Any:
        """The module's output for the whole batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        self._check_devices()
        args, named = _one_at_least(self.scatter(inputs, kwargs, self.device_ids))
        if len(self.device_ids) == 1:
            return self.module(*args[0], **named[0])
        copies = self.replicate(self.module, self.device_ids[: len(args)])
        return self.gather(self.parallel_apply(copies, args, named), self.output_device)

    def _check_devices(self) -> None:
        """The copies are made from the first device: everything has to be there."""
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: "
                    f"{tensor.device}"
                )

    def replicate(self, module, device_ids) -> Any:
        """Copies of the module; see torch.nn.parallel.replicate."""
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids) -> Any:
        """A part of the inputs per device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas, inputs, kwargs) -> list[torch.Tensor]:
        """Calls all copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device) -> torch.Tensor:
        """Joins the outputs."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None
) -> Any:
    """DataParallel as a function."""
    inputs = inputs if isinstance(inputs, tuple) else (() if inputs is None else (inputs,))
    device_ids = _all_devices() if device_ids is None else list(device_ids)
    if not device_ids:
        return module(*inputs, **(module_kwargs or {}))
    output_device = device_ids[0] if output_device is None else output_device
    parts, named = _one_at_least(scatter_kwargs(inputs, module_kwargs, device_ids, dim))
    if len(device_ids) == 1:
        return module(*parts[0], **named[0])
    used = device_ids[: len(parts)]
    outputs = parallel_apply(replicate(module, used), parts, named, used)
    return gather(outputs, output_device, dim)
