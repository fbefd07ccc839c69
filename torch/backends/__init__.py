"""Settings of the libraries behind the operators, one submodule each, loaded when first used."""

import contextlib
import sys
import types

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
__allow_nonbracketed_mutation_flag = True


def flags_frozen():
    """Whether disable_global_flags was called."""
    return not __allow_nonbracketed_mutation_flag


def disable_global_flags() -> None:
    """Forbids that settings of backends change from now on. Settings here are read by operators at
    each call, so that this only remembers the wish."""
    global __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = False


def set_flags(_fp32_precision="none") -> tuple[str]:
    """Sets how exactly operators on float32 compute; returns what it was."""
    from torch.backends import _fp32

    before = (_fp32.own("generic"),)
    if _fp32_precision is not None:
        _fp32.set_own("generic", _fp32_precision)
    return before


@contextlib.contextmanager
def flags(fp32_precision="none"):
    """How exactly operators on float32 compute in the with statement's body."""
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


class _Module(types.ModuleType):
    """Settings for all libraries together."""

    @property
    def fp32_precision(self) -> str:
        """How exactly operators on float32 compute: "ieee", "tf32", "bf16" or, where each library
        goes its own way, "none"."""
        from torch.backends import _fp32

        return _fp32.effective("generic")

    @fp32_precision.setter
    def fp32_precision(self, precision) -> None:
        from torch.backends import _fp32

        _fp32.set_own("generic", precision)


def __getattr__(name):
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module("torch.backends." + name)
    raise AttributeError(f"module 'torch.backends' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})


sys.modules[__name__].__class__ = _Module
