"""torch._refs against NumPy, and the questions of torch._prims_common."""

import numpy as np
import pytest

import torch
from torch import _prims_common as common
from torch import _refs
from torch._prims_common.wrappers import _maybe_remove_out_wrapper
from torch.utils._dtype_abbrs import dtype_abbrs

NUMPY = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "mean": np.mean,
    "any": np.any,
    "all": np.all,
    "var": lambda a, axis, keepdims: np.var(a, axis, ddof=1, keepdims=keepdims),
    "std": lambda a, axis, keepdims: np.std(a, axis, ddof=1, keepdims=keepdims),
}


@pytest.mark.parametrize("name", sorted(NUMPY))
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2)])
def test_reduction_equals_numpy(name, dim):
    x = torch.testing.make_tensor((3, 5, 2), dtype=torch.float64, device="cpu", low=-2, high=2)
    x[0, 0, 0] = 0
    for keepdim in (False, True):
        got = getattr(_refs, name)(x, dim, keepdim=keepdim).numpy()
        np.testing.assert_allclose(got, NUMPY[name](x.numpy(), axis=dim, keepdims=keepdim))


def test_integer_sums_are_int64_and_counts_count():
    x = torch.tensor([[0, 200], [3, 100]], dtype=torch.uint8)
    assert _refs.sum(x).item() == 303 and _refs.sum(x).dtype is torch.int64
    assert _refs.count_nonzero(x, 0).tolist() == [1, 2]
    assert _refs.any(x).dtype is torch.uint8


def test_reduction_of_nothing_gives_the_identity_or_raises():
    empty = torch.empty(0, 3)
    assert _refs.sum(empty, 0).tolist() == [0, 0, 0] and _refs.prod(empty).item() == 1
    with pytest.raises(IndexError, match="non-zero size"):
        _refs.amax(empty, 0)


def test_out_is_resized_and_written():
    out = torch.empty(0)
    assert _refs.sum(torch.ones(2, 3), 0, out=out) is out and out.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        _refs.sum(torch.ones(2), out=torch.empty((), dtype=torch.int64))
    with pytest.raises(TypeError, match="out"):
        _maybe_remove_out_wrapper(_refs.sum)(torch.ones(2), out=out)


def test_dimensions_out_of_range_or_repeated_raise():
    with pytest.raises(IndexError, match="Dimension out of range"):
        common.reduced_dims(2, 2)
    with pytest.raises(RuntimeError, match="multiple times"):
        common.reduced_dims(2, (0, -2))


def test_compare_tensor_meta_names_the_difference():
    a = torch.ones(2, 3)
    common.compare_tensor_meta(a, torch.zeros(2, 3))
    for other, words in (
        (torch.ones(3), "Shapes do not match"),
        (a.double(), "Dtypes do not match"),
        (a.to("meta"), "Devices do not match"),
    ):
        with pytest.raises(AssertionError, match=words):
            common.compare_tensor_meta(a, other)
    common.compare_tensor_meta(a.t(), torch.ones(3, 2))
    with pytest.raises(AssertionError, match="Strides do not match"):
        common.compare_tensor_meta(a.t(), torch.ones(3, 2), check_strides=True)


def test_kinds_and_short_names_of_dtypes():
    assert common.is_integer_dtype(torch.bool) and common.is_boolean_dtype(torch.bool)
    assert common.is_float_dtype(torch.bfloat16) and common.is_complex_dtype(torch.complex64)
    assert (dtype_abbrs[torch.float32], dtype_abbrs[torch.bool]) == ("f32", "b8")
