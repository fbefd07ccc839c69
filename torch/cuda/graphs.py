"""CUDA graphs: work recorded once and queued again as a whole. One thread records at a time."""

from __future__ import annotations

import gc
from typing import Any as _Any

import torch
from torch import _C
from torch.cuda._init import _lazy_init
from torch.cuda.streams import is_current_stream_capturing

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


class CUDAGraph(_C._CUDAGraph if _C._has_cuda else object):
    """A recording; capture_begin() and capture_end() around the work, then replay() any number of
    times."""

    def __new__(cls, keep_graph=False) -> _Any:
        _lazy_init()
        if keep_graph:
            raise NotImplementedError("torch.cuda.CUDAGraph(keep_graph=True) is not implemented")
        return super().__new__(cls)


def graph_pool_handle() -> _Any:
    """A name for memory that several graphs share: `graph(..., pool=...)`."""
    _lazy_init()
    return _C._graph_pool_handle()


class graph:
    """`with torch.cuda.graph(g):` records the body into g, on a stream of its own."""

    default_capture_stream = None

    def __init__(
        self,
        cuda_graph,
        pool=None,
        stream=None,
        capture_error_mode="global",
        enable_annotations=False,
        check_input_liveness=False,
    ) -> None:
        if enable_annotations:
            raise NotImplementedError("torch.cuda.graph(enable_annotations=True)")
        if check_input_liveness:
            raise NotImplementedError("torch.cuda.graph(check_input_liveness=True)")
        if type(self).default_capture_stream is None:
            type(self).default_capture_stream = torch.cuda.Stream()
        self.cuda_graph, self.pool = cuda_graph, pool
        self.capture_stream = stream if stream is not None else self.default_capture_stream
        self.capture_error_mode = capture_error_mode
        self._context = torch.cuda.stream(self.capture_stream)

    def __enter__(self) -> _Any:
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        self._context.__enter__()
        self.cuda_graph.capture_begin(self.pool, capture_error_mode=self.capture_error_mode)

    def __exit__(self, *exc_info) -> _Any:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._context.__exit__(*exc_info)


def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None
) -> _Any:
    """Functions or modules whose forward and backward passes are replays of graphs; see
    torch/cuda/_graphed.py."""
    from torch.cuda._graphed import make_graphed_callables as make

    return make(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
