"""Sending a standard stream of this process into a file, also what C code and children write."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

__all__ = ["get_libc", "redirect", "redirect_stderr", "redirect_stdout"]

_NUMBERS = {"stdout": 1, "stderr": 2}


@functools.cache
def get_libc() -> ctypes.CDLL | None:
    """The C library, for its buffers; None where it has another name."""
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:
        return None


def _flush(stream: TextIO) -> None:
    libc = get_libc()
    if libc is not None:
        libc.fflush(None)
    stream.flush()


def _descriptors(std: str, stream: TextIO) -> set[int]:
    """The stream's number, and that of Python's object where something replaced it."""
    found = {_NUMBERS[std]}
    # Under a test runner it may be an object without a file.
    with suppress(OSError, ValueError, AttributeError):
        found.add(stream.fileno())
    return found


@contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Inside, "stdout" or "stderr" goes to the file."""
    if std not in _NUMBERS:
        raise ValueError(f"unknown standard stream <{std}>, must be one of {list(_NUMBERS)}")
    stream = getattr(sys, std)
    _flush(stream)
    saved = {number: os.dup(number) for number in _descriptors(std, stream)}
    with open(to_file, "w+b") as file:
        for number in saved:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        _flush(stream)
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)


redirect_stdout = functools.partial(redirect, "stdout")
redirect_stderr = functools.partial(redirect, "stderr")
