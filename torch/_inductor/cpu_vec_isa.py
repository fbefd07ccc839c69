"""Instruction sets of the CPU, by the names that settings and tests use."""

from __future__ import annotations

import functools

import torch
from torch._inductor import config

__all__ = [
    "VecAVX2",
    "VecAVX512",
    "VecISA",
    "invalid_vec_isa",
    "pick_vec_isa",
    "supported_vec_isa_list",
    "valid_vec_isa_list",
]


class VecISA:
    """An instruction set: its width in bits and its name. False: there is none."""

    _bit_width = 0
    _name = "INVALID_VEC_ISA"

    def bit_width(self) -> int:
        """Bits of a register."""
        return self._bit_width

    def nelements(self, dtype: torch.dtype = torch.float) -> int:
        """Elements in a register."""
        return self._bit_width // (8 * dtype.itemsize)

    def __bool__(self) -> bool:
        return self._bit_width > 0

    def __str__(self) -> str:
        return self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VecISA) and other._name == self._name


class VecAVX512(VecISA):
    """512 bits."""

    _bit_width, _name = 512, "avx512"


class VecAVX2(VecISA):
    """256 bits."""

    _bit_width, _name = 256, "avx2"


class VecAMX(VecAVX512):
    """Tiles, which no kernel of this package uses."""

    _name = "avx512 amx_tile"


invalid_vec_isa = VecISA()
supported_vec_isa_list: list[VecISA] = [VecAMX(), VecAVX512(), VecAVX2()]


@functools.cache
def valid_vec_isa_list() -> list[VecISA]:
    """What this CPU has of what kernels are compiled for, widest first."""
    found = torch.backends.cpu.get_cpu_capability()
    if found == "AVX512":
        return [VecAVX512(), VecAVX2()]
    return [VecAVX2()] if found == "AVX2" else []


def pick_vec_isa() -> VecISA:
    """The widest set, or the one that config.cpp.simdlen asks for."""
    wanted = config.cpp.simdlen
    known = valid_vec_isa_list()
    if wanted is None or not known:
        return known[0] if known else invalid_vec_isa
    return next((isa for isa in known if isa.bit_width() == wanted), invalid_vec_isa)
