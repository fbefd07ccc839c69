"""Settings of cuDNN. They are kept for the operators that will use it; as long as none does,
is_available() is False."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any as _Any

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

_DEFAULTS = {
    "enabled": True,
    "benchmark": False,
    "benchmark_limit": 10,
    "deterministic": False,
    "allow_tf32": True,
    "fp32_precision": "none",
    "depthwise_kernel": "auto",
}
enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"


def version() -> _Any:
    """The version of cuDNN as one number, or None where it is not used."""
    from torch import _C

    return _C._cudnn_version() if is_available() else None


def is_available() -> _Any:
    """Whether operators use cuDNN."""
    return False


def is_acceptable(tensor) -> _Any:
    """Whether cuDNN would take the tensor."""
    return False


def set_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision="none",
    _depthwise_kernel="auto",
) -> _Any:
    """Changes settings; returns what they were."""
    wanted = (
        _enabled,
        _benchmark,
        _benchmark_limit,
        _deterministic,
        _allow_tf32,
        _fp32_precision,
        _depthwise_kernel,
    )
    module = sys.modules[__name__]
    before = tuple(getattr(module, name) for name in _DEFAULTS)
    for name, value in zip(_DEFAULTS, wanted, strict=True):
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel="auto",
) -> _Any:
    """Settings for the with statement's body."""
    before = set_flags(
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        allow_tf32,
        fp32_precision,
        depthwise_kernel,
    )
    try:
        yield
    finally:
        set_flags(*before)


class _Module(types.ModuleType):
    """Keeps misspelled settings from passing unnoticed."""

    def __setattr__(self, name, value) -> _Any:
        if not name.startswith("_") and name not in self.__dict__:
            raise AttributeError(f"torch.backends.cudnn has no setting '{name}'")
        super().__setattr__(name, value)


conv = types.SimpleNamespace(fp32_precision="none")
rnn = types.SimpleNamespace(fp32_precision="none")
sys.modules[__name__].__class__ = _Module
