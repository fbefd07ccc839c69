"""Traced functions that are kept between processes, under the name by which programs know them.
What is kept are graphs of torch._inductor; torch/_inductor/function_cache.py keeps them."""

from __future__ import annotations

import importlib

_NAMES = (
    "AOTAutogradCache",
    "BypassAOTAutogradCache",
    "autograd_cache_key",
    "sanitize_gm_for_cache",
)


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("torch._inductor.function_cache"), name)
