"""Fourier transforms on CUDA against NumPy's."""

import numpy as np
import pytest
from cuda_support import EMULATED, cuda

import torch

# The values are cuFFT's, which runs on GPUs only; there is no second implementation to test here.
needs_cufft = pytest.mark.skipif(EMULATED, reason="the emulator has no cuFFT")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def close(got, want, real):
    assert got.device.type == "cuda"
    tolerance = TOLERANCE[real]
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=tolerance, atol=tolerance)


@needs_cufft
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("real", list(TOLERANCE))
@pytest.mark.parametrize(
    "size, dim",
    [((7,), (0,)), ((3, 8, 5), (1,)), ((4, 6, 5), (0, 2)), ((2, 3, 4, 5, 6), (0, 1, 3, 4))],
)
def test_transforms_of_every_kind_match_numpy(size, dim, real, norm):
    torch.manual_seed(8)
    x = torch.randn(size, dtype=real)
    z = torch.complex(torch.randn(size, dtype=real), torch.randn(size, dtype=real))
    for name, data in [("fftn", z), ("ifftn", z), ("fftn", x), ("rfftn", x)]:
        got = getattr(torch.fft, name)(data.to(cuda), dim=dim, norm=norm)
        close(got, getattr(np.fft, name)(data.numpy(), axes=dim, norm=norm), real)
    half = torch.fft.rfftn(x, dim=dim)
    sizes = [size[d] for d in dim]
    got = torch.fft.irfftn(half.to(cuda), s=sizes, dim=dim, norm=norm)
    close(got, np.fft.irfftn(half.numpy(), s=sizes, axes=dim, norm=norm), real)


@needs_cufft
def test_transform_of_a_strided_view_does_not_change_its_input():
    base = torch.randn(6, 10, dtype=torch.complex64)
    view = base.to(cuda)[::2, 1:].t()
    kept = view.clone()
    close(torch.fft.fft(view, dim=0), np.fft.fft(kept.cpu().numpy(), axis=0), torch.float32)
    torch.fft.irfft(view, dim=0)
    assert torch.equal(view, kept)


@needs_cufft
def test_gradient_of_a_real_transform_matches_the_cpu():
    x = torch.randn(3, 8, dtype=torch.float64)
    on_gpu, on_cpu = x.to(cuda).requires_grad_(), x.clone().requires_grad_()
    for leaf in (on_gpu, on_cpu):
        torch.fft.rfft(leaf).abs().pow(2).sum().backward()
    close(on_gpu.grad, on_cpu.grad.numpy(), torch.float64)


@needs_cufft
def test_stft_and_its_inverse_restore_the_signal():
    x = torch.randn(2, 400, device=cuda)
    window = torch.hann_window(64, device=cuda)
    spectrum = torch.stft(x, 64, window=window, return_complex=True)
    back = torch.istft(spectrum, 64, window=window, length=400)
    close(back, x.cpu().numpy(), torch.float32)


# The message for a missing library is seen only where the library is missing.
@pytest.mark.skipif(not EMULATED, reason="cuFFT is there")
def test_transform_without_the_library_names_it():
    with pytest.raises(NotImplementedError, match="libcufft"):
        torch.fft.fft(torch.ones(4, device=cuda))
