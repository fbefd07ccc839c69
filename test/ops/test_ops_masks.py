"""Boolean masks against NumPy: masked_fill, masked_select, masked_scatter, nonzero and where, for
all dtypes and layouts, with broadcasting, promotion and the strides of results."""

import itertools

import numpy as np
import pytest
from index_samples import DTYPES, layouts, numbered, same

import torch


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_every_dtype(dtype):
    base = (numbered(3, 4) % 2).to(dtype)
    wide = torch.complex128
    mask = numbered(3, 4) % 3 == 0
    array = base.to(wide).numpy()
    for t, m in itertools.product(layouts(base), layouts(mask)):
        filled = array.copy()
        filled[mask.numpy()] = 1
        same(t.masked_fill(m, 1).to(wide), filled)
        same(torch.masked_select(t, m).to(wide), array[mask.numpy()])
        same(
            torch.where(m, t, torch.ones((), dtype=dtype)).to(wide),
            np.where(mask.numpy(), array, 1),
        )
        source = (numbered(5) % 2).to(dtype)
        scattered = array.copy()
        scattered[mask.numpy()] = source.to(wide).numpy()[:4]
        same(t.masked_scatter(m, source).to(wide), scattered)
        own = t.clone()
        own.masked_scatter_(m, source)
        same(own.to(wide), scattered)
    same(torch.nonzero(base), np.argwhere(array))


def test_masks_broadcast():
    t = numbered(2, 3)
    row = torch.tensor([True, False, True])
    same(t.masked_fill(row, -1.0), [[-1, 1, -1], [-1, 4, -1]])
    same(torch.masked_select(t, row), [0, 2, 3, 5])
    same(t[0].masked_fill(torch.ones(2, 3) > 0, 4.0), np.full((2, 3), 4))
    t.masked_fill_(torch.tensor(True), 9.0)
    same(t, np.full((2, 3), 9))


def test_nonzero_layout_and_forms():
    a = numbered(2, 3)
    found = torch.nonzero(a)
    assert found.shape == (5, 2) and found.stride() == (1, 5) and found.dtype == torch.int64
    assert torch.nonzero(torch.tensor(1.0)).shape == (1, 0)
    assert torch.nonzero(torch.tensor(0.0)).shape == (0, 0)
    assert torch.nonzero(torch.zeros(0, 3)).shape == (0, 2)
    same(torch.nonzero(torch.tensor([0.0, -0.0, float("nan"), 1.0])), [[2], [3]])
    rows, columns = torch.where(a > 2)
    same(rows, [1, 1, 1])
    same(columns, [0, 1, 2])
    (only,) = torch.where(torch.tensor(1.0))
    same(only, [0])
    same(torch.argwhere(a > 4), [[1, 2]])
    same(torch.nonzero_static(a > 3, size=3), [[1, 1], [1, 2], [-1, -1]])
    same(torch.nonzero_static(a > 3, size=1, fill_value=7), [[1, 1]])


def test_where_promotes_and_keeps_strides():
    a = numbered(2, 3)
    mask = a > 2
    assert torch.where(mask, a, a.double()).dtype == torch.float64
    assert torch.where(mask, a.long(), 1.5).dtype == torch.float32
    assert torch.where(mask, 1, 2).dtype == torch.int64
    assert torch.where(mask, 1, 2.0).dtype == torch.float32
    assert torch.where(mask, a.half(), 1e3).dtype == torch.float16
    assert torch.where(mask.t(), a.t(), a.t()).stride() == (1, 3)
    same(torch.where(mask[:, :1], a, torch.tensor([1, 2, 3])), [[1, 2, 3], [3, 4, 5]])
    out = torch.empty(0)
    torch.where(mask, a, -a, out=out)
    same(out, [[0, -1, -2], [3, 4, 5]])


def test_nonzero_as_a_tuple_takes_no_out():
    with pytest.raises(RuntimeError, match="out kwarg when as_tuple"):
        torch.nonzero(torch.ones(2), as_tuple=True, out=torch.empty(0, dtype=torch.long))
