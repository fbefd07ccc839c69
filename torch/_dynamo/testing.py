"""Help for tests of the compiler."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Sequence
from unittest import mock

import torch
from torch import _later

globals().update(
    _later.names(__name__, "CompileCounter CompileCounterWithBackend EagerAndRecordGraphs")
)


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    extra_size: int = 0,
) -> torch.Tensor:
    """A tensor with this geometry whose memory, gaps included, holds random numbers."""
    needed = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 if all(size) else 0
    needed += extra_size
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize > 1 else torch.float16
        memory = torch.randn(needed, dtype=wide, device=device).to(dtype)
    else:
        memory = torch.zeros(needed, dtype=dtype, device=device)
    return torch.as_strided(memory, size, stride)


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: tuple[object, str, object],
    xfail_prop: str | None = None,
    decorator: Callable[[Callable[..., None]], Callable[..., None]] = lambda test: test,
) -> type:
    """A copy of a class of tests whose tests run with attributes of objects set to other values.
    Tests with the attribute `xfail_prop` are expected to fail."""

    def patched(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(self: unittest.TestCase, *args: object, **kwargs: object) -> None:
            for owner, name, value in patches:
                setting = mock.patch.object(owner, name, value)
                setting.start()
                self.addCleanup(setting.stop)
            test(self, *args, **kwargs)

        expected = xfail_prop is not None and hasattr(test, xfail_prop)
        return unittest.expectedFailure(run) if expected else decorator(run)

    body: dict[str, object] = {}
    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_") and callable(value):
            body[name + fn_suffix] = patched(value)
        elif name in cls.__dict__ and name not in ("__dict__", "__weakref__"):
            body[name] = cls.__dict__[name]
    return type(cls_prefix + cls.__name__, cls.__bases__, body)
