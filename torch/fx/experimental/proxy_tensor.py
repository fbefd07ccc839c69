"""Tracing below autograd: the names. Nothing is ever being traced, and the questions about it say
so; starting a trace raises NotImplementedError."""

import contextlib

from torch import _later

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode that traces right now: none."""
    return None


def maybe_disable_fake_tensor_mode():
    """A block outside of the mode in which tensors have no data; there is none to leave."""
    return contextlib.nullcontext()


def disable_proxy_modes_tracing():
    """A block that is not traced; none is."""
    return contextlib.nullcontext()


globals().update(_later.names(__name__, "ProxyTorchDispatchMode make_fx"))
