"""What several test files do with tensors: elements of any dtype, their bytes, and gradients by
differences."""

import torch


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
