"""What the test suites of other projects found: small functions they call, faces they look for."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import torch

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


def scaled_factors(seed=0):
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(16, 32, generator=generator)
    b = torch.randn(24, 32, generator=generator)
    return a, b


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scaled_product_with_one_scale_each_equals_numpy(dtype, out_dtype):
    a, b = (t.to(dtype) for t in scaled_factors())
    scale_a, scale_b = torch.tensor(0.5), torch.tensor(3.0)
    got = torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=out_dtype)
    expected = 1.5 * (a.double().numpy() @ b.double().numpy().T)
    assert got.dtype is out_dtype
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[out_dtype]
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_scaled_product_with_a_scale_for_each_row_and_a_bias_equals_numpy():
    a, b = (t.to(torch.float8_e4m3fn) for t in scaled_factors(1))
    scale_a = torch.linspace(0.1, 1, 16).reshape(16, 1)
    scale_b = torch.linspace(1, 2, 24).reshape(1, 24)
    bias = torch.linspace(-1, 1, 24)
    got = torch._scaled_mm(a, b.t(), scale_a, scale_b, bias=bias, out_dtype=torch.float32)
    product = a.double().numpy() @ b.double().numpy().T
    expected = product * scale_a.double().numpy() * scale_b.double().numpy() + bias.double().numpy()
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_scaled_product_in_float8_is_divided_by_the_scale_of_the_result():
    a, b = (t.to(torch.float8_e4m3fn) for t in scaled_factors(2))
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    got = torch._scaled_mm(a, b.t(), one, one, scale_result=two)
    expected = a.double().numpy() @ b.double().numpy().T / 2
    assert got.dtype is torch.float8_e4m3fn
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=0.07, atol=0.02)
    out = torch.empty(16, 24, dtype=torch.bfloat16)
    assert torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, out=out) is out


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"scale_a": torch.rand(16)}, ValueError, "Invalid scaling configuration"),
        ({"scale_a": torch.tensor(1.0).double()}, ValueError, "Invalid scaling configuration"),
        ({"self": torch.rand(16, 32)}, ValueError, "Invalid scaling configuration"),
        ({"mat2": torch.rand(16, 24)}, RuntimeError, "16x32 and 16x24"),
        ({"bias": torch.rand(23)}, RuntimeError, "Bias must be size 24 but got 23"),
        ({"self": torch.rand(32)}, RuntimeError, "mat1 must be a matrix"),
    ],
)
def test_scaled_product_of_wrong_arguments_is_refused(change, error, text):
    a, b = (t.to(torch.float8_e4m3fn) for t in scaled_factors())
    one = torch.tensor(1.0)
    arguments = {"self": a, "mat2": b.t(), "scale_a": one, "scale_b": one, **change}
    first = arguments.pop("self")
    with pytest.raises(error, match=text):
        torch._scaled_mm(first, **arguments)


CASTS = {
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


@pytest.mark.parametrize("name", CASTS)
def test_cast_function_gives_the_dtype_of_its_name(name):
    cast = getattr(torch, "_cast_" + name)
    got = cast(torch.tensor([1.75, 2.0]))
    exact = CASTS[name].is_floating_point
    assert got.dtype is CASTS[name] and got.tolist() == ([1.75, 2.0] if exact else [1, 2])
    assert cast(got, True).data_ptr() == got.data_ptr()


def test_nested_view_of_a_buffer_shares_its_memory():
    buffer = torch.arange(6.0)
    sizes, strides = torch.tensor([[2, 2], [1, 2]]), torch.tensor([[2, 1], [2, 1]])
    nested = torch._nested_view_from_buffer(buffer, sizes, strides, torch.tensor([0, 4]))
    first, second = nested.unbind()
    assert first.tolist() == [[0.0, 1.0], [2.0, 3.0]] and second.tolist() == [[4.0, 5.0]]
    buffer[5] = 9
    assert nested.unbind()[1].tolist() == [[4.0, 9.0]]
    with pytest.raises(RuntimeError, match="6 elements"):
        torch._nested_view_from_buffer(buffer[:5], sizes, strides, torch.tensor([0, 4]))
    with pytest.raises(NotImplementedError, match="contiguous components"):
        torch._nested_view_from_buffer(buffer, sizes, strides, torch.tensor([0, 3]))


def test_notice_that_nothing_is_compiled_has_a_category_of_its_own():
    code = (
        "import warnings, torch\n"
        "from torch.compiler import NotCompiledWarning\n"
        "warnings.simplefilter('error')\n"
        "warnings.simplefilter('ignore', NotCompiledWarning)\n"
        "torch.compile(torch.nn.ReLU(), backend='cudagraphs')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert issubclass(torch.compiler.NotCompiledWarning, UserWarning)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch._compile._said.discard("torch.compile")
        torch.compile(torch.nn.ReLU(), backend="cudagraphs")
    assert [w.category for w in caught] == [torch.compiler.NotCompiledWarning]


@pytest.mark.parametrize("first", [0, 1, 5, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
def test_sobol_points_equal_those_by_the_bits_of_their_gray_code(first, count):
    engine = torch.quasirandom.SobolEngine(5, scramble=True, seed=3)
    directions, shift = engine.sobolstate.tolist(), engine.shift.tolist()
    expected = []
    for index in range(first, first + count):
        gray, point = index ^ index >> 1, list(shift)
        for bit in range(30):
            if gray >> bit & 1:
                point = [p ^ d[bit] for p, d in zip(point, directions, strict=True)]
        expected.append([p / 2**30 for p in point])
    engine.fast_forward(first)
    assert engine.draw(count, dtype=torch.float64).tolist() == expected
    assert engine.num_generated == first + count


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.complex64])
@pytest.mark.parametrize("length", [1, 3, 4, 15, 16, 17, 33, 100])
def test_flip_of_every_element_size_and_length_equals_numpy(dtype, length):
    values = (np.arange(3 * length) % 100).reshape(3, length)
    x = torch.from_numpy(values).to(dtype)
    assert torch.equal(x.flip(1), torch.from_numpy(values[:, ::-1].copy()).to(dtype))
    assert torch.equal(x.flip(0, 1), torch.from_numpy(values[::-1, ::-1].copy()).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.complex128])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 5000, 70_001])
def test_filled_tensor_holds_the_value_everywhere(dtype, count):
    assert torch.full((count,), 1, dtype=dtype).tolist() == [1] * count


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("count", [15, 16, 17, 127, 1000, 100_003])
def test_dot_product_equals_numpy(dtype, count):
    random = np.random.default_rng(count)
    a, b = (random.integers(-9, 9, count) + 0.0 for _ in range(2))
    if dtype.is_complex:
        a, b = a + 1j * b[::-1], b - 2j * a
    x, y = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
    assert torch.dot(x, y).item() == a @ b
    assert torch.vdot(x, y).item() == np.vdot(a, b)
    assert torch.dot(x[::2], y[::2]).item() == a[::2] @ b[::2]


def test_row_whose_length_is_no_multiple_of_a_register_is_right_in_place_and_out_of_place():
    for length in (17, 31, 33, 100):
        a = torch.arange(3.0 * length).reshape(3, length)
        expected = a.numpy() * 3 + 1
        assert torch.equal(torch.add(a * 3, torch.ones(length)), torch.from_numpy(expected))
        inplace = a.clone()
        inplace.mul_(torch.full((length,), 3.0)).add_(torch.ones(3, 1))
        assert torch.equal(inplace, torch.from_numpy(expected))
