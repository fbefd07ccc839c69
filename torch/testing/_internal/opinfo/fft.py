"""Records of the fft family, against numpy.fft and scipy.signal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import Maker, OpInfo, SampleInput, call, error

TOL = {torch.float32: (1e-4, 1e-4), torch.complex64: (1e-4, 1e-4)}
NORMS = ("backward", "ortho", "forward")
_COMPLEX_IN = {"hfft", "irfft"}
_REAL_IN = {"rfft", "ihfft"}


def _complex(dtype):
    wide = dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()
    return wide if wide.is_complex else wide.to_complex()


def _real(dtype):
    wide = dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()
    return wide.to_real() if wide.is_complex else wide


def _codes(name) -> str:
    return "dib" if name in _REAL_IN else "dibc"


def _result(name) -> Callable[..., object]:
    return _real if name.startswith(("hfft", "irfft")) else _complex


def _one(name) -> OpInfo:
    """A transform along one dimension."""

    def ref(x, n=None, dim=-1, norm=None) -> np.ndarray:
        return getattr(np.fft, name)(x, n, dim, norm)

    def samples(t) -> list[SampleInput]:
        return [
            call(t(5)),
            call(t(2, 6), n=4),
            call(t(3, 4), n=6, dim=0),
            *[call(t(2, 5), norm=norm) for norm in NORMS],
        ]

    return OpInfo(
        f"fft.{name}",
        samples,
        ref,
        _codes(name),
        out_dtype=_result(name),
        supports_out=True,
        tolerances=TOL,
        big=lambda t: call(_plain(t)(300, 1000)),
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), dim=2),
            error(RuntimeError, "Invalid number of data points", t(2, 3), n=0),
            error(RuntimeError, "[Ii]nvalid normalization mode", t(2, 3), norm="x"),
        ],
        skips=_IMAGINARY if name in _COMPLEX_IN else {},
        grad_codes="dc" if name not in _COMPLEX_IN else "d",
    )


_IMAGINARY = {
    "value:complex64": "the imaginary part of what must be real is ignored in different places",
    "value:complex128": "the imaginary part of what must be real is ignored in different places",
}


def _hermitian_n(name) -> Callable[..., object]:
    """hfftn and ihfftn, which NumPy lacks: the last dimension by hfft, the others by fft."""
    forward = name.startswith("hfft")

    def ref(x, s=None, dim=None, norm=None) -> np.ndarray:
        norm = norm or "backward"
        axes = list(dim) if dim is not None else list(range(x.ndim))
        axes = axes[-len(s) :] if s is not None and dim is None else axes
        sizes = list(s) if s is not None else [None] * len(axes)
        if forward:
            for a, n in list(zip(axes, sizes, strict=True))[:-1]:
                x = np.fft.fft(x, n, a, norm)
            return np.fft.hfft(x, sizes[-1], axes[-1], norm)
        x = np.fft.ihfft(x, sizes[-1], axes[-1], norm)
        for a, n in list(zip(axes, sizes, strict=True))[:-1]:
            x = np.fft.ifft(x, n, a, norm)
        return x

    return ref


def _many(name) -> OpInfo:
    """A transform along several dimensions."""
    base = name.removesuffix("n").removesuffix("2")
    two = name.endswith("2")

    def ref(x, s=None, dim=None, norm=None) -> np.ndarray:
        dim = (-2, -1) if two and dim is None else dim
        if "hfft" in name:
            return _hermitian_n(name)(x, s, dim, norm)
        if dim is None and s is not None:
            dim = tuple(range(x.ndim - len(s), x.ndim))
        return getattr(np.fft, base + "n")(x, s, dim, norm)

    def samples(t) -> list[SampleInput]:
        return [
            call(t(3, 4)),
            call(t(2, 4, 5), s=(3, 4)),
            call(t(2, 3, 4), dim=(0, 2)),
            *[call(t(3, 4), norm=norm) for norm in NORMS],
        ]

    return OpInfo(
        f"fft.{name}",
        samples,
        ref,
        _codes(base),
        out_dtype=_result(name),
        supports_out=True,
        tolerances=TOL,
        big=lambda t: call(_plain(t)(20, 100, 128)),
        skips=_IMAGINARY if base in _COMPLEX_IN else {},
        grad_codes="dc" if base not in _COMPLEX_IN else "d",
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), dim=(0, 2)),
            error(RuntimeError, "unique|appears multiple times", t(2, 3), dim=(0, 0)),
            error(RuntimeError, "[Ii]nvalid normalization mode", t(2, 3), norm="x"),
        ],
    )


def _shift(name) -> OpInfo:
    def ref(x, dim=None) -> np.ndarray:
        return getattr(np.fft, name)(x, dim)

    return OpInfo(
        f"fft.{name}",
        lambda t: [call(t(5)), call(t(2, 4)), call(t(2, 3, 4), dim=(0, 2))],
        ref,
        "fibc",
        out_dtype="same",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), dim=(2,))],
    )


def _frames(x, n_fft, hop, window, center) -> np.ndarray:
    if center:
        pad = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = np.pad(x, pad, mode="reflect")
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    return np.stack([x[..., s : s + n_fft] * window for s in starts], -2)


def _stft(x, n_fft, hop_length=None, window=None, center=True, return_complex=True) -> np.ndarray:
    window = np.ones(n_fft) if window is None else window
    frames = _frames(x, n_fft, hop_length or n_fft // 4, window, center)
    one_sided = np.fft.rfft if x.dtype.kind != "c" else np.fft.fft
    return np.swapaxes(one_sided(frames, axis=-1), -1, -2)


def _stft_samples(t) -> list[SampleInput]:
    window = torch.linspace(0.5, 1.5, 8, dtype=t.real(), device=t.device)
    return [
        call(t(2, 20), 8, return_complex=True),
        call(t(20), 8, 3, window=window, return_complex=True),
        call(t(20), 8, 4, center=False, return_complex=True),
    ]


def _check_istft(sample, result) -> None:
    """The inverse of the transform of its own result gives it back."""
    n_fft, window = sample.args[0], sample.kwargs["window"]
    again = torch.stft(result, n_fft, window=window, return_complex=True)
    back = torch.istft(again, n_fft, window=window)
    torch.testing.assert_close(back, result[..., : back.shape[-1]], rtol=1e-3, atol=1e-3)


def _istft_samples(t) -> list[SampleInput]:
    window = torch.linspace(0.5, 1.5, 8, dtype=t.real(), device=t.device)
    return [call(t(5, 11), 8, window=window), call(t(2, 5, 11), 8, window=window)]


def _plain(t) -> Maker:
    t.scale = 1
    return t


_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_WINDOWED = "the calls fix the length of the frames"
RECORDS = [
    *[_one(name) for name in _ONE],
    *[_many(name + suffix) for name in _ONE for suffix in ("2", "n")],
    _shift("fftshift"),
    _shift("ifftshift"),
    *[
        OpInfo(
            f"fft.{name}",
            lambda t: [call(7, dtype=t.dtype), call(8, 0.5, dtype=t.dtype)],
            lambda n, d=1.0, dtype=None, f=name: getattr(np.fft, f)(n, d),
            "d",
            out_dtype="same",
            grad_codes="",
            skips={"meta": "there is no input tensor"},
            errors=lambda t: [error(RuntimeError, "negative|positive|non-neg", -1)],
        )
        for name in ("fftfreq", "rfftfreq")
    ],
    OpInfo(
        "stft",
        _stft_samples,
        _stft,
        "dc",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(8, 40000), 400, return_complex=True),
        errors=lambda t: [
            error(RuntimeError, "n_fft", t(20), 0, return_complex=True),
            error(RuntimeError, "hop_length|> 0", t(20), 8, -1, return_complex=True),
            error(RuntimeError, "1D or 2D|dimension", t(2, 2, 20), 8, return_complex=True),
        ],
        grad_samples=lambda t: [call(t(12), 4, return_complex=True)],
    ),
    OpInfo(
        "istft",
        _istft_samples,
        None,
        "c",
        check=_check_istft,
        big=lambda t: call(
            _plain(t)(8, 201, 200), 400, window=torch.linspace(0.5, 1.5, 400, dtype=t.real())
        ),
        grad_samples=lambda t: [
            call(t(3, 6), 4, window=torch.linspace(0.5, 1.5, 4, dtype=torch.float64))
        ],
        errors=lambda t: [
            error(RuntimeError, "complex", t(5, 11).real.clone(), 8),
            error(RuntimeError, "n_fft|fft_size", t(5, 11), 12),
        ],
        skips={"meta": "it looks at the values of the summed window", "layouts": _WINDOWED},
    ),
    *[
        OpInfo(
            f"{name}_window",
            lambda t: [call(7, dtype=t.dtype), call(8, False, dtype=t.dtype)],
            lambda n, periodic=True, dtype=None, f=name: _scipy_window(f, n, periodic),
            "d",
            out_dtype="same",
            grad_codes="",
            skips={"meta": "there is no input tensor"},
            tolerances={torch.float32: (1e-4, 1e-5)},
            errors=lambda t: [error(RuntimeError, "non-negative|negative", -1)],
        )
        for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
    ],
]


def _scipy_window(name, count, periodic) -> np.ndarray:
    import scipy.signal

    which = ("kaiser", 12.0) if name == "kaiser" else name
    return scipy.signal.get_window(which, count, fftbins=periodic)
