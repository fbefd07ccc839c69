"""torch.from_file and torch._assert_async: small functions of torch that need no C++."""

from __future__ import annotations

import torch


def from_file(
    filename,
    shared=None,
    size=0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> torch.Tensor:
    """A tensor of `size` elements that maps a file; writes reach the file when shared."""
    if device is not None and torch.device(device).type != "cpu":
        raise RuntimeError(f"from_file: a file is mapped on the CPU, not on {device}")
    dtype = torch.get_default_dtype() if dtype is None else dtype
    storage = torch.UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    tensor = torch.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,))
    return tensor.requires_grad_(requires_grad)


def _assert_async(input, assert_msg=None) -> None:
    """Errors when the one element of input is zero."""
    if input.numel() != 1:
        raise RuntimeError("Expected Tensor with single nonzero value, but got more than one value")
    if assert_msg is None:
        torch.ops.aten._assert_async.default(input)
    else:
        torch.ops.aten._assert_async.msg(input, assert_msg)


def is_vulkan_available() -> bool:
    """Whether Vulkan devices can be used: no."""
    return False
