"""Operators that move elements and make tensors: pieces, copies of views, fills, and numbers in a
row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._decomp._register import decomposes
from torch._prims_common import canonicalize_dim

aten = torch.ops.aten


def _pieces(self: Tensor, sizes: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    """Neighbouring parts of the given lengths."""
    torch._check(
        sum(sizes) == self.shape[dim],
        lambda: (
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} "
            f"(input tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
        ),
    )
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(self.narrow(dim, start, size) for start, size in zip(starts, sizes, strict=True))


def _equal_sizes(self: Tensor, size: int, dim: int) -> list[int]:
    length = self.shape[dim]
    if size == 0:
        torch._check(
            length == 0,
            lambda: (
                "split_size can only be 0 if dimension size is 0, but got dimension size of "
                f"{length}"
            ),
        )
        return [0]
    count = max(-(-length // size), 1)
    return [size] * (count - 1) + [length - size * (count - 1)]


@decomposes(aten.split.Tensor, aten.unsafe_split.Tensor)
def split(self: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    dim = canonicalize_dim(self.dim(), dim)
    return tuple(self.split_with_sizes(_equal_sizes(self, split_size, dim), dim))


@decomposes(aten.split_with_sizes, aten.unsafe_split_with_sizes.default)
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    return _pieces(self, split_sizes, canonicalize_dim(self.dim(), dim))


@decomposes(aten.split_with_sizes_copy.default)
def split_with_sizes_copy(
    self: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    return tuple(piece.clone() for piece in split_with_sizes(self, split_sizes, dim))


@decomposes(aten.unbind.int)
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    dim = canonicalize_dim(self.dim(), dim)
    torch._check_index(
        self.dim() > 0, lambda: "Dimension specified as 0 but tensor has no dimensions"
    )
    return tuple(self.select(dim, i) for i in range(self.shape[dim]))


@decomposes(aten.unbind_copy.int)
def unbind_copy(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(piece.clone() for piece in unbind(self, dim))


@decomposes(aten.stack)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    torch._check(len(tensors) > 0, lambda: "stack expects a non-empty TensorList")
    first = list(tensors[0].shape)
    for i, other in enumerate(tensors):
        if list(other.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {first} at entry 0 and "
                f"{list(other.shape)} at entry {i}"
            )
    dim = canonicalize_dim(tensors[0].dim() + 1, dim)
    return torch.cat([t.unsqueeze(dim) for t in tensors], dim)


@decomposes(aten.squeeze.default)
def squeeze(self: Tensor) -> Tensor:
    return torch.squeeze(self, [d for d, n in enumerate(self.shape) if n == 1])


@decomposes(aten.squeeze.dim)
def squeeze_dim(self: Tensor, dim: int) -> Tensor:
    return torch.squeeze(self, [dim])


@decomposes(aten.t)
def t(self: Tensor) -> Tensor:
    torch._check(
        self.dim() <= 2,
        lambda: f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D",
    )
    return torch.permute(self, list(range(self.dim()))[::-1])


@decomposes(aten.transpose.int)
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    if self.dim() == 0:
        return aten.alias(self)
    order = list(range(self.dim()))
    first, second = (canonicalize_dim(self.dim(), d) for d in (dim0, dim1))
    order[first], order[second] = order[second], order[first]
    return torch.permute(self, order)


@decomposes(aten.detach.default, aten.lift.default, aten._reshape_alias)
def detach(self: Tensor, *geometry: Sequence[int]) -> Tensor:
    return aten.alias(self) if not geometry else self.as_strided(*geometry)


@decomposes(aten._unsafe_view)
def _unsafe_view(self: Tensor, size: Sequence[int]) -> Tensor:
    return self.view(size)


def _copy_of(view: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The copying form of a view."""

    def copied(self: Tensor, *args, **kwargs) -> Tensor:
        return view(self, *args, **kwargs).clone(memory_format=torch.contiguous_format)

    return copied


for _name in (
    "alias as_strided diagonal expand permute slice squeeze t transpose unfold unsqueeze view "
    "select narrow"
).split():
    _packet, _view = getattr(aten, f"{_name}_copy"), getattr(aten, _name)
    globals()[f"{_name}_copy"] = decomposes(_packet)(_copy_of(_view))


@decomposes(aten.roll)
def roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        torch._check(
            len(shifts) == 1,
            lambda: f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0",
        )
        return roll(self.flatten(), shifts, [0]).reshape(self.shape)
    torch._check(
        len(shifts) == len(dims),
        lambda: f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}",
    )
    found = self.clone()
    for shift, dim in zip(shifts, dims, strict=True):
        length = self.shape[dim]
        if length:
            cut = (length - shift % length) % length
            parts = found.narrow(dim, cut, length - cut), found.narrow(dim, 0, cut)
            found = torch.cat(parts, dim)
    return found


@decomposes(aten.rot90)
def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    torch._check(
        len(dims) == 2,
        lambda: f"expected total rotation dims == 2, but got dims = {len(dims)}",
    )
    turns = k % 4
    if turns == 2:
        return torch.flip(self, dims)
    if turns == 0:
        return self.clone(memory_format=torch.contiguous_format)
    swapped = self.transpose(*dims)
    return torch.flip(swapped, [dims[0] if turns == 1 else dims[1]])


@decomposes(aten.diag_embed)
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    rank = self.dim() + 1
    dim1, dim2 = (canonicalize_dim(rank, d) for d in (dim1, dim2))
    torch._check(dim1 != dim2, lambda: f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if dim1 > dim2:
        dim1, dim2, offset = dim2, dim1, -offset
    side = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    shape.insert(dim1, side)
    shape.insert(dim2, side)
    return torch.diagonal_scatter(self.new_zeros(shape), self, offset, dim1, dim2)


@decomposes(aten.native_channel_shuffle)
def native_channel_shuffle(self: Tensor, groups: int) -> Tensor:
    batch, channels = self.shape[:2]
    grouped = self.reshape(batch, groups, channels // groups, *self.shape[2:])
    return grouped.transpose(1, 2).reshape(self.shape)


@decomposes(aten.pixel_shuffle)
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    channels, height, width = self.shape[-3:]
    r, lead = upscale_factor, self.shape[:-3]
    kept = channels // (r * r)
    b = len(lead)
    parts = self.reshape(*lead, kept, r, r, height, width)
    order = [*range(b), b, b + 3, b + 1, b + 4, b + 2]
    return parts.permute(order).reshape(*lead, kept, height * r, width * r)


@decomposes(aten.pixel_unshuffle)
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    channels, height, width = self.shape[-3:]
    r, lead = downscale_factor, self.shape[:-3]
    b = len(lead)
    parts = self.reshape(*lead, channels, height // r, r, width // r, r)
    order = [*range(b), b, b + 2, b + 4, b + 1, b + 3]
    return parts.permute(order).reshape(*lead, channels * r * r, height // r, width // r)


# ---- triangles ------------------------------------------------------------------------------


def _zero(self: Tensor) -> bool | int:
    return False if self.dtype is torch.bool else 0


def _columns_minus_rows(self: Tensor) -> Tensor:
    height, width = self.shape[-2:]
    rows = torch.arange(height, device=self.device).unsqueeze(-1)
    return torch.arange(width, device=self.device) - rows


@decomposes(aten.triu, inplace=True)
def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    torch._check(self.dim() >= 2, lambda: "triu: input tensor must have at least 2 dimensions")
    return torch.where(_columns_minus_rows(self) >= diagonal, self, _zero(self)).contiguous()


@decomposes(aten.tril, inplace=True)
def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    torch._check(self.dim() >= 2, lambda: "tril: input tensor must have at least 2 dimensions")
    return torch.where(_columns_minus_rows(self) <= diagonal, self, _zero(self)).contiguous()


# ---- tensors made of a number ---------------------------------------------------------------


def _filled(value: float) -> Callable[..., Tensor]:
    def make(size: Sequence[int], **options) -> Tensor:
        options.pop("names", None)
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        return torch.full(size, value, dtype=dtype, **options)

    return make


zeros = decomposes(aten.zeros.default)(_filled(0))
ones = decomposes(aten.ones.default)(_filled(1))


def _filled_like(value: float) -> Callable[..., Tensor]:
    def make(self: Tensor, **options) -> Tensor:
        return torch.full_like(self, value, **options)

    return make


zeros_like = decomposes(aten.zeros_like.default)(_filled_like(0))
ones_like = decomposes(aten.ones_like.default)(_filled_like(1))


@decomposes(aten.new_full.default)
def new_full(self: Tensor, size: Sequence[int], fill_value: float, **options) -> Tensor:
    dtype = options.pop("dtype", None) or self.dtype
    device = options.pop("device", None)
    device = self.device if device is None else device
    return torch.full(size, fill_value, dtype=dtype, device=device, **options)


@decomposes(aten.new_zeros.default)
def new_zeros(self: Tensor, size: Sequence[int], **options) -> Tensor:
    return new_full(self, size, _zero(self), **options)


@decomposes(aten.new_ones.default)
def new_ones(self: Tensor, size: Sequence[int], **options) -> Tensor:
    return new_full(self, size, True if self.dtype is torch.bool else 1, **options)


@decomposes(aten.fill.Scalar, aten.fill.Tensor)
def fill(self: Tensor, value: Tensor | float) -> Tensor:
    if isinstance(value, Tensor):
        torch._check(
            value.dim() == 0,
            lambda: (
                "fill only supports 0-dimension value tensor but got tensor with "
                f"{value.dim()} dimensions"
            ),
        )
        return aten.copy(self, value)
    return torch.full_like(self, value)


@decomposes(aten.fill_.Scalar, aten.fill_.Tensor)
def fill_(self: Tensor, value: Tensor | float) -> Tensor:
    return self.copy_(fill(self, value))


@decomposes(aten.zero.default)
def zero(self: Tensor) -> Tensor:
    return torch.zeros_like(self)


@decomposes(aten.zero_)
def zero_(self: Tensor) -> Tensor:
    return self.copy_(torch.zeros_like(self))


@decomposes(aten.eye.default)
def eye(n: int, **options) -> Tensor:
    return eye_m(n, n, **options)


@decomposes(aten.eye.m)
def eye_m(n: int, m: int, **options) -> Tensor:
    dtype = options.pop("dtype", None) or torch.get_default_dtype()
    device = options.pop("device", None)
    rows = torch.arange(n, device=device).unsqueeze(-1)
    return (torch.arange(m, device=device) == rows).to(dtype)


@decomposes(aten.arange.default)
def arange_default(end: float, **options) -> Tensor:
    return aten.arange.start_step(0, end, 1, **options)


@decomposes(aten.arange.start)
def arange_start(start: float, end: float, **options) -> Tensor:
    return aten.arange.start_step(start, end, 1, **options)


@decomposes(aten.linspace.default)
def linspace(start: float, end: float, steps: int, **options) -> Tensor:
    """Both ends are exact: the first half counts from the start, the second from the end."""
    complex_ends = isinstance(start, complex) or isinstance(end, complex)
    dtype = options.pop("dtype", None)
    if dtype is None:
        dtype = torch.get_default_dtype()
        dtype = dtype.to_complex() if complex_ends else dtype
    device = options.pop("device", None)
    torch._check(steps >= 0, lambda: "number of steps must be non-negative")
    if steps < 2:
        return torch.full((steps,), start, dtype=dtype, device=device)
    whole = not (dtype.is_floating_point or dtype.is_complex)
    compute = torch.float64 if whole else dtype
    step = (end - start) / (steps - 1)
    place = torch.arange(steps, dtype=torch.int64, device=device)
    rising = start + place.to(compute.to_real()) * step
    falling = end - (steps - 1 - place).to(compute.to_real()) * step
    return torch.where(place < steps // 2, rising, falling).to(dtype)


@decomposes(aten.logspace.default)
def logspace(start: float, end: float, steps: int, base: float = 10, **options) -> Tensor:
    dtype = options.get("dtype") or torch.get_default_dtype()
    wide = dtype if dtype.is_floating_point or dtype.is_complex else torch.float64
    if isinstance(start, complex) or isinstance(end, complex):
        wide = dtype = wide.to_complex()
    exponents = torch.linspace(start, end, steps, dtype=wide, device=options.get("device"))
    return torch.pow(base, exponents).to(dtype)


def _triangle_indices(
    row: int, col: int, keep: Callable[[Tensor], Tensor], options: dict[str, object]
) -> Tensor:
    device = options.get("device")
    rows = torch.arange(row, device=device).unsqueeze(-1).expand(row, col)
    columns = torch.arange(col, device=device).expand(row, col)
    inside = keep(columns - rows)
    found = torch.stack([rows[inside], columns[inside]])
    return found.to(options.get("dtype") or torch.int64)


@decomposes(aten.tril_indices.default)
def tril_indices(row: int, col: int, offset: int = 0, **options) -> Tensor:
    return _triangle_indices(row, col, lambda lead: lead <= offset, options)


@decomposes(aten.triu_indices.default)
def triu_indices(row: int, col: int, offset: int = 0, **options) -> Tensor:
    return _triangle_indices(row, col, lambda lead: lead >= offset, options)


@decomposes(aten.hann_window.default)
def hann_window(window_length: int, **options) -> Tensor:
    return hann_window_periodic(window_length, True, **options)


@decomposes(aten.hann_window.periodic)
def hann_window_periodic(window_length: int, periodic: bool, **options) -> Tensor:
    if window_length < 2:
        return torch.ones(window_length, **options)
    length = window_length + (1 if periodic else 0)
    place = torch.arange(length, **{**options, "dtype": torch.float64})
    window = 0.5 - 0.5 * torch.cos(place * (2 * math.pi / (length - 1)))
    return window[:window_length].to(options.get("dtype") or torch.get_default_dtype())


@decomposes(aten._to_copy.default)
def _to_copy(
    self: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """A copy on another device, in another dtype: each is one primitive step."""
    torch._check(
        layout is None or layout == torch.strided, lambda: f"_to_copy: unsupported layout {layout}"
    )
    found, fresh = self, False
    if device is not None and torch.device(device) != self.device:
        found, fresh = torch.ops.prims.device_put(found, device, non_blocking), True
    if dtype is not None and dtype != self.dtype:
        found, fresh = torch.ops.prims.convert_element_type(found, dtype), True
    wanted = memory_format or torch.preserve_format
    return found if fresh and wanted is torch.preserve_format else found.clone(memory_format=wanted)
