"""Reading a tensor at other places: padding by reflection and replication, interpolation, windows,
sampling at grid points. Everything here is a choice of indices and weights per dimension, then
indexing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._decomp._register import decomposes
from torch._prims_common import get_computation_dtype

aten = torch.ops.aten

# ---- padding --------------------------------------------------------------------------------


def _reflected(place: Tensor, length: int) -> Tensor:
    """Places outside mirrored at the first and last element, which are not repeated."""
    return (length - 1) - torch.abs((length - 1) - torch.abs(place))


def _replicated(place: Tensor, length: int) -> Tensor:
    return torch.clamp(place, 0, length - 1)


def _source_places(
    self: Tensor, padding: Sequence[int], fold: Callable[[Tensor, int], Tensor]
) -> list[Tensor]:
    """For every padded dimension, from the first, the places that its elements come from."""
    found = []
    count = len(padding) // 2
    for i in range(count):
        before, after = padding[2 * (count - 1 - i)], padding[2 * (count - 1 - i) + 1]
        length = self.shape[self.dim() - count + i]
        place = torch.arange(-before, length + after, device=self.device)
        found.append(fold(place, length))
    return found


def _crossed(places: Sequence[Tensor], lead: int) -> list[Tensor | None]:
    """Index lists whose product is a grid behind `lead` untouched dimensions."""
    count = len(places)
    shaped = [p.reshape([-1] + [1] * (count - 1 - i)) for i, p in enumerate(places)]
    return [None] * lead + shaped


def _pad_rule(fold: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def padded(self: Tensor, padding: Sequence[int]) -> Tensor:
        found = self
        lead = self.dim() - len(padding) // 2
        for i, place in enumerate(_source_places(self, padding, fold)):
            found = aten._unsafe_index(found, [None] * (lead + i) + [place])
        return found.contiguous(memory_format=torch._prims_common.suggest_memory_format(self))

    return padded


def _pad_backward_rule(fold: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def unpadded(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        places = _source_places(self, padding, fold)
        grid = _crossed(places, self.dim() - len(places))
        zero = grad_output.new_zeros(self.shape)
        return aten._unsafe_index_put(zero, grid, grad_output, True)

    return unpadded


for _name, _fold in (("reflection", _reflected), ("replication", _replicated)):
    for _rank in "123":
        _forward, _backward = f"{_name}_pad{_rank}d", f"{_name}_pad{_rank}d_backward"
        globals()[_forward] = decomposes(getattr(aten, _forward))(_pad_rule(_fold))
        globals()[_backward] = decomposes(getattr(aten, _backward))(_pad_backward_rule(_fold))


# ---- interpolation --------------------------------------------------------------------------


def _output_size(
    input: Tensor, output_size: Sequence[int] | None, scales: Sequence[float] | None
) -> list[int]:
    if output_size is not None:
        return list(output_size)
    sizes = input.shape[2:]
    return [math.floor(n * s) for n, s in zip(sizes, scales, strict=True)]


def _nearest(
    self: Tensor, size: Sequence[int], scales: Sequence[float | None], exact: bool
) -> Tensor:
    found = self
    for i, (out, scale) in enumerate(zip(size, scales, strict=True)):
        length = self.shape[2 + i]
        ratio = length / out if scale is None else 1.0 / scale
        step = torch.arange(out, dtype=torch.float32, device=self.device)
        place = ((step + 0.5 if exact else step) * ratio).to(torch.int64)
        found = aten._unsafe_index(found, [None] * (2 + i) + [place.clamp(max=length - 1)])
    return found.contiguous(memory_format=torch._prims_common.suggest_memory_format(self))


def _source_coordinate(
    out: int, length: int, scale: float | None, align: bool, dtype: torch.dtype, like: Tensor
) -> Tensor:
    """Where the elements of the output lie in the input, as real numbers."""
    step = torch.arange(out, dtype=dtype, device=like.device)
    if align:
        return step * ((length - 1) / (out - 1) if out > 1 else 0.0)
    ratio = length / out if scale is None else 1.0 / scale
    return (step + 0.5) * ratio - 0.5


def _linear(
    self: Tensor, size: Sequence[int], align: bool, scales: Sequence[float | None]
) -> Tensor:
    compute = get_computation_dtype(self.dtype) if self.is_floating_point() else torch.float32
    found = self.to(compute)
    for i, (out, scale) in enumerate(zip(size, scales, strict=True)):
        length, dim = self.shape[2 + i], 2 + i
        place = _source_coordinate(out, length, scale, align, compute, self).clamp(min=0)
        low = place.to(torch.int64).clamp(max=length - 1)
        high = (low + 1).clamp(max=length - 1)
        share = (place - low).clamp(0, 1).reshape([-1] + [1] * (self.dim() - dim - 1))
        lead = [None] * dim
        first = aten._unsafe_index(found, [*lead, low])
        second = aten._unsafe_index(found, [*lead, high])
        found = first + (second - first) * share
    if not self.is_floating_point():
        found = found.round()
    found = found.to(self.dtype)
    return found.contiguous(memory_format=torch._prims_common.suggest_memory_format(self))


def _cubic_weights(share: Tensor) -> list[Tensor]:
    """Weights of the four neighbours in the cubic convolution with a = -0.75."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def _cubic(
    self: Tensor, size: Sequence[int], align: bool, scales: Sequence[float | None]
) -> Tensor:
    compute = get_computation_dtype(self.dtype) if self.is_floating_point() else torch.float32
    found = self.to(compute)
    for i, (out, scale) in enumerate(zip(size, scales, strict=True)):
        length, dim = self.shape[2 + i], 2 + i
        place = _source_coordinate(out, length, scale, align, compute, self)
        low = torch.floor(place)
        share = (place - low).reshape([-1] + [1] * (self.dim() - dim - 1))
        base = low.to(torch.int64)
        total = None
        for step, weight in zip((-1, 0, 1, 2), _cubic_weights(share), strict=True):
            index = (base + step).clamp(0, length - 1)
            part = aten._unsafe_index(found, [None] * dim + [index]) * weight
            total = part if total is None else total + part
        found = total
    if not self.is_floating_point():
        limits = torch.iinfo(self.dtype)
        found = found.round().clamp(limits.min, limits.max)
    found = found.to(self.dtype)
    return found.contiguous(memory_format=torch._prims_common.suggest_memory_format(self))


def _enter_nearest(name: str, exact: bool) -> None:
    packet = getattr(aten, name)

    def rule(self: Tensor, output_size: Sequence[int], *scales: float | None, **named) -> Tensor:
        given = [*scales, *named.values()]
        given += [None] * (len(output_size) - len(given))
        return _nearest(self, output_size, given, exact)

    def vec(
        input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
    ) -> Tensor:
        size = _output_size(input, output_size, scale_factors)
        return _nearest(input, size, scale_factors or [None] * len(size), exact)

    globals()[name] = decomposes(packet.default, packet.out)(rule)
    decomposes(packet.vec)(vec)


def _enter_smooth(name: str, method: Callable[..., Tensor]) -> None:
    packet = getattr(aten, name)

    def rule(
        self: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
        **named,
    ) -> Tensor:
        given = [*scales, *named.values()]
        given += [None] * (len(output_size) - len(given))
        return method(self, output_size, align_corners, given)

    def vec(
        input: Tensor,
        output_size: Sequence[int] | None,
        align_corners: bool,
        scale_factors: Sequence[float] | None,
    ) -> Tensor:
        size = _output_size(input, output_size, scale_factors)
        return method(input, size, align_corners, scale_factors or [None] * len(size))

    globals()[name] = decomposes(packet.default, packet.out)(rule)
    decomposes(packet.vec)(vec)


for _rank in "123":
    _enter_nearest(f"upsample_nearest{_rank}d", exact=False)
    _enter_nearest(f"_upsample_nearest_exact{_rank}d", exact=True)
_enter_smooth("upsample_linear1d", _linear)
_enter_smooth("upsample_bilinear2d", _linear)
_enter_smooth("upsample_trilinear3d", _linear)
_enter_smooth("upsample_bicubic2d", _cubic)


# ---- windows --------------------------------------------------------------------------------


def _window_places(
    length: int, kernel: int, dilation: int, padding: int, stride: int, like: Tensor
) -> Tensor:
    """The places under a window: [kernel, windows], counted from the padded start."""
    count = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    inside = torch.arange(kernel, device=like.device).unsqueeze(-1) * dilation
    return inside + torch.arange(count, device=like.device) * stride


def _pairs(*values: Sequence[int]) -> list[list[int]]:
    return [list(v) * 2 if len(v) == 1 else list(v) for v in values]


@decomposes(aten.im2col)
def im2col(
    self: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    kernel, dilation, padding, stride = _pairs(kernel_size, dilation, padding, stride)
    batched = self if self.dim() == 4 else self.unsqueeze(0)
    rows, columns = (
        _window_places(batched.shape[2 + i], kernel[i], dilation[i], padding[i], stride[i], self)
        for i in range(2)
    )
    padded = torch.nn.functional.pad(batched, (padding[1], padding[1], padding[0], padding[0]))
    picked = aten._unsafe_index(padded, [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns])
    # [batch, channels, kernel rows, windows down, kernel columns, windows across]
    batch, channels = batched.shape[:2]
    found = picked.permute(0, 1, 2, 4, 3, 5).reshape(
        batch, channels * kernel[0] * kernel[1], rows.shape[1] * columns.shape[1]
    )
    return found if self.dim() == 4 else found.squeeze(0)


@decomposes(aten.col2im)
def col2im(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    size, kernel, dilation, padding, stride = _pairs(
        output_size, kernel_size, dilation, padding, stride
    )
    batched = self if self.dim() == 3 else self.unsqueeze(0)
    rows, columns = (
        _window_places(size[i], kernel[i], dilation[i], padding[i], stride[i], self)
        for i in range(2)
    )
    batch, channels = batched.shape[0], batched.shape[1] // (kernel[0] * kernel[1])
    parts = batched.reshape(batch, channels, *kernel, rows.shape[1], columns.shape[1])
    values = parts.permute(0, 1, 2, 4, 3, 5)
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    zero = self.new_zeros([batch, channels, *whole])
    index = [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns]
    found = aten._unsafe_index_put(zero, index, values, True)
    found = found[:, :, padding[0] : whole[0] - padding[0], padding[1] : whole[1] - padding[1]]
    return (found if self.dim() == 3 else found.squeeze(0)).contiguous()


# ---- grids ----------------------------------------------------------------------------------


def _line(length: int, align: bool, like: Tensor) -> Tensor:
    """Coordinates from -1 to 1: at the outermost elements, or at the edges around them."""
    if length <= 1:
        return like.new_zeros((length,))
    line = torch.linspace(-1, 1, length, dtype=like.dtype, device=like.device)
    return line if align else line * (length - 1) / length


@decomposes(aten.affine_grid_generator)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    spatial = list(size[2:])
    axes = []
    for i, length in enumerate(spatial):
        shape = [1] * len(spatial)
        shape[i] = length
        axes.append(_line(length, align_corners, theta).reshape(shape).expand(spatial))
    ones = torch.ones_like(axes[0])
    points = torch.stack([*axes[::-1], ones], -1).reshape(1, -1, len(spatial) + 1)
    mapped = (points.unsqueeze(-1) * theta.mT.unsqueeze(1)).sum(-2)
    return mapped.reshape(size[0], *spatial, len(spatial))


@decomposes(aten.max_unpool2d)
def max_unpool2d(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    return _max_unpooled(self, indices, output_size)


@decomposes(aten.max_unpool3d)
def max_unpool3d(
    self: Tensor,
    indices: Tensor,
    output_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Tensor:
    return _max_unpooled(self, indices, output_size)


def _max_unpooled(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    rank = len(output_size)
    lead = self.shape[: self.dim() - rank]
    planes = math.prod(lead)
    area = math.prod(output_size)
    start = torch.arange(planes, device=self.device).unsqueeze(-1) * area
    places = (indices.reshape(planes, -1) + start).reshape(-1)
    zero = self.new_zeros((planes * area,))
    found = aten._unsafe_index_put(zero, [places], self.reshape(-1), False)
    return found.reshape([*lead, *output_size])
