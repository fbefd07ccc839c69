"""Factories, copies, conversions and fills."""

import numpy as np
import pytest

import torch

DTYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fills_have_the_value_dtype_and_version_zero(dtype):
    for made, value in (
        (torch.zeros(2, 3, dtype=dtype), 0),
        (torch.ones(2, 3, dtype=dtype), 1),
        (torch.full((2, 3), 1, dtype=dtype), 1),
    ):
        assert made.dtype == dtype and made.shape == (2, 3) and made._version == 0
        assert all(item == value for row in made.tolist() for item in row)


@pytest.mark.parametrize(
    "args", [(5,), (1, 9), (1, 9, 2), (0.0, 1.0, 0.1), (9, 1, -3), (0,), (-1, 2, 0.25)]
)
def test_arange_matches_numpy(args):
    np.testing.assert_allclose(torch.arange(*args).numpy(), np.arange(*args), rtol=1e-6, atol=1e-7)


def test_arange_bad_arguments_raise():
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 3, 0)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        torch.arange(0, -3, 2)
    with pytest.raises(RuntimeError, match="unsupported range"):
        torch.arange(0, float("inf"))


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 100])
def test_linspace_and_logspace_match_numpy(steps):
    got = torch.linspace(-3, 4, steps, dtype=torch.float64)
    np.testing.assert_allclose(got.numpy(), np.linspace(-3, 4, steps), rtol=1e-14, atol=1e-14)
    got = torch.logspace(-1, 2, steps, dtype=torch.float64)
    np.testing.assert_allclose(got.numpy(), np.logspace(-1, 2, steps), rtol=1e-13)


def test_eye_and_triangle_indices_match_numpy():
    np.testing.assert_array_equal(torch.eye(3, 5).numpy(), np.eye(3, 5))
    for offset in (-2, 0, 1, 9):
        np.testing.assert_array_equal(
            torch.tril_indices(4, 3, offset).numpy(), np.array(np.tril_indices(4, offset, 3))
        )
        np.testing.assert_array_equal(
            torch.triu_indices(4, 3, offset).numpy(), np.array(np.triu_indices(4, offset, 3))
        )


def test_like_factories_keep_order_of_dimensions():
    x = torch.empty(2, 3, 4).permute(2, 0, 1)
    assert torch.zeros_like(x).stride() == x.stride()
    assert torch.zeros_like(x, memory_format=torch.contiguous_format).is_contiguous()
    assert torch.empty_like(torch.empty(1, 3).expand(4, 3)).stride() == (3, 1)


def test_huge_or_negative_sizes_raise():
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(2, -1)
    with pytest.raises(RuntimeError):
        torch.empty(2**62, 2**62)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2**58, dtype=torch.uint8)


def test_meta_tensors_have_geometry_and_no_data():
    x = torch.zeros(3, 4, device="meta")
    assert (x.shape, x.stride(), x.is_meta) == ((3, 4), (4, 1), True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        x.tolist()


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_conversion_of_small_numbers_is_exact(source, target):
    x = torch.tensor([0, 1, 2, 100], dtype=torch.int64).to(source)
    y = x.to(target)
    want = [bool(v.real if isinstance(v, complex) else v) for v in x.tolist()]
    if target == torch.bool:
        assert y.tolist() == want
    else:
        assert [complex(v) for v in y.tolist()] == [complex(v) for v in x.tolist()]


def test_float_to_half_rounds_to_nearest_even():
    values = np.random.default_rng(0).normal(0, 100, 1000).astype(np.float32)
    got = torch.from_numpy(values).to(torch.float16).numpy()
    np.testing.assert_array_equal(got, values.astype(np.float16))


def test_copy_broadcasts_and_converts():
    x = torch.zeros(3, 4, dtype=torch.int32)
    assert x.copy_(torch.tensor([1.7, 2.2, 3.9, -4.5])) is x
    assert x[2].tolist() == [1, 2, 3, -4]
    with pytest.raises(
        RuntimeError, match=r"doesn't match the broadcast shape|must match the size"
    ):
        x.copy_(torch.ones(5))


def test_copy_between_overlapping_views_of_one_storage():
    x = torch.arange(12.0).view(3, 4)
    square = x[:, :3]
    square.copy_(square.t())
    np.testing.assert_array_equal(x.numpy()[:, :3], np.arange(12.0).reshape(3, 4)[:, :3].T)


@pytest.mark.parametrize("shape", [(64, 80), (3, 65, 33), (2, 17, 19, 23)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128], ids=str)
def test_transposed_copies_match_numpy(shape, dtype):
    x = torch.arange(int(np.prod(shape))).to(dtype).view(shape)
    for dims in [tuple(reversed(range(len(shape)))), (len(shape) - 1, *range(len(shape) - 1))]:
        np.testing.assert_array_equal(
            x.permute(dims).contiguous().numpy(), np.ascontiguousarray(x.numpy().transpose(dims))
        )


def test_item_needs_one_element():
    assert torch.tensor([[3.5]]).item() == 3.5
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()


def test_fill_with_an_element_of_the_tensor_itself_fills_with_its_value():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.fill_(x[1]).tolist() == [2.0, 2.0, 2.0]


def test_fill_value_out_of_range_raises_and_writes_nothing():
    x = torch.zeros(3, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="without overflow"):
        x.fill_(1000)
    assert x.tolist() == [0, 0, 0]


def test_resize_and_set_stay_inside_the_storage():
    x = torch.arange(6.0)
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.empty(0).set_(torch.arange(4.0).untyped_storage(), 2, (3,), (1,))
    with pytest.raises(RuntimeError):
        torch.arange(4.0).as_strided((2, 2), (9, 1))


def test_result_type_and_casting_rules():
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 1.0) == torch.float32
    assert torch.promote_types(torch.int8, torch.uint8) == torch.int16
    assert torch.can_cast(torch.float32, torch.complex64)
    assert not torch.can_cast(torch.float32, torch.int32)


@pytest.mark.parametrize(
    "fill",
    [
        lambda out: torch.arange(0, 4, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.logspace(0, 3, 4, out=out).log10_(),
    ],
)
def test_sequence_fills_an_out_of_as_many_elements_in_its_own_shape(fill):
    x = torch.zeros(2, 3, dtype=torch.float64)
    part = x.narrow(1, 1, 2)
    fill(part)
    np.testing.assert_allclose(x, [[0, 0, 1], [0, 2, 3]])


def test_sequence_resizes_an_out_of_another_size():
    out = torch.empty(0)
    assert torch.linspace(0, 1, 3, out=out).shape == (3,)


def test_range_says_that_it_is_deprecated():
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        torch.range(0, 3)


def test_full_of_a_complex_number_is_never_half_precision():
    torch.set_default_dtype(torch.float16)
    try:
        assert torch.full((2,), 1j).dtype == torch.complex64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_memory_has_known_contents_with_deterministic_algorithms(dtype):
    torch.use_deterministic_algorithms(True)
    try:
        made = [
            torch.empty(3, 2, dtype=dtype),
            torch.empty_like(torch.zeros(3, 2, dtype=dtype)),
            torch.empty_strided((3, 2), (1, 3), dtype=dtype),
            torch.zeros(1, dtype=dtype).new_empty(4),
        ]
    finally:
        torch.use_deterministic_algorithms(False)
    for tensor in made:
        if dtype.is_floating_point or dtype.is_complex:
            assert tensor.isnan().all()
        else:
            top = True if dtype is torch.bool else torch.iinfo(dtype).max
            assert (tensor == top).all()


def test_normal_numbers_of_an_empty_integer_tensor_are_none():
    assert torch.randn(0, dtype=torch.int64).shape == (0,)
