"""Settings of the libraries behind the operators, one submodule each, loaded when first used."""

_SUBMODULES = ("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")


def __getattr__(name):
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module("torch.backends." + name)
    raise AttributeError(f"module 'torch.backends' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
