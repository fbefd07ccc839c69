"""Convolutions large enough for the direct loops, in all three products, against float64 sums over
the taps of the kernel: borders, odd sizes, channels that do not fill a register, groups, strides,
dilations; the same on each instruction set and any number of threads.
"""

import itertools
import os
import subprocess
import sys
import unittest

import numpy as np

import torch
import torch.nn.functional as F


def taps(x, w, stride, padding, dilation, size):
    """For each tap: its index in the kernel and the slices of the padded input it meets."""
    for tap_index in itertools.product(*map(range, w.shape[2:])):
        begin = [k * d for k, d in zip(tap_index, dilation, strict=True)]
        yield (
            tap_index,
            (slice(None), slice(None))
            + tuple(
                slice(b, b + (n - 1) * s + 1, s)
                for b, n, s in zip(begin, size, stride, strict=True)
            ),
        )


def reference(x, w, bias, grad, stride, padding, dilation, groups):
    """Output, and for `grad` at the output the gradients of the input and of the weight."""
    x, w, bias, grad = (t.double().numpy() for t in (x, w, bias, grad))
    margins = [(0, 0), (0, 0)] + [(p, p) for p in padding]
    x = np.pad(x, margins)
    out = np.zeros(grad.shape) + bias.reshape(-1, *[1] * len(stride))
    grad_x, grad_w = np.zeros(x.shape), np.zeros(w.shape)
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for tap_index, place in taps(x, w, stride, padding, dilation, grad.shape[2:]):
        for g in range(groups):
            inputs = slice(g * per_in, (g + 1) * per_in)
            outputs = slice(g * per_out, (g + 1) * per_out)
            here = (slice(None), inputs, *place[2:])
            tap = w[(outputs, slice(None), *tap_index)]
            out[:, outputs] += np.einsum("nc...,oc->no...", x[here], tap, optimize=True)
            grad_x[here] += np.einsum("no...,oc->nc...", grad[:, outputs], tap, optimize=True)
            grad_w[(outputs, slice(None), *tap_index)] = np.einsum(
                "nop,ncp->oc",
                grad[:, outputs].reshape(len(x), per_out, -1),
                x[here].reshape(len(x), per_in, -1),
                optimize=True,
            )
    inner = tuple(slice(p, n - p) for (p, _), n in zip(margins, x.shape, strict=True))
    return out, grad_x[inner], grad_w


# images, groups, channels per group in and out, size, kernel, stride, padding, dilation
CASES = {
    "border": (2, 1, 5, 16, (28, 28), (3, 3), (1, 1), (1, 1), (1, 1)),
    "stride": (2, 1, 33, 32, (28, 27), (3, 3), (2, 2), (1, 1), (1, 1)),
    "odd": (3, 1, 7, 50, (13, 15), (5, 3), (1, 2), (2, 0), (1, 1)),
    "no padding": (2, 1, 20, 48, (12, 31), (3, 2), (1, 1), (0, 0), (1, 1)),
    "groups": (2, 3, 6, 14, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    "grouped stride": (2, 2, 16, 16, (16, 16), (3, 3), (2, 2), (1, 1), (1, 1)),
    "dilation": (1, 1, 16, 64, (17, 19), (3, 3), (1, 1), (2, 2), (2, 2)),
    "dilated stride": (1, 1, 16, 30, (21, 25), (3, 3), (2, 3), (2, 1), (2, 1)),
    "wide stride": (1, 1, 16, 16, (40, 44), (4, 4), (4, 4), (1, 3), (1, 1)),
    "patches": (1, 1, 3, 32, (48, 48), (8, 8), (8, 8), (0, 0), (1, 1)),
    "kernel in strides": (2, 1, 12, 16, (15, 15), (1, 1), (2, 2), (0, 0), (1, 1)),
    "stem": (1, 1, 3, 16, (37, 41), (7, 7), (2, 2), (3, 3), (1, 1)),
    "padding beyond": (1, 1, 16, 16, (6, 7), (2, 2), (1, 1), (4, 5), (1, 1)),
    "small planes": (9, 1, 32, 80, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many channels": (1, 1, 180, 70, (7, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    "line": (2, 1, 9, 32, (700,), (5,), (1,), (2,), (1,)),
    "strided line": (2, 1, 16, 24, (3001,), (3,), (2,), (1,), (1,)),
    "volume": (1, 1, 6, 16, (5, 9, 10), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "strided volume": (2, 1, 16, 15, (7, 8, 9), (2, 3, 3), (2, 2, 2), (1, 0, 1), (1, 2, 1)),
    "one channel": (2, 1, 1, 32, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    "few outputs": (1, 1, 16, 3, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
}
FUNCTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def operands(case, dtype):
    images, groups, inputs, outputs, size, kernel, *rest = CASES[case]
    torch.manual_seed(0)
    x = torch.randn(images, groups * inputs, *size, dtype=dtype)
    w = torch.randn(groups * outputs, inputs, *kernel, dtype=dtype)
    return x, w, torch.randn(groups * outputs, dtype=dtype), (*rest, groups)


def three_products(x, w, bias, parameters, last=False):
    """Output, gradients of input and weight; the gradient at the output is fixed by its shape."""
    if last and x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    out = FUNCTIONS[x.dim() - 2](x, w, bias, *parameters)
    torch.manual_seed(1)
    grad = torch.randn(out.shape, dtype=out.dtype)
    if last and x.dim() == 4:
        grad = grad.contiguous(memory_format=torch.channels_last)
    out.backward(grad)
    return grad, (out.detach(), x.grad, w.grad)


class TestDirect(unittest.TestCase):
    def check(self, case, dtype, last=False):
        x, w, bias, parameters = operands(case, dtype)
        grad, found = three_products(x, w, bias, parameters, last)
        wanted = reference(x, w, bias, grad, *parameters)
        # Relative to the size of a sum of random products.
        tolerance = 1e-13 if dtype is torch.float64 else 2e-5
        for mine, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(
                mine.double().numpy() / right.std(), right / right.std(), rtol=0, atol=tolerance
            )

    def test_float32(self):
        for case in CASES:
            with self.subTest(case=case):
                self.check(case, torch.float32)

    def test_float64(self):
        for case in CASES:
            with self.subTest(case=case):
                self.check(case, torch.float64)

    def test_channels_last(self):
        for case in ("border", "stride", "odd", "groups", "small planes"):
            with self.subTest(case=case):
                self.check(case, torch.float32, last=True)

    def test_bits_do_not_depend_on_threads(self):
        before = torch.get_num_threads()
        try:
            for case in CASES:
                found = []
                for threads in (1, 2, 5):
                    torch.set_num_threads(threads)
                    found.append(three_products(*operands(case, torch.float32))[1])
                for other in found[1:]:
                    for a, b in zip(found[0], other, strict=True):
                        self.assertTrue(torch.equal(a, b), case)
        finally:
            torch.set_num_threads(before)

    def test_other_instruction_sets(self):
        command = [sys.executable, "-m", "unittest", "-q", f"{__name__}.TestDirect.test_float32"]
        here = os.path.dirname(os.path.abspath(__file__))
        for name in ("avx2", "default"):
            paths = os.pathsep.join([here, *filter(None, sys.path)])
            environment = dict(os.environ, CRESSET_CPU_CAPABILITY=name, PYTHONPATH=paths)
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_infinity_reaches_its_windows_only(self):
        x, w = torch.ones(1, 16, 20, 20), torch.ones(16, 16, 3, 3)
        x[0, 3, 7, 9] = float("inf")
        out = F.conv2d(x, w, padding=1)
        hit = torch.isinf(out[0, 0]).nonzero()
        self.assertEqual((hit.min(0)[0].tolist(), hit.max(0)[0].tolist()), ([6, 8], [8, 10]))
        self.assertFalse(torch.isnan(out).any())

    def test_image_does_not_depend_on_its_batch(self):
        x, w, bias, parameters = operands("small planes", torch.float32)
        whole = F.conv2d(x, w, bias, *parameters)
        torch.testing.assert_close(F.conv2d(x[4:5], w, bias, *parameters), whole[4:5])


if __name__ == "__main__":
    unittest.main()
