"""Forward-mode differentiation: inside a level, dual tensors carry a tangent, and every operator
computes the tangents of its results along with them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import _C
from torch.utils._contextlib import _DecoratorContextManager

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_is_fwd_grad_enabled = _C._is_fwd_grad_enabled

# The open level, -1 when none is.
_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A dual tensor taken apart; `tangent` is None for a tensor without one."""

    primal: torch.Tensor
    tangent: torch.Tensor | None


def enter_dual_level() -> int:
    """Opens a level and returns its number. Levels do not nest."""
    global _current_level
    level = _C._enter_dual_level()
    if level != _current_level + 1:
        raise RuntimeError("Entering a new forward AD level but the current level is not valid.")
    _current_level = level
    return level


def exit_dual_level(*, level=None) -> None:
    """Closes a level: all tensors lose their tangents."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. "
            "This is not supported."
        )
    _C._exit_dual_level(level=level)
    _current_level = level - 1


def make_dual(tensor, tangent, *, level=None) -> torch.Tensor:
    """A tensor with the data of `tensor` and the given tangent, valid in the open level."""
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for value, name in ((tensor, "primal"), (tangent, "tangent")):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
    return _C._make_dual(tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """The primal and the tangent of a dual tensor."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level:
    """Opens a level for the duration of a `with` block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Whether operators carry tangents on: from here, or for the duration of a `with` block."""

    def __init__(self, mode: bool) -> None:
        self.prev = _C._is_fwd_grad_enabled()
        self.mode = mode
        _C._set_fwd_grad_mode(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _C._set_fwd_grad_mode(self.prev)

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)
