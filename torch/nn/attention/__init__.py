"""Which kernels scaled_dot_product_attention may use, biases it understands (its submodule bias)
and attention with functions of the scores (flex_attention)."""

from __future__ import annotations

import contextlib
import enum
import warnings
from typing import Any as _Any

from torch.backends import cuda as _switches

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """A way to compute scaled_dot_product_attention. On CPU, MATH is the formula and
    FLASH_ATTENTION the blocked kernel; on CUDA, MATH is the formula and the three fused names
    stand for the one fused form there is."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> _Any:
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __int__(self) -> _Any:
        return self.value

    __index__ = __int__


_BY_SWITCH = {
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.OVERRIDEABLE: "overrideable",
}


def _cur_sdpa_kernel_backends(with_priority=False) -> list[SDPBackend]:
    """The backends allowed now; with_priority puts the one tried first in front."""
    allowed = [backend for backend, name in _BY_SWITCH.items() if _switches._sdp[name]]
    if with_priority:
        allowed.sort(key=_priority.index)
    return allowed


_priority = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
]


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False) -> _Any:
    """Lets scaled_dot_product_attention use only these backends inside; with set_priority, in
    this order. An attention that none of them can compute is an error."""
    if isinstance(backends, SDPBackend):
        backends = [backends]
    elif not isinstance(backends, list):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = list(dict.fromkeys(backends))
    global _priority
    saved, saved_priority = dict(_switches._sdp), _priority
    if set_priority:
        _priority = [*wanted, *(b for b in _priority if b not in wanted)]
    _switches._set_sdp(**{name: backend in wanted for backend, name in _BY_SWITCH.items()})
    try:
        yield {}
    finally:
        _priority = saved_priority
        _switches._set_sdp(**saved)


# ---- implementations of flash attention brought by other packages

_implementations = {}
_active = None


def register_flash_attention_impl(impl, *, register_fn) -> _Any:
    """Makes a flash attention known under a name; register_fn() puts its kernels in place and
    returns an object whose remove() takes them out again."""
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> _Any:
    """The names given to register_flash_attention_impl."""
    return sorted(_implementations)


def current_flash_attention_impl() -> _Any:
    """The implementation in use; None for the one built in."""
    return None if _active is None else _active[0]


def activate_flash_attention_impl(impl) -> _Any:
    """Uses a registered implementation from now on."""
    global _active
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    if current_flash_attention_impl() == impl:
        return
    if _active is not None:
        restore_flash_attention_impl()
    _active = (impl, _implementations[impl]())


def restore_flash_attention_impl() -> _Any:
    """Goes back to the implementation built in."""
    global _active
    if _active is None:
        warnings.warn("no flash attention implementation was activated", stacklevel=2)
        return
    handle = _active[1]
    _active = None
    if hasattr(handle, "remove"):
        handle.remove()


def __getattr__(name) -> _Any:
    if name in ("bias", "flex_attention", "varlen"):
        from importlib import import_module

        return import_module("torch.nn.attention." + name)
    raise AttributeError(f"module 'torch.nn.attention' has no attribute '{name}'")
