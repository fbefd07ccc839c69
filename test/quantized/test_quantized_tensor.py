"""Quantized tensors: levels, what they mean, views, copies, files. References are NumPy float32
arithmetic in the documented order: times the reciprocal of the scale, plus the zero point, rounded
half to even, limited."""

import copy
import io

import numpy as np
import pytest

import torch

LIMITS = {
    torch.quint8: (0, 255),
    torch.qint8: (-128, 127),
    torch.qint32: (-(2**31), 2**31 - 1),
}


def levels(values: np.ndarray, scale: float, zero_point: float, dtype: torch.dtype) -> np.ndarray:
    inverse = np.float32(1) / np.float32(scale)
    scaled = values.astype(np.float32) * inverse + np.float32(zero_point)
    return np.clip(np.rint(scaled).astype(np.float64), *LIMITS[dtype]).astype(np.int64)


@pytest.mark.parametrize("dtype", list(LIMITS))
@pytest.mark.parametrize(("scale", "zero_point"), [(0.0173, 37), (0.25, 3), (1.5, 0)])
def test_quantize_per_tensor_values_give_rounded_levels(
    dtype: torch.dtype, scale: float, zero_point: int
) -> None:
    values = np.random.default_rng(0).normal(size=1003).astype(np.float32) * 3
    values[:40] = (np.arange(40) - 20) * np.float32(scale) / 2  # ties
    made = torch.quantize_per_tensor(torch.from_numpy(values), scale, zero_point, dtype)
    expected = levels(values, scale, zero_point, dtype)
    assert np.array_equal(made.int_repr().numpy(), expected)
    back = (expected.astype(np.float32) - np.float32(zero_point)) * np.float32(scale)
    assert np.array_equal(made.dequantize().numpy(), back)
    assert (made.q_scale(), made.q_zero_point()) == (scale, zero_point)
    assert made.dtype is dtype and made.is_quantized and made.qscheme() is torch.per_tensor_affine


def test_quantize_per_tensor_values_out_of_range_take_the_limits() -> None:
    values = torch.tensor([1e30, -1e30, float("nan"), float("inf"), -float("inf")])
    made = torch.quantize_per_tensor(values, 0.1, 10, torch.quint8)
    assert made.int_repr().tolist() == [255, 0, 255, 255, 0]
    # The same among whole registers and in what is left behind them.
    made = torch.quantize_per_tensor(values.repeat(15), 0.1, 10, torch.qint8)
    assert made.int_repr().tolist() == [127, -128, 127, 127, -128] * 15


@pytest.mark.parametrize("length", [1, 3, 16, 17, 63, 64, 65, 80, 131])
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
def test_quantize_per_tensor_any_length_gives_each_level(dtype: torch.dtype, length: int) -> None:
    low, high = LIMITS[dtype]
    expected = (np.arange(length) * 7) % (high - low + 1) + low
    values = torch.from_numpy(((expected - 3) * 0.5).astype(np.float32))
    made = torch.quantize_per_tensor(values, 0.5, 3, dtype)
    assert made.int_repr().tolist() == expected.tolist()


@pytest.mark.parametrize("length", [2, 15, 16, 31, 64, 100, 129])
def test_dynamic_grid_least_and_greatest_value_count_wherever_they_are(length: int) -> None:
    for place in range(length):
        values = torch.full((length,), 0.25)
        values[place], values[(place + 1) % length] = -3.0, 5.0
        made = torch.quantize_per_tensor_dynamic(values, torch.quint8, False)
        assert made.q_scale() == pytest.approx(8 / 255)
        values[place] = float("nan")
        with pytest.raises(RuntimeError, match="min should be less than or equal to max"):
            torch.quantize_per_tensor_dynamic(values, torch.quint8, False)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("real", [False, True])
def test_quantize_per_channel_axis_uses_scales_of_the_slice(axis: int, real: bool) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 4, 5)).astype(np.float32)
    n = values.shape[axis]
    scales = rng.uniform(0.01, 0.1, n).astype(np.float32)
    zeros = rng.uniform(0, 9, n).astype(np.float32) if real else rng.integers(0, 9, n)
    made = torch.quantize_per_channel(
        torch.from_numpy(values),
        torch.from_numpy(scales),
        torch.from_numpy(zeros),
        axis,
        torch.quint8,
    )
    for i in range(n):
        part = np.take(values, i, axis)
        expected = levels(part, scales[i], zeros[i], torch.quint8)
        assert np.array_equal(np.take(made.int_repr().numpy(), i, axis), expected)
    scheme = torch.per_channel_affine_float_qparams if real else torch.per_channel_affine
    assert made.qscheme() is scheme and made.q_per_channel_axis() == axis
    assert made.q_per_channel_scales().dtype is (torch.float32 if real else torch.float64)


def test_quantize_per_channel_four_bits_share_bytes_low_first() -> None:
    values = torch.tensor([[0.0, 1.0, 2.0], [3.0, 15.0, 99.0]])
    made = torch.quantize_per_channel(values, torch.ones(2), torch.zeros(2), 0, torch.quint4x2)
    assert made.int_repr().tolist() == [0 | 1 << 4, 2 | 3 << 4, 15 | 15 << 4]
    assert made.dequantize().tolist() == [[0, 1, 2], [3, 15, 15]]
    assert torch.equal(made.clone().dequantize(), made.dequantize())


@pytest.mark.parametrize("reduce_range", [False, True])
def test_quantize_per_tensor_dynamic_grid_covers_the_values(reduce_range: bool) -> None:
    values = torch.linspace(-3, 5, 101)
    made = torch.quantize_per_tensor_dynamic(values, torch.quint8, reduce_range)
    steps = 127 if reduce_range else 255
    assert made.q_scale() == pytest.approx(8 / steps)
    assert made.q_zero_point() == round(3 / (8 / steps))
    assert (made.dequantize() - values).abs().max() <= made.q_scale() / 2 + 1e-6


def test_dynamic_grid_of_zeros_has_a_usable_scale() -> None:
    assert torch._choose_qparams_per_tensor(torch.zeros(5)) == (0.1, 0)


def test_views_share_levels_and_grid() -> None:
    made = torch.quantize_per_tensor(torch.arange(12.0).view(3, 4), 0.5, 2, torch.quint8)
    for view, index in (
        (made[1], np.s_[1]),
        (made.t(), None),
        (made[:, 1:3], np.s_[:, 1:3]),
        (made.view(2, 6), None),
        (made.unsqueeze(0), None),
    ):
        assert view.q_scale() == 0.5 and view.untyped_storage().data_ptr() == (
            made.untyped_storage().data_ptr()
        )
        if index is not None:
            assert np.array_equal(view.dequantize(), made.dequantize().numpy()[index])
    made[0].fill_(7.0)
    assert made.dequantize()[0].tolist() == [7.0] * 4
    assert made._version > 0


def test_slice_per_channel_keeps_the_scales_of_its_part() -> None:
    scales = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    made = torch.quantize_per_channel(
        torch.ones(3, 4), scales, torch.tensor([1, 2, 3]), 0, torch.qint8
    )
    assert made[1].q_scale() == 0.2 and made[1].q_zero_point() == 2
    assert torch.equal(made[1:].q_per_channel_scales(), scales[1:])
    with pytest.raises(RuntimeError, match="only on uniformly quantized"):
        made.t()


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.flip(0),
        lambda t: t[torch.tensor([2, 0])],
        lambda t: t.sort(1).values,
        lambda t: t.topk(2).values,
        lambda t: torch.cat([t, t]),
        lambda t: t.max(),
        lambda t: t.repeat(2, 1),
        lambda t: t.relu(),
        lambda t: t.clone(),
        lambda t: t.permute(1, 0).contiguous(),
        lambda t: torch.nn.functional.max_pool2d(t.view(1, 1, 3, 4), 2),
        lambda t: torch.nn.functional.interpolate(t.view(1, 1, 3, 4), scale_factor=2),
        lambda t: t.clamp(-0.5, 0.5),
        lambda t: t.view(-1, 2).mean(1),
    ],
)
def test_operators_of_values_equal_those_of_the_dequantized_tensor(function: object) -> None:
    values = torch.from_numpy(np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32))
    made = torch.quantize_per_tensor(values, 0.125, 100, torch.quint8)
    result = function(made)
    assert result.is_quantized and result.q_scale() == 0.125
    expected = np.rint(function(made.dequantize()).numpy() / 0.125) * 0.125
    assert np.array_equal(result.dequantize().numpy(), expected)


def test_relu_of_32_bit_levels_is_exact() -> None:
    ints = torch.tensor([2**31 - 1, -(2**31), 5, 7], dtype=torch.int32)
    made = torch._make_per_tensor_quantized_tensor(ints, 0.1, 6)
    assert made.relu().int_repr().tolist() == [2**31 - 1, 6, 6, 7]


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("count", [10, 1000])
def test_bounded_functions_use_the_grid_of_their_range(
    name: str, dtype: torch.dtype, count: int
) -> None:
    made = torch.quantize_per_tensor(torch.linspace(-2, 2, count), 0.02, 5, dtype)
    result = getattr(torch, name)(made)
    scale = {"sigmoid": 1 / 256, "tanh": 2 / 256}[name]
    zero = {"sigmoid": LIMITS[dtype][0], "tanh": LIMITS[dtype][0] + 128}[name]
    assert (result.q_scale(), result.q_zero_point()) == (scale, zero)
    values = made.dequantize().numpy().astype(np.float64)
    exact = 1 / (1 + np.exp(-values)) if name == "sigmoid" else np.tanh(values)
    assert np.abs(result.dequantize().numpy() - exact).max() <= scale * 0.51


def test_comparison_uses_values_of_both_grids() -> None:
    a = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8)
    b = torch.quantize_per_tensor(torch.tensor([1.0, 3.0]), 0.25, 7, torch.quint8)
    assert (a == b).tolist() == [True, False] and (a < b).tolist() == [False, True]
    assert not torch.equal(a, b) and torch.equal(a, a.clone())


def test_copy_between_values_and_levels_rounds() -> None:
    made = torch._empty_affine_quantized([3], scale=0.5, zero_point=1, dtype=torch.quint8)
    made.copy_(torch.tensor([0.0, 0.6, 9.0]))
    assert made.int_repr().tolist() == [1, 2, 19]
    assert torch.zeros(3).copy_(made).tolist() == [0.0, 0.5, 9.0]
    other = torch.quantize_per_tensor(torch.ones(3), 0.1, 3, torch.quint8)
    assert made.copy_(other).q_scale() == 0.1


def test_repr_names_scheme_scale_and_zero_point() -> None:
    text = repr(torch.quantize_per_tensor(torch.ones(2), 0.5, 3, torch.qint8))
    assert text == (
        "tensor([1., 1.], size=(2,), dtype=torch.qint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.5, zero_point=3)"
    )


def _kinds() -> list[torch.Tensor]:
    values = torch.arange(12.0).view(3, 4)
    zeros = torch.tensor([1, 2, 3])
    return [
        torch.quantize_per_tensor(values, 0.5, 3, torch.quint8),
        torch.quantize_per_tensor(values, 0.5, 3, torch.qint32).t(),
        torch.quantize_per_channel(values, torch.rand(3) + 0.1, zeros, 0, torch.qint8),
        torch.quantize_per_channel(values, torch.rand(3) + 0.1, zeros.float(), 0, torch.quint4x2),
    ]


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("weights_only", [False, True])
@pytest.mark.parametrize("zipped", [False, True])
def test_save_and_load_keep_levels_and_grid(kind: int, weights_only: bool, zipped: bool) -> None:
    made = _kinds()[kind]
    file = io.BytesIO()
    torch.save({"t": made, "again": made}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = torch.load(file, weights_only=weights_only)
    back = loaded["t"]
    assert loaded["again"] is back or torch.equal(loaded["again"], made)
    assert torch.equal(back, made) and back.dtype is made.dtype
    assert back.stride() == made.stride() and back.qscheme() is made.qscheme()


@pytest.mark.parametrize("kind", range(4))
def test_deepcopy_has_memory_of_its_own(kind: int) -> None:
    made = _kinds()[kind]
    other = copy.deepcopy(made)
    assert torch.equal(other, made)
    assert other.untyped_storage().data_ptr() != made.untyped_storage().data_ptr()


def test_wrong_calls_raise_errors_that_name_the_reason() -> None:
    values = torch.ones(2, 3)
    made = torch.quantize_per_tensor(values, 0.1, 3, torch.quint8)
    with pytest.raises(RuntimeError, match="zero_point 300 is above upper bound"):
        torch.quantize_per_tensor(values, 0.1, 300, torch.quint8)
    with pytest.raises(RuntimeError, match="only works on Float Tensor"):
        torch.quantize_per_tensor(values.double(), 0.1, 3, torch.quint8)
    with pytest.raises(RuntimeError, match="quantized dtype"):
        torch.quantize_per_tensor(values, 0.1, 3, torch.uint8)
    with pytest.raises(RuntimeError, match="length of scales must equal"):
        torch.quantize_per_channel(
            values, torch.ones(3), torch.zeros(3, dtype=torch.long), 0, torch.quint8
        )
    with pytest.raises(NotImplementedError, match="q_scale"):
        values.q_scale()
    with pytest.raises(NotImplementedError, match="QuantizedCPU"):
        made + made
    with pytest.raises(RuntimeError, match="per channel"):
        made.q_per_channel_axis()
