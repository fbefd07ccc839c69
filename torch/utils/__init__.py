"""Helpers around tensors: hooks, pytrees, DLPack, device contexts. Submodules are loaded on first
use."""


def __getattr__(name):
    from importlib import import_module
    from importlib.util import find_spec

    if name.startswith("__") or find_spec("torch.utils." + name) is None:
        raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
    return import_module("torch.utils." + name)
