"""Switches of the dispatcher's Python part: kernels that `op.py_impl(key)` registered for an
operator run only inside enable_python_dispatcher()."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import _C

__all__ = ["enable_crossref_functionalize", "enable_python_dispatcher", "no_python_dispatcher"]

enable_python_dispatcher = _C._EnablePythonDispatcher
no_python_dispatcher = _C._DisablePythonDispatcher


@contextlib.contextmanager
def enable_crossref_functionalize() -> Iterator[None]:
    """Inside, each operator on functional tensors is checked: what a result shows must be what its
    value has."""
    before = _C._functionalize_enable_crossref(True)
    try:
        yield
    finally:
        _C._functionalize_enable_crossref(before)
