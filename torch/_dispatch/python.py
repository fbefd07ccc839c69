"""Switches of the dispatcher's Python part: kernels that `op.py_impl(key)` registered for an
operator run only inside enable_python_dispatcher()."""

from __future__ import annotations

from torch import _C

__all__ = ["enable_python_dispatcher", "no_python_dispatcher"]

enable_python_dispatcher = _C._EnablePythonDispatcher
no_python_dispatcher = _C._DisablePythonDispatcher
