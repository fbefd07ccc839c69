"""Products with 4-bit weights on CUDA, against float64, and what does not fit."""

import numpy as np
import pytest
from cuda_support import cuda

import torch


def packed_levels(levels, tiles):
    """Levels as a user packs them: two to a byte, the even one above."""
    pairs = (levels[:, ::2] << 4 | levels[:, 1::2]).to(torch.uint8)
    return torch._convert_weight_to_int4pack(pairs.to(cuda), tiles)


def expected(x, levels, pairs, group):
    scale, zero = np.repeat(pairs.double().numpy(), group, axis=0).transpose(2, 1, 0)
    weight = (levels.double().numpy() - 8) * scale + zero
    return x.double().numpy() @ weight.T


@pytest.mark.parametrize("tiles", [2, 4, 8])
@pytest.mark.parametrize("group", [32, 64, 128, 256])
@pytest.mark.parametrize(("outputs", "inputs"), [(8, 256), (40, 512), (16, 1280)])
def test_a_product_of_a_few_rows_equals_the_product_of_the_values(tiles, group, outputs, inputs):
    random = torch.Generator().manual_seed(outputs + group)
    levels = torch.randint(0, 16, (outputs, inputs), generator=random)
    packed = packed_levels(levels, tiles)
    assert packed.shape == (outputs // 8, inputs // (16 * tiles), 32, tiles // 2)
    assert packed.dtype is torch.int32
    pairs = torch.rand(inputs // group, outputs, 2, generator=random).bfloat16()
    for rows in (0, 1, 3, 9):
        x = torch.randn(rows, inputs, generator=random).bfloat16()
        out = torch._weight_int4pack_mm(x.to(cuda), packed, group, pairs.to(cuda)).cpu()
        reference = expected(x, levels, pairs, group)
        assert out.dtype is torch.bfloat16 and out.shape == (rows, outputs)
        error = np.abs(out.double().numpy() - reference).max(initial=0)
        assert error <= 2**-8 * np.abs(reference).max(initial=1)


def test_a_product_of_many_rows_equals_the_product_of_the_values():
    levels = torch.randint(0, 16, (24, 256))
    pairs = torch.rand(4, 24, 2).bfloat16()
    x = torch.randn(40, 256).bfloat16()
    out = torch._weight_int4pack_mm(x.to(cuda), packed_levels(levels, 8), 64, pairs.to(cuda))
    reference = expected(x, levels, pairs, 64)
    error = np.abs(out.cpu().double().numpy() - reference).max()
    assert error <= 2**-7 * np.abs(reference).max()  # the weights are rounded once more


def test_operands_that_are_views_give_the_same_product():
    levels = torch.randint(0, 16, (32, 128))
    packed = packed_levels(levels, 4)
    pairs = torch.rand(2, 32, 2).bfloat16().to(cuda)
    x = torch.randn(2, 128).bfloat16().to(cuda)
    plain = torch._weight_int4pack_mm(x, packed, 64, pairs).cpu()
    shifted = torch.cat([x[:1, :1], x.flatten()[None]], 1)[0, 1:].view(2, 128)
    apart = pairs.repeat(1, 1, 2)[:, :, ::2].contiguous().as_strided(pairs.shape, pairs.stride())
    apart.copy_(pairs)
    assert torch.equal(torch._weight_int4pack_mm(shifted, packed, 64, apart).cpu(), plain)
    columns = x.t().contiguous().t()
    assert torch.equal(torch._weight_int4pack_mm(columns, packed, 64, pairs).cpu(), plain)


def test_int4_arguments_that_do_not_fit_raise():
    levels = torch.zeros(16, 128, dtype=torch.int64)
    packed = packed_levels(levels, 8)
    x = torch.zeros(1, 128, dtype=torch.bfloat16, device=cuda)
    pairs = torch.zeros(4, 16, 2, dtype=torch.bfloat16, device=cuda)
    wide = torch.zeros(12, 64, dtype=torch.uint8, device=cuda)
    cases = [
        (lambda: torch._convert_weight_to_int4pack(wide, 8), "dividable by 8"),
        (lambda: torch._convert_weight_to_int4pack(wide[:8, :8], 8), r"16 \* innerKTiles"),
        (lambda: torch._convert_weight_to_int4pack(wide[:8], 3), "2, 4 or 8"),
        (lambda: torch._convert_weight_to_int4pack(wide.int(), 8), "kByte"),
        (lambda: torch._weight_int4pack_mm(x.float(), packed, 32, pairs), "bfloat16"),
        (lambda: torch._weight_int4pack_mm(x, packed, 16, pairs), "qGroupSize"),
        (lambda: torch._weight_int4pack_mm(x[:, :64], packed, 32, pairs), "values a row"),
        (lambda: torch._weight_int4pack_mm(x, packed, 32, pairs[:2]), "3d tensor"),
        (lambda: torch._weight_int4pack_mm(x, packed, 32, pairs.half()), "scalar type"),
        (lambda: torch._weight_int4pack_mm(x, packed[0], 32, pairs), "4d tensor"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_shapes_are_known_without_a_device():
    levels = torch.empty(16, 64, dtype=torch.uint8, device="meta")
    packed = torch._convert_weight_to_int4pack(levels, 2)
    assert packed.shape == (2, 4, 32, 1)
    x = torch.empty(3, 128, dtype=torch.bfloat16, device="meta")
    pairs = torch.empty(4, 16, 2, dtype=torch.bfloat16, device="meta")
    assert torch._weight_int4pack_mm(x, packed, 32, pairs).shape == (3, 16)
