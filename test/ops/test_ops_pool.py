"""Pooling against plain loops, and what must hold of any: gradients, formats, shapes, errors."""

import itertools
import unittest

import numpy as np
import pytest

import torch
import torch.nn.functional as F


def windows(size, kernel, stride, padding, dilation, ceil_mode):
    """The indices of each window along one dimension, and its length with the padding."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    out = []
    for o in range(count):
        start = o * stride - padding
        places = [start + k * dilation for k in range(kernel)]
        end = min(start + dilation * (kernel - 1) + 1, size + padding)
        out.append(([p for p in places if 0 <= p < size], end - start))
    return out


def pooled(x, per_dim, combine):
    """combine(window, full count) for each window of the last dimensions."""
    dims = len(per_dim)
    lead = x.shape[: x.ndim - dims]
    out = np.zeros((*lead, *[len(w) for w in per_dim]), x.dtype)
    for n in np.ndindex(*lead):
        for cell in itertools.product(*[range(len(w)) for w in per_dim]):
            chosen = [per_dim[d][cell[d]] for d in range(dims)]
            window = x[n][np.ix_(*[c[0] for c in chosen])]
            out[(*n, *cell)] = combine(window, int(np.prod([c[1] for c in chosen])))
    return out


MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVG = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)


class TestForward(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_max(self):
        for dims, stride, padding, dilation, ceil_mode in itertools.product(
            (1, 2, 3), (1, 2), (0, 1), (1, 2), (False, True)
        ):
            x = torch.randn(2, 2, *(7, 6, 8)[:dims])
            found, places = MAX[dims - 1](
                x, 3, stride, padding, dilation, ceil_mode, return_indices=True
            )
            per = [windows(s, 3, stride, padding, dilation, ceil_mode) for s in x.shape[2:]]
            wanted = pooled(x.numpy(), per, lambda w, n: w.max())
            np.testing.assert_array_equal(found.numpy(), wanted)
            flat = x.reshape(2, 2, -1).gather(-1, places.reshape(2, 2, -1))
            self.assertTrue(torch.equal(flat.reshape(found.shape), found))

    def test_mean(self):
        for dims, stride, padding, ceil_mode, include in itertools.product(
            (1, 2, 3), (1, 2), (0, 1), (False, True), (False, True)
        ):
            x = torch.randn(2, 2, *(7, 6, 8)[:dims], dtype=torch.float64)
            found = AVG[dims - 1](x, 3, stride, padding, ceil_mode, include)
            per = [windows(s, 3, stride, padding, 1, ceil_mode) for s in x.shape[2:]]
            mean = (lambda w, n: w.sum() / n) if include else (lambda w, n: w.mean())
            wanted = pooled(x.numpy(), per, mean)
            np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)

    def test_adaptive(self):
        for dims, count in itertools.product((1, 2, 3), (1, 3, 9)):
            x = torch.randn(2, 2, *(7, 6, 8)[:dims], dtype=torch.float64)
            per = [
                [(list(range(o * s // count, -(-(o + 1) * s // count))), 1) for o in range(count)]
                for s in x.shape[2:]
            ]
            mean = getattr(F, f"adaptive_avg_pool{dims}d")(x, count)
            np.testing.assert_allclose(mean.numpy(), pooled(x.numpy(), per, lambda w, n: w.mean()))
            largest = getattr(F, f"adaptive_max_pool{dims}d")(x, count)
            np.testing.assert_array_equal(
                largest.numpy(), pooled(x.numpy(), per, lambda w, n: w.max())
            )

    def test_none_keeps_a_size(self):
        found = F.adaptive_avg_pool2d(torch.zeros(1, 2, 5, 6), (None, 3))
        self.assertEqual(found.shape, (1, 2, 5, 3))

    def test_nan_is_the_largest(self):
        nan = float("nan")
        value, place = F.max_pool1d(torch.tensor([[1.0, nan, 3.0]]), 3, return_indices=True)
        self.assertTrue(value.isnan().all())
        self.assertEqual(place.item(), 1)

    def test_dtypes(self):
        x = torch.randint(-9, 9, (1, 2, 4, 4))
        for dtype in (torch.int64, torch.int8, torch.float16, torch.bfloat16):
            found = F.max_pool2d(x.to(dtype), 2)
            self.assertEqual(found.dtype, dtype)
            self.assertEqual(found.tolist(), F.max_pool2d(x.double(), 2).tolist())

    def test_unpool(self):
        for dims in (1, 2, 3):
            x = torch.randn(1, 2, *(6, 4, 4)[:dims])
            found, places = MAX[dims - 1](x, 2, return_indices=True)
            back = getattr(F, f"max_unpool{dims}d")(found, places, 2)
            self.assertEqual(back.shape, x.shape)
            self.assertTrue(torch.equal(back[back != 0], x[back != 0]))
            self.assertEqual(int((back != 0).sum()), found.numel())

    def test_norm(self):
        x = torch.rand(1, 1, 4, 4, dtype=torch.float64)
        wanted = (x[0, 0, :2, :2] ** 3).sum() ** (1 / 3)
        torch.testing.assert_close(F.lp_pool2d(x, 3, 2)[0, 0, 0, 0], wanted)

    def test_channels_last_and_meta(self):
        x = torch.randn(2, 3, 6, 6)
        last = x.contiguous(memory_format=torch.channels_last)
        for function in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d):
            found = function(last, 2)
            self.assertTrue(found.is_contiguous(memory_format=torch.channels_last))
            self.assertTrue(torch.equal(found, function(x, 2)))
            self.assertEqual(function(x.to("meta"), 2).shape, found.shape)
        self.assertEqual(F.max_pool2d(x[:0], 2).shape, (0, 3, 3, 3))


class TestGradients(unittest.TestCase):
    def check(self, function, *shape):
        torch.manual_seed(2)
        x = torch.randperm(int(np.prod(shape))).double().reshape(shape).requires_grad_()
        self.assertTrue(torch.autograd.gradcheck(function, (x,)))
        self.assertTrue(torch.autograd.gradgradcheck(function, (x,)))

    def test_all(self):
        self.check(lambda x: F.max_pool2d(x, 3, 2, 1), 1, 2, 5, 5)
        self.check(lambda x: F.max_pool3d(x, 2), 1, 1, 4, 2, 2)
        self.check(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), 1, 2, 5, 5)
        self.check(lambda x: F.avg_pool3d(x, 2, divisor_override=3), 1, 1, 4, 2, 2)
        self.check(lambda x: F.adaptive_avg_pool2d(x, 3), 1, 2, 5, 4)
        self.check(lambda x: F.adaptive_max_pool2d(x, 3), 1, 2, 5, 4)
        places = torch.tensor([[[[0, 3], [8, 10]]]])
        self.check(lambda x: F.max_unpool2d(x, places, 2), 1, 1, 2, 2)


class TestErrors(unittest.TestCase):
    def test_phrases(self):
        x = torch.zeros(1, 3, 4, 4)
        places = torch.full((1, 3, 4, 4), 99)
        for phrase, call in (
            ("Output size is too small", lambda: F.max_pool2d(x, 5)),
            ("stride should not be zero", lambda: F.max_pool2d(x, 2, 0)),
            ("pad should be at most half", lambda: F.max_pool2d(x, 2, padding=2)),
            ("pad must be non-negative", lambda: F.avg_pool2d(x, 2, padding=-1)),
            ("divisor must be not zero", lambda: F.avg_pool2d(x, 2, divisor_override=0)),
            ("optional 0 dim batch size", lambda: F.max_pool2d(x[:, :0], 2)),
            ("negative dimension", lambda: F.adaptive_max_pool2d(x, -1)),
            ("Found an invalid max index", lambda: F.max_unpool2d(x, places, 2)),
            ("Invalid computed output size", lambda: F.max_pool1d(x[0], 9)),
        ):
            with self.assertRaisesRegex(RuntimeError, phrase):
                call()


if __name__ == "__main__":
    unittest.main()


def test_max_pool_window_in_the_padding_alone_is_minus_infinity():
    x = torch.ones(1, 1, 1)
    assert torch.nn.functional.max_pool1d(x, 2, None, 1, 2).item() == float("-inf")
    assert torch.nn.functional.max_pool2d(x[None], 2, None, 1, 2).item() == float("-inf")
    row = torch.tensor([[[1.0, 2.0]]])
    assert torch.nn.functional.max_pool1d(row, 2, 1, 1, 2).tolist() == [[[2.0, 1.0]]]


def test_adaptive_mean_of_integers_raises():
    for dims in (1, 2, 3):
        pool = getattr(torch.nn.functional, f"adaptive_avg_pool{dims}d")
        with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
            pool(torch.ones((4,) * (dims + 1), dtype=torch.int64), 2)


def test_fractional_pool_of_size_zero_is_empty():
    out = torch.nn.functional.fractional_max_pool2d(torch.rand(2, 3, 8, 8), 2, output_size=(0, 1))
    assert out.shape == (2, 3, 0, 1)
