"""Tensors exchanged through DLPack, with NumPy as the other library."""

import ctypes
import gc

import numpy as np
import pytest

import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", ["object", "capsule", "versioned"])
def test_round_trip_shares_memory(dtype, form):
    x = torch.tensor([[1, 0], [1, 1], [0, 1]]).to(dtype)
    source = {"object": x, "capsule": to_dlpack(x), "versioned": None}[form]
    if form == "versioned":
        source = x.__dlpack__(max_version=(1, 0))
    y = from_dlpack(source)
    assert y.dtype is dtype and y.shape == x.shape and y.data_ptr() == x.data_ptr()
    assert y.tolist() == x.tolist()


def test_numpy_reads_our_tensors_and_we_read_its_arrays():
    x = torch.arange(6.0).view(2, 3)
    assert np.from_dlpack(x.t()).tolist() == x.t().tolist()
    a = np.arange(6).reshape(2, 3)
    t = from_dlpack(a)
    t[0, 0] = 9
    assert a[0, 0] == 9


def test_strides_and_offsets_survive():
    x = torch.arange(24).view(2, 3, 4)[:, 1:, ::2]
    y = from_dlpack(x)
    assert y.stride() == x.stride() and y.tolist() == x.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_odd_shapes_survive(shape):
    assert from_dlpack(torch.ones(shape)).shape == shape


def test_capsule_can_be_consumed_once():
    capsule = to_dlpack(torch.ones(2))
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        from_dlpack(capsule)


def test_unconsumed_capsule_frees_its_tensor():
    before = torch._C._cpu_memory()[0]
    for _ in range(10):
        to_dlpack(torch.ones(100_000))
    gc.collect()
    assert torch._C._cpu_memory()[0] - before < 400_000


def test_memory_outlives_the_producer():
    y = from_dlpack(torch.arange(1000.0))
    gc.collect()
    assert y[999].item() == 999
    a = np.from_dlpack(torch.arange(1000.0))
    gc.collect()
    assert a[999] == 999


def test_device_is_reported():
    assert tuple(torch.ones(1).__dlpack_device__()) == (1, 0)
    with pytest.raises(ValueError):
        torch.ones(1, device="meta").__dlpack_device__()


def test_copy_makes_memory_of_its_own():
    x = torch.ones(2)
    y = from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(1, requires_grad=True),
        lambda: torch.ones(1, dtype=torch.complex64).conj(),
        lambda: torch.ones(1, device="meta"),
    ],
)
def test_tensors_that_cannot_be_exported_raise(make):
    with pytest.raises((BufferError, RuntimeError)):
        make().__dlpack__()


@pytest.mark.parametrize("value", [1, "a", None, object()])
def test_objects_that_are_no_tensors_raise(value):
    with pytest.raises((TypeError, AttributeError)):
        from_dlpack(value)


def test_capsule_without_a_shape_raises():
    class Raw(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("ndim", ctypes.c_int32),
            ("dtype", ctypes.c_uint8 * 4),
            ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("byte_offset", ctypes.c_uint64),
            ("manager", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    memory = ctypes.create_string_buffer(16)
    raw = Raw(ctypes.addressof(memory), (1, 0), 2, (2, 32, 1, 0), None, None, 0, None, None)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.addressof(raw), b"dltensor", None)
    with pytest.raises(RuntimeError, match="without a shape"):
        from_dlpack(capsule)
