"""Helpers around tensors: hooks, pytrees, DLPack, device contexts. Submodules are loaded on first
use."""

__all__ = [
    "cmake_prefix_path",
    "generate_methods_for_privateuse1_backend",
    "rename_privateuse1_backend",
    "set_module",
    "swap_tensors",
]

# Where CMake finds the package Torch: -DCMAKE_PREFIX_PATH=...
cmake_prefix_path = __file__.rsplit("/", 2)[0] + "/share/cmake"

_FROM = {
    "swap_tensors": "torch.utils._swap",
    "set_module": "torch.utils._swap",
    "get_cpp_backtrace": "torch.utils._swap",
    "generate_methods_for_privateuse1_backend": "torch.utils.backend_registration",
    "rename_privateuse1_backend": "torch.utils.backend_registration",
}


def __getattr__(name):
    from importlib import import_module
    from importlib.util import find_spec

    if name in _FROM:
        value = globals()[name] = getattr(import_module(_FROM[name]), name)
        return value
    if name.startswith("__") or find_spec("torch.utils." + name) is None:
        raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
    return import_module("torch.utils." + name)
