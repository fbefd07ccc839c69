"""Automatic differentiation: backward passes, gradients as values, custom functions and the modes
that switch recording on and off.
"""

import importlib
import sys
import types

import torch  # noqa: F401  programs reach the package as torch.autograd.torch too
from torch import _C
from torch.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torch.autograd.backward_pass import backward, grad
from torch.autograd.function import Function, NestedIOFunction
from torch.autograd.grad_mode import (
    _force_original_view_tracking,  # noqa: F401
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from torch.autograd.variable import Variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

# Names that need more than the core, loaded by their first use: the package is part of `import
# torch`.
_LAZY = {
    "gradcheck": "torch.autograd.gradcheck",
    "gradgradcheck": "torch.autograd.gradcheck",
    "kineto_available": "torch.autograd.profiler",
    "DeviceType": "torch.profiler",
    "ProfilerActivity": "torch.profiler",
}
_SUBMODULES = ("forward_ad", "functional", "graph", "profiler", "profiler_util")


def __getattr__(name):
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"torch.autograd.{name}")
    raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")


class _Package(types.ModuleType):
    """torch.autograd.gradcheck is a function and a submodule of one name: the function stays when
    the submodule is imported."""

    def __setattr__(self, name, value) -> None:
        if name == "gradcheck" and isinstance(value, types.ModuleType):
            value = value.gradcheck
        super().__setattr__(name, value)

    def __reduce__(self):
        # Programs are sent to other processes with the modules they name; only plain modules are
        # known to those who do that.
        return importlib.import_module, (self.__name__,)


SavedTensor = _C._autograd.SavedTensor
is_view_replay_enabled = _C._is_view_replay_enabled
is_multithreading_enabled = _C._is_multithreading_enabled

sys.modules[__name__].__class__ = _Package


def _profiler_enabled():
    """Whether operators are being recorded in this thread."""
    return _C._profiler_enabled()


def _disable_profiler():
    """Ends a recording that nobody else will end, and returns what was recorded."""
    return _C._profiler_stop()


def _is_checkpoint_valid():
    """Whether a re-entrant checkpoint may run now."""
    return _C._ImperativeEngine().is_checkpoint_valid()


def variable(*args, **kwargs):
    """Removed long ago; use torch.tensor."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")
