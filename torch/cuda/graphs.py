"""CUDA graphs: work recorded once and run again as a whole. Not implemented yet."""

from torch.cuda.streams import is_current_stream_capturing

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


class CUDAGraph:
    """A recorded graph."""

    def __new__(cls, keep_graph=False):
        raise NotImplementedError("torch.cuda.CUDAGraph is not implemented")


class graph:
    """Records work into a graph."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        raise NotImplementedError("torch.cuda.graph is not implemented")


def graph_pool_handle():
    """A name for a memory pool that graphs share."""
    raise NotImplementedError("torch.cuda.graph_pool_handle is not implemented")


def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None
):
    """Modules whose passes are graphs."""
    raise NotImplementedError("torch.cuda.make_graphed_callables is not implemented")
