"""Products with 8-bit and 4-bit weights that carry scales, against float64, and scaled_mm."""

import numpy as np
import pytest

import torch
import torch.nn.functional as F

BOUNDS = {torch.float32: 3e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}


def dequantized(levels, pairs, group):
    scale, zero = pairs.double().repeat_interleave(group, 0).unbind(-1)
    return (levels.double() - 8) * scale.t() + zero.t()


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("outputs", [16, 64, 112, 192])
@pytest.mark.parametrize("group", [32, 64, 128, 256])
def test_int4_product_equals_the_product_of_the_values(dtype, outputs, group):
    levels = torch.randint(0, 16, (outputs, 256), dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(levels, 2)
    assert packed.shape == (outputs, 128) and packed.dtype is torch.uint8
    pairs = torch.rand(256 // group, outputs, 2).to(dtype)
    for rows in (0, 1, 5, 8):
        x = torch.randn(rows, 256).to(dtype)
        out = torch._weight_int4pack_mm_for_cpu(x, packed, group, pairs)
        expected = x.double().numpy() @ dequantized(levels, pairs, group).numpy().T
        assert out.dtype is dtype and out.shape == (rows, outputs)
        error = np.abs(out.double().numpy() - expected).max(initial=0)
        assert error <= BOUNDS[dtype] * np.abs(expected).max(initial=1)


def test_int4_packing_keeps_every_level_once():
    levels = torch.arange(112 * 4, dtype=torch.int32).view(112, 4) % 16
    packed = torch._convert_weight_to_int4pack_for_cpu(levels, 1)
    both = torch.cat([packed.flatten() & 15, packed.flatten() >> 4])
    assert (torch.bincount(both.long()) == torch.bincount(levels.flatten().long())).all()
    # What is left after whole blocks: neighbours share a byte, the even output in its low half.
    last = packed.flatten()[-8:].long()
    assert (last & 15).tolist() == levels[96::2, 3].tolist()
    assert (last >> 4).tolist() == levels[97::2, 3].tolist()


def test_int4_arguments_that_do_not_fit_raise():
    levels = torch.zeros(64, 64, dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(levels, 1)
    x, pairs = torch.randn(2, 64), torch.rand(2, 64, 2)
    cases = [
        (lambda: torch._convert_weight_to_int4pack_for_cpu(levels[:17], 1), "dividable by 16"),
        (lambda: torch._convert_weight_to_int4pack_for_cpu(levels[:, :3], 1), "dividable by 2"),
        (lambda: torch._convert_weight_to_int4pack_for_cpu(levels.long(), 1), "to be kInt"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x.double(), packed, 32, pairs), "32-bit or 16"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 16, pairs), "got 16"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x[:, :32], packed, 32, pairs), "values a row"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 32, pairs[:1]), "for each group"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 32, pairs[..., :1]), "3d tensor"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 32, pairs.half()), "scalar type"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_shapes_on_meta():
    packed = torch._convert_weight_to_int4pack_for_cpu(
        torch.zeros(64, 64, dtype=torch.int32, device="meta"), 1
    )
    assert packed.shape == (64, 32) and packed.dtype is torch.uint8
    pairs = torch.zeros(2, 64, 2, device="meta")
    out = torch._weight_int4pack_mm_for_cpu(torch.zeros(3, 64, device="meta"), packed, 32, pairs)
    assert out.shape == (3, 64)
    levels = torch.zeros(4, 8, dtype=torch.int8, device="meta")
    assert torch._int_mm(levels, levels.t()).dtype is torch.int32


@pytest.mark.parametrize("rows", [1, 4, 7, 19, 130])
@pytest.mark.parametrize("inner", [3, 64, 100])
def test_int_mm_of_any_size_is_exact(rows, inner):
    a = torch.randint(-128, 128, (rows, inner)).to(torch.int8)
    b = torch.randint(-128, 128, (inner, 37)).to(torch.int8)
    for left in (a, a.view(torch.uint8)):
        expected = left.numpy().astype(np.int64) @ b.numpy().astype(np.int64)
        for right in (b, b.t().contiguous().t()):
            assert (torch._int_mm(left, right).numpy() == expected).all()


@pytest.mark.parametrize("inner", [5, 16, 100])
def test_int8_product_of_any_size(inner):
    weight = torch.randint(-128, 128, (11, inner)).to(torch.int8)
    scales = torch.rand(11)
    for rows in (1, 3, 10):
        x = torch.randn(rows, inner)
        expected = x.double().numpy() @ weight.double().numpy().T * scales.double().numpy()
        out = torch._weight_int8pack_mm(x, weight, scales)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=2e-3)


def scaled(shape):
    return torch.randn(shape).to(torch.float8_e4m3fn)


def test_scaled_mm_by_recipes():
    a, b = scaled((16, 32)), scaled((24, 32)).t()
    rows, columns = torch.rand(16, 1), torch.rand(1, 24)
    product = a.double().numpy() @ b.double().numpy()
    for scale_a, scale_b, kind in (
        (torch.tensor(2.0), torch.tensor(3.0), F.ScalingType.TensorWise),
        (rows, columns, F.ScalingType.RowWise),
    ):
        out = F.scaled_mm(a, b, scale_a, kind, scale_b, kind, output_dtype=torch.float32)
        expected = product * scale_a.double().numpy() * scale_b.double().numpy()
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert F.scaled_mm(a, b, [rows], [kind], [columns], [kind]).dtype is torch.bfloat16
    with pytest.raises(ValueError, match="Invalid scaling"):
        F.scaled_mm(a, b, rows, F.ScalingType.BlockWise1x16, columns, F.ScalingType.RowWise)
    with pytest.raises(NotImplementedError, match="SWIZZLE"):
        F.scaled_mm(a, b, rows, kind, columns, kind, F.SwizzleType.SWIZZLE_32_4_4)


@pytest.mark.parametrize("flat", ["left", "right", "both", "none"])
def test_scaled_grouped_mm_scales_rows_and_columns(flat):
    ends, kind = torch.tensor([4, 8, 16], dtype=torch.int32), F.ScalingType.RowWise
    bounds = [(0, 4), (4, 8), (8, 16)]
    a = scaled((16, 16) if flat in ("left", "both") else (3, 16, 16))
    b = scaled((16, 16) if flat in ("right", "both") else (3, 16, 16))
    scale_a = torch.rand(48 if flat == "both" else a.shape[:-1])
    scale_b = torch.rand(48 if flat == "both" else (16,) if flat == "right" else (3, 16))
    x, y = a.double().numpy(), b.double().numpy()
    s, t = scale_a.double().numpy(), scale_b.double().numpy()
    if flat == "left":
        parts = [(x[i:j] @ y[g]) * s[i:j, None] * t[g] for g, (i, j) in enumerate(bounds)]
        expected = np.concatenate(parts)
    elif flat == "right":
        parts = [(x[g] @ y[:, i:j]) * s[g][:, None] * t[i:j] for g, (i, j) in enumerate(bounds)]
        expected = np.concatenate(parts, axis=1)
    elif flat == "both":
        s, t = s.reshape(3, 16, 1), t.reshape(3, 1, 16)
        expected = np.stack([x[:, i:j] @ y[i:j] for i, j in bounds]) * s * t
    else:
        expected = (x @ y) * s[..., None] * t[:, None]
    out = F.scaled_grouped_mm(
        a,
        b,
        scale_a,
        kind,
        scale_b,
        kind,
        offs=None if flat == "none" else ends,
        output_dtype=torch.float32,
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)
