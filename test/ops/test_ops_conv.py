"""Convolutions against plain loops, and what must hold of all: gradients, formats, errors."""

import functools
import itertools
import unittest

import numpy as np

import torch
import torch.nn.functional as F


def reference(x, w, b, stride, padding, dilation, groups):
    """A convolution over any number of dimensions, one output element at a time."""
    dims = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    extents = [(w.shape[i + 2] - 1) * dilation[i] + 1 for i in range(dims)]
    size = [(x.shape[i + 2] - extents[i]) // stride[i] + 1 for i in range(dims)]
    out = np.zeros((x.shape[0], w.shape[0], *size), x.dtype)
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for n, o in itertools.product(range(x.shape[0]), range(w.shape[0])):
        group = o // per_out
        channels = x[n, group * per_in : (group + 1) * per_in]
        for place in itertools.product(*map(range, size)):
            window = tuple(
                slice(place[i] * stride[i], place[i] * stride[i] + extents[i], dilation[i])
                for i in range(dims)
            )
            out[(n, o, *place)] = (channels[(slice(None), *window)] * w[o]).sum()
    if b is not None:
        out += b.reshape(-1, *[1] * dims)
    return out


def values(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


class TestForward(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(
        self, dims, groups, channels, outputs, stride, padding, dilation, dtype=torch.float64
    ):
        size, kernel = (9, 8, 7)[:dims], (3, 2, 2)[:dims]
        x = values(2, channels, *size, dtype=dtype)
        w = values(outputs, channels // groups, *kernel, dtype=dtype)
        b = values(outputs, dtype=dtype)
        function = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
        found = function(x, w, b, stride, padding, dilation, groups)
        wanted = reference(
            x.numpy(), w.numpy(), b.numpy(), [stride] * dims, [padding] * dims, [dilation] * dims,
            groups,
        )  # fmt: skip
        tolerance = 1e-10 if dtype in (torch.float64, torch.complex128) else 1e-4
        np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)

    def test_all_parameters(self):
        for dims in (1, 2, 3):
            for groups, stride, padding, dilation in itertools.product(
                (1, 2), (1, 2), (0, 2), (1, 2)
            ):
                with self.subTest(dims=dims, groups=groups, stride=stride, dilation=dilation):
                    self.check(dims, groups, 4, 6, stride, padding, dilation)

    def test_depthwise(self):
        for dims in (1, 2, 3):
            for outputs, stride, padding in itertools.product((4, 8), (1, 2), (0, 1)):
                self.check(dims, 4, 4, outputs, stride, padding, 1)

    def test_dtypes(self):
        for dtype in (torch.float32, torch.complex64, torch.complex128):
            self.check(2, 1, 3, 4, 1, 1, 1, dtype)
        x, w = torch.randint(-5, 5, (1, 2, 5, 5)), torch.randint(-5, 5, (3, 2, 3, 3))
        wanted = reference(x.numpy(), w.numpy(), None, (1, 1), (0, 0), (1, 1), 1)
        for dtype in (torch.int64, torch.int32, torch.int16):
            self.assertEqual(F.conv2d(x.to(dtype), w.to(dtype)).tolist(), wanted.tolist())
        for dtype in (torch.float16, torch.bfloat16):
            self.assertEqual(F.conv2d(x.to(dtype), w.to(dtype)).tolist(), wanted.tolist())

    def test_several_tiles(self):
        x, w = values(1, 64, 24, 24), values(2, 64, 3, 3)
        wanted = reference(x.numpy(), w.numpy(), None, (1, 1), (1, 1), (1, 1), 1)
        np.testing.assert_allclose(F.conv2d(x, w, padding=1).numpy(), wanted, atol=1e-10)

    def test_transposed_is_the_adjoint(self):
        for dims, groups, stride, padding, dilation in itertools.product(
            (1, 2, 3), (1, 2), (1, 2), (0, 1), (1, 2)
        ):
            plain = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
            back = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
            y, w = values(2, 4, *(3, 4, 3)[:dims]), values(4, 3, *(3, 2, 2)[:dims])
            z = back(y, w, None, stride, padding, 0, groups, dilation)
            x = torch.randn_like(z)
            forward = plain(x, w, None, stride, padding, dilation, groups)
            torch.testing.assert_close((forward * y).sum(), (x * z).sum())

    def test_padding_words(self):
        x, w = values(1, 2, 7, 7), values(3, 2, 4, 3)
        same = F.conv2d(x, w, padding="same", dilation=(1, 2))
        padded = F.pad(x, (2, 2, 1, 2))
        torch.testing.assert_close(same, F.conv2d(padded, w, dilation=(1, 2)))
        torch.testing.assert_close(F.conv2d(x, w, padding="valid"), F.conv2d(x, w))

    def test_unbatched_empty_and_views(self):
        x, w = values(2, 3, 6, 6), values(4, 3, 3, 3)
        torch.testing.assert_close(F.conv2d(x[0], w), F.conv2d(x, w)[0])
        self.assertEqual(F.conv2d(x[:0], w).shape, (0, 4, 4, 4))
        wide = values(2, 3, 12, 12)[:, :, ::2, ::2]
        torch.testing.assert_close(F.conv2d(wide, w), F.conv2d(wide.contiguous(), w))

    def test_channels_last(self):
        x, w = values(2, 4, 6, 6), values(8, 2, 3, 3)
        plain = F.conv2d(x, w, groups=2)
        last = F.conv2d(x.contiguous(memory_format=torch.channels_last), w, groups=2)
        self.assertTrue(last.is_contiguous(memory_format=torch.channels_last))
        torch.testing.assert_close(plain, last.contiguous())

    def test_meta(self):
        x, w = values(2, 3, 6, 6), values(4, 3, 3, 3)
        real = F.conv2d(x, w, stride=2)
        shape = F.conv2d(x.to("meta"), w.to("meta"), stride=2)
        self.assertEqual((shape.shape, shape.stride()), (real.shape, real.stride()))

    def test_bits_do_not_depend_on_threads(self):
        x, w = torch.randn(3, 32, 20, 20), torch.randn(32, 32, 3, 3)
        before, found = torch.get_num_threads(), []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(F.conv2d(x, w, padding=1))
        torch.set_num_threads(before)
        self.assertTrue(torch.equal(found[0], found[1]) and torch.equal(found[0], found[2]))


class TestGradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def check(self, function, *inputs):
        inputs = [t.requires_grad_() for t in inputs]
        self.assertTrue(torch.autograd.gradcheck(function, inputs))
        self.assertTrue(torch.autograd.gradgradcheck(function, inputs))

    def test_plain(self):
        for groups, stride, padding in ((1, 1, 0), (2, 2, 1)):
            self.check(
                functools.partial(F.conv2d, stride=stride, padding=padding, groups=groups),
                values(2, 4, 5, 4), values(2, 4 // groups, 3, 2), values(2),
            )  # fmt: skip

    def test_depthwise(self):
        self.check(
            lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 3), values(2, 3, 5, 5), values(6, 1, 3, 3)
        )

    def test_transposed(self):
        self.check(
            lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2),
            values(1, 4, 3, 3), values(4, 1, 3, 3), values(2),
        )  # fmt: skip

    def test_complex(self):
        kind = torch.complex128
        self.check(F.conv1d, values(1, 2, 5, dtype=kind), values(2, 2, 3, dtype=kind))

    def test_fold(self):
        self.check(lambda x: F.unfold(x, 2, padding=1, stride=2), values(1, 2, 4, 4))
        self.check(lambda x: F.fold(x, (4, 4), 2, stride=2), values(1, 8, 4))


class TestFold(unittest.TestCase):
    def test_unfold_and_back(self):
        x = torch.arange(2 * 3 * 5 * 6, dtype=torch.float64).reshape(2, 3, 5, 6)
        columns = F.unfold(x, (2, 3))
        self.assertEqual(columns.shape, (2, 18, 16))
        self.assertEqual(columns[1, :, 5].tolist(), x[1, :, 1:3, 1:4].reshape(-1).tolist())
        counts = F.fold(F.unfold(torch.ones_like(x), (2, 3)), (5, 6), (2, 3))
        torch.testing.assert_close(F.fold(columns, (5, 6), (2, 3)), x * counts)


class TestErrors(unittest.TestCase):
    def expect(self, phrase, function, *arguments, **named):
        with self.assertRaisesRegex(RuntimeError, phrase):
            function(*arguments, **named)

    def test_shapes(self):
        x, w = torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 3)
        self.expect("expected input.* to have 4 channels", F.conv2d, x, torch.zeros(2, 4, 3, 3))
        self.expect("Kernel size can't be greater", F.conv2d, x, torch.zeros(2, 3, 5, 5))
        self.expect("expected bias to be 1-dimensional", F.conv2d, x, w, torch.zeros(3))
        self.expect("non-positive stride", F.conv2d, x, w, stride=0)
        self.expect("negative padding", F.conv2d, x, w, padding=-1)
        self.expect("non-positive groups", F.conv2d, x, w, groups=0)
        self.expect("Expected 3D .unbatched. or 4D", F.conv2d, x[0, 0], w)
        self.expect("not supported for strided", F.conv2d, x, w, padding="same", stride=2)
        self.expect("expected scalar type Float but found Double", F.conv2d, x, w.double())
        self.expect("must be at least one", F.unfold, x, 5)
        self.expect("does not fit", F.conv2d, x, w, padding=2**62)


if __name__ == "__main__":
    unittest.main()
