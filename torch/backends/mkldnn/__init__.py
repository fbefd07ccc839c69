"""oneDNN, which this library does not use; the settings are kept for programs that set them."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any as _Any

from torch.backends import _fp32

__all__ = ["flags", "is_available", "set_flags"]

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> _Any:
    """Whether oneDNN is used."""
    return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None) -> _Any:
    """Changes settings; returns what they were."""
    global enabled, deterministic, allow_tf32
    before = (enabled, deterministic, allow_tf32, _fp32.own("mkldnn"))
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    if _fp32_precision is not None:
        _fp32.set_own("mkldnn", _fp32_precision)
    return before


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none") -> _Any:
    """Settings for the with statement's body."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


class _Module(types.ModuleType):
    """The precision is read from where it may have been set above."""

    @property
    def fp32_precision(self) -> str:
        return _fp32.effective("mkldnn")

    @fp32_precision.setter
    def fp32_precision(self, precision) -> None:
        _fp32.set_own("mkldnn", precision)


matmul, conv, rnn = (_fp32.Setting(f"mkldnn.{name}") for name in ("matmul", "conv", "rnn"))
sys.modules[__name__].__class__ = _Module
