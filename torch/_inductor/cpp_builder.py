"""The C++ compiler of the machine."""

from __future__ import annotations

__all__ = ["get_cpp_compiler"]


def get_cpp_compiler() -> str:
    """The path of the compiler that hot kernels are handed to. Raises where there is none."""
    from torch._inductor.codecache import compiler_command
    from torch._inductor.exc import InvalidCxxCompiler

    found = compiler_command()
    if found is None:
        raise InvalidCxxCompiler
    return found[0][0]
