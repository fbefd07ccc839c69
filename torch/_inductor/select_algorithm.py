"""Operators that compiled programs call by name."""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["NoValidChoicesError", "extern_kernels"]


class NoValidChoicesError(RuntimeError):
    """None of the ways to compute something can be used."""


class _ExternKernels:
    """extern_kernels.mm is aten's mm."""

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.ops.aten, name)


extern_kernels = _ExternKernels()
