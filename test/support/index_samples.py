"""Tensors in every dtype and layout, shared by the tests of indexing and masks."""

import numpy as np

import torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
DTYPES = INTEGERS + [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


def numbered(*shape, dtype=torch.float32):
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


def layouts(t):
    """The same values in several layouts."""
    yield t
    order = list(range(t.dim()))[::-1]
    yield t.permute(order).contiguous().permute(order)
    wide = torch.zeros([2 * n for n in t.shape], dtype=t.dtype)
    part = wide[tuple(slice(None, None, 2) for _ in t.shape)]
    part.copy_(t)
    yield part
