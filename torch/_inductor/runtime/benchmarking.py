"""How long a function takes: `benchmarker.benchmark(fn, args, kwargs)` in milliseconds. Functions
on a GPU are timed by events of the device, others by the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch._dynamo.utils import counters
from torch.utils import _pytree as pytree

__all__ = ["Benchmarker", "InductorBenchmarker", "TritonBenchmarker", "benchmarker"]


class Benchmarker:
    """Times functions of the CPU."""

    def _count(self, name: str) -> None:
        counters["inductor"][f"benchmarking.{type(self).__name__}.{name}"] += 1

    def benchmark(
        self, fn: Callable, fn_args: tuple, fn_kwargs: dict[str, object], **kwargs: object
    ) -> float:
        """Milliseconds of fn(*fn_args, **fn_kwargs); its tensors say on which device it runs."""
        self._count("benchmark")
        leaves = pytree.tree_leaves((fn_args, fn_kwargs))
        devices = {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)}
        if len(devices) != 1:
            raise ValueError(
                f"benchmark: the tensors among the arguments must be on one device, got {devices}"
            )
        on_cpu = devices.pop().type == "cpu"
        run = self.benchmark_cpu if on_cpu else self.benchmark_gpu
        return run(lambda: fn(*fn_args, **fn_kwargs), **kwargs)

    def benchmark_cpu(
        self, _callable: Callable[[], object], warmup: int = 20, rep: int = 100
    ) -> float:
        """The median of the milliseconds of calls made for `rep` milliseconds, after `warmup`."""
        self._count("benchmark_cpu")
        _timed_for(_callable, warmup)
        return statistics.median(_timed_for(_callable, rep))

    def benchmark_gpu(self, _callable: Callable[[], object], **kwargs: object) -> float:
        """Functions of a GPU are timed by TritonBenchmarker."""
        raise NotImplementedError(f"{type(self).__name__}.benchmark_gpu: use TritonBenchmarker")


def _timed_for(function: Callable[[], object], milliseconds: float) -> list[float]:
    found: list[float] = []
    end = time.perf_counter() + milliseconds / 1e3
    while not found or time.perf_counter() < end:
        begun = time.perf_counter()
        function()
        found.append((time.perf_counter() - begun) * 1e3)
    return found


class TritonBenchmarker(Benchmarker):
    """Times functions of the CPU and of GPUs."""

    def benchmark_gpu(
        self, _callable: Callable[[], object], warmup: int = 5, rep: int = 20, **kwargs: object
    ) -> float:
        """The median of the milliseconds of `rep` calls."""
        self._count("benchmark_gpu")
        for _ in range(warmup):
            _callable()
        found = []
        for _ in range(rep):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            _callable()
            end.record()
            end.synchronize()
            found.append(start.elapsed_time(end))
        return statistics.median(found)


InductorBenchmarker = TritonBenchmarker
benchmarker = TritonBenchmarker()
