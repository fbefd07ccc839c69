"""Windows for spectral analysis. Each is a sum of cosines or a bell over M points; `sym=False`
gives the window of M + 1 points without its last, which repeats without a seam."""

from __future__ import annotations

import math

import torch

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _checked(name, M, dtype, layout) -> torch.dtype:
    """The dtype, after the checks that all windows share."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _linspace(start, step, M, dtype, device) -> torch.Tensor:
    return torch.linspace(start, start + (M - 1) * step, M, dtype=dtype, device=device)


def _intervals(M, sym) -> int:
    """The number of steps in a period: a periodic window has its last point one step later."""
    return M - 1 if sym and M > 1 else max(M, 1)


def _middle(M, sym) -> float:
    return (_intervals(M, sym) if M > 1 else 0) / 2.0


def _finish(values, requires_grad, one_at_one=False) -> torch.Tensor:
    """The window; where `one_at_one`, that of a single point is 1 and not what the sum gives."""
    if one_at_one and len(values) == 1:
        values = torch.ones_like(values)
    return values.requires_grad_() if requires_grad else values


def general_cosine(
    M, *, a, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """The alternating sum of cosines with the coefficients a."""
    dtype = _checked("general_cosine", M, dtype, layout)
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * math.pi / _intervals(M, sym)
    phase = _linspace(0.0, step, M, dtype, device)
    total = torch.zeros(M, dtype=dtype, device=device)
    for k, weight in enumerate(a):
        total = total + (weight if k % 2 == 0 else -weight) * torch.cos(phase * k)
    return _finish(total, requires_grad, one_at_one=True)


def general_hamming(
    M, *, alpha=0.54, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """alpha - (1 - alpha) * cos(...)."""
    given = locals()
    del given["alpha"]
    return general_cosine(a=[alpha, 1.0 - alpha], **given)


def hamming(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Hamming's window."""
    return general_hamming(**locals())


def hann(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Hann's window."""
    return general_hamming(alpha=0.5, **locals())


def blackman(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Blackman's window."""
    _checked("blackman", M, dtype, layout)
    return general_cosine(a=[0.42, 0.5, 0.08], **locals())


def nuttall(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Nuttall's four-term window."""
    return general_cosine(a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **locals())


def bartlett(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """The triangle."""
    dtype = _checked("bartlett", M, dtype, layout)
    points = _linspace(-1.0, 2 / _intervals(M, sym), M, dtype, device)
    return _finish(1 - points.abs(), requires_grad, one_at_one=True)


def cosine(
    M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Half a sine wave."""
    dtype = _checked("cosine", M, dtype, layout)
    step = math.pi / (_intervals(M, sym) + (M > 1))
    return _finish(torch.sin(_linspace(0.5 * step, step, M, dtype, device)), requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=torch.strided, device=None,
                requires_grad=False) -> torch.Tensor:  # fmt: skip
    """exp(-|n - center| / tau)."""
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = _middle(M, sym)
    points = _linspace(-center / tau, 1 / tau, M, dtype, device)
    return _finish(torch.exp(-points.abs()), requires_grad)


def gaussian(
    M, *, std=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """exp(-(n - middle)^2 / (2 std^2))."""
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    scale = 1 / (std * math.sqrt(2))
    points = _linspace(-_middle(M, sym) * scale, scale, M, dtype, device)
    return _finish(torch.exp(-(points * points)), requires_grad)


def kaiser(
    M, *, beta=12.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
) -> torch.Tensor:
    """Kaiser's window with shape parameter beta."""
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    points = _linspace(-beta, 2.0 * beta / _intervals(M, sym), M, dtype, device)
    square = (beta * beta - points * points).clamp_min(0)
    top = torch.tensor(beta, dtype=dtype, device=device)
    values = torch.i0(torch.sqrt(square)) / torch.i0(top)
    return _finish(values, requires_grad, one_at_one=True)
