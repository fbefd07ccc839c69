"""Help for code that must not be seen by dispatch modes, and for comparing modes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

__all__ = ["all_same_mode", "no_dispatch"]

T = TypeVar("T")


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Operators called inside reach neither __torch_dispatch__ of a subclass nor a mode."""
    with torch._C._DisableTorchDispatch():
        yield


def all_same_mode(modes: Sequence[T]) -> bool:
    """Whether all the modes are one and the same object."""
    return all(mode is modes[0] for mode in modes)
