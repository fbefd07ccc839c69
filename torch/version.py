"""The version of this package, in the forms that programs ask for. The public number is that of the
PyTorch whose behaviour is implemented; the local part is our own version.

One build serves machines with and without an NVIDIA driver, and programs choose their device by
`cuda` (and torch.backends.cuda.is_built(), torch.has_cuda). All of them therefore tell of this
machine: with the driver's library this is a build with CUDA, without it one for the CPU. The
library is looked for when one of them is first read, not by `import torch`."""

from torch import _C

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"]

__version__ = "2.9.0+cresset.0.1"
debug = False
cuda: "str | None"
git_version: "str | None" = None
hip: "str | None" = None
rocm: "str | None" = None
xpu: "str | None" = None


def __getattr__(name: str) -> "str | bool | None":
    if name not in ("cuda", "has_cuda"):
        raise AttributeError(f"module 'torch.version' has no attribute '{name}'")
    has_cuda = _C._has_cuda and _C._cuda_driverFound()
    # The driver interface that the CUDA part is written for.
    values = {"cuda": "13.0" if has_cuda else None, "has_cuda": has_cuda}
    globals().update(values)
    return values[name]
