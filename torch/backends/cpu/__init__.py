"""What the CPU can do."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["get_cpu_capability"]


def _flags() -> set[str]:
    """The processor's instruction sets by the names of the operating system."""
    try:
        with open("/proc/cpuinfo") as file:
            return set(next((line for line in file if line.startswith("flags")), "").split())
    except OSError:
        return set()


def get_cpu_capability() -> _Any:
    """The widest vector instructions that kernels use: "AVX512", "AVX2" or "DEFAULT"."""
    words = _flags()
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= words:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= words else "DEFAULT"
