"""The functions of torch.fft, as the operators of that family define them."""

from torch._namespace import install

__all__ = install(globals(), "_fft", "fft_")
