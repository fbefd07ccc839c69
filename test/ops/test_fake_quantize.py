"""Fake quantisation against its formula, by tensor and by channel."""

import numpy as np
import pytest

import torch


def shown(t):
    return t.grad_fn.name()


def on_grid(x, scale, zero, low, high):
    level = np.rint(x * (np.float32(1) / np.float32(scale))) + zero
    within = (level >= low) & (level <= high)
    return (np.clip(level, low, high) - zero).astype(np.float32) * np.float32(scale), within


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fake_quantisation_by_tensor(dtype):
    x = torch.linspace(-3, 4, 57).to(dtype).requires_grad_()
    exact = x.detach() if dtype == torch.float64 else x.detach().float()
    expected, within = on_grid(exact.numpy(), 0.3, 2, 0, 15)
    by_number = torch.fake_quantize_per_tensor_affine(x, 0.3, 2, 0, 15)
    zero = torch.tensor(2, dtype=torch.int32)
    by_tensor = torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.3), zero, 0, 15)
    for found in (by_number, by_tensor):
        assert torch.equal(found, torch.from_numpy(expected).to(dtype))
        (gradient,) = torch.autograd.grad(found.sum(), x)
        assert torch.equal(gradient, torch.from_numpy(within).to(dtype))
    assert shown(by_number) == "FakeQuantizePerTensorAffineCachemaskBackward0"
    assert shown(by_tensor) == "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0"


def test_fake_quantisation_by_channel():
    x = torch.linspace(-3, 4, 24).view(2, 3, 4).requires_grad_()
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32)
    for axis in (1, -2):
        found = torch.fake_quantize_per_channel_affine(x, scale, zero, axis, 0, 15)
        (gradient,) = torch.autograd.grad(found.sum(), x)
        for c in range(3):
            part = x.detach()[:, c].numpy()
            expected, within = on_grid(part, scale[c].item(), c, 0, 15)
            assert torch.equal(found[:, c], torch.from_numpy(expected))
            assert torch.equal(gradient[:, c], torch.from_numpy(within).float())


def test_fake_quantisation_of_what_is_no_number_and_of_nothing():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.75, 0.25])
    found = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7)
    assert found.tolist() == [-4.0, 3.5, -4.0, 1.0, 0.0]
    assert torch.fake_quantize_per_tensor_affine(torch.empty(0, 3), 0.5, 0, -8, 7).shape == (0, 3)
    assert torch.fake_quantize_per_tensor_affine(x.to("meta"), 0.5, 0, -8, 7).shape == (5,)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 8, 7), RuntimeError, "less"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 9, 0, 7), RuntimeError, "between"),
        (
            lambda x: torch.fake_quantize_per_tensor_affine(x.long(), 0.1, 3, 0, 7),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(3).double(), torch.zeros(3, dtype=torch.int32), 0, 0, 7
            ),
            RuntimeError,
            "Scale must be Float or BFloat16, found Double",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(2), torch.zeros(2, dtype=torch.int32), 0, 0, 7
            ),
            RuntimeError,
            "not consistent with input tensor",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(3), torch.zeros(3, dtype=torch.int32), 5, 0, 7
            ),
            IndexError,
            "Dimension out of range",
        ),
    ],
)
def test_fake_quantisation_refuses(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.ones(3, 4))


def test_fused_moving_average_first_call_takes_the_extremes_and_rounds_to_their_grid() -> None:
    x = torch.tensor([[-1.0, 0.5], [2.0, 0.25]])
    low, high = torch.tensor(float("inf")), torch.tensor(float("-inf"))
    scale, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
    on = torch.tensor([1])
    got = torch.fused_moving_avg_obs_fake_quant(
        x, on, on, low, high, scale, zero, 0.01, 0, 255, 0, False, False
    )
    step = 3.0 / 255
    assert (float(low), float(high), int(zero)) == (-1.0, 2.0, 85)
    assert abs(float(scale) - step) < 1e-7
    expected = np.round(x.numpy() / step) * step
    assert np.allclose(got.numpy(), expected, atol=1e-6)
    torch.fused_moving_avg_obs_fake_quant(
        2 * x, on, on, low, high, scale, zero, 0.5, 0, 255, 0, False, False
    )
    assert (float(low), float(high)) == (-1.5, 3.0)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize(
    ("bounds", "levels", "symmetric", "scale", "zero_point"),
    [
        # A symmetric grid has one more level below the middle than above.
        ((-1.3, 2.7), (-128, 127), True, 2.7 / 127, 0),
        ((-1.3, 2.7), (0, 255), True, 2.7 / 127, 128),
        ((-1.3, 2.7), (-127, 127), True, 2.7 / 127 * 255 / 254, 0),
        ((-3.3, 1.1), (-128, 127), True, 3.3 / 128, 0),
        # A range on one side of zero starts there.
        ((0.5, 2.2), (-127, 127), True, 2.2 / 254, -127),
        ((-3.0, -1.0), (0, 255), False, 3.0 / 255, 255),
        # The scale is rounded before the zero point is found: 127.49999 steps.
        ((-1.0, 1.0), (0, 255), False, 2.0 / 255, 127),
        ((0.0, 0.0), (0, 255), False, 0.1, 0),
    ],
)
def test_fused_moving_average_takes_the_grid_of_the_extremes(
    bounds, levels, symmetric, scale, zero_point, per_row
) -> None:
    low, high = torch.full((1,), float("inf")), torch.full((1,), float("-inf"))
    grid, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
    on = torch.tensor([1])
    torch.fused_moving_avg_obs_fake_quant(
        torch.tensor([bounds]), on, on, low, high, grid, zero, 0.01, *levels,
        0 if per_row else -1, per_row, symmetric,
    )  # fmt: skip
    assert grid.item() == pytest.approx(scale, rel=2e-7) and zero.item() == zero_point
