"""The version of this package, in the forms that programs ask for. The public number is that of the
PyTorch whose behaviour is implemented; the local part is our own version."""

from torch._C import _has_cuda

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"]

__version__ = "2.9.0+cresset.0.1"
debug = False
# The driver interface that the CUDA part is written for; None in a build without it.
cuda: "str | None" = "13.0" if _has_cuda else None
git_version: "str | None" = None
hip: "str | None" = None
rocm: "str | None" = None
xpu: "str | None" = None
