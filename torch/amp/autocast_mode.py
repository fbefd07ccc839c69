"""`autocast`, the region in which chosen operators run in lower precision, and the decorators that
let a custom autograd Function take part in it. The casting itself is a dispatch layer in C++
(torch/csrc/autocast); a region only switches it on for its device.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOW_PRECISION = (torch.bfloat16, torch.float16)


def is_autocast_available(device_type) -> bool:
    """Whether autocast exists for the device type: "cpu" and "cuda"."""
    return torch._C._is_autocast_available(device_type)


def autocast_decorator(autocast_instance, func) -> Callable[..., object]:
    """func, each call of which runs inside autocast_instance."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


class autocast:
    """A context manager or decorator: inside it, matrix products and convolutions on `device_type`
    run in `dtype` (bfloat16 on the CPU, float16 on CUDA by default) and operators that need the
    range run in float32.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = torch.device(device_type).type
        if not is_autocast_available(self.device):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{self.device}'"
            )
        self.fast_dtype = torch.get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = (
            torch.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled and self._is_usable()
        self._outer = []
        self._nodes: list[object] = []  # what was recorded of regions that are not left yet

    def _is_usable(self) -> bool:
        if self.device == "cuda" and not torch.cuda.is_available():
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=3)
            return False
        if self.device == torch._C._get_privateuse1_backend_name():
            return self._is_usable_on_other_device()
        if self.fast_dtype not in _LOW_PRECISION and not (
            self.device == "cuda" and self.fast_dtype == torch.float32
        ):
            warnings.warn(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. "
                f"Disabling autocast.\n{self.device.upper()} Autocast only supports dtypes of "
                "torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
            return False
        return True

    def _is_usable_on_other_device(self) -> bool:
        """A package that brings a device says by its module which dtypes it casts to."""
        module = getattr(torch, self.device, None)
        if not hasattr(module, "get_amp_supported_dtype"):
            raise AssertionError(
                f"Tried to use AMP with the `{self.device}` backend, but the backend has not "
                "registered a module or the module misses the function "
                "`get_amp_supported_dtype() -> List[torch.dtype]`."
            )
        supported = module.get_amp_supported_dtype()
        if self.fast_dtype in supported:
            return True
        names = ", ".join(str(dtype) for dtype in supported)
        warnings.warn(
            f"In {self.device} autocast, but the target dtype {self.fast_dtype} is not supported. "
            f"Disabling autocast. {self.device} autocast only supports dtypes of {names}.",
            stacklevel=4,
        )
        return False

    def __enter__(self) -> autocast:
        self._outer.append(
            (
                torch.is_autocast_enabled(self.device),
                torch.get_autocast_dtype(self.device),
                torch.is_autocast_cache_enabled(),
            )
        )
        torch.set_autocast_dtype(self.device, self.fast_dtype)
        torch.set_autocast_enabled(self.device, self._enabled)
        torch.set_autocast_cache_enabled(self._cache_enabled)
        torch.autocast_increment_nesting()
        recorder = _recorder()
        if recorder is not None:
            settings = (self.device, self.fast_dtype, self._enabled, self._cache_enabled)
            node = recorder.create_node("call_function", _enter_autocast, settings, {})
            self._nodes.append(node)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool:
        # Cast weights outlive inner regions, and no step: after it the weights are others.
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        enabled, dtype, cache_enabled = self._outer.pop()
        torch.set_autocast_enabled(self.device, enabled)
        torch.set_autocast_dtype(self.device, dtype)
        torch.set_autocast_cache_enabled(cache_enabled)
        recorder = _recorder()
        if recorder is not None and self._nodes:
            recorder.create_node("call_function", _exit_autocast, (self._nodes.pop(),), {})
        return False

    def __call__(self, func) -> Any:
        return autocast_decorator(self, func)


def _enter_autocast(*args):
    """Enters a region without a with statement; returns what _exit_autocast takes."""
    mode = autocast(*args)
    mode.__enter__()
    return mode


def _exit_autocast(mode) -> None:
    """Leaves a region that _enter_autocast entered."""
    mode.__exit__(None, None, None)


def _recorder():
    """The tracer that records operators above autocast now: the switches of a graph that it
    records again are part of the record, because no operator shows them."""
    modes = sys.modules.get("torch._dispatch.pre_dispatch")
    mode = None if modes is None else modes.get_mode(torch._C._TorchDispatchModeKey.PROXY)
    return None if mode is None else mode.tracer


def _cast(value, device_type, dtype):
    """value with every eligible tensor in it, at any depth, cast to dtype."""
    if isinstance(value, torch.Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not torch.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {
            _cast(key, device_type, dtype): _cast(entry, device_type, dtype)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        entries = [_cast(entry, device_type, dtype) for entry in value]
        if hasattr(value, "_fields"):
            return type(value)(*entries)
        return type(value)(entries)
    return value


def _check_device_type(device_type) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None) -> Any:
    """Decorates the forward of an autograd Function. With cast_inputs, floating point tensors are
    cast to it and forward runs outside autocast; without, forward runs in the state of the caller.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        inside = torch.is_autocast_enabled(device_type)
        stays = inside and cast_inputs is None
        about = {"_dtype": torch.get_autocast_dtype(device_type), "_fwd_used_autocast": stays}
        for name, value in about.items():
            setattr(args[0], name, value)
        if stays or not inside:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            args, kwargs = _cast((args, kwargs), device_type, cast_inputs)
            return fwd(*args, **kwargs)

    return decorated


def custom_bwd(bwd=None, *, device_type) -> Any:
    """Decorates the backward of an autograd Function: it runs in the autocast state of forward."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        ctx = args[0]
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorated
