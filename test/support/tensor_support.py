"""What several test files do with tensors: elements of any dtype, their bytes, gradients by
differences, a function of their own, and a record of the operators that run."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def raw(tensor):
    """The bytes of a tensor's elements."""
    if tensor.numel() == 0:
        return b""
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())


def sample(dtype):
    """Twelve elements of a dtype."""
    pattern = bytes(i % 2 for i in range(12)) if dtype == "bool" else bytes(range(12 * 16))
    kind = getattr(torch, dtype)
    return torch.frombuffer(bytearray(pattern), dtype=kind, count=12).clone().reshape(3, 4)


def numeric_gradient(function, x, g=1.0, h=1e-6):
    """Central differences of sum(function(x) * g)."""
    base, out = x.flatten(), []
    for i in range(x.numel()):
        up, down = base.clone(), base.clone()
        up[i] += h
        down[i] -= h
        difference = function(up.view(x.shape)) - function(down.view(x.shape))
        out.append(float((difference * g).sum()) / (2 * h))
    return torch.tensor(out, dtype=torch.float64).view(x.shape)


class Double(torch.autograd.Function):
    """Twice the argument."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class OperatorLog(TorchDispatchMode):
    """The names of the operators that run under it."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
