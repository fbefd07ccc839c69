"""torch.ops.quantized against NumPy: exact integer sums, one rounding at the end."""

import copy

import numpy as np
import pytest

import torch

ops = torch.ops.quantized
RNG = np.random.default_rng


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(RNG(seed).normal(size=shape).astype(np.float32))


def weight_of(n: int, k: int, kind: str) -> torch.Tensor:
    w = normal(n, k, seed=3)
    if kind == "per channel":
        scales = w.abs().amax(1).double() / 127
        zeros = torch.zeros(n, dtype=torch.long)
        return torch.quantize_per_channel(w, scales, zeros, 0, torch.qint8)
    return torch.quantize_per_tensor(w, 0.03, 5 if kind == "shifted" else 0, torch.qint8)


def sums(x: torch.Tensor, w: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Exact sums of products of centred levels, and the scale of each output."""
    if w.qscheme() is torch.per_tensor_affine:
        zeros, scales = w.q_zero_point(), np.full(w.size(0), w.q_scale())
    else:
        zeros, scales = w.q_per_channel_zero_points().numpy()[:, None], w.q_per_channel_scales()
    left = x.int_repr().numpy().astype(np.int64) - x.q_zero_point()
    right = w.int_repr().numpy().astype(np.int64) - zeros
    return left @ right.T, np.asarray(scales) * x.q_scale()


@pytest.mark.parametrize("kind", ["per tensor", "per channel", "shifted"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 7, 5), (5, 64, 33), (50, 101, 130), (0, 4, 3)])
@pytest.mark.parametrize("relu", [False, True])
def test_linear_levels_equal_rounded_exact_sums(
    kind: str, m: int, k: int, n: int, relu: bool
) -> None:
    w, b = weight_of(n, k, kind), normal(n, seed=4)
    x = torch.quantize_per_tensor(normal(m, k), 0.02, 120, torch.quint8)
    packed = ops.linear_prepack(w, b)
    made = (ops.linear_relu if relu else ops.linear)(x, packed, 0.2, 100)
    exact, scales = sums(x, w)
    values = exact * scales + b.numpy()
    expected = np.clip(np.rint(values / 0.2) + 100, 100 if relu else 0, 255)
    difference = np.abs(made.int_repr().numpy() - expected)
    assert difference.max(initial=0) <= 1 and (difference > 0).mean() < 0.01 if m else True
    assert (made.q_scale(), made.q_zero_point(), made.shape) == (0.2, 100, (m, n))


@pytest.mark.parametrize("kind", ["per tensor", "per channel", "shifted"])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_dynamic_equals_product_of_dequantized_operands(kind: str, bias: bool) -> None:
    w = weight_of(33, 70, kind)
    b = normal(33, seed=5) if bias else None
    x = normal(3, 11, 70)
    made = ops.linear_dynamic(x, ops.linear_prepack(w, b))
    rounded = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
    exact, scales = sums(rounded, w)
    expected = exact * scales + (b.numpy() if bias else 0)
    assert made.shape == (3, 11, 33)
    assert np.allclose(made.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_linear_signed_activations_equal_unsigned_ones() -> None:
    w, x = weight_of(9, 20, "per channel"), normal(6, 20)
    packed = ops.linear_prepack(w, None)
    unsigned = ops.linear(torch.quantize_per_tensor(x, 0.02, 120, torch.quint8), packed, 0.1, 130)
    signed = ops.linear(torch.quantize_per_tensor(x, 0.02, -8, torch.qint8), packed, 0.1, 2)
    assert torch.equal(unsigned.int_repr().int() - 128, signed.int_repr().int())


def test_packed_weight_copies_and_gives_back_what_it_was_made_of() -> None:
    w, b = weight_of(4, 6, "per channel"), normal(4)
    packed = copy.deepcopy(ops.linear_prepack(w, b))
    weight, bias = ops.linear_unpack(packed)
    assert torch.equal(weight, w) and torch.equal(bias, b)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_conv_levels_equal_rounded_float64_convolution(groups: int, dims: int) -> None:
    x = normal(2, 8, *(7, 6, 5)[:dims])
    w = normal(6, 8 // groups, *(3, 2, 3)[:dims], seed=1)
    scales = w.flatten(1).abs().amax(1).double() / 127
    qw = torch.quantize_per_channel(w, scales, torch.zeros(6, dtype=torch.long), 0, torch.qint8)
    qx = torch.quantize_per_tensor(x, 0.02, 120, torch.quint8)
    stride, padding, dilation = [2] * dims, [1] * dims, [1] * dims
    b = normal(6, seed=2)
    pack = getattr(ops, f"conv{dims}d_prepack")
    packed = pack(qw, b, stride, padding, dilation, groups)
    made = getattr(ops, f"conv{dims}d")(qx, packed, 0.2, 100)
    exact = getattr(torch, f"conv{dims}d")(
        qx.dequantize().double(), qw.dequantize().double(), b.double(), stride, padding, 1, groups
    )
    expected = np.clip(np.rint(exact.numpy() / 0.2) + 100, 0, 255)
    difference = np.abs(made.int_repr().numpy() - expected)
    assert difference.max() <= 1 and (difference > 0).mean() < 0.01
    weight, bias = getattr(ops, f"conv{dims}d_unpack")(packed)
    assert torch.equal(weight, qw) and torch.equal(bias, b)


def test_conv_transposed_and_dynamic_equal_float_convolutions() -> None:
    x, b = normal(2, 4, 5, 6), normal(6)
    qx = torch.quantize_per_tensor(x, 0.02, 120, torch.quint8)
    qw = torch.quantize_per_tensor(normal(4, 3, 3, 3), 0.02, 0, torch.qint8)
    packed = ops.conv_transpose2d_prepack(qw, b, [2, 1], [1, 1], [0, 0], [1, 1], 2)
    made = ops.conv_transpose2d(qx, packed, 0.2, 100)
    exact = torch.conv_transpose2d(
        qx.dequantize().double(), qw.dequantize().double(), b.double(), [2, 1], [1, 1], 0, 2
    )
    expected = np.clip(np.rint(exact.numpy() / 0.2) + 100, 0, 255)
    assert np.abs(made.int_repr().numpy() - expected).max() <= 1
    qw = torch.quantize_per_tensor(normal(6, 4, 3, 3), 0.02, 0, torch.qint8)
    packed = ops.conv2d_prepack(qw, b, [1, 1], [1, 1], [1, 1], 1)
    made = ops.conv2d_dynamic(x, packed)
    rounded = torch.quantize_per_tensor_dynamic(x, torch.quint8, False).dequantize().double()
    exact = torch.conv2d(rounded, qw.dequantize().double(), b.double(), 1, 1)
    assert np.allclose(made.numpy(), exact.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["add", "mul", "add_relu", "mul_relu"])
def test_pairwise_operators_round_once(name: str) -> None:
    a = torch.quantize_per_tensor(normal(50), 0.02, 120, torch.quint8)
    b = torch.quantize_per_tensor(normal(50, seed=1), 0.03, 100, torch.quint8)
    made = getattr(ops, name)(a, b, 0.05, 90)
    left, right = a.dequantize().double().numpy(), b.dequantize().double().numpy()
    exact = left + right if name.startswith("add") else left * right
    expected = np.clip(np.rint(exact / 0.05) + 90, 90 if "relu" in name else 0, 255)
    assert np.abs(made.int_repr().numpy() - expected).max() <= 1
    out = torch._empty_affine_quantized([50], scale=0.05, zero_point=90, dtype=torch.quint8)
    getattr(ops, f"{name}_out")(a, b, out)
    assert torch.equal(out, made)


@pytest.mark.parametrize("number", [2.5, -3.0, 10.0])
def test_arithmetic_with_a_number_changes_the_grid(number: float) -> None:
    a = torch.quantize_per_tensor(normal(50), 0.02, 120, torch.quint8)
    for made, exact in (
        (ops.add(a, number), a.dequantize() + number),
        (ops.mul(a, number), a.dequantize() * number),
    ):
        assert (made.dequantize() - exact).abs().max() <= made.q_scale() * 0.51


@pytest.mark.parametrize("bits", ["byte", "4bit", "2bit"])
def test_embedding_rows_unpack_to_within_half_a_step(bits: str) -> None:
    table = normal(10, 16)
    packed = getattr(ops, f"embedding_bag_{bits}_prepack")(table)
    values = getattr(ops, f"embedding_bag_{bits}_unpack")(packed)
    top = {"byte": 255, "4bit": 15, "2bit": 3}[bits]
    step = (table.amax(1) - table.amin(1)) / top
    assert ((values - table).abs().amax(1) <= step * 0.52 + 2e-3).all()
    index, offsets = torch.tensor([0, 3, 5, 9, 1]), torch.tensor([0, 2])
    bags = getattr(ops, f"embedding_bag_{bits}_rowwise_offsets")(packed, index, offsets)
    assert torch.allclose(bags, torch.stack([values[[0, 3]].sum(0), values[[5, 9, 1]].sum(0)]))


def test_embedding_searched_ranges_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="optimized_qparams"):
        ops.embedding_bag_4bit_prepack(normal(2, 4), True)


def test_linear_wrong_shapes_raise() -> None:
    packed = ops.linear_prepack(weight_of(4, 6, "per tensor"), None)
    with pytest.raises(RuntimeError, match="number of columns"):
        ops.linear_dynamic(torch.ones(2, 5), packed)
    with pytest.raises(RuntimeError, match="qint8"):
        ops.linear_prepack(torch.quantize_per_tensor(torch.ones(2, 2), 1, 0, torch.quint8), None)
