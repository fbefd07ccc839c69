"""torch.autograd.Variable, the old name of tensors with gradients."""

import torch
from torch import _C

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, torch.Tensor)


class Variable(metaclass=_VariableMeta):
    """Every tensor is one; Variable(data) gives a tensor that shares the data."""

    _execution_engine = _C._ImperativeEngine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if data is None:
            data = torch.empty(0)
        if not isinstance(data, torch.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
