"""Lookup in tables: embedding, embedding_bag and one_hot, with their gradients, against NumPy."""

import numpy as np
import pytest

import torch


def numbered(*shape, dtype=torch.float32):
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_embedding():
    weight = numbered(5, 3)
    index = torch.tensor([[1, 4], [0, 1]])
    same(torch.embedding(weight, index), weight.numpy()[index.numpy()])
    grad = numbered(2, 2, 3)
    expected = np.zeros((5, 3), dtype=np.float32)
    np.add.at(expected, index.numpy(), grad.numpy())
    backward = torch.ops.aten.embedding_dense_backward
    same(backward(grad, index, 5, -1, False), expected)
    scaled = expected.copy()
    scaled[1] /= 2
    same(backward(grad, index, 5, -1, True), scaled)
    expected[1] = 0
    same(backward(grad, index, 5, 1, False), expected)


def test_embedding_renorm():
    weight = numbered(3, 2)
    torch.embedding_renorm_(weight, torch.tensor([1, 1]), 1.0, 2.0)
    np.testing.assert_allclose(
        weight.numpy(), [[0, 1], [2 / 13**0.5, 3 / 13**0.5], [4, 5]], rtol=1e-5
    )


def test_one_hot():
    one_hot = torch._C._nn.one_hot
    same(one_hot(torch.tensor([0, 2])), [[1, 0, 0], [0, 0, 1]])
    same(one_hot(torch.tensor(1), 3), [0, 1, 0])
    assert one_hot(torch.zeros(2, 0, dtype=torch.long), 3).shape == (2, 0, 3)
    for bad, classes in (([-1], 3), ([3], 3), ([], -1)):
        with pytest.raises(RuntimeError):
            one_hot(torch.tensor(bad, dtype=torch.long), classes)


def test_embedding_bag():
    weight = numbered(4, 3)
    index, offsets = torch.tensor([1, 2, 1, 3, 0]), torch.tensor([0, 2, 2])
    rows = weight.numpy()[index.numpy()]
    zero = np.zeros(3, dtype=np.float32)
    combine = [lambda r: r.sum(0), lambda r: r.mean(0), lambda r: r.max(0)]
    for mode, f in enumerate(combine):
        out = torch.embedding_bag(weight, index, offsets, False, mode)
        same(out[0], [f(rows[:2]), zero, f(rows[2:])])
        last = torch.embedding_bag(
            weight, index, torch.tensor([0, 2, 5]), False, mode, False, None, True
        )
        same(last[0], [f(rows[:2]), f(rows[2:])])
        skipped = torch.embedding_bag(weight, index, offsets, False, mode, False, None, False, 1)
        same(skipped[0], [f(rows[1:2]), zero, f(rows[3:])])
    samples = torch.arange(5.0)
    out = torch.embedding_bag(weight, index, offsets, False, 0, False, samples)[0]
    weighted = rows * samples.numpy()[:, None]
    same(out, [weighted[:2].sum(0), zero, weighted[2:].sum(0)])
    for bad in ([1, 2], [0, 9], [0, 3, 2]):
        with pytest.raises(RuntimeError, match="offsets"):
            torch.embedding_bag(weight, index, torch.tensor(bad))
    with pytest.raises(RuntimeError, match="not in the valid range"):
        torch.embedding_bag(weight, torch.tensor([9]), torch.tensor([0]))


def test_embedding_bag_gradients():
    weight, grad = numbered(4, 3), numbered(3, 3)
    index, offsets = torch.tensor([1, 2, 1, 3, 0]), torch.tensor([0, 2, 2])
    bag = [0, 0, 2, 2, 2]
    for mode, divide in ((0, [1, 1, 1]), (1, [2, 1, 3])):
        out = torch.ops.aten._embedding_bag(weight, index, offsets, False, mode)
        expected = np.zeros((4, 3), dtype=np.float32)
        for i, b in zip(index.tolist(), bag, strict=False):
            expected[i] += grad.numpy()[b] / np.float32(divide[b])
        got = torch.ops.aten._embedding_bag_dense_backward(
            grad, index, out[1], out[2], out[3], 4, False, mode, None
        )
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    out = torch.ops.aten._embedding_bag(weight, index, offsets, False, 2)
    got = torch.ops.aten._embedding_bag_dense_backward(
        grad, index, out[1], out[2], out[3], 4, False, 2, None
    )
    same(got, [[0, 0, 0], [0, 0, 0], grad.numpy()[0], grad.numpy()[2]])
    got = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        grad, weight, index, offsets, out[1], 0
    )
    same(
        got, [float((grad[b] * weight[i]).sum()) for i, b in zip(index.tolist(), bag, strict=False)]
    )
