"""Settings of the libraries behind the operators, one submodule each, loaded when first used."""

_SUBMODULES = (
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xnnpack",
)
_frozen = False


def flags_frozen():
    """Whether disable_global_flags was called."""
    return _frozen


def disable_global_flags() -> None:
    """Forbids that settings of backends change from now on. Settings here are read by operators at
    each call, so that this only remembers the wish."""
    global _frozen
    _frozen = True


def __getattr__(name):
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module("torch.backends." + name)
    raise AttributeError(f"module 'torch.backends' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
