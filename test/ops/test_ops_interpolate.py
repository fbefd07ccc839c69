"""Resizing, grid sampling and fractional pooling against plain loops in double precision."""

import itertools
import math

import numpy as np
import pytest

import torch
import torch.nn.functional as F

MODES = {1: ["nearest", "nearest-exact", "linear"], 3: ["nearest", "nearest-exact", "trilinear"],
         2: ["nearest", "nearest-exact", "bilinear", "bicubic"]}  # fmt: skip


def cubic(x, a):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def taps(mode, size, out, align, scale, antialias=False):
    """For each output along one dimension, {element: weight}."""
    if align:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = 1 / scale if scale else size / out
    result = []
    for o in range(out):
        weights = {}

        def add(i, w, weights=weights):
            i = min(max(i, 0), size - 1)
            weights[i] = weights.get(i, 0.0) + w

        if mode == "nearest":
            add(math.floor(o * step), 1.0)
        elif mode == "nearest-exact":
            add(math.floor((o + 0.5) * step), 1.0)
        elif antialias:
            radius = {"bilinear": 1, "bicubic": 2, "lanczos": 3}[mode] * max(step, 1.0)
            center = step * (o + 0.5)
            for i in range(
                max(int(center - radius + 0.5), 0), min(int(center + radius + 0.5), size)
            ):
                x = (i + 0.5 - center) / max(step, 1.0)
                if mode == "bilinear":
                    add(i, max(0.0, 1 - abs(x)))
                elif mode == "bicubic":
                    add(i, cubic(x, -0.5))
                elif abs(x) < 3:
                    add(i, float(np.sinc(x) * np.sinc(x / 3)))
            total = sum(weights.values())
            weights = {i: w / total for i, w in weights.items()}
        else:
            position = step * o if align else step * (o + 0.5) - 0.5
            if mode == "bicubic":
                first = math.floor(position)
                for t in range(-1, 3):
                    add(first + t, cubic(position - first - t, -0.75))
            else:
                position = max(position, 0.0)
                first = min(math.floor(position), size - 1)
                add(first, 1 - (position - first))
                add(first + 1, position - first)
        result.append(weights)
    return result


def resized(x, sizes, mode, align=False, scales=None, antialias=False):
    """x with its last dimensions resized, one after the other."""
    for k, out in enumerate(sizes):
        axis = x.ndim - len(sizes) + k
        scale = None if scales is None else scales[k]
        rows = taps(mode, x.shape[axis], out, align, scale, antialias)
        x = np.stack(
            [sum(w * np.take(x, i, axis) for i, w in row.items()) for row in rows], axis=axis
        )
    return x


@pytest.mark.parametrize(("dims", "mode"), [(d, m) for d in MODES for m in MODES[d]])
def test_resizing_to_a_size_equals_the_plain_loop(dims, mode):
    x = torch.randn(2, 3, *(7, 5, 6)[:dims], dtype=torch.float64)
    for align in (None,) if "nearest" in mode else (False, True):
        for sizes in itertools.product((1, 4, 9), repeat=dims):
            got = F.interpolate(x, sizes, mode=mode, align_corners=align)
            np.testing.assert_allclose(got.numpy(), resized(x.numpy(), sizes, mode, bool(align)),
                                       atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("mode", MODES[2])
def test_resizing_by_a_factor_uses_the_factor(mode, factor):
    x = torch.randn(2, 2, 10, 7, dtype=torch.float64)
    sizes = [int(n * factor) for n in x.shape[2:]]
    got = F.interpolate(x, scale_factor=factor, mode=mode)
    np.testing.assert_allclose(
        got.numpy(), resized(x.numpy(), sizes, mode, False, (factor,) * 2), atol=1e-12
    )
    again = F.interpolate(x, scale_factor=factor, mode=mode, recompute_scale_factor=True)
    np.testing.assert_allclose(again.numpy(), resized(x.numpy(), sizes, mode), atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_antialiased_resizing_equals_the_plain_loop(mode):
    x = torch.randn(1, 2, 13, 9, dtype=torch.float64)
    for sizes in ((5, 4), (1, 1), (20, 11), (13, 3)):
        got = F.interpolate(x, sizes, mode=mode, antialias=True)
        np.testing.assert_allclose(got.numpy(), resized(x.numpy(), sizes, mode, antialias=True),
                                   atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.half, torch.bfloat16])
def test_narrow_types_are_close_and_formats_are_kept(dtype):
    x = torch.randn(2, 4, 9, 8)
    tolerance = {torch.float32: 1e-5, torch.half: 2e-3, torch.bfloat16: 2e-2}[dtype]
    for mode in MODES[2]:
        want = F.interpolate(x.to(dtype).double(), (5, 12), mode=mode)
        for form in (torch.contiguous_format, torch.channels_last):
            got = F.interpolate(x.to(dtype).contiguous(memory_format=form), (5, 12), mode=mode)
            assert got.dtype == dtype
            assert got.is_contiguous(memory_format=form)
            torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)
        strided = F.interpolate(x.to(dtype).permute(0, 1, 3, 2), (12, 5), mode=mode)
        torch.testing.assert_close(strided.permute(0, 1, 3, 2).double(), want, rtol=tolerance,
                                   atol=tolerance)  # fmt: skip


def test_area_is_adaptive_average():
    x = torch.randn(2, 3, 10, 8)
    torch.testing.assert_close(
        F.interpolate(x, (3, 4), mode="area"), F.adaptive_avg_pool2d(x, (3, 4))
    )


@pytest.mark.parametrize(("dims", "mode"), [(d, m) for d in MODES for m in MODES[d]])
def test_resizing_gradients_of_both_orders_and_modes(dims, mode):
    x = torch.randn(1, 2, *(5, 4, 3)[:dims], dtype=torch.float64, requires_grad=True)
    for sizes in ((3,) * dims, (7,) * dims):
        call = lambda t, s=sizes: F.interpolate(t, s, mode=mode)
        torch.autograd.gradcheck(call, (x,), check_forward_ad=True)
        torch.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_gradients(mode):
    x = torch.randn(1, 1, 6, 5, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda t: F.interpolate(t, (3, 2), mode=mode, antialias=True), (x,))


def test_meta_equals_real_for_resizing():
    for x in (
        torch.randn(2, 3, 6, 4),
        torch.randn(2, 3, 6, 4).to(memory_format=torch.channels_last),
    ):
        for mode in MODES[2]:
            real, meta = F.interpolate(x, 5, mode=mode), F.interpolate(x.to("meta"), 5, mode=mode)
            assert (real.shape, real.dtype) == (meta.shape, meta.dtype)


@pytest.mark.parametrize("scale", [float("nan"), 1e-30, 1e30, -2.0])
def test_absurd_factors_stay_inside_the_input(scale):
    x = torch.randn(1, 1, 4, 4)
    for f in (torch._C._nn.upsample_bilinear2d, torch._C._nn.upsample_bicubic2d,
              torch._C._nn._upsample_bilinear2d_aa):  # fmt: skip
        assert f(x, [3, 3], False, scale, 2.0).shape == (1, 1, 3, 3)
    assert torch._C._nn.upsample_nearest2d(x, [3, 3], scale, 2.0).shape == (1, 1, 3, 3)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: F.interpolate(x), ValueError, "either size or scale_factor"),
        (lambda x: F.interpolate(x, 3, 2), ValueError, "only one of size or scale_factor"),
        (lambda x: F.interpolate(x, (3,)), ValueError, "same number of spatial dimensions"),
        (lambda x: F.interpolate(x, 3, align_corners=True), ValueError, "align_corners option"),
        (lambda x: F.interpolate(x, 3, mode="linear"), NotImplementedError, "needs 3D input"),
        (lambda x: F.interpolate(x[0, 0], 3), NotImplementedError, "Only 3D, 4D and 5D"),
        (lambda x: F.interpolate(x, 3, mode="foo"), NotImplementedError, "got foo"),
        (lambda x: F.interpolate(x, 0), RuntimeError, "Input and output sizes should be greater"),
        (lambda x: F.interpolate(x[:, :0], 3), RuntimeError, "Non-empty 4D data tensor"),
        (lambda x: F.interpolate(x, 3, antialias=True), ValueError, "Anti-alias option"),
        (lambda x: F.interpolate(x, 3, mode="lanczos"), ValueError, "requires antialias"),
        (lambda x: F.interpolate(x.int(), 3), NotImplementedError, "not implemented for 'Int'"),
        (lambda x: torch._C._nn.upsample_nearest2d(x, None, None), RuntimeError, "exactly one of"),
        (lambda x: torch._C._nn.upsample_nearest2d(x, [3, 3, 3]), RuntimeError, "It is expected"),
        (lambda x: F.grid_sample(x, torch.rand(1, 2, 2, 2), align_corners=True), RuntimeError,
         "same batch size"),
        (lambda x: F.grid_sample(x, torch.rand(2, 2, 2, 3), align_corners=True), RuntimeError,
         "size 2 in last dimension"),
        (lambda x: F.grid_sample(x, torch.rand(2, 2, 2, 2), mode="x"), ValueError, "expected mode"),
        (lambda x: F.grid_sample(x, torch.rand(2, 2, 2, 2).double(), align_corners=True),
         RuntimeError, "expected scalar type Float but found Double"),
        (lambda x: F.grid_sample(x[:, :, :0], torch.rand(2, 2, 2, 2), align_corners=True),
         RuntimeError, "non-empty spatial"),
        (lambda x: F.affine_grid(torch.rand(2, 3, 4), (2, 3, 4, 5), True), ValueError, "Nx2x3"),
        (lambda x: F.affine_grid(torch.rand(2, 2, 3), (2, 3, 0, 5), True), ValueError, "non-zero"),
        (lambda x: F.fractional_max_pool2d(x, 2), ValueError, "either an output_size or"),
        (lambda x: F.fractional_max_pool2d(x, 9, 4), RuntimeError, "too large relative to input"),
    ],
)  # fmt: skip
def test_wrong_arguments_raise(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.randn(2, 3, 8, 6))


# ---- grid sampling


def sampled(x, grid, mode, padding, align):
    """One value per channel and point, by the definition."""
    spatial = x.shape[2:]
    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))

    def position(u, size):
        return (u + 1) / 2 * (size - 1) if align else ((u + 1) * size - 1) / 2

    def inside(p, size):
        if padding == "border":
            return min(max(p, 0.0), size - 1)
        if padding == "reflection":
            low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
            if high == low:
                return 0.0
            p = abs(p - low) % (2 * (high - low))
            p = low + (p if p <= high - low else 2 * (high - low) - p)
            return min(max(p, 0.0), size - 1)
        return p

    def axis(u, size):
        p = position(u, size)
        if mode == "bicubic":
            first = math.floor(p)
            return [
                (int(inside(first + t, size)), cubic(p - first - t, -0.75)) for t in range(-1, 3)
            ]
        p = inside(p, size)
        if mode == "nearest":
            return [(round(p), 1.0)]
        first = math.floor(p)
        return [(first, 1 - (p - first)), (first + 1, p - first)]

    for cell in np.ndindex(grid.shape[:-1]):
        n, point = cell[0], grid[cell]
        lists = [axis(u, s) for u, s in zip(point, spatial[::-1], strict=True)][::-1]
        for combo in itertools.product(*lists):
            index = tuple(i for i, _ in combo)
            if all(0 <= i < s for i, s in zip(index, spatial, strict=True)):
                out[(n, slice(None), *cell[1:])] += (
                    math.prod(w for _, w in combo) * x[(n, slice(None), *index)]
                )
    return out


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("dims", "mode"), [(2, "bilinear"), (2, "nearest"), (2, "bicubic"),
                                            (3, "bilinear"), (3, "nearest")])  # fmt: skip
def test_grid_sample_equals_the_definition(dims, mode, padding, align):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(4, 5, 3)[:dims], dtype=torch.float64)
    grid = torch.rand(2, *(3, 6, 2)[:dims], dims, dtype=torch.float64) * 3.5 - 1.75
    got = F.grid_sample(x, grid, mode, padding, align)
    np.testing.assert_allclose(got.numpy(), sampled(x.numpy(), grid.numpy(), mode, padding, align),
                               atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("size", [(1, 1), (3, 1), (1, 2), (4, 5), (2, 3, 1), (2, 2, 3)])
def test_grid_sample_of_many_floats_equals_the_definition(size, padding):
    torch.manual_seed(0)
    dims = len(size)
    x = torch.randn(1, 2, *size)
    grid = torch.rand(1, *(7, 39, 2)[:dims], dims) * 3 - 1.5  # more points than a block has
    for mode in ("bilinear", "nearest") + ("bicubic",) * (dims == 2):
        got = F.grid_sample(x, grid, mode, padding, False)
        expected = sampled(x.double().numpy(), grid.double().numpy(), mode, padding, False)
        np.testing.assert_allclose(got.numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("column", [0, 1, 2, 3])
def test_grid_sample_reads_nan_only_where_a_tap_lies(column):
    x = torch.zeros(1, 1, 1, 4)
    x[..., column] = math.nan
    places = torch.tensor([-0.75, 0.5, 1.25, 3.5])  # columns 0 and outside, 0 | 1, 1 | 2, 3
    grid = torch.stack([(2 * places + 1) / 4 - 1, torch.zeros(4)], -1).view(1, 1, 4, 2)
    taps = [{0}, {0, 1}, {1, 2}, {3}]
    got = F.grid_sample(x, grid, "bilinear", "zeros", False)
    assert got.isnan().flatten().tolist() == [column in read for read in taps]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("dims", "mode"), [(2, "bilinear"), (2, "bicubic"), (3, "bilinear")])
def test_grid_sample_gradients(dims, mode, padding):
    torch.manual_seed(0)
    x = torch.randn(2, 2, *(4, 5, 3)[:dims], dtype=torch.float64, requires_grad=True)
    grid = (
        torch.rand(2, *(3, 2, 2)[:dims], dims, dtype=torch.float64) * 2.6 - 1.3
    ).requires_grad_()
    for align in (False, True):
        torch.autograd.gradcheck(
            lambda a, b, align=align: F.grid_sample(a, b, mode, padding, align), (x, grid)
        )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("dims", "mode"), [(2, "bilinear"), (2, "bicubic"), (2, "nearest"),
                                            (3, "bilinear")])  # fmt: skip
def test_grid_sample_second_derivatives(dims, mode, padding):
    torch.manual_seed(1)
    x = torch.randn(1, 2, *(4, 3, 3)[:dims], dtype=torch.float64, requires_grad=True)
    grid = (
        torch.rand(1, *(2, 2, 1)[:dims], dims, dtype=torch.float64) * 2.6 - 1.3
    ).requires_grad_()
    for align in (False, True):
        torch.autograd.gradgradcheck(
            lambda a, b, align=align: F.grid_sample(a, b, mode, padding, align), (x, grid)
        )


def test_grid_sample_gradient_of_a_strange_grid_can_be_differentiated():
    grid = torch.tensor([float("nan"), float("inf"), 1e30, 0.5]).view(1, 2, 1, 2).requires_grad_()
    x = torch.randn(1, 1, 3, 3, requires_grad=True)
    for mode in ("bilinear", "bicubic"):
        (first,) = torch.autograd.grad(
            F.grid_sample(x, grid, mode, "border", False).sum(), x, create_graph=True
        )
        assert first.square().sum().backward() is None


def test_grid_sample_of_no_number_does_not_crash():
    x = torch.randn(1, 2, 4, 4)
    grid = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30]).view(1, 2, 1, 2)
    for mode, padding in itertools.product(
        ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    ):
        assert F.grid_sample(x, grid, mode, padding, False).shape == (1, 2, 2, 1)


def test_affine_grid_maps_pixel_centres():
    theta = torch.tensor([[[2.0, 0.0, 0.5], [0.0, 1.0, -0.5]]], dtype=torch.float64)
    got = F.affine_grid(theta, (1, 1, 2, 4), align_corners=False)[0]
    xs, ys = np.array([-0.75, -0.25, 0.25, 0.75]), np.array([-0.5, 0.5])
    np.testing.assert_allclose(got[..., 0].numpy(), np.tile(2 * xs + 0.5, (2, 1)))
    np.testing.assert_allclose(got[..., 1].numpy(), np.tile(ys[:, None] - 0.5, (1, 4)))
    theta = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(
        lambda t: F.affine_grid(t, (2, 1, 3, 2, 4), align_corners=True), (theta,)
    )


def test_sampling_an_identity_grid_gives_the_image():
    x = torch.randn(2, 3, 6, 5)
    grid = F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), x.shape, align_corners=True)
    torch.testing.assert_close(F.grid_sample(x, grid, align_corners=True), x)


def test_bits_do_not_depend_on_the_threads():
    before = torch.get_num_threads()
    x = torch.randn(4, 40, 33, 31)
    grid = torch.rand(4, 50, 40, 2) * 2.2 - 1.1

    def results():
        a, b = x.clone().requires_grad_(), grid.clone().requires_grad_()
        y = F.grid_sample(a, b, align_corners=False)
        z = F.interpolate(a, (50, 70), mode="bicubic")
        (y.sum() + z.sum()).backward()
        return [y.detach(), z.detach(), a.grad, b.grad]

    try:
        torch.set_num_threads(1)
        want = results()
        torch.set_num_threads(4)
        got = results()
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


# ---- modules and fractional pooling


def test_upsample_modules_do_what_interpolate_does():
    x = torch.randn(1, 2, 4, 6)
    torch.testing.assert_close(
        torch.nn.Upsample(scale_factor=2)(x), F.interpolate(x, scale_factor=2)
    )
    torch.testing.assert_close(
        torch.nn.UpsamplingBilinear2d(size=(3, 3))(x),
        F.interpolate(x, (3, 3), mode="bilinear", align_corners=True),
    )
    assert repr(torch.nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert (
        repr(torch.nn.Upsample((3, 3), mode="bilinear")) == "Upsample(size=(3, 3), mode='bilinear')"
    )


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling_takes_maxima_of_its_windows(dims):
    torch.manual_seed(3)
    pool = F.fractional_max_pool2d if dims == 2 else F.fractional_max_pool3d
    x = torch.randn(2, 3, *(9, 8, 7)[:dims], dtype=torch.float64)
    u = torch.rand(2, 3, dims, dtype=torch.float64)
    out, places = pool(x, 2, output_size=4, return_indices=True, _random_samples=u)
    for n, c in itertools.product(range(2), range(3)):
        starts = []
        for d in range(dims):
            size, draw = x.shape[2 + d], u[n, c, dims - 1 - d if dims == 2 else d].item()
            step = (size - 2) / 3
            starts.append(
                [int((i + draw) * step) - int(draw * step) for i in range(3)] + [size - 2]
            )
        for cell in itertools.product(range(4), repeat=dims):
            window = x[n, c][
                tuple(slice(s[i], s[i] + 2) for s, i in zip(starts, cell, strict=True))
            ]
            assert out[(n, c, *cell)] == window.max()
            assert x[n, c].reshape(-1)[places[(n, c, *cell)]] == window.max()


def test_fractional_pooling_gradients():
    x = torch.randn(1, 2, 7, 6, dtype=torch.float64, requires_grad=True)
    u = torch.rand(1, 2, 2, dtype=torch.float64)
    call = lambda t: F.fractional_max_pool2d(t, 2, output_size=3, _random_samples=u)
    torch.autograd.gradcheck(call, (x,))
    torch.autograd.gradgradcheck(call, (x,))
    layer = torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)
    assert layer(x).shape == (1, 2, 3, 3)
