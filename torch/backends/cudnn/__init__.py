"""Settings of cuDNN, which computes convolutions on CUDA where it is installed. The switches are
kept in C++, where the operators read them."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator

import torch
from torch import _C
from torch.backends import _fp32

_Setting = bool | int | str

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

# What no operator reads, with its value; kept so that programs get back what they set. A build
# without CUDA reads none.
_KEPT: dict[str, _Setting] = {
    "enabled": True,
    "benchmark": False,
    "benchmark_limit": 10,
    "deterministic": False,
    "allow_tf32": True,
    "depthwise_kernel": "auto",
}
_FUNCTIONS = {
    "enabled": "_{}_cudnn_enabled",
    "benchmark": "_{}_cudnn_benchmark",
    "benchmark_limit": "_cuda_{}_cudnn_benchmark_limit",
    "deterministic": "_{}_cudnn_deterministic",
    "allow_tf32": "_{}_cudnn_allow_tf32",
}
_SETTINGS = (*_FUNCTIONS, "fp32_precision", "depthwise_kernel")
_READ: dict[str, Callable[[], _Setting]] = {}
_WRITE: dict[str, Callable[[object], None]] = {}
if hasattr(_C, "_cudnn_version"):
    for _name, _function in _FUNCTIONS.items():
        _READ[_name] = getattr(_C, _function.format("get"))
        _WRITE[_name] = getattr(_C, _function.format("set"))
        del _KEPT[_name]


def version() -> int | None:
    """The version of cuDNN as one number (91002 for 9.10.2), or None where there is none."""
    return (_C._cudnn_version() or None) if _READ else None


def is_available() -> bool:
    """Whether cuDNN 9 could be loaded."""
    return version() is not None


_TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


def is_acceptable(tensor: torch.Tensor) -> bool:
    """Whether a convolution of the tensor would go to cuDNN."""
    on_gpu = tensor.device.type == "cuda" and tensor.dtype in _TYPES
    return bool(sys.modules[__name__].enabled) and on_gpu and is_available()


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
    _depthwise_kernel: str | None = "auto",
) -> tuple[_Setting, ...]:
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
    before = tuple(
        _fp32.own("cuda") if name == "fp32_precision" else getattr(module, name)
        for name in _SETTINGS
    )
    for name, value in zip(_SETTINGS, wanted, strict=True):
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """Settings for the with statement's body."""
    precisions = _fp32.saved()
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
        _fp32.restore(precisions)


class _Module(types.ModuleType):
    """Settings are read and written where the operators look; a misspelled one raises."""

    def __getattr__(self, name: str) -> _Setting:
        if name == "fp32_precision":
            return _fp32.effective("cuda")
        if name in _READ:
            return _READ[name]()
        if name in _KEPT:
            return _KEPT[name]
        raise AttributeError(f"module 'torch.backends.cudnn' has no attribute '{name}'")

    def __setattr__(self, name: str, value: _Setting) -> None:
        if name == "allow_tf32":
            _fp32.follow_allow_tf32(value)
        if name == "fp32_precision":
            _fp32.set_own("cuda", value)
        elif name in _WRITE:
            _WRITE[name](value)
        elif name in _KEPT:
            _KEPT[name] = value
        elif name.startswith("_") or name in self.__dict__:
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"torch.backends.cudnn has no setting '{name}'")


conv, rnn = _fp32.Setting("cuda.conv"), _fp32.Setting("cuda.rnn")
sys.modules[__name__].__class__ = _Module
