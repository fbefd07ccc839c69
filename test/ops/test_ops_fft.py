"""Fourier transforms and windows, against NumPy's in double precision."""

import itertools
import math

import numpy as np
import pytest

import torch

KINDS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TOLERANCE = {torch.float32: 2e-5, torch.complex64: 2e-5, torch.float64: 1e-11}


def _input(name, shape, dtype=torch.float64):
    torch.manual_seed(1)
    x = torch.randn(shape, dtype=dtype)
    if name in ("fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "irfftn"):
        return x + 1j * torch.randn(shape, dtype=dtype)
    return x


def _close(got, want, dtype=torch.float64):
    scale = max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(
        got.resolve_conj().numpy(), want, rtol=0, atol=TOLERANCE[dtype] * scale
    )


LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    11,
    16,
    30,
    49,
    61,
    64,
    67,
    97,
    100,
    128,
    134,
    256,
    343,
    509,
    1024,
]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_transform_every_length_equals_numpy(name, n):
    for batch in ((), (3,), (33,)):
        x = _input(name, (*batch, n))
        size = {"irfft": n, "hfft": n}.get(name)
        got = getattr(torch.fft, name)(x, n=size)
        _close(got, getattr(np.fft, name)(x.numpy(), n=size))


@pytest.mark.parametrize("name", KINDS)
def test_transform_of_float_stays_float_and_close(name):
    x = _input(name, (17, 96), torch.float32)
    got = getattr(torch.fft, name)(x)
    assert got.dtype in (torch.float32, torch.complex64)
    _close(got, getattr(np.fft, name)(x.numpy().astype(np.complex128 if x.is_complex() else float)),
           torch.float32)  # fmt: skip


@pytest.mark.parametrize("n", [8192, 16384, 30030, 10007, 65536, 100003])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_long_lines_equal_numpy(name, n):
    x = _input(name, (n,) if name != "irfft" else (n // 2 + 1,))
    if name == "irfft":
        _close(torch.fft.irfft(x, n=n), np.fft.irfft(x.numpy(), n=n))
    else:
        _close(getattr(torch.fft, name)(x), getattr(np.fft, name)(x.numpy()))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", KINDS)
def test_every_dimension_norm_and_layout_equals_numpy(name, dim, norm):
    x = _input(name, (6, 10, 7))
    views = [x, x.permute(2, 0, 1), x[::2, 1:, :], x[:, :1].expand(6, 5, 7), x.flip(0)]
    for view, n in itertools.product(views, (None, 4, 12)):
        got = getattr(torch.fft, name)(view, n=n, dim=dim, norm=norm)
        _close(got, getattr(np.fft, name)(view.resolve_conj().numpy(), n=n, axis=dim, norm=norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("dims", [None, (0,), (1, 2), (2, 0), (0, 1, 2)])
def test_many_dimensions_equal_numpy(name, dims):
    x = _input(name, (5, 6, 8))
    for s in (None, 4):
        sizes = None if s is None else (s,) * (3 if dims is None else len(dims))
        got = getattr(torch.fft, name)(x, s=sizes, dim=dims)
        axes = tuple(range(3)) if dims is None else dims
        _close(got, getattr(np.fft, name)(x.numpy(), s=sizes, axes=axes))


def test_real_input_of_fftn_equals_complex_input():
    x = torch.randn(16, 9, 12, dtype=torch.float64)
    for dims in ((0,), (1, 2), (2, 1), (0, 1, 2), (2, 0)):
        for view in (x, x.permute(2, 1, 0)):
            want = torch.fft.fftn(view.to(torch.complex128), dim=dims)
            got = torch.fft.fftn(view, dim=dims)
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want, rtol=0, atol=1e-11)


def test_two_dimensional_hermitian_transforms_undo_each_other():
    x = torch.randn(4, 6, 8, dtype=torch.float64)
    for forward, back in (("ihfft2", "hfft2"), ("rfft2", "irfft2"), ("ihfftn", "hfftn")):
        spectrum = getattr(torch.fft, forward)(x)
        s = x.shape if back.endswith("n") else x.shape[-2:]
        torch.testing.assert_close(getattr(torch.fft, back)(spectrum, s=s), x)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.uint8])
def test_integers_become_the_default_type(dtype):
    x = torch.tensor([1, 0, 1, 1], dtype=dtype)
    assert torch.fft.fft(x).dtype == torch.complex64
    assert torch.fft.irfft(x).dtype == torch.float32


def test_half_is_computed_in_float():
    x = torch.randn(8, 16)
    got = torch.fft.rfft(x.half())
    assert got.dtype == torch.complex32
    torch.testing.assert_close(got.to(torch.complex64), torch.fft.rfft(x.half().float()), rtol=2e-3,
                               atol=2e-3)  # fmt: skip


def test_imaginary_parts_a_real_signal_cannot_have_are_ignored():
    for n in (8, 7, 16384):
        x = torch.randn(n // 2 + 1, dtype=torch.complex128)
        y = x.clone()
        y[0] = y[0].real.item()
        if n % 2 == 0:
            y[-1] = y[-1].real.item()
        torch.testing.assert_close(torch.fft.irfft(x, n=n), torch.fft.irfft(y, n=n))


def test_empty_batches_give_empty_results():
    assert torch.fft.fft(torch.randn(0, 4)).shape == (0, 4)
    assert torch.fft.irfft(torch.randn(0, 4)).shape == (0, 6)
    assert torch.fft.fftn(torch.tensor(2.0)).shape == ()


def test_out_is_resized_and_filled():
    x = torch.randn(4, 6)
    out = torch.empty(0, dtype=torch.complex64)
    assert torch.fft.fft(x, out=out) is out
    torch.testing.assert_close(out, torch.fft.fft(x))


def test_meta_has_the_shape_type_and_strides_of_the_result():
    x = torch.randn(2, 3, 4, 6)
    for dims in ((0,), (1,), (3,), (0, 2), (3, 1), (0, 1, 2, 3)):
        for view in (x, x.permute(3, 1, 0, 2)):
            for f in (torch.fft.fftn, torch.fft.rfftn, torch.fft.irfftn, torch.fft.ihfftn):
                real, meta = f(view, dim=dims), f(view.to("meta"), dim=dims)
                assert (real.shape, real.dtype) == (meta.shape, meta.dtype)
                if view is x:
                    assert real.stride() == meta.stride()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_bits_do_not_depend_on_the_threads(count):
    before = torch.get_num_threads()
    torch.manual_seed(0)
    inputs = [torch.randn(64, 100), torch.randn(3, 40000), torch.randn(257, 129)]
    try:
        torch.set_num_threads(1)
        want = [torch.fft.fft2(x) for x in inputs] + [torch.fft.rfft(x) for x in inputs]
        torch.set_num_threads(count)
        got = [torch.fft.fft2(x) for x in inputs] + [torch.fft.rfft(x) for x in inputs]
    finally:
        torch.set_num_threads(before)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(torch.view_as_real(a), torch.view_as_real(b))


# ---- gradients


@pytest.mark.parametrize("name", [*KINDS, "fft2", "ifftn", "rfft2", "irfftn", "hfft2", "ihfftn"])
def test_gradients_of_both_orders_and_modes(name):
    base = name.rstrip("2n")
    for shape in ((2, 3, 4), (3, 5)):
        x = _input(base, shape).requires_grad_()
        call = getattr(torch.fft, name)
        torch.autograd.gradcheck(call, (x,), check_forward_ad=True)
        torch.autograd.gradgradcheck(call, (x,))


def test_gradient_through_stft_and_back():
    x = torch.randn(2, 40, dtype=torch.float64, requires_grad=True)
    window = torch.hann_window(8, dtype=torch.float64).requires_grad_()

    def both(signal, window):
        spectrum = torch.stft(signal, 8, window=window, return_complex=True)
        return torch.view_as_real(spectrum), torch.istft(spectrum, 8, window=window)

    torch.autograd.gradcheck(both, (x, window))


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: torch.fft.fft(x, n=0), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda x: torch.fft.irfft(x[:, :1]), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda x: torch.fft.fft(x, dim=5), IndexError, "Dimension out of range"),
        (lambda x: torch.fft.fft(x[0, 0]), IndexError, "Dimension specified as -1"),
        (lambda x: torch.fft.fft(x, norm="abc"), RuntimeError, "Invalid normalization mode"),
        (lambda x: torch.fft.rfft(x + 0j), RuntimeError, "rfft expects a real input tensor"),
        (lambda x: torch.fft.ihfft(x + 0j), RuntimeError, "ihfft expects a real input tensor"),
        (lambda x: torch.fft.rfftn(x + 0j), RuntimeError, "rfftn expects a real-valued input"),
        (lambda x: torch.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda x: torch.fft.fftn(x, s=(1,), dim=(0, 1)), RuntimeError, "have the same length"),
        (lambda x: torch.fft.fftn(x, s=(1, 1, 1)), RuntimeError, "Got shape with 3 values"),
        (lambda x: torch.fft.rfftn(x, dim=()), RuntimeError, "rfftn must transform at least one"),
        (lambda x: torch.fft.fft(x.bfloat16()), RuntimeError, "Unsupported dtype BFloat16"),
        (lambda x: torch._fft_c2c(x, [0], 0, True), RuntimeError, "Only supports complex dtypes"),
        (lambda x: torch._fft_c2r(x + 0j, [1], 0, 100), RuntimeError, "spectral"),
        (lambda x: torch._fft_c2c(x + 0j, [0], 9, True), RuntimeError, "normalization"),
        (lambda x: torch.fft.fftfreq(-1), RuntimeError, "negative dimension"),
        (lambda x: torch.fft.fftfreq(4, dtype=torch.int64), RuntimeError, "floating point"),
        (lambda x: torch.stft(x, 4), RuntimeError, "return_complex parameter be given"),
        (lambda x: torch.stft(x, 0, center=False, return_complex=True), RuntimeError, "0 < n_fft"),
        (lambda x: torch.stft(x, 4, hop_length=0, return_complex=True), RuntimeError, "hop_length"),
        (lambda x: torch.stft(x, 4, win_length=9, return_complex=True), RuntimeError, "win_length"),
        (lambda x: torch.istft(x, 4), RuntimeError, "complex-valued input"),
        (lambda x: torch.istft(x + 0j, 20), RuntimeError, "frequency dimension"),
    ],
)  # fmt: skip
def test_wrong_arguments_raise(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.randn(4, 6))


# ---- frequencies, shifts, short-time transforms


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_equal_numpy(n):
    for d in (1.0, 0.25):
        np.testing.assert_allclose(
            torch.fft.fftfreq(n, d, dtype=torch.float64).numpy(), np.fft.fftfreq(n, d)
        )
        np.testing.assert_allclose(
            torch.fft.rfftfreq(n, d, dtype=torch.float64).numpy(), np.fft.rfftfreq(n, d)
        )


def test_shifts_equal_numpy():
    x = torch.arange(60).reshape(3, 4, 5)
    for dims in (None, 0, (0, 2), (-1,)):
        axes = dims if dims is not None else None
        np.testing.assert_array_equal(torch.fft.fftshift(x, dim=dims), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(torch.fft.ifftshift(x, dim=dims), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("n_fft", "hop", "win"), [(16, 4, 16), (15, 5, 9), (8, 8, 8)])
def test_stft_equals_the_transforms_of_frames(center, n_fft, hop, win):
    x = torch.randn(3, 70, dtype=torch.float64)
    window = torch.hamming_window(win, dtype=torch.float64)
    got = torch.stft(x, n_fft, hop, win, window=window, center=center, return_complex=True)
    left = (n_fft - win) // 2
    whole = np.zeros(n_fft)
    whole[left : left + win] = window.numpy()
    signal = x.numpy()
    if center:
        signal = np.pad(signal, ((0, 0), (n_fft // 2, n_fft // 2)), mode="reflect")
    starts = range(0, signal.shape[1] - n_fft + 1, hop)
    frames = np.stack([np.fft.rfft(signal[:, s : s + n_fft] * whole) for s in starts], axis=-1)
    np.testing.assert_allclose(got.numpy(), frames, atol=1e-12)


def test_istft_undoes_stft():
    x = torch.randn(2, 100, dtype=torch.float64)
    window = torch.hann_window(16, dtype=torch.float64)
    for onesided in (True, False):
        spectrum = torch.stft(x, 16, window=window, onesided=onesided, return_complex=True)
        back = torch.istft(spectrum, 16, window=window, onesided=onesided, length=100)
        torch.testing.assert_close(back, x)


@pytest.mark.parametrize("strict", [False, True])
def test_istft_with_a_window_of_its_own_is_exported(strict):
    class Net(torch.nn.Module):
        def forward(self, spectrum):
            return torch.istft(spectrum, 16, window=torch.hann_window(16), length=100)

    x = torch.randn(2, 100)
    spectrum = torch.stft(x, 16, window=torch.hann_window(16), return_complex=True)
    program = torch.export.export(Net(), (spectrum,), strict=strict)
    torch.testing.assert_close(program.module()(spectrum), x)


# ---- windows


@pytest.mark.parametrize("n", [0, 1, 2, 7, 32])
def test_windows_equal_numpy(n):
    pairs = [
        (torch.bartlett_window, np.bartlett),
        (torch.blackman_window, np.blackman),
        (torch.hamming_window, np.hamming),
        (torch.hann_window, np.hanning),
    ]
    for ours, theirs in pairs:
        got = ours(n, periodic=False, dtype=torch.float64)
        np.testing.assert_allclose(got.numpy(), theirs(n), atol=1e-15)
        if n > 1:
            got = ours(n, dtype=torch.float64)
            np.testing.assert_allclose(got.numpy(), theirs(n + 1)[:-1], atol=1e-15)
    got = torch.kaiser_window(n, periodic=False, beta=5.0, dtype=torch.float64)
    np.testing.assert_allclose(got.numpy(), np.kaiser(n, 5.0), atol=1e-14)


def test_windows_refuse_what_they_cannot_do():
    with pytest.raises(RuntimeError, match="requires non-negative window_length"):
        torch.hann_window(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        torch.hann_window(4, dtype=torch.int64)
    assert torch.hamming_window(5, device="meta").shape == (5,)
    assert torch.hann_window(8, dtype=torch.half).dtype == torch.half
    assert math.isclose(torch.hamming_window(4, False, 0.5, 0.25)[0].item(), 0.25)
