"""Values of user lowerings: a TensorBox stands for a tensor of the graph that is being lowered,
Pointwise and Reduction for loops whose body the user wrote. While a lowering runs its operators are
traced, so that what it returns becomes nodes of the graph and is fused like all others."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence

import torch
from torch._inductor.ops_handler import TensorOps
from torch._inductor.virtualized import V, ops

__all__ = [
    "Buffer",
    "ExpandView",
    "FallbackKernel",
    "FixedLayout",
    "FlexibleLayout",
    "IRNode",
    "Layout",
    "Loops",
    "PermuteView",
    "Pointwise",
    "Reduction",
    "ReductionHint",
    "SliceView",
    "SqueezeView",
    "StorageBox",
    "TensorBox",
    "View",
    "get_stride_order",
]

Body = Callable[[Sequence[object]], object]
_names = itertools.count()


class ReductionHint(enum.Enum):
    """How a reduction lies in memory; a hint that nothing here needs."""

    INNER = 0
    OUTER = 1
    OUTER_TINY = 2
    DEFAULT = 3


def get_stride_order(seq: Sequence[int], shape_env: object = None) -> list[int]:
    """The rank of each stride: 0 for the smallest."""
    order = sorted(range(len(seq)), key=lambda i: seq[i])
    ranks = [0] * len(seq)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


class Layout:
    """Device, dtype and geometry of a tensor."""

    def __init__(
        self,
        device: torch.device,
        dtype: torch.dtype,
        size: Sequence[int],
        stride: Sequence[int] | None = None,
        offset: int = 0,
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.size = list(size)
        self.stride = list(stride) if stride is not None else _dense(self.size)
        self.offset = offset

    def make_indexer(self) -> Callable[[Sequence[object]], object]:
        """The place of an element in memory."""

        def indexer(index: Sequence[object]) -> object:
            return sum((i * s for i, s in zip(index, self.stride, strict=True)), self.offset)

        return indexer

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}('{self.device}', {self.dtype}, size={self.size}, stride={self.stride})"


class FixedLayout(Layout):
    """A geometry that is decided."""


class FlexibleLayout(Layout):
    """A geometry that may still change."""


def _dense(size: Sequence[int]) -> list[int]:
    strides: list[int] = []
    step = 1
    for n in reversed(size):
        strides.append(step)
        step *= n
    return strides[::-1]


class IRNode:
    """A value of a lowering."""

    tensor: torch.Tensor

    def get_size(self) -> list[int]:
        """Sizes."""
        return list(self.tensor.shape)

    def get_stride(self) -> list[int]:
        """Strides."""
        return list(self.tensor.stride())

    def get_dtype(self) -> torch.dtype:
        """dtype."""
        return self.tensor.dtype

    def get_device(self) -> torch.device:
        """Device."""
        return self.tensor.device

    get_device_or_error = get_device

    def get_numel(self) -> int:
        """Number of elements."""
        return self.tensor.numel()

    def get_layout(self) -> Layout:
        """Geometry."""
        return FixedLayout(
            self.tensor.device, self.tensor.dtype, self.get_size(), self.get_stride()
        )

    layout = property(get_layout)
    dtype = property(get_dtype)
    device = property(get_device)

    def get_name(self) -> str:
        """A name for messages."""
        return getattr(self, "name", None) or f"buf{next(_names)}"

    def make_loader(self) -> Body:
        """A function from an index to the element."""

        def load(index: Sequence[object]) -> object:
            handler = V.ops
            if not isinstance(handler, TensorOps):
                return ops.load(self.get_name(), self.get_layout().make_indexer()(index))
            return handler.read(self.tensor, index)

        return load

    def make_indexer(self) -> Callable[[Sequence[object]], object]:
        """The place of an element in memory."""
        return self.get_layout().make_indexer()

    def realize(self) -> str:
        """The value will be in memory: nothing to do here."""
        return self.get_name()

    realize_hint = freeze_layout = realize

    def mark_reuse(self, users: int) -> None:
        """The value is used again: nothing to do here."""


class Buffer(IRNode):
    """A tensor in memory."""

    def __init__(self, tensor: torch.Tensor, name: str | None = None) -> None:
        self.tensor = tensor
        self.name = name or f"buf{next(_names)}"


class StorageBox(IRNode):
    """What a TensorBox looks at."""

    def __init__(self, data: IRNode) -> None:
        self.data = data

    @property
    def tensor(self) -> torch.Tensor:
        return self.data.tensor


class TensorBox(IRNode):
    """A value as lowerings pass it around."""

    def __init__(self, data: IRNode) -> None:
        self.data = data

    @property
    def tensor(self) -> torch.Tensor:
        return self.data.tensor

    @staticmethod
    def create(data: IRNode) -> TensorBox:
        """A box around a value."""
        return TensorBox(StorageBox(data))

    @staticmethod
    def of(tensor: torch.Tensor) -> TensorBox:
        """A box around a tensor."""
        return TensorBox.create(Buffer(tensor))


# ---- loops ----------------------------------------------------------------------------------


def _symbols(prefix: str, count: int) -> list[object]:
    import sympy

    return [sympy.Symbol(f"{prefix}{i}", integer=True, nonnegative=True) for i in range(count)]


class Loops(IRNode):
    """A loop over ranges whose body was written by a user."""


class Pointwise(Loops):
    """Pointwise.create(device=, dtype=, inner_fn=, ranges=): an element for each index."""

    @classmethod
    def create(
        cls,
        *,
        device: torch.device,
        dtype: torch.dtype,
        inner_fn: Body,
        ranges: Sequence[int],
        **unused: object,
    ) -> TensorBox:
        """The loop, as a value."""
        found = _evaluated(inner_fn, list(ranges), [])
        return TensorBox.of(_full(found, list(ranges), dtype, device))


def _evaluated(inner_fn: Callable, ranges: list[int], reduced: list[int]) -> object:
    symbols = _symbols("i", len(ranges)) + _symbols("r", len(reduced))
    handler = TensorOps([*ranges, *reduced], symbols)
    with V.set_ops_handler(handler):
        if reduced:
            return inner_fn(symbols[: len(ranges)], symbols[len(ranges) :])
        return inner_fn(symbols)


def _full(
    found: object, ranges: list[int], dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    if not isinstance(found, torch.Tensor):
        return torch.full(ranges, found, dtype=dtype, device=device)
    found = found if found.dtype == dtype else found.to(dtype)
    if list(found.shape) == ranges:
        return found
    return found.expand(ranges).contiguous()


_REDUCTIONS: dict[str, Callable[[torch.Tensor, list[int]], torch.Tensor]] = {
    "sum": lambda x, dims: torch.sum(x, dims),
    "max": lambda x, dims: torch.amax(x, dims),
    "min": lambda x, dims: torch.amin(x, dims),
    "any": lambda x, dims: torch.any(x.reshape(*x.shape[: dims[0]], -1), -1),
    "prod": lambda x, dims: torch.prod(x.reshape(*x.shape[: dims[0]], -1), -1),
    "argmax": lambda x, dims: torch.argmax(x.reshape(*x.shape[: dims[0]], -1), -1),
    "argmin": lambda x, dims: torch.argmin(x.reshape(*x.shape[: dims[0]], -1), -1),
}


class Reduction(Loops):
    """Reduction.create(...): the elements of reduction_ranges folded for each index."""

    @classmethod
    def create(
        cls,
        device: torch.device,
        dst_dtype: torch.dtype,
        src_dtype: torch.dtype,
        inner_fn: Callable[[Sequence[object], Sequence[object]], object],
        ranges: Sequence[int],
        reduction_ranges: Sequence[int],
        reduction_type: str,
        reduction_hint: ReductionHint = ReductionHint.DEFAULT,
        input_node: IRNode | None = None,
    ) -> TensorBox:
        """The reduction, as a value."""
        fold = _REDUCTIONS.get(reduction_type)
        if fold is None:
            raise NotImplementedError(f"Reduction.create: reduction_type {reduction_type!r}")
        outer, inner = list(ranges), list(reduction_ranges)
        found = _evaluated(inner_fn, outer, inner)
        elements = _full(found, [*outer, *inner], src_dtype, device)
        dims = list(range(len(outer), len(outer) + len(inner)))
        result = fold(elements, dims) if dims else elements
        return TensorBox.of(result if result.dtype == dst_dtype else result.to(dst_dtype))


# ---- views and calls ------------------------------------------------------------------------


def _boxed(found: object) -> object:
    if isinstance(found, torch.Tensor):
        return TensorBox.of(found)
    if isinstance(found, (list, tuple)):
        return type(found)(_boxed(v) for v in found)
    return found


class View(IRNode):
    """The same memory in another shape."""

    @classmethod
    def create(cls, x: IRNode, new_size: Sequence[int]) -> TensorBox:
        """x with other sizes."""
        return TensorBox.of(x.tensor.reshape(list(new_size)))


class ExpandView(View):
    """Sizes of one, repeated."""

    @classmethod
    def create(cls, x: IRNode, new_size: Sequence[int]) -> TensorBox:
        return TensorBox.of(x.tensor.expand(list(new_size)))


class PermuteView(View):
    """Dimensions in another order."""

    @classmethod
    def create(cls, x: IRNode, dims: Sequence[int]) -> TensorBox:
        return TensorBox.of(x.tensor.permute(list(dims)))


class SqueezeView(View):
    """Without sizes of one."""

    @classmethod
    def create(cls, x: IRNode, *, dim: int | None = None) -> TensorBox:
        return TensorBox.of(x.tensor.squeeze() if dim is None else x.tensor.squeeze(dim))


class SliceView(View):
    """A part of one dimension."""

    @classmethod
    def create(
        cls, x: IRNode, dim: int, start: int, end: int, step: int = 1, clamp: bool = True
    ) -> TensorBox:
        return TensorBox.of(torch.ops.aten.slice.Tensor(x.tensor, dim, start, end, step))


class FallbackKernel(IRNode):
    """The call of an operator."""

    @classmethod
    def create(cls, kernel: Callable, *args: object, **kwargs: object) -> object:
        """The operator's results as values."""
        from torch.utils import _pytree as pytree

        plain_args, plain_kwargs = pytree.tree_map_only(IRNode, lambda b: b.tensor, (args, kwargs))
        return _boxed(kernel(*plain_args, **plain_kwargs))
