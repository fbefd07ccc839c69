"""Operators on fake tensors whose results depend on data, where a ShapeEnv can name what is not
known: a value that is read becomes an unbacked symbol, a number of elements an unbacked size. A
tensor that was not written to in between gives the same symbol again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._subclasses._fake_errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.types import IntLikeType


def _setting(mode: FakeTensorMode, name: str) -> bool:
    env = mode.shape_env
    return env is not None and getattr(env, name, getattr(env.settings, name, False))


def value_symbol(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """The value of a tensor of one element, as a symbol."""
    allowed = mode.allow_scalar_outputs or _setting(mode, "allow_scalar_outputs")
    if mode.shape_env is None or not allowed or func._opname != "_local_scalar_dense":
        raise DataDependentOutputException(func)
    tensor = args[0]
    known = tensor.item_memo
    if known is None:
        known = tensor.item_memo = _fresh_value(mode, tensor.dtype)
    return known


def _fresh_value(mode: FakeTensorMode, dtype: torch.dtype) -> object:
    env = mode.shape_env
    if dtype.is_floating_point:
        return env.create_unbacked_symfloat()
    if dtype is torch.bool:
        return env.create_unbacked_symbool()
    if dtype.is_complex:
        raise NotImplementedError(f"item() of a fake tensor of dtype {dtype} makes no symbol")
    return env.create_unbacked_symint()


def _fresh_size(mode: FakeTensorMode, most: IntLikeType | None, least: int = 0) -> torch.SymInt:
    from torch.fx.experimental.symbolic_shapes import _constrain_range_for_size

    size = mode.shape_env.create_unbacked_symint()
    limit = most if isinstance(most, int) and most > least else None
    _constrain_range_for_size(size, min=least, max=limit)
    return size


def _nonzero(mode: FakeTensorMode, self: FakeTensor) -> FakeTensor:
    rows = self.nonzero_memo
    if rows is None:
        rows = self.nonzero_memo = _fresh_size(mode, self.numel())
    # Real results are columns under each other.
    return self.new_empty_strided((rows, self.dim()), (1, rows), dtype=torch.int64)


def _masked_select(mode: FakeTensorMode, self: FakeTensor, mask: FakeTensor) -> FakeTensor:
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    most = 1
    for size in shape:
        most = most * size
    return self.new_empty((_fresh_size(mode, most),))


def _unique2(
    mode: FakeTensorMode,
    self: FakeTensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[FakeTensor, FakeTensor, FakeTensor]:
    size = self.unique_memo
    if size is None:
        size = self.unique_memo = _fresh_size(mode, self.numel())
    return _unique_results(self, (size,), self.shape, size, return_inverse, return_counts)


def _unique_consecutive(
    mode: FakeTensorMode,
    self: FakeTensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[FakeTensor, FakeTensor, FakeTensor]:
    if dim is not None:
        return _unique_dim(mode, self, dim, True, return_inverse, return_counts)
    size = self.unique_consecutive_memo
    if size is None:
        size = self.unique_consecutive_memo = _fresh_size(mode, self.numel())
    return _unique_results(self, (size,), self.shape, size, return_inverse, return_counts)


def _unique_dim(
    mode: FakeTensorMode,
    self: FakeTensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[FakeTensor, FakeTensor, FakeTensor]:
    size = _fresh_size(mode, self.shape[dim])
    dim = dim % self.dim()
    shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
    return _unique_results(self, shape, (self.shape[dim],), size, return_inverse, return_counts)


def _unique_results(
    self: FakeTensor,
    shape: tuple[IntLikeType, ...],
    inverse_shape: tuple[IntLikeType, ...],
    count: IntLikeType,
    return_inverse: bool,
    return_counts: bool,
) -> tuple[FakeTensor, FakeTensor, FakeTensor]:
    inverse = inverse_shape if return_inverse else (0,)
    counts = (count,) if return_counts else (0,)
    return (
        self.new_empty(shape),
        self.new_empty(inverse, dtype=torch.int64),
        self.new_empty(counts, dtype=torch.int64),
    )


def _bincount(
    mode: FakeTensorMode,
    self: FakeTensor,
    weights: FakeTensor | None = None,
    minlength: int = 0,
) -> FakeTensor:
    size = _fresh_size(mode, None, minlength if isinstance(minlength, int) else 0)
    if weights is None:
        return self.new_empty((size,), dtype=torch.int64)
    dtype = weights.dtype if weights.dtype is torch.float32 else torch.float64
    return self.new_empty((size,), dtype=dtype)


def _repeat_interleave(
    mode: FakeTensorMode, repeats: FakeTensor, *, output_size: IntLikeType | None = None
) -> FakeTensor:
    if output_size is None:
        output_size = _fresh_size(mode, None)
    return repeats.new_empty((output_size,))


def _index(mode: FakeTensorMode, self: FakeTensor, indices: list[FakeTensor | None]) -> FakeTensor:
    """Each mask becomes the positions at which it is true, one tensor for each dimension."""
    positions: list[FakeTensor | None] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            positions.extend(_nonzero(mode, index).unbind(1))
        else:
            positions.append(index)
    return torch.ops.aten.index.Tensor(self, positions)


_SIZED: dict[str, Callable[..., object]] = {
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "_unique2": _unique2,
    "unique_consecutive": _unique_consecutive,
    "unique_dim": _unique_dim,
    "bincount": _bincount,
    "repeat_interleave": _repeat_interleave,
    "index": _index,
}


def sized_result(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """The result of an operator whose number of elements depends on data."""
    rule = _SIZED.get(func._opname)
    if rule is None or not _setting(mode, "allow_dynamic_output_shape_ops"):
        raise DynamicOutputShapeException(func)
    if func._overloadname == "out":
        raise DynamicOutputShapeException(func)
    return rule(mode, *args, **kwargs)
