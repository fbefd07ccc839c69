"""Normalisations against float64 formulas, their gradients against differences."""

import numpy as np
import pytest
from tensor_support import numeric_gradient

import torch
import torch.nn.functional as F

aten = torch.ops.aten
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def reference(x, dims, eps=1e-5):
    mean = x.mean(axis=dims, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=dims, keepdims=True) + eps)


def close(got, want, dtype):
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)


# ---- layer norm and RMS norm
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(
    "shape, last", [((5, 7), 1), ((2, 3, 4, 33), 2), ((3, 5000), 1), ((130,), 1)]
)
def test_layer_norm_matches_formula(dtype, shape, last):
    torch.manual_seed(0)
    x = (torch.randn(shape, dtype=torch.float64) * 3 + 1).to(dtype)
    part = shape[-last:]
    w, b = torch.randn(part).to(dtype), torch.randn(part).to(dtype)
    dims = tuple(range(len(shape) - last, len(shape)))
    plain = reference(x.double().numpy(), dims)
    close(F.layer_norm(x, part), plain, dtype)
    close(F.layer_norm(x, part, w, b), plain * w.double().numpy() + b.double().numpy(), dtype)
    close(F.layer_norm(x, part, None, b), plain + b.double().numpy(), dtype)
    square = (x.double().numpy() ** 2).mean(axis=dims, keepdims=True)
    plain = x.double().numpy() / np.sqrt(square + 1e-3)
    close(F.rms_norm(x, part, eps=1e-3), plain, dtype)
    close(F.rms_norm(x, part, w, 1e-3), plain * w.double().numpy(), dtype)


def test_layer_norm_keeps_precision_far_from_zero():
    x = torch.randn(4, 9000, dtype=torch.float64) + 1e4
    want = reference(x.float().double().numpy(), (1,))
    assert np.abs(F.layer_norm(x.float(), (9000,)).double().numpy() - want).max() < 2e-3


def test_layer_norm_of_views_and_empty():
    x = torch.randn(6, 4, 5)
    assert torch.equal(
        F.layer_norm(x.transpose(0, 1), (5,)), F.layer_norm(x.transpose(0, 1).contiguous(), (5,))
    )
    assert F.layer_norm(torch.empty(0, 4), (4,)).shape == (0, 4)
    assert F.layer_norm(torch.empty(3, 0), (0,)).shape == (3, 0)
    out, mean, rstd = torch.native_layer_norm(x, (5,), None, None, 1e-5)
    assert mean.shape == rstd.shape == (6, 4, 1)
    assert torch.allclose(mean, x.mean(-1, keepdim=True), atol=1e-6)
    meta = torch.native_layer_norm(x.to("meta"), (5,), None, None, 1e-5)
    assert [m.shape for m in meta] == [out.shape, mean.shape, rstd.shape]


def test_half_input_with_float_parameters():
    x = torch.randn(3, 8).to(torch.bfloat16)
    out, mean, rstd = torch.native_layer_norm(x, (8,), torch.ones(8), torch.zeros(8), 1e-5)
    assert (out.dtype, mean.dtype, rstd.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    with pytest.raises(RuntimeError, match="mixed dtype"):
        F.layer_norm(torch.randn(3, 8), (8,), torch.ones(8, dtype=torch.float64))


def test_layer_norm_gradients():
    torch.manual_seed(1)
    x, g = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 3, 5, dtype=torch.float64)
    w, b = torch.randn(5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    _, mean, rstd = torch.native_layer_norm(x, (5,), w, b, 1e-5)
    gx, gw, gb = aten.native_layer_norm_backward(g, x, [5], mean, rstd, w, b, [True] * 3)
    assert torch.allclose(
        gx, numeric_gradient(lambda v: F.layer_norm(v, (5,), w, b), x, g), atol=1e-7
    )
    assert torch.allclose(
        gw, numeric_gradient(lambda v: F.layer_norm(x, (5,), v, b), w, g), atol=1e-7
    )
    assert torch.allclose(gb, g.sum((0, 1)))
    gx, gw, gb = aten.native_layer_norm_backward(g, x, [5], mean, rstd, w, b, [False, True, False])
    assert gx is None and gb is None and gw.shape == (5,)


def test_rms_norm_gradients():
    torch.manual_seed(1)
    x, g = torch.randn(6, 5, dtype=torch.float64), torch.randn(6, 5, dtype=torch.float64)
    w = torch.randn(5, dtype=torch.float64)
    _, rstd = aten._fused_rms_norm(x, [5], w, 1e-3)
    gx, gw = aten._fused_rms_norm_backward(g, x, [5], rstd, w, [True, True])
    assert torch.allclose(
        gx, numeric_gradient(lambda v: F.rms_norm(v, (5,), w, 1e-3), x, g), atol=1e-7
    )
    assert torch.allclose(
        gw, numeric_gradient(lambda v: F.rms_norm(x, (5,), v, 1e-3), w, g), atol=1e-7
    )


# ---- batch norm
def images(dtype=torch.float64):
    torch.manual_seed(2)
    return (torch.randn(4, 6, 5, 7, dtype=torch.float64) * 2 + 3).to(dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("layout", ["planes", "channels_last", "matrix", "view"])
def test_batch_norm_training_matches_formula(dtype, layout):
    x = images(dtype)
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    elif layout == "matrix":
        x = x[:, :, 0, 0].contiguous()
    elif layout == "view":
        x = x.transpose(2, 3)
    dims = (0, *range(2, x.dim()))
    shape = (1, 6) + (1,) * (x.dim() - 2)
    w, b = torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    mean, var = torch.zeros(6, dtype=dtype), torch.ones(6, dtype=dtype)
    got = F.batch_norm(x, mean, var, w, b, True, 0.25)
    reals = x.double().numpy()
    want = reference(reals, dims) * w.double().view(shape).numpy() + b.double().view(shape).numpy()
    close(got, want, dtype)
    close(mean, 0.25 * reals.mean(dims), dtype)
    close(var, 0.75 + 0.25 * reals.var(dims, ddof=1), dtype)
    if layout == "channels_last":
        assert got.is_contiguous(memory_format=torch.channels_last)


def test_batch_norm_evaluation_uses_running_statistics():
    x, mean, var = (
        images(),
        torch.randn(6, dtype=torch.float64),
        torch.rand(6, dtype=torch.float64) + 0.5,
    )
    want = (x - mean.view(6, 1, 1)) / torch.sqrt(var.view(6, 1, 1) + 1e-5)
    before = mean.clone(), var.clone()
    assert torch.allclose(F.batch_norm(x, mean, var), want)
    assert torch.equal(mean, before[0]) and torch.equal(var, before[1])


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("train", [False, True])
def test_batch_norm_gradients(channels_last, train):
    torch.manual_seed(4)
    x, g = (
        torch.randn(2, 3, 2, 3, dtype=torch.float64),
        torch.randn(2, 3, 2, 3, dtype=torch.float64),
    )
    w, b = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    mean, var = torch.randn(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64) + 1
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)

    def forward(v, weight):
        return F.batch_norm(v, mean.clone(), var.clone(), weight, b, train)

    _, save_mean, save_invstd = torch.native_batch_norm(
        x, w, b, mean.clone(), var.clone(), train, 0.1, 1e-5
    )
    gx, gw, gb = aten.native_batch_norm_backward(
        g, x, w, mean, var, save_mean, save_invstd, train, 1e-5, [True] * 3
    )
    assert torch.allclose(
        gx, numeric_gradient(lambda v: forward(v, w), x.contiguous(), g), atol=1e-7
    )
    assert torch.allclose(gw, numeric_gradient(lambda v: forward(x, v), w, g), atol=1e-7)
    assert torch.allclose(gb, g.sum((0, 2, 3)))


# ---- group and instance norm
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_group_norm_matches_formula(dtype):
    x = images(dtype)
    w, b = torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    rows = reference(x.double().numpy().reshape(4, 3, -1), (2,)).reshape(4, 6, 5, 7)
    want = rows * w.double().view(6, 1, 1).numpy() + b.double().view(6, 1, 1).numpy()
    close(F.group_norm(x, 3), rows, dtype)
    close(F.group_norm(x, 3, w, b), want, dtype)
    last = x.contiguous(memory_format=torch.channels_last)
    close(F.group_norm(last, 3, w, b), want, dtype)
    flat = x[:, :, 0, 0].contiguous()
    rows = reference(flat.double().numpy().reshape(4, 2, 3), (2,)).reshape(4, 6)
    close(F.group_norm(flat, 2, w, b), rows * w.double().numpy() + b.double().numpy(), dtype)


def test_group_norm_gradients():
    torch.manual_seed(5)
    x, g = torch.randn(2, 4, 3, dtype=torch.float64), torch.randn(2, 4, 3, dtype=torch.float64)
    w, b = torch.randn(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    _, mean, rstd = torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5)
    gx, gw, gb = aten.native_group_norm_backward(g, x, mean, rstd, w, 2, 4, 3, 2, [True] * 3)
    assert torch.allclose(gx, numeric_gradient(lambda v: F.group_norm(v, 2, w, b), x, g), atol=1e-7)
    assert torch.allclose(gw, numeric_gradient(lambda v: F.group_norm(x, 2, v, b), w, g), atol=1e-7)
    assert torch.allclose(gb, g.sum((0, 2)))


def test_instance_norm_matches_formula_and_updates_statistics():
    x = images()
    assert np.allclose(F.instance_norm(x).numpy(), reference(x.numpy(), (2, 3)))
    mean, var = torch.zeros(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    F.instance_norm(x, mean, var, momentum=1.0)
    assert np.allclose(mean.numpy(), x.numpy().mean((0, 2, 3)))
    assert np.allclose(var.numpy(), x.numpy().var((2, 3), ddof=1).mean(0))


def test_local_response_norm_matches_a_loop():
    x = torch.randn(2, 5, 3, 4, dtype=torch.float64)
    want = torch.empty_like(x)
    for c in range(5):
        low, high = max(0, c - 1), min(5, c + 2)
        mean = (x[:, low:high] ** 2).sum(1) / 3
        want[:, c] = x[:, c] / (1.5 + 0.3 * mean) ** 0.75
    assert torch.allclose(F.local_response_norm(x, 3, alpha=0.3, beta=0.75, k=1.5), want)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda: F.layer_norm(torch.ones(2, 4), (3,)), RuntimeError, "Given normalized_shape="),
        (lambda: F.layer_norm(torch.ones(2, 4), ()), RuntimeError, "at least 1-dimensional"),
        (
            lambda: F.layer_norm(torch.ones(2, 4), (4,), torch.ones(3)),
            RuntimeError,
            "Expected weight to be of same shape as normalized_shape",
        ),
        (
            lambda: F.layer_norm(torch.ones(2, 4, dtype=torch.int64), (4,)),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (
            lambda: F.batch_norm(torch.ones(2, 4), None, None),
            RuntimeError,
            "running_mean must be defined",
        ),
        (
            lambda: F.batch_norm(torch.ones(2, 4), torch.ones(3), torch.ones(3)),
            RuntimeError,
            "running_mean should contain 4 elements not 3",
        ),
        (
            lambda: F.batch_norm(torch.ones(1, 4), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel when training",
        ),
        (lambda: F.group_norm(torch.ones(2, 4), 3), RuntimeError, "divisible by num_groups"),
        (
            lambda: torch.group_norm(torch.ones(2, 4), 0),
            RuntimeError,
            "num groups to be greater than 0",
        ),
        (lambda: F.instance_norm(torch.ones(2, 4, 1)), ValueError, "more than 1 spatial element"),
        (
            lambda: torch.native_group_norm(torch.ones(2, 4), None, None, 2, 4, 3, 2, 1e-5),
            RuntimeError,
            "number of elements of input",
        ),
    ],
)
def test_norm_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


def test_results_do_not_depend_on_the_number_of_threads():
    x, w = torch.randn(64, 16, 20, 20), torch.randn(16)
    rows, scale = torch.randn(300, 700), torch.randn(700)
    results = []
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            last = x.contiguous(memory_format=torch.channels_last)
            _, mean, rstd = torch.native_layer_norm(rows, (700,), scale, scale, 1e-5)
            results.append(
                [
                    F.batch_norm(x, None, None, w, w, True),
                    F.batch_norm(last, None, None, w, w, True),
                    F.group_norm(x, 4, w, w),
                    *aten.native_layer_norm_backward(
                        rows, rows, [700], mean, rstd, scale, scale, [True] * 3
                    ),
                ]
            )
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
