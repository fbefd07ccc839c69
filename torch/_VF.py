"""The native functions of torch by their plain names, beneath the Python functions that wrap some
of them."""

from torch import _C


def __getattr__(name):
    function = getattr(_C._VariableFunctions, name, None)
    if function is None:
        raise AttributeError(f"module 'torch._VF' has no attribute '{name}'")
    return function
