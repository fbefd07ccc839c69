"""Powers of complex numbers: exact where mathematics is, equal to NumPy's elsewhere."""

import cmath

import numpy as np
import pytest

import torch

INF, NAN = float("inf"), float("nan")
EVERY_KIND = [0j, complex(INF, 0), complex(0, INF), complex(-INF, INF), complex(NAN, 0), 1 + 2j, -2]
DTYPES = [torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeroth_power_of_everything_is_one(dtype):
    z = torch.tensor(EVERY_KIND, dtype=dtype)
    ones = torch.ones(len(EVERY_KIND), dtype=dtype)
    for zero in (0, 0.0, 0j):
        assert torch.equal(z**zero, ones)
    assert torch.equal(torch.pow(z, torch.zeros_like(z)), ones)


@pytest.mark.parametrize("dtype", DTYPES)
def test_first_power_is_the_number_itself(dtype):
    z = torch.tensor(EVERY_KIND, dtype=dtype)
    expected = [[complex(value).real, complex(value).imag] for value in EVERY_KIND]
    for power in (z**1, z**1.0, z ** (1 + 0j), torch.pow(z, torch.ones_like(z))):
        np.testing.assert_array_equal(torch.view_as_real(power), expected)


def test_whole_powers_of_gaussian_integers_are_exact():
    z = torch.tensor([1 + 2j, -3 + 1j, 2j, -2, 5], dtype=torch.complex128)
    for n in range(12):
        expected = []
        for value in z.tolist():
            a, b = int(value.real), int(value.imag)
            re, im = 1, 0
            for _ in range(n):
                re, im = re * a - im * b, re * b + im * a
            expected.append(complex(re, im))
        assert (z**n).tolist() == expected, n


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [-100, -7, -2, -1, 4, 5, 17, 100, 101, 2.5, -0.5, 0.5, 1j, 2 - 0.5j])
def test_power_by_a_number_equals_numpy(dtype, n):
    random = np.random.default_rng(0)
    z = random.uniform(-1.4, 1.4, 333) + 1j * random.uniform(-1.4, 1.4, 333)
    z *= random.uniform(0.9, 1.1, 333) / np.abs(z)
    got = (torch.from_numpy(z).to(dtype) ** n).to(torch.complex128).numpy()
    expected = torch.from_numpy(z).to(dtype).to(torch.complex128).numpy() ** n
    tolerance = 5e-5 if dtype is torch.complex64 else 1e-13
    assert np.max(np.abs(got - expected) / np.abs(expected)) < tolerance


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_by_a_tensor_equals_numpy(dtype):
    random = np.random.default_rng(1)
    x, y = (random.uniform(-3, 3, 1001) + 1j * random.uniform(-3, 3, 1001) for _ in range(2))
    x, y = torch.from_numpy(x).to(dtype), torch.from_numpy(y).to(dtype)
    expected = x.to(torch.complex128).numpy() ** y.to(torch.complex128).numpy()
    got = torch.pow(x, y).to(torch.complex128).numpy()
    tolerance = 3e-6 if dtype is torch.complex64 else 1e-13
    assert np.max(np.abs(got - expected) / np.abs(expected)) < tolerance


def test_large_and_small_bases_do_not_overflow_on_the_way():
    z = torch.tensor([1e200 + 1e200j, 1e-200 - 1e-200j, 3e-320 + 0j], dtype=torch.complex128)
    got = (z**0.25).tolist()
    for value, power in zip(z.tolist(), got, strict=True):
        length, angle = cmath.polar(power)
        assert abs(length / abs(value) ** 0.25 - 1) < 1e-9
        assert abs(angle - cmath.phase(value) / 4) < 1e-12


def test_zero_to_a_positive_power_is_zero_and_to_a_negative_one_is_infinite():
    zero = torch.zeros(5, dtype=torch.complex64)
    for power in (2, 2.5, 7, 101, 1.5 + 1j):
        assert torch.equal(zero**power, zero)
    assert ((zero**-1).real == INF).all() and ((zero**-3).real == INF).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 31, 257, 5000])
def test_product_of_complex_numbers_equals_a_plain_loop(dtype, count):
    angles = np.random.default_rng(count).uniform(0, 6, count)
    z = np.exp(1j * angles)
    expected = 1 + 0j
    for value in z.tolist():
        expected *= value
    tolerance = 1e-3 if dtype is torch.complex64 else 1e-11
    assert abs(torch.from_numpy(z).to(dtype).prod().item() - expected) < tolerance
    total = torch.from_numpy(z).to(dtype).sum().item()
    assert abs(total - complex(sum(z.tolist()))) < tolerance * 10
