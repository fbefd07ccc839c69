"""Whether Triton can be used. No kernel here is written in it."""

from importlib.util import find_spec


def has_triton_package() -> bool:
    """Whether the package is installed."""
    return find_spec("triton") is not None


def has_triton() -> bool:
    """Whether kernels can be compiled with it: no."""
    return False


has_triton_tma = has_triton_tma_device = has_triton_experimental_host_tma = has_triton
