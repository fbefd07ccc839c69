"""Matrices with two zeros in every four, on CUDA."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
from torch.sparse import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)


def pruned(rows, columns, seed=0):
    """A matrix of whole numbers with at most two in each group of four."""
    random = np.random.default_rng(seed)
    dense = random.integers(-4, 5, (rows, columns)).reshape(-1, 4)
    for group in dense:
        group[random.permutation(4)[:2]] = 0
    return dense.reshape(rows, columns).astype(np.float32)


def test_a_matrix_comes_back_and_takes_less_memory():
    dense = pruned(32, 64)
    kept = to_sparse_semi_structured(torch.tensor(dense, dtype=torch.float16, device=cuda))
    assert isinstance(kept, SparseSemiStructuredTensor) and kept.shape == (32, 64)
    assert kept.packed.shape == (32, 32) and kept.meta.dtype is torch.int16
    assert (kept.to_dense().cpu().float().numpy() == dense).all()
    assert (kept.t().to_dense().cpu().float().numpy() == dense.T).all()


def test_products_equal_the_dense_ones():
    dense, other = pruned(32, 64), pruned(64, 32, seed=1)
    kept = SparseSemiStructuredTensorCUTLASS.from_dense(torch.tensor(dense, device=cuda))
    matrix = torch.tensor(other, device=cuda)
    assert (torch.mm(kept, matrix).cpu().numpy() == dense @ other).all()
    layer = torch.nn.functional.linear(matrix.t(), kept)
    assert (layer.cpu().numpy() == other.T @ dense.T).all()
    bias = torch.arange(32.0, device=cuda)
    expected = dense @ other + np.arange(32.0)[:, None]
    assert (kept._mm(matrix, bias=bias).cpu().numpy() == expected).all()


def test_what_cannot_be_held_raises():
    full = torch.ones(32, 64, device=cuda)
    with pytest.raises(RuntimeError, match="at most two values"):
        SparseSemiStructuredTensorCUTLASS.from_dense(full)
    with pytest.raises(RuntimeError, match="is not a supported dtype"):
        SparseSemiStructuredTensorCUTLASS.from_dense(full.double())
    with pytest.raises(RuntimeError, match="a multiple of"):
        SparseSemiStructuredTensorCUTLASS.from_dense(full[:31])
    with pytest.raises(RuntimeError, match="Only 2d"):
        SparseSemiStructuredTensorCUTLASS.from_dense(full[0])
