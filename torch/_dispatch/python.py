"""Switches of the dispatcher's Python part. Shapes, dtypes and strides of an operator come from one
function for real, meta and symbolic tensors (docs/architecture.md), so that there is no second set
of kernels in Python to switch to: the blocks change nothing, and programs that open them run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["enable_python_dispatcher", "no_python_dispatcher"]


@contextlib.contextmanager
def enable_python_dispatcher() -> Iterator[None]:
    """A block in which kernels written in Python come first; there are none beside the C++ ones."""
    yield


@contextlib.contextmanager
def no_python_dispatcher() -> Iterator[None]:
    """A block in which kernels written in Python are left out."""
    yield
