"""Tensors without data that know their device: the names. No tensor is one, and the questions that
programs ask about them say so; making one raises NotImplementedError."""

import contextlib

from torch._subclasses import (  # noqa: F401
    CrossRefFakeMode,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)


def is_fake(x) -> bool:
    """Whether x is a tensor without data: never."""
    return False


def maybe_get_fake_mode(t) -> None:
    """The mode that made t: none did."""
    return None


def unset_fake_temporarily():
    """A block outside of every mode; there is none to leave."""
    return contextlib.nullcontext()
