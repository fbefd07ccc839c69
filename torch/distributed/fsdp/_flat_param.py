"""FlatParameter: the class of parameters that hold several. Here each parameter is cut by itself,
so that no module has one; the class is for `isinstance`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = ["FlatParameter"]


class _FlatMeta(type(nn.Parameter)):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) and getattr(instance, "_is_flat_param", False)


class FlatParameter(nn.Parameter, metaclass=_FlatMeta):
    """Several parameters in one."""

    def __new__(cls, data: torch.Tensor | None = None, requires_grad: bool = True) -> Any:
        made = nn.Parameter(torch.empty(0) if data is None else data, requires_grad)
        made._is_flat_param = True
        return made
