"""Memory shared with NumPy arrays, both ways."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import torch

PAIRS = [
    (torch.float64, np.float64),
    (torch.float32, np.float32),
    (torch.float16, np.float16),
    (torch.int64, np.int64),
    (torch.int32, np.int32),
    (torch.int16, np.int16),
    (torch.int8, np.int8),
    (torch.uint8, np.uint8),
    (torch.uint16, np.uint16),
    (torch.uint32, np.uint32),
    (torch.uint64, np.uint64),
    (torch.bool, np.bool_),
    (torch.complex64, np.complex64),
    (torch.complex128, np.complex128),
]


@pytest.mark.parametrize(("dtype", "np_dtype"), PAIRS, ids=lambda d: str(d))
def test_round_trip_keeps_dtype_values_and_memory(dtype, np_dtype):
    a = np.array([[1, 0, 1], [0, 1, 1]]).astype(np_dtype)
    t = torch.from_numpy(a)
    assert t.dtype is dtype and t.tolist() == a.tolist()
    back = t.numpy()
    assert back.dtype == np_dtype
    assert np.shares_memory(a, back)
    assert back.__array_interface__["data"] == a.__array_interface__["data"]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, 1:],
        lambda x: x[1],
        lambda x: x[:0],
        lambda x: x[1, 2],
    ],
)
def test_views_keep_shape_and_strides(view):
    a = np.arange(12.0).reshape(3, 4)
    t = torch.from_numpy(a)
    assert np.array_equal(view(t).numpy(), view(a))
    part = view(a)
    if isinstance(part, np.ndarray):
        u = torch.from_numpy(part)
        assert u.stride() == tuple(s // 8 for s in part.strides)
        assert u.tolist() == part.tolist()


def test_writes_are_seen_on_the_other_side():
    t = torch.zeros(3)
    a = t.numpy()
    a[1] = 5
    t[2] = 7
    assert a.tolist() == t.tolist() == [0, 5, 7]


def test_array_outlives_its_tensor_and_tensor_its_array():
    a = torch.arange(1000.0).numpy()
    t = torch.from_numpy(np.arange(1000.0))
    gc.collect()
    junk = [torch.full((1000,), 9.0) for _ in range(20)]
    assert a[999] == 999 and t[999].item() == 999 and len(junk) == 20


def test_array_is_released_with_the_tensor():
    class Owner(np.ndarray):
        pass

    a = np.ones(3).view(Owner)
    ref = weakref.ref(a)
    t = torch.from_numpy(a)
    del a
    assert ref() is not None
    del t
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    ("array", "error", "phrase"),
    [
        (lambda: [1], TypeError, "expected np.ndarray"),
        (lambda: np.float32(1), TypeError, "expected np.ndarray"),
        (lambda: np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (lambda: np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (
            lambda: np.array([1], "datetime64[s]"),
            TypeError,
            "can't convert np.ndarray of type numpy.datetime64",
        ),
        (
            lambda: np.ones(3, np.longdouble),
            TypeError,
            "can't convert np.ndarray of type numpy.longdouble",
        ),
        (lambda: np.arange(4)[::-1], ValueError, "stride in the given numpy array is negative"),
        (lambda: np.ones(3, ">f4"), ValueError, "byte order"),
        (
            lambda: np.ones(3, [("a", "f4"), ("b", "i1")])["a"],
            ValueError,
            "not a multiple of the element byte size",
        ),
    ],
)
def test_from_numpy_refuses_what_tensors_cannot_hold(array, error, phrase):
    with pytest.raises(error, match=phrase):
        torch.from_numpy(array())


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda: torch.ones(1, dtype=torch.bfloat16), TypeError, "unsupported ScalarType BFloat16"),
        (lambda: torch.ones(1, device="meta"), TypeError, "can't convert meta device type tensor"),
        (
            lambda: torch.ones(1, requires_grad=True),
            RuntimeError,
            "Can't call numpy.. on Tensor that requires grad",
        ),
        (lambda: torch.ones(1, dtype=torch.complex64).conj(), RuntimeError, "conjugate bit"),
    ],
)
def test_numpy_refuses_what_arrays_cannot_hold(make, error, phrase):
    with pytest.raises(error, match=phrase):
        make().numpy()


def test_numpy_with_force_copies_what_it_has_to():
    z = torch.tensor([1 + 2j]).conj()
    assert z.numpy(force=True).tolist() == [1 - 2j]


def test_array_protocol():
    t = torch.arange(3)
    assert np.asarray(t).tolist() == [0, 1, 2]
    assert np.array(t, dtype=np.float32).dtype == np.float32
    assert np.add(np.ones(3), t.numpy()).tolist() == [1, 2, 3]


def test_numpy_numbers_are_numbers():
    x = torch.zeros(2)
    x[0] = np.float64(2.5)
    assert (x + np.float64(1)).tolist() == [3.5, 1.0]
    assert torch.zeros(np.int64(2), np.int32(3)).shape == (2, 3)


def test_importing_torch_and_making_tensors_does_not_import_numpy():
    code = (
        "import sys, torch; (torch.tensor([1.0]) + 1).tolist(); torch.zeros(2)[0]; "
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
