"""Copies of a module on several devices whose parameters are functions of the original ones."""

from __future__ import annotations

from typing import Any as _Any

from torch.nn.parallel.scatter_gather import _device

__all__ = ["replicate"]


def replicate(network, devices, detach=False) -> _Any:
    """A copy of network per device. Parameters are moved by a differentiable copy, so the gradients
    of all copies add up in the original."""
    return [_copy_to(network, _device(device), detach) for device in devices]


def _copy_to(network, device, detach):
    modules = list(network.modules())
    copies = {module: module._replicate_for_data_parallel() for module in modules}

    def moved(tensor):
        if tensor is None:
            return None
        tensor = tensor.detach() if detach else tensor
        return tensor.to(device)

    for module, copy in copies.items():
        for name, child in module._modules.items():
            copy._modules[name] = None if child is None else copies[child]
        for name, param in module._parameters.items():
            # Not a leaf any more: a plain attribute in place of a parameter.
            copy._parameters.pop(name, None)
            copy.__dict__[name] = moved(param)
        for name, buffer in module._buffers.items():
            copy._buffers[name] = None if buffer is None else buffer.detach().to(device)
    return copies[network]
