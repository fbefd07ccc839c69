"""Modules and functions from quantized tensors to quantized tensors; `dynamic` takes float tensors,
`reference` says in float arithmetic what the others compute."""

from torch.ao.nn.quantized.modules import *  # noqa: F403  # isort: skip
from torch.ao.nn.quantized.modules import __all__ as _MODULES

from torch.ao.nn.quantized import dynamic, functional, modules, reference  # isort: skip

__all__ = [*_MODULES, "dynamic", "functional", "modules", "reference"]
