"""Pooling against plain loops: maxima with and without their places, and means of short windows."""

from __future__ import annotations

import itertools
import math

import pytest

import torch
import torch.nn.functional as F


def windows(
    size: int, kernel: int, stride: int, padding: int, dilation: int = 1
) -> list[list[int]]:
    """The places in one dimension of every window's elements, those of the padding left out."""
    count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    starts = [k * stride - padding for k in range(count)]
    return [
        [s + t * dilation for t in range(kernel) if 0 <= s + t * dilation < size] for s in starts
    ]


def largest(values: list[float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def pooled(x: torch.Tensor, axes: list[list[list[int]]], join) -> torch.Tensor:
    """`join` over the windows of the last dimensions of `x`, element by element."""
    lead = x.shape[: -len(axes)]
    out = torch.empty(*lead, *map(len, axes), dtype=x.dtype)
    for place in itertools.product(*map(range, lead)):
        plane = x[place]
        for spot in itertools.product(*(range(len(a)) for a in axes)):
            elements = itertools.product(*(a[i] for a, i in zip(axes, spot, strict=True)))
            out[place + spot] = join([plane[e].item() for e in elements])
    return out


POOLS = [(F.max_pool1d, 1), (F.max_pool2d, 2), (F.max_pool3d, 3)]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pool,dims", POOLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int32])
def test_max_pool_without_gradients_gives_the_largest_of_each_window(
    pool, dims: int, stride: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(-50, 50, (2, *[13, 6, 5][:dims][::-1]), generator=generator).to(dtype)
    if dtype.is_floating_point:
        x[1].view(-1)[7] = math.nan
        x[0].view(-1)[2] = -math.inf
    axes = [windows(n, 3, stride, 1, 1) for n in x.shape[1:]]
    expected = pooled(x, axes, largest)
    with torch.no_grad():
        result = pool(x, 3, stride, 1)
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("pool,dims", POOLS)
def test_max_pool_gives_the_same_values_whether_a_gradient_is_wanted_or_not(
    pool, dims: int
) -> None:
    x = torch.randn(2, 3, *[17, 8, 6][:dims][::-1])
    for kernel, stride, padding, dilation, ceil in [(2, None, 0, 1, False), (3, 2, 1, 2, True)]:
        plain = pool(x, kernel, stride, padding, dilation, ceil)
        kept = pool(x.clone().requires_grad_(), kernel, stride, padding, dilation, ceil)
        assert kept.requires_grad and not plain.requires_grad
        assert torch.equal(plain, kept)
        mapped = torch.vmap(lambda t: pool(t, kernel, stride, padding, dilation, ceil))(x)  # noqa: B023
        assert torch.equal(mapped, plain)


def test_max_pool_without_gradients_keeps_the_order_of_dimensions_of_its_input() -> None:
    x = torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last)
    with torch.no_grad():
        assert F.max_pool2d(x, 2).is_contiguous(memory_format=torch.channels_last)
        turned = F.max_pool2d(x.transpose(2, 3), 2)
    assert torch.equal(turned, F.max_pool2d(x.transpose(2, 3).contiguous(), 2))


def test_max_pool_without_gradients_refuses_what_the_other_refuses() -> None:
    x = torch.randn(2, 4, 9, 9)
    with pytest.raises(RuntimeError, match="pad should be at most half"):
        F.max_pool2d(x, 2, padding=2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.max_pool2d(x, 20)
    with pytest.raises(RuntimeError, match="max_pool1d"):
        F.max_pool1d(torch.randn(2, 0, 9), 2)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kernel,stride,padding", [(2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 3, 2)])
@pytest.mark.parametrize("pool,dims", [(F.avg_pool1d, 1), (F.avg_pool2d, 2), (F.avg_pool3d, 3)])
def test_avg_pool_of_short_windows_gives_their_means(
    pool, dims: int, kernel: int, stride: int, padding: int, include: bool
) -> None:
    x = torch.randn(2, *[14, 7, 6][:dims][::-1], dtype=torch.float64)
    axes = [windows(n, kernel, stride, padding) for n in x.shape[1:]]
    whole = float(kernel**dims)
    expected = pooled(x, axes, lambda v: math.fsum(v) / (whole if include else len(v)))
    result = pool(x, kernel, stride, padding, count_include_pad=include)
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
