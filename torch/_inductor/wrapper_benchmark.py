"""The main function of written programs, and what kind of kernel a text is."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["compiled_module_main", "get_kernel_category_by_source_code"]

_CATEGORIES = "foreach persistent_reduction pointwise reduction split_scan template".split()


def get_kernel_category_by_source_code(src_code: str) -> str:
    """The category that the decorator in the source of a Triton kernel names."""
    found = [category for category in _CATEGORIES if f"@triton_heuristics.{category}" in src_code]
    return found[0] if len(found) == 1 else "unknown"


def compiled_module_main(benchmark_name: str, benchmark_compiled_module_fn: Callable) -> None:
    """Runs a program and prints how long it takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--benchmark-kernels", "-k", action="store_true")
    parser.add_argument("--profile", "-p", action="store_true")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=10)
    given = parser.parse_args()
    seconds = benchmark_compiled_module_fn(times=given.times, repeat=given.repeat)
    print(f"{benchmark_name}: {seconds * 1e6:.1f} us")
