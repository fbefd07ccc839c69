"""numpy.fft on torch tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._numpy import _dtypes
from torch._numpy._util import on_tensors


def _wide(a: torch.Tensor) -> torch.Tensor:
    """NumPy's transforms compute in double precision."""
    if a.is_complex():
        return a.to(torch.complex128)
    return a.to(torch.float64)


def _one(name: str) -> Callable:
    def transform(a, n=None, axis=-1, norm=None) -> torch.Tensor:
        return getattr(torch.fft, name)(_wide(a), n, axis, norm)

    transform.__name__ = transform.__qualname__ = name
    return on_tensors("a")(transform)


def _two(name: str) -> Callable:
    def transform(a, s=None, axes=(-2, -1), norm=None) -> torch.Tensor:
        return getattr(torch.fft, name)(_wide(a), s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    return on_tensors("a")(transform)


def _many(name: str) -> Callable:
    def transform(a, s=None, axes=None, norm=None) -> torch.Tensor:
        return getattr(torch.fft, name)(_wide(a), s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    return on_tensors("a")(transform)


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, "fft ifft rfft irfft hfft ihfft".split())
fft2, ifft2, rfft2, irfft2 = map(_two, "fft2 ifft2 rfft2 irfft2".split())
fftn, ifftn, rfftn, irfftn = map(_many, "fftn ifftn rfftn irfftn".split())


@on_tensors()
def fftfreq(n, d=1.0) -> torch.Tensor:
    return torch.fft.fftfreq(n, d, dtype=_dtypes.defaults.float)


@on_tensors()
def rfftfreq(n, d=1.0) -> torch.Tensor:
    return torch.fft.rfftfreq(n, d, dtype=_dtypes.defaults.float)


@on_tensors("x")
def fftshift(x, axes=None) -> torch.Tensor:
    return torch.fft.fftshift(x, axes)


@on_tensors("x")
def ifftshift(x, axes=None) -> torch.Tensor:
    return torch.fft.ifftshift(x, axes)
