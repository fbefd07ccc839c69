"""What kernels of block-sparse matrices that are written in Triton need around them: operands with
common batches, blocks of dense matrices, and launches in pieces that a grid can hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

# The most blocks along the axes of a grid, in the order of the tensors' dimensions.
_MOST_BLOCKS = (65535, 65535, 2**31 - 1)


def broadcast_batch_dims(f_name: str, *tensors: Tensor) -> torch.Size:
    """The batch that all matrices share; ValueError where there is none."""
    try:
        return torch.broadcast_shapes(*(t.shape[:-2] for t in tensors))
    except RuntimeError:
        raise ValueError(f"{f_name}(): inputs' batch dimensions are not broadcastable!") from None


def _with_batch(tensor: Tensor, batch: torch.Size, own: int) -> Tensor:
    """A tensor whose last `own` dimensions are no batch, with one batch dimension."""
    return tensor.broadcast_to(batch + tensor.shape[-own:]).flatten(0, len(batch) - 1)


def prepare_inputs(bsr: Tensor, *dense_tensors: Tensor) -> tuple[Tensor, ...]:
    """Rows, columns and values of a block-sparse matrix and dense matrices, each with one batch
    dimension of the same size."""
    parts = ((bsr.crow_indices(), 1), (bsr.col_indices(), 1), (bsr.values(), 3))
    batch = broadcast_batch_dims("prepare_inputs", bsr, *dense_tensors) or torch.Size((1,))
    return (
        *(_with_batch(part.contiguous(), batch, own) for part, own in parts),
        *(_with_batch(dense, batch, 2) for dense in dense_tensors),
    )


def tile_to_blocksize(t: Tensor, blocksize: Sequence[int]) -> Tensor:
    """A matrix as a matrix of blocks: [..., rows, columns, height, width]."""
    *batch, rows, columns = t.shape
    height, width = blocksize
    cut = t.view(*batch, rows // height, height, columns // width, width)
    return cut.transpose(-3, -2)


def ptr_stride_extractor(*tensors: Tensor) -> Iterator[Any]:
    """Each tensor followed by its strides, as arguments of a kernel."""
    for tensor in tensors:
        yield tensor
        yield from tensor.stride()


def launch_kernel(
    kernel: Callable[..., None],
    tensor_dims_map: dict[Tensor, Sequence[int | None]],
    full_grid: Sequence[int],
    grid_blocks: Sequence[int | None] | None = None,
) -> None:
    """Calls kernel(grid, *tensors) for pieces of a grid of at most `grid_blocks`, with the tensors
    narrowed to the piece: tensor_dims_map says which of a tensor's dimensions lies along each axis.
    The grid that the kernel gets is in the order of devices, the fastest axis first."""
    given = grid_blocks or (None,) * len(full_grid)
    most = _MOST_BLOCKS[-len(full_grid) :] if len(full_grid) < 3 else _MOST_BLOCKS
    limits = [
        bound if wanted is None else max(1, min(bound, wanted))
        for wanted, bound in zip(given, most, strict=True)
    ]
    starts = (range(0, size, limit) for size, limit in zip(full_grid, limits, strict=True))
    for start in itertools.product(*starts):
        sizes = [
            min(limit, size - first)
            for first, size, limit in zip(start, full_grid, limits, strict=True)
        ]
        pieces = []
        for tensor, dims in tensor_dims_map.items():
            for axis, dim in enumerate(dims):
                if dim is not None:
                    tensor = tensor[
                        (slice(None),) * (dim % tensor.dim())
                        + (slice(start[axis], start[axis] + sizes[axis]),)
                    ]
            pieces.append(tensor)
        kernel(sizes[::-1], *pieces)
