"""Windows for spectral analysis. Each is a sum of cosines or a bell over M points; `sym=False`
gives the window of M + 1 points without its last, which repeats without a seam."""

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


def _checked(name, M, dtype, layout):
    """The dtype, after the checks that all windows share."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _linspace(start, step, M, dtype, device):
    return torch.linspace(start, start + (M - 1) * step, M, dtype=dtype, device=device)


def _finish(values, layout, requires_grad):
    return values.requires_grad_() if requires_grad else values


def general_cosine(
    M, *, a, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """The alternating sum of cosines with the coefficients a."""
    dtype = _checked("general_cosine", M, dtype, layout)
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    step = 2 * math.pi / (M if not sym or M == 1 else M - 1)
    phase = _linspace(0.0, step, M, dtype, device)
    total = torch.zeros(M, dtype=dtype, device=device)
    for k, weight in enumerate(a):
        total = total + (weight if k % 2 == 0 else -weight) * torch.cos(phase * k)
    if M == 1:
        total = torch.ones(1, dtype=dtype, device=device)
    return _finish(total, layout, requires_grad)


def general_hamming(
    M, *, alpha=0.54, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """alpha - (1 - alpha) * cos(...)."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hamming(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Hamming's window."""
    return general_hamming(
        M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hann(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Hann's window."""
    return general_hamming(
        M,
        alpha=0.5,
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Blackman's window."""
    _checked("blackman", M, dtype, layout)
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Nuttall's four-term window."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """The triangle."""
    dtype = _checked("bartlett", M, dtype, layout)
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    step = 2 / (M if not sym or M == 1 else M - 1)
    points = _linspace(-1.0, step, M, dtype, device)
    values = torch.ones(1, dtype=dtype, device=device) if M == 1 else 1 - points.abs()
    return _finish(values, layout, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Half a sine wave."""
    dtype = _checked("cosine", M, dtype, layout)
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return _finish(torch.sin(_linspace(0.5 * step, step, M, dtype, device)), layout, requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=torch.strided, device=None,
                requires_grad=False):  # fmt: skip
    """exp(-|n - center| / tau)."""
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    points = _linspace(-center / tau, 1 / tau, M, dtype, device)
    return _finish(torch.exp(-points.abs()), layout, requires_grad)


def gaussian(
    M, *, std=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """exp(-(n - middle)^2 / (2 std^2))."""
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    middle = (M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / (std * math.sqrt(2))
    points = _linspace(-middle * scale, scale, M, dtype, device)
    return _finish(torch.exp(-(points * points)), layout, requires_grad)


def kaiser(
    M, *, beta=12.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """Kaiser's window with shape parameter beta."""
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    step = 2.0 * beta / (M if not sym else M - 1)
    points = _linspace(-beta, step, M, dtype, device)
    square = (beta * beta - points * points).clamp_min(0)
    top = torch.tensor(beta, dtype=dtype, device=device)
    return _finish(torch.i0(torch.sqrt(square)) / torch.i0(top), layout, requires_grad)
