"""torch.tensor and its relatives: dtype inference, values, shapes and the errors for what is no
tensor."""

import array
import pickle

import numpy as np
import pytest

import torch


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (1, torch.int64, 1),
        (1.5, torch.float32, 1.5),
        (True, torch.bool, True),
        (1j, torch.complex64, 1j),
        ([], torch.float32, []),
        ([[], []], torch.float32, [[], []]),
        ([1, 2.5], torch.float32, [1.0, 2.5]),
        ([True, 2], torch.int64, [1, 2]),
        ([1, 2j], torch.complex64, [1, 2j]),
        ([True, 1.0], torch.float32, [1.0, 1.0]),
        (range(3), torch.int64, [0, 1, 2]),
        (bytearray(b"ab"), torch.int64, [97, 98]),
        (array.array("f", [1, 2]), torch.float32, [1.0, 2.0]),
        (-(2**63), torch.int64, -(2**63)),
        (np.float32(1.5), torch.float32, 1.5),
        (np.int16(3), torch.int16, 3),
        (np.bool_(True), torch.bool, True),
        ([np.float64(1.5)], torch.float64, [1.5]),
        ([np.int32(1), 2], torch.int64, [1, 2]),
        (np.array([1, 2], np.int16), torch.int16, [1, 2]),
        (np.array(2.5), torch.float64, 2.5),
        ([torch.tensor(1.0), torch.tensor(2)], torch.float32, [1.0, 2.0]),
        ([torch.ones(1), torch.ones(1, 1)], torch.float32, [1.0, 1.0]),
        (torch.Size([1, 2]), torch.int64, [1, 2]),
    ],
    ids=repr,
)
def test_tensor_infers_dtype_and_keeps_values(data, dtype, values):
    t = torch.tensor(data)
    assert t.dtype is dtype
    assert t.tolist() == values
    assert t.is_contiguous()


@pytest.mark.parametrize(
    ("data", "dtype", "value"),
    [
        (2**63, torch.uint64, 2**63),
        (2**63, torch.float32, 2.0**63),
        (-1, torch.uint8, 255),
        (1.9, torch.int64, 1),
        (2.5, torch.bool, True),
        (1e40, torch.float32, float("inf")),
        (0.1, torch.bfloat16, 0.10009765625),
        (0.1, torch.float8_e4m3fn, 0.1015625),
        (1, float, 1.0),
        (3, torch.complex128, 3 + 0j),
    ],
    ids=repr,
)
def test_tensor_with_dtype_converts(data, dtype, value):
    assert torch.tensor([data], dtype=dtype).item() == value


@pytest.mark.parametrize(
    ("data", "kwargs", "error", "phrase"),
    [
        ([[1, 2], [3]], {}, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        (
            [[[1], [2]], [[3], [4, 5]]],
            {},
            ValueError,
            r"expected sequence of length 1 at dim 2 \(got 2\)",
        ),
        ([[1], 2], {}, TypeError, "not a sequence"),
        ("a", {}, TypeError, "invalid data type 'str'"),
        (["a"], {}, ValueError, "too many dimensions 'str'"),
        ([1, "a"], {}, TypeError, "invalid data type 'str'"),
        (None, {}, RuntimeError, "Could not infer dtype of NoneType"),
        ([None], {}, RuntimeError, "Could not infer dtype of NoneType"),
        ({1: 2}, {}, RuntimeError, "Could not infer dtype of dict"),
        (2**63, {}, ValueError, "Overflow"),
        (300, {"dtype": torch.uint8}, RuntimeError, "without overflow"),
        (float("nan"), {"dtype": torch.int64}, RuntimeError, "without overflow"),
        (1e20, {"dtype": torch.int32}, RuntimeError, "without overflow"),
        (1j, {"dtype": torch.float32}, TypeError, "must be real number, not complex"),
        ([torch.ones(2)], {}, ValueError, "only one element tensors"),
        (np.array(["a"]), {}, TypeError, "can't convert np.ndarray of type numpy.str_"),
        ([1], {"dtype": "float32"}, TypeError, "must be torch.dtype, not str"),
        ([1], {"device": "xyz"}, RuntimeError, "Expected one of cpu, cuda"),
        ([1], {"foo": 1}, TypeError, "unexpected keyword argument 'foo'"),
        (
            [1],
            {"requires_grad": True},
            RuntimeError,
            "Only Tensors of floating point and complex dtype",
        ),
    ],
    ids=repr,
)
def test_tensor_of_bad_data_raises(data, kwargs, error, phrase):
    with pytest.raises(error, match=phrase):
        torch.tensor(data, **kwargs)


def test_tensor_of_self_containing_list_raises():
    items = []
    items.append(items)
    with pytest.raises((ValueError, TypeError)):
        torch.tensor(items)


def test_tensor_of_list_that_shrinks_while_read_raises():
    class Shrinking(float):
        def __float__(self):
            items.clear()
            return 1.0

    items = [Shrinking(1.0), 2.0, 3.0]
    items[0] = type(
        "S", (), {"__float__": lambda self: items.clear() or 1.0, "__index__": lambda self: 1}
    )()
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        torch.tensor(items, dtype=torch.float32)


def test_tensor_copies_and_warns_for_tensors():
    x = torch.ones(2)
    with pytest.warns(UserWarning, match="To copy construct"):
        y = torch.tensor(x)
    y[0] = 5
    assert x.tolist() == [1, 1]


def test_as_tensor_shares_memory_where_possible():
    x = torch.ones(2)
    assert torch.as_tensor(x) is x
    a = np.ones(2, np.float32)
    torch.as_tensor(a)[0] = 7
    assert a[0] == 7
    assert torch.as_tensor(x, dtype=torch.int64).dtype is torch.int64


def test_asarray_follows_copy():
    x = torch.ones(2)
    assert torch.asarray(x).data_ptr() == x.data_ptr()
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="can't alias tensor with dtype"):
        torch.asarray(x, dtype=torch.int32, copy=False)
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        torch.asarray([1], copy=False)


def test_frombuffer_shares_memory_and_checks_bounds():
    data = bytearray(b"abcdefgh")
    t = torch.frombuffer(data, dtype=torch.int16)
    t[0] = 0
    assert data[:2] == b"\0\0"
    assert torch.frombuffer(data, dtype=torch.int32, count=1, offset=4).tolist() == [
        int.from_bytes(data[4:], "little")
    ]
    for kwargs in ({"count": 3}, {"offset": 9}, {"offset": -1}, {"offset": 1}, {"count": 0}):
        with pytest.raises(ValueError):
            torch.frombuffer(data, dtype=torch.int32, **kwargs)
    with pytest.raises(ValueError, match="buffer protocol"):
        torch.frombuffer([1], dtype=torch.int32)
    with pytest.raises(TypeError, match="dtype"):
        torch.frombuffer(data)


def test_frombuffer_holds_the_buffer():
    data = bytearray(b"abcdefgh")
    t = torch.frombuffer(data, dtype=torch.uint8)
    with pytest.raises(BufferError):
        data.clear()
    del t
    data.clear()


def test_new_tensor_takes_dtype_from_self():
    assert torch.ones(1, dtype=torch.int32).new_tensor([1.5, 2]).dtype is torch.int32
    assert torch.ones(1).new_tensor([1], dtype=torch.int64).dtype is torch.int64


def test_legacy_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor().shape == (0,)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.FloatTensor(np.ones(2)).dtype is torch.float32
    assert torch.ones(1, dtype=torch.int64).new([1.5]).tolist() == [1]
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.LongTensor)
    for args in [(1.5,), ("a",), (None,), (2, 1.5), ([1], 2), (True,)]:
        with pytest.raises(TypeError):
            torch.Tensor(*args)
    for args in [(-1,), (2**62, 2**62)]:
        with pytest.raises(RuntimeError):
            torch.Tensor(*args)


def test_pickling_keeps_values_views_and_sharing():
    x = torch.arange(6.0).view(2, 3)
    y, z = pickle.loads(pickle.dumps((x.t(), x)))
    assert y.tolist() == x.t().tolist() and y.stride() == (1, 3)
    assert z.tolist() == x.tolist()
    for dtype in (torch.bool, torch.int8, torch.bfloat16, torch.complex64):
        t = torch.tensor([1, 0, 1]).to(dtype)
        assert torch.equal(pickle.loads(pickle.dumps(t)), t)


def test_deepcopy_copies_memory_once():
    import copy

    x = torch.zeros(4)
    a, b = copy.deepcopy([x, x[:2]])
    a[0] = 1
    assert b.tolist() == [1, 0] and x.tolist() == [0, 0, 0, 0]


def test_storage_reads_and_writes_bytes():
    s = torch.UntypedStorage(4)
    s.fill_(7)
    assert s.tolist() == [7, 7, 7, 7] and len(s) == s.nbytes() == 4
    s[0] = 1
    s[2:] = 9
    assert list(s) == [1, 7, 9, 9]
    assert s[-1] == 9 and s[1:3].tolist() == [7, 9]
    s.resize_(2)
    assert s.tolist() == [1, 7]
    with pytest.raises(IndexError):
        s[2]
    with pytest.raises(RuntimeError):
        s.resize_(-1)


def test_storage_is_shared_between_views():
    x = torch.arange(4)
    assert x.untyped_storage() is x[1:].untyped_storage()
    assert x.untyped_storage().nbytes() == 32


def test_storage_of_a_file_is_the_file(tmp_path):
    path = tmp_path / "data"
    s = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=8)
    s.fill_(65)
    assert path.read_bytes() == b"A" * 8
    with pytest.raises(RuntimeError):
        torch.UntypedStorage.from_file(str(tmp_path / "absent"))
