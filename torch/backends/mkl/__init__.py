"""What PyTorch takes from Intel's MKL: fast products of dense and sparse matrices, factorisations
and Fourier transforms. This library has kernels of its own for all of it, so that a program which
asks before it uses them is told that they are there."""

from __future__ import annotations

from types import TracebackType

__all__ = ["is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether products, factorisations, transforms and sparse products can be computed."""
    return True


class verbose:
    """MKL's reports on its calls. There are none here: `enable` is taken and nothing is printed."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return False
