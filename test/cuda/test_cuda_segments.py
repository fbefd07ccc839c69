"""Reductions of segments and the two forms of a ragged batch on CUDA, against plain loops."""

import numpy as np
import pytest
from cuda_support import cuda

import torch

LENGTHS = [3, 0, 2]
FOLDS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


@pytest.mark.parametrize("reduce", list(FOLDS))
def test_segments_are_reduced_by_themselves(reduce):
    torch.manual_seed(1)
    data = torch.randn(5, 2, dtype=torch.float64)
    leaf = data.to(cuda).requires_grad_()
    lengths = torch.tensor(LENGTHS, device=cuda)
    out = torch.segment_reduce(leaf, reduce, lengths=lengths, axis=0, initial=1.0)
    start, want = 0, np.zeros((3, 2))
    for i, length in enumerate(LENGTHS):
        rows = np.concatenate([np.ones((1, 2)), data.numpy()[start : start + length]])
        want[i] = FOLDS[reduce](rows, axis=0)
        if reduce == "mean":
            want[i] = rows.sum(0) / max(length, 1)
        start += length
    np.testing.assert_allclose(out.detach().cpu().numpy(), want, rtol=1e-12)
    out[0].sum().backward()
    step = 1e-6
    for row, column in ((0, 0), (2, 1), (4, 0)):
        moved = data.clone()
        moved[row, column] += step
        after = torch.segment_reduce(moved.to(cuda), reduce, lengths=lengths, axis=0, initial=1.0)
        slope = (after[0].sum() - out[0].sum()).item() / step
        assert leaf.grad[row, column].item() == pytest.approx(slope, abs=1e-4)


def test_offsets_and_borders_outside_the_data():
    data = torch.arange(6.0, device=cuda).view(2, 3)
    offsets = torch.tensor([[0, 1, 3], [0, 2, 3]], device=cuda)
    out = torch.segment_reduce(data, "sum", offsets=offsets, axis=1)
    assert out.tolist() == [[0, 3], [7, 5]]
    with pytest.raises(RuntimeError, match="segment_reduce"):
        torch.segment_reduce(data, "sum", lengths=torch.tensor([[9], [9]], device=cuda), axis=1)


def test_ragged_and_padded_forms_of_a_batch():
    values = torch.arange(10.0).view(5, 2)
    offsets = torch.tensor([0, 3, 3, 5])
    padded = torch.ops.aten._jagged_to_padded_dense_forward(
        values.to(cuda), [offsets.to(cuda)], [2], -1.0
    )
    want = np.full((3, 2, 2), -1.0)
    want[0], want[2] = values[:2], values[3:]
    np.testing.assert_array_equal(padded.cpu().numpy(), want)
    back = torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets.to(cuda)], 5)
    rows = values.clone()
    rows[2] = 0  # beyond the padded width
    np.testing.assert_array_equal(back.cpu().numpy(), rows.numpy())
