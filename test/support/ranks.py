"""Runs a function in several processes that form a group, for tests of torch.distributed. A rank
that fails or hangs fails the test, with its traceback, and no process is left behind."""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import torch.distributed as dist

# The engine is an optional library of the system; `make` installs it, other builds may not have it.
needs_gloo = pytest.mark.skipif(
    not dist.is_gloo_available(), reason="built without Gloo (libgloo-dev was not installed)"
)


def _child(
    function: Callable, rank: int, size: int, folder: str, backend: str, args: tuple
) -> None:
    result = Path(folder) / f"result{rank}"
    try:
        url = f"file://{folder}/store"
        if backend:
            dist.init_process_group(backend, init_method=url, rank=rank, world_size=size)
        value = (True, function(rank, size, *args))
        if backend and dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        value = (False, traceback.format_exc())
    result.write_bytes(pickle.dumps(value))


def run_ranks(
    function: Callable, size: int, *args: object, backend: str = "gloo", timeout: float = 60
) -> list:
    """What function(rank, size, *args) returns in each of `size` processes of one group."""
    # Children are forked from a small process that has imported what all need, and no more.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "pytest", "torch.distributed"])
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=_child, args=(function, rank, size, folder, backend, args))
            for rank in range(size)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(timeout)
        hung = [rank for rank, process in enumerate(ranks) if process.is_alive()]
        for process in ranks:
            process.kill()
            process.join()
        results = []
        for rank in range(size):
            file = Path(folder) / f"result{rank}"
            results.append(
                pickle.loads(file.read_bytes()) if file.exists() else (False, "no result")
            )
    failures = [f"rank {rank}: {text}" for rank, (ok, text) in enumerate(results) if not ok]
    assert not hung and not failures, f"hung: {hung}\n" + "\n".join(failures)
    return [value for _, value in results]
