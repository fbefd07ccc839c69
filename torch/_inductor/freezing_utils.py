"""Which tensors became constants of a compiled program, and whether that is going on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import Any

import torch


class _State(threading.local):
    active = False


_state = _State()


def _freezing_active() -> bool:
    return _state.active


@contextlib.contextmanager
def enter_freezing() -> Generator[Any, None, None]:
    """Parameters are made constants inside."""
    before, _state.active = _state.active, True
    try:
        yield
    finally:
        _state.active = before


def record_has_frozen_params(gm: torch.fx.GraphModule) -> None:
    """Says of a graph that parameters are constants in it."""
    gm._has_frozen_params = True


def has_frozen_params(gm: torch.fx.GraphModule) -> bool:
    """Whether parameters are constants in a graph."""
    return getattr(gm, "_has_frozen_params", False)


def maybe_set_is_frozen_param(t: torch.Tensor) -> None:
    """Says of a tensor that it is a constant, while parameters are made constants."""
    if _freezing_active():
        t._is_frozen_param = True


def is_frozen_param(t: torch.Tensor) -> bool:
    """Whether a tensor was made a constant."""
    return getattr(t, "_is_frozen_param", False)
