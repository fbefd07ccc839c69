"""torch.testing and the classes test suites are built on: comparisons, random tensors,
parametrisation, tests per device, dtype and operator."""

import subprocess
import sys
import unittest

import numpy as np
import pytest

import torch
from torch.testing._internal import common_device_type as cdt
from torch.testing._internal import common_dtype, common_utils
from torch.testing._internal.common_methods_invocations import op_db, unary_ufuncs
from torch.testing._internal.common_utils import (
    TestCase,
    freeze_rng_state,
    instantiate_parametrized_tests,
    parametrize,
    subtest,
)

close = torch.testing.assert_close
make = torch.testing.make_tensor


# ---- assert_close ----------------------------------------------------------------------------


def failure(*args, **kwargs):
    with pytest.raises(AssertionError) as raised:
        close(*args, **kwargs)
    return str(raised.value)


def test_assert_close_accepts_equal_things():
    close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    close([torch.ones(2), 3], [torch.ones(2), 3])
    close({"a": 1.0, "b": [2j]}, {"b": [2j], "a": 1.0})
    close(np.ones(3), np.ones(3))
    close(None, None)
    close(float("nan"), float("nan"), equal_nan=True)
    close(torch.zeros(0, 3), torch.zeros(0, 3))
    close(torch.tensor([float("inf")]), torch.tensor([float("inf")]))


def test_assert_close_says_where_and_by_how_much():
    text = failure(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]))
    assert "Mismatched elements: 1 / 2 (50.0%)" in text and "at index (0, 1)" in text
    assert "The failure occurred for item [1]" in failure([1, torch.ones(2)], [1, torch.zeros(2)])
    assert "Expected 2 but got 1" in failure(1, 2)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (torch.ones(2), torch.ones(3), "shape"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "dtype"),
        ([1, 2], [1], "length"),
        ({"a": 1}, {"b": 1}, "keys"),
        (None, 1, "None"),
        (torch.ones(2, 2).t()[:1], torch.ones(1, 2), ""),
    ],
)
def test_assert_close_compares_attributes(actual, expected, words):
    if words:
        assert words in failure(actual, expected)
    else:
        close(actual, expected)
        assert "stride" in failure(torch.ones(2, 2, 2).mT, torch.ones(2, 2, 2), check_stride=True)


def test_assert_close_takes_tolerances_and_messages():
    close(1.0, 1.4, rtol=0, atol=0.5)
    assert failure(1.0, 1.4, rtol=0, atol=0.1, msg="mine") == "mine"
    assert failure(1, 2, msg=lambda text: "own: " + text).startswith("own: Scalars")
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol'"):
        close(1.0, 1.0, rtol=1.0)
    with pytest.raises(TypeError):
        close("a", "b")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_assert_close_has_tolerances_by_dtype(dtype):
    one = torch.ones(3, dtype=dtype)
    close(one, one * (1 + torch.finfo(dtype).eps / 4))
    assert failure(one, one * 1.5)


# ---- make_tensor -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", common_dtype.get_all_dtypes(include_complex32=True), ids=str)
def test_make_tensor_fills_the_interval(dtype):
    t = make(50, 3, dtype=dtype, device="cpu")
    assert t.shape == (50, 3) and t.dtype is dtype
    if not dtype.is_complex and dtype is not torch.bool:
        assert t.min() >= (-9 if dtype.is_signed else 0) and t.max() <= 9
        u = make((40,), dtype=dtype, device="cpu", low=2, high=5)
        assert u.min() >= 2 and u.max() <= 5


def test_make_tensor_options():
    t = make(4, 5, dtype=torch.float32, device="cpu", noncontiguous=True, requires_grad=True)
    assert not t.is_contiguous() and t.requires_grad
    assert bool((make(99, dtype=torch.uint8, device="cpu", exclude_zero=True) != 0).all())
    image = make(2, 3, 4, 5, dtype=torch.float32, device="cpu", memory_format=torch.channels_last)
    assert image.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(ValueError, match="less than"):
        make(2, dtype=torch.float32, device="cpu", low=3, high=1)
    with pytest.raises(ValueError, match="requires_grad"):
        make(2, dtype=torch.int64, device="cpu", requires_grad=True)


# ---- TestCase ----------------------------------------------------------------------------------


class Case(TestCase):
    def runTest(self):
        pass


def test_assert_equal_of_test_case():
    case = Case()
    case.assertEqual(torch.ones(2), torch.ones(2))
    case.assertEqual(torch.tensor(3), 3)
    case.assertEqual(torch.tensor([1, 2]), [1, 2])
    case.assertEqual(torch.ones(2), np.ones(2))
    case.assertEqual({"a": [torch.ones(1)]}, {"a": [torch.ones(1)]})
    case.assertEqual("a", "a")
    case.assertEqual(torch.float32, torch.float32)
    case.assertEqual(1.0, 1.05, atol=0.1, rtol=0)
    case.assertNotEqual(torch.ones(2), torch.zeros(2))
    for a, b in [(torch.ones(2), torch.zeros(2)), (1, 2), ("a", "b"), ([1], [1, 2]), ({1}, {2})]:
        with pytest.raises(AssertionError):
            case.assertEqual(a, b)
    with pytest.raises(AssertionError, match="dtype"):
        case.assertEqual(torch.ones(2), torch.ones(2).double())
    case.assertEqual(torch.ones(2), torch.ones(2).double(), exact_dtype=False)
    case.compare_with_numpy(torch.sin, np.sin, torch.rand(3))


def test_set_up_seeds_and_freeze_rng_state_restores():
    case = Case()
    case.setUp()
    first = torch.rand(3)
    case.setUp()
    assert torch.equal(first, torch.rand(3))
    with freeze_rng_state():
        inside = torch.rand(2)
    assert torch.equal(inside, torch.rand(2))


def names_of(cls):
    return sorted(n for n in dir(cls) if n.startswith("test") and getattr(cls, n) is not None)


def test_parametrize_makes_one_method_per_combination():
    seen = []

    @instantiate_parametrized_tests
    class Generic(TestCase):
        @parametrize("x", [1, 2])
        @parametrize("y,z", [("a", True), subtest(("b", False), name="named")])
        def test_pair(self, x, y, z):
            seen.append((x, y, z))

        @parametrize("dtype", [torch.float32, torch.int64])
        def test_dtype(self, dtype):
            seen.append(dtype)

    assert names_of(Generic) == [
        "test_dtype_float32",
        "test_dtype_int64",
        "test_pair_x_1_named",
        "test_pair_x_1_y_a_z_True",
        "test_pair_x_2_named",
        "test_pair_x_2_y_a_z_True",
    ]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Generic).run(result)
    assert result.wasSuccessful() and len(seen) == 6 and (2, "b", False) in seen


def test_device_tests_run_per_device_dtype_and_op():
    seen, scope = [], {}

    class TestThings(TestCase):
        @cdt.dtypes(torch.float32, torch.int32)
        def test_plain(self, device, dtype):
            seen.append((device, dtype))

        @cdt.onlyCPU
        def test_device(self, device):
            seen.append(device)

        @cdt.ops(unary_ufuncs[:3], dtypes=cdt.OpDTypes.supported, allowed_dtypes=[torch.float64])
        def test_op(self, device, dtype, op):
            sample = op.sample_inputs(device, dtype)[0]
            seen.append(op(sample.input))

        @cdt.skipCPUIf(True, "never here")
        def test_skipped(self, device):
            seen.append("no")

        @cdt.dtypes(torch.float32)
        @cdt.toleranceOverride({torch.float32: cdt.tol(atol=0.5, rtol=0)})
        @parametrize("k", [1, 2])
        def test_wide(self, device, dtype, k):
            self.assertEqual(torch.ones(1) * k, torch.ones(1) * k + 0.4)

    scope["TestThings"] = TestThings
    cdt.instantiate_device_type_tests(TestThings, scope, only_for="cpu")
    assert list(scope) == ["TestThingsCPU"]
    names = names_of(scope["TestThingsCPU"])
    assert {"test_plain_cpu_float32", "test_plain_cpu_int32", "test_device_cpu"} <= set(names)
    assert f"test_op_{unary_ufuncs[0].formatted_name}_cpu_float64" in names
    assert "test_wide_k_1_cpu_float32" in names
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestThingsCPU"]).run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert ("cpu", torch.int32) in seen and len(result.skipped) == 1 and "no" not in seen


def test_op_db_is_made_of_the_records():
    assert len(op_db) > 600
    record = next(r for r in op_db if r.name == "add" and not r.variant_test_name)
    assert record.supports_dtype(torch.float32) and record.supports_autograd
    assert record.inplace_variant is torch.Tensor.add_
    sample = next(iter(record.sample_inputs("cpu", torch.float32, requires_grad=True)))
    assert sample.input.requires_grad


def test_run_tests_runs_the_main_module(tmp_path):
    script = tmp_path / "test_x.py"
    script.write_text(
        "import torch\n"
        "from torch.testing._internal.common_utils import TestCase, run_tests\n"
        "class TestX(TestCase):\n"
        "    def test_a(self):\n"
        "        self.assertEqual(torch.ones(2) + 1, torch.full((2,), 2.0))\n"
        "if __name__ == '__main__':\n"
        "    run_tests()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and "OK" in done.stderr


def test_random_matrices_are_what_their_names_say():
    a = common_utils.random_symmetric_matrix(4)
    assert torch.equal(a, a.mT)
    pd = common_utils.random_hermitian_pd_matrix(3, dtype=torch.complex128, device="cpu")
    assert bool((torch.linalg.eigvalsh(pd) > 0).all())
    low = common_utils.random_lowrank_matrix(2, 5, 4)
    assert int(torch.linalg.matrix_rank(low)) == 2


def test_gradcheck_is_fast_by_default():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert common_utils.gradcheck(torch.sin, (x,))
    assert common_utils.gradgradcheck(torch.sin, (x,))
