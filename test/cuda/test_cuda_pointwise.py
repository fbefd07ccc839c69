"""Pointwise operators, conversions, copies and fills on CUDA against NumPy in float64. Without a
GPU they run in the emulator, where each new operator and dtype costs a compilation, so a few
operators stand for all: what is common to them (layouts, numbers, dtypes, sizes) is what can go
wrong."""

import subprocess
import sys

import numpy as np
import pytest
from cuda_support import EMULATED, cuda

import torch

rng = np.random.default_rng(0)


def on_gpu(array):
    return torch.tensor(array).to(cuda)


def check(result, expected, tolerance=1e-6):
    assert result.device.type == "cuda"
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(
        result.cpu().to(torch.float64).numpy(), expected, rtol=tolerance, atol=tolerance
    )


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# Around the sizes at which a kernel's packs, threads and blocks end.
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 255, 1023, 2047, 2048, 2049, 4099])
def test_contiguous_operands_of_any_length(n):
    a, b = floats(n), floats(n)
    check(on_gpu(a) + on_gpu(b), a.astype(np.float64) + b)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_operands_that_start_between_packs(offset):
    a, b = floats(1000), floats(1000)
    check(on_gpu(a)[offset:] + on_gpu(b)[:-offset], a[offset:].astype(np.float64) + b[:-offset])


def test_results_keep_the_strides_of_dense_operands():
    a, b = on_gpu(floats(4, 5, 6)).permute(2, 0, 1), on_gpu(floats(4, 5, 6)).permute(2, 0, 1)
    c = a + b
    assert c.stride() == a.stride()
    check(c, a.cpu().double().numpy() + b.cpu().double().numpy())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((8, 16), (16,)),
        ((8, 16), (8, 1)),
        ((8, 1), (1, 16)),
        ((3, 7, 5), (7, 1)),
        ((), (4, 4)),
        ((2, 1, 3, 1, 5), (4, 1, 2, 1)),
    ],
)
def test_shapes_are_broadcast(left, right):
    a, b = floats(*left), floats(*right)
    check(on_gpu(a) + on_gpu(b), a.astype(np.float64) + b)


def test_views_with_gaps_and_steps():
    a, b = floats(12, 40), floats(12, 40)
    check(
        on_gpu(a)[::2, 4:36:3] + on_gpu(b)[1::2, 4:36:3],
        a[::2, 4:36:3].astype(np.float64) + b[1::2, 4:36:3],
    )


def test_more_dimensions_than_a_kernel_takes():
    shape = (2,) * 14
    a = on_gpu(floats(*shape)).transpose(0, 13).transpose(2, 9)
    b = on_gpu(floats(*shape)).transpose(1, 12).transpose(4, 7)
    check(a + b, a.cpu().double().numpy() + b.cpu().double().numpy())


def test_numbers_stand_beside_tensors_without_changing_their_dtype():
    a = floats(33)
    check(on_gpu(a) + 2.5, a.astype(np.float64) + 2.5)
    check(1 - on_gpu(a), 1 - a.astype(np.float64))
    assert (on_gpu(a) + 1).dtype == torch.float32
    whole = torch.arange(5, device=cuda)
    assert (whole + 1).tolist() == [1, 2, 3, 4, 5]
    assert (whole + 0.5).tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_a_cpu_tensor_of_no_dimensions_joins():
    a = floats(6)
    check(on_gpu(a) + torch.tensor(2.0), a.astype(np.float64) + 2)
    with pytest.raises(RuntimeError, match="same device"):
        on_gpu(a) + torch.ones(6)


def test_parameters_reach_the_kernel():
    a, b = floats(9), floats(9)
    check(torch.add(on_gpu(a), on_gpu(b), alpha=0.5), a + 0.5 * b.astype(np.float64))


def test_operands_of_different_dtypes_are_promoted():
    a, i = floats(20), np.arange(20)
    check(on_gpu(a) + on_gpu(i), a.astype(np.float64) + i)
    half = torch.tensor(a).to(cuda, torch.bfloat16)
    mixed = half + on_gpu(a)
    assert mixed.dtype == torch.float32
    check(mixed, half.cpu().double().numpy() + a)


def test_large_operands_of_different_dtypes_use_a_program_of_their_own():
    i = torch.arange(1 << 20, device=cuda).view(1024, 1024)
    a = torch.ones(1024, device=cuda)
    result = a + i
    assert result.dtype == torch.float32
    assert torch.equal(result.cpu(), i.cpu().float() + 1)


def test_in_place_and_out_variants_write_where_they_are_told():
    a, b = floats(10), floats(10)
    x = on_gpu(a)
    pointer = x.data_ptr()
    x.add_(on_gpu(b))
    assert x.data_ptr() == pointer
    check(x, a.astype(np.float64) + b)
    out = torch.empty(10, device=cuda)
    torch.add(on_gpu(a), on_gpu(b), out=out)
    check(out, a.astype(np.float64) + b)
    wide = torch.empty(10, dtype=torch.float64, device=cuda)
    torch.add(on_gpu(a), on_gpu(b), out=wide)
    check(wide, (a + b).astype(np.float64))
    whole = torch.ones(3, dtype=torch.int64, device=cuda)
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.add_(1.5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_compute_in_float_and_round_once(dtype):
    a, b = torch.tensor(floats(100)).to(dtype), torch.tensor(floats(100)).to(dtype)
    assert torch.equal((a.to(cuda) * b.to(cuda)).cpu(), (a.float() * b.float()).to(dtype))


def test_functions_of_one_operand():
    a = floats(50)
    check(on_gpu(a).exp(), np.exp(a.astype(np.float64)))
    check(torch.nn.functional.gelu(on_gpu(a), approximate="tanh").tanh(), _gelu_tanh(a))
    i = np.arange(5)
    check(on_gpu(i).exp(), np.exp(i), 1e-5)


def _gelu_tanh(a):
    x = a.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.tanh(0.5 * x * (1 + np.tanh(inner)))


def test_comparisons_give_bool_and_nan_is_unequal():
    a = on_gpu(np.array([1.0, np.nan, 3.0], np.float32))
    assert (a == a).tolist() == [True, False, True]
    assert (a == a).dtype == torch.bool
    assert (a > 2).tolist() == [False, False, True]


def test_complex_functions_follow_the_branch_cuts():
    z = np.array([1 + 2j, -1 + 0j, -1 - 0.0j, 0.5j, 3 - 4j, -2.5 + 1e-9j], np.complex64)
    x = on_gpu(z)
    for name in ("exp", "sqrt", "acosh"):
        expected = getattr(np, {"acosh": "arccosh"}.get(name, name))(z.astype(np.complex128))
        result = getattr(x, name)().cpu().numpy()
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6)
    assert torch.equal((x * x.conj()).imag.cpu(), torch.zeros(6))


def test_integer_division_rounds_down_and_clamp_passes_nan():
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    assert torch.div(on_gpu(a), on_gpu(b), rounding_mode="floor").tolist() == (a // b).tolist()
    x = on_gpu(np.array([-2.0, np.nan, 0.5], np.float32)).clamp(-1, 1)
    np.testing.assert_array_equal(x.cpu().numpy(), np.array([-1, np.nan, 0.5], np.float32))


def test_an_operator_without_kernels_for_a_dtype_says_so():
    with pytest.raises(NotImplementedError, match=r"sigmoid.*not implemented"):
        torch.ones(2, device=cuda).to(torch.float8_e5m2).sigmoid()


# ---- conversions, copies, fills


def test_conversions_between_dtypes():
    values = np.array([-3.7, -0.2, 0.0, 0.9, 250.3])
    x = on_gpu(values)
    assert x.to(torch.int32).tolist() == [-3, 0, 0, 0, 250]
    assert x.to(torch.bool).tolist() == [True, True, False, True, True]
    assert x.to(torch.complex64).tolist() == torch.tensor(values).to(torch.complex64).tolist()
    assert torch.equal(x.to(torch.bfloat16).cpu(), torch.tensor(values).to(torch.bfloat16))
    assert torch.equal(x.to(torch.float16).cpu(), torch.tensor(values).to(torch.float16))


@pytest.mark.parametrize("shape", [(40, 70), (3, 33, 65), (2, 16, 9, 31)])
def test_transposing_copies(shape):
    a = floats(*shape)
    turned = on_gpu(a).transpose(-1, -2)
    assert torch.equal(turned.contiguous().cpu(), torch.tensor(a).transpose(-1, -2).contiguous())
    order = tuple(range(len(shape)))[::-1]
    copied = on_gpu(a).permute(order).contiguous()
    assert torch.equal(copied.cpu(), torch.tensor(a).permute(order).contiguous())


def test_copies_into_views_leave_the_rest():
    x = torch.zeros(6, 8, device=cuda)
    x[1:5:2, 2:6] = on_gpu(np.ones((2, 4), np.float32))
    expected = torch.zeros(6, 8)
    expected[1:5:2, 2:6] = 1
    assert torch.equal(x.cpu(), expected)


def test_fills_of_views_and_every_size_of_element():
    for dtype in (torch.uint8, torch.int16, torch.float32, torch.int64, torch.complex128):
        x = torch.zeros(5, 6, dtype=dtype, device=cuda)
        x[:, ::2].fill_(3)
        expected = torch.zeros(5, 6, dtype=dtype)
        expected[:, ::2].fill_(3)
        assert torch.equal(x.cpu(), expected)


# ---- where, triangles, ranges


def test_where_broadcasts_promotes_and_takes_numbers():
    a, b = floats(4, 5), floats(5)
    mask = a > 0
    check(torch.where(on_gpu(mask), on_gpu(a), on_gpu(b)), np.where(mask, a, b))
    check(torch.where(on_gpu(mask), on_gpu(a), 0.5), np.where(mask, a, 0.5))
    check(torch.where(on_gpu(mask)[:, :1], 1.0, on_gpu(b)), np.where(mask[:, :1], 1.0, b))


def test_masked_fill_writes_under_the_mask_only():
    a = floats(4, 6)
    mask = np.array([[True], [False], [True], [False]])
    x = on_gpu(a)
    x.masked_fill_(on_gpu(mask), 9)
    check(x, np.where(mask, 9, a))


@pytest.mark.parametrize("diagonal", [-3, 0, 2, 1 << 40])
def test_triangles(diagonal):
    a = floats(2, 4, 7)
    k = max(min(diagonal, 20), -20)
    check(on_gpu(a).tril(diagonal), np.tril(a, k))
    check(on_gpu(a).triu(diagonal), np.triu(a, k))


def test_ranges_are_those_of_the_cpu():
    for arguments in ((10,), (3, 50, 7), (0, 1, 0.1), (5, -5, -2)):
        assert torch.equal(torch.arange(*arguments, device=cuda).cpu(), torch.arange(*arguments))
    for dtype in (torch.float32, torch.int64, torch.complex64):
        made = torch.linspace(-2, 9, 25, dtype=dtype, device=cuda)
        assert torch.equal(made.cpu(), torch.linspace(-2, 9, 25, dtype=dtype))
    assert torch.equal(torch.eye(3, 4, device=cuda).cpu(), torch.eye(3, 4))
    assert torch.full((2, 2), 7, device=cuda).tolist() == [[7, 7], [7, 7]]


def test_parts_of_numbers():
    a = floats(9)
    mantissa, exponent = torch.frexp(on_gpu(a))
    expected = np.frexp(a)
    check(mantissa, expected[0])
    assert exponent.tolist() == expected[1].tolist()
    z = torch.complex(on_gpu(a), on_gpu(-a))
    np.testing.assert_array_equal(z.cpu().numpy(), a - 1j * a)


def test_gradients_flow_through_cuda_operators():
    a = on_gpu(floats(5, 7)).requires_grad_()
    ((a + 1) * a).exp().sum().backward()
    x = a.detach().cpu().double().numpy()
    check(a.grad, np.exp((x + 1) * x) * (2 * x + 1), 1e-4)


@pytest.mark.skipif(not EMULATED, reason="the emulator's own check of races")
def test_results_do_not_depend_on_the_order_of_threads():
    from cuda_support import emulator_environment, run_python

    code = """
import torch
x = torch.arange(3000., device="cuda").view(50, 60)
print((x + x.sum(0)).t().contiguous().cumsum(1).sum().item(), x.var().item(), x.argmax().item())
"""
    outcomes = {
        run_python(code, emulator_environment(ORDER=order)).stdout
        for order in ("forward", "reverse")
    }
    assert len(outcomes) == 1
    assert outcomes.pop().strip()


def test_import_and_cpu_work_never_load_the_driver():
    code = "import torch; torch.ones(3) + 1; print('libcuda' in open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_that_half_types_cannot_hold_are_not_rounded_to_them(dtype):
    x = torch.randn(500).to(dtype)
    for run in (
        lambda t: t * 1.1283791670955126,
        lambda t: t / 3.3,
        lambda t: 0.3 / t,
        lambda t: t[::3] * 0.1,
        lambda t: t.clone().mul_(0.7),
        lambda t: torch.ops.aten.mul.Scalar(t, 1e-3),
        lambda t: t * torch.tensor(0.1, dtype=torch.float64),
        lambda t: t * torch.tensor(-0.566623866558075, device=t.device),
        lambda t: torch.tensor(0.3, device=t.device) / t,
    ):
        assert torch.equal(run(x.to(cuda)).cpu(), run(x))
