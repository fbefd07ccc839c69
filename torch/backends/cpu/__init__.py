"""What the CPU can do."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> _Any:
    """The widest vector instructions that kernels use: "AVX512", "AVX2" or "DEFAULT"."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return "DEFAULT"
    words = set(flags.split())
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= words:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= words else "DEFAULT"
