"""Quantization, pruning and the comparison of quantized models, imported when asked for."""

import importlib

_PARTS = ("nn", "ns", "pruning", "quantization")


def __getattr__(name: str) -> object:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
