"""Settings of the whole process or thread: default dtype and device, determinism, matmul precision.
The values live in C++, where the operators read them; this file checks what users pass."""

from __future__ import annotations

import torch
from torch import _C

_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS = ("highest", "high", "medium")


def set_default_dtype(d, /) -> None:
    """Sets the dtype of floating point tensors made without one; also decides the default complex
    dtype."""
    _C._set_default_dtype(d)
    torch.Storage = torch.storage._DTYPE_TO_STORAGE.get(d, torch.Storage)


def set_default_tensor_type(t, /) -> None:
    """Sets the default dtype by a tensor type such as torch.DoubleTensor or its name."""
    if isinstance(t, str):
        name = t
        t = next((c for c in torch._tensor_classes if f"torch.{c.__name__}" == name), None)
        if t is None:
            raise ValueError(f"invalid type name: {name!r}")
    if not isinstance(t, torch.tensortype):
        raise TypeError(
            f"invalid type object: expected a tensor type such as torch.FloatTensor, got {t!r}"
        )
    if not t.dtype.is_floating_point:
        raise TypeError(
            "only floating-point types are supported as the default type: "
            + f"got torch.{t.__name__}"
        )
    set_default_dtype(t.dtype)


def set_default_device(device) -> None:
    """Sets the device of tensors made without one. None goes back to the CPU."""
    from torch.utils._device import set_global_device

    set_global_device(device)


def get_default_device() -> torch.device:
    """The device of tensors made without one."""
    from torch.utils._device import current_device

    return current_device()


def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Makes operators without a deterministic algorithm raise (or, with warn_only, warn)."""
    _C._set_deterministic_algorithms(mode, warn_only=warn_only)


def are_deterministic_algorithms_enabled():
    """Whether use_deterministic_algorithms(True) is in force."""
    return _C._get_deterministic_algorithms()


def is_deterministic_algorithms_warn_only_enabled():
    """Whether operators without a deterministic algorithm warn instead of raising."""
    return _C._get_deterministic_algorithms_warn_only()


def set_deterministic_debug_mode(debug_mode) -> None:
    """Sets determinism by name or number: "default" or 0, "warn" or 1, "error" or 2."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode != 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see set_deterministic_debug_mode."""
    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def get_float32_matmul_precision():
    """How exact float32 matrix products have to be: "highest", "high" or "medium"."""
    return _C._get_float32_matmul_precision()


def set_float32_matmul_precision(precision) -> None:
    """Sets how exact float32 matrix products have to be: "highest", "high" or "medium"."""
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"Invalid float32 matmul precision {precision!r}: expected one of {_PRECISIONS}"
        )
    _C._set_float32_matmul_precision(precision)


def set_warn_always(b, /) -> None:
    """Whether a warning that is given once per process is given every time."""
    _C._set_warnAlways(b)


def is_warn_always_enabled() -> bool:
    """Whether warnings that are given once per process are given every time."""
    return _C._get_warnAlways()
