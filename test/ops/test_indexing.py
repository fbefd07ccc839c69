"""x[key] and x[key] = value against NumPy, and the rules where PyTorch differs from it."""

import numpy as np
import pytest

import torch

N = None
KEYS = [
    0,
    -1,
    (1, 2),
    (0, 1, 2),
    ...,
    slice(None),
    (slice(None), 0),
    (..., 0),
    (..., -1, slice(None)),
    (0, ..., 1),
    N,
    (slice(None), N, 1),
    (..., N),
    (N, slice(None), N),
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    (slice(None), slice(1, None, 2), slice(None, None, 3)),
    slice(1, 1),
    slice(5, 9),
    (slice(-2, None), slice(-2, None)),
    (slice(None), slice(2, 0)),
    (),
    [0, 1],
    [1, 0, 1],
    (slice(None), [0, 2]),
    ([0, 1], [1, 2]),
    ([0], [1], [2]),
    (slice(None), [0, 2], [1, 3]),
    ([0, 1], slice(None), [1, 3]),
    (slice(None), slice(None), [0, 0, 3]),
    (0, [1, 2]),
    ([0, 1], slice(1, None), 0),
    (..., [0, 1]),
    ([], slice(None)),
    [-1, -2],
    True,
    False,
    (N, True),
    (True, 0),
    (np.array([[0, 1], [1, 0]]), slice(0, 2)),
    (np.array([0, 1])[:, N], np.array([0, 2])),
    np.int64(1),
    (np.array([0, 1]), N, np.array([0, 2])),
    (slice(None), np.array([0, 1]), np.array([0, 2])),
    np.arange(24).reshape(2, 3, 4) > 10,
    np.array([True, False]),
    (slice(None), np.array([True, False, True])),
    (np.array([True, False]), 1),
    (..., np.array([False, True, True, True])),
    np.zeros((2, 3, 4), bool),
]


def as_torch(key):
    if isinstance(key, tuple):
        return tuple(as_torch(k) for k in key)
    return torch.from_numpy(key) if isinstance(key, np.ndarray) else key


def base():
    return np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_getitem_gives_what_numpy_gives(key):
    expected = base()[key]
    for tensor_key in (key, as_torch(key)):
        got = torch.from_numpy(base())[tensor_key]
        assert tuple(got.shape) == expected.shape
        assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize("value", [7, "ones", "row"])
def test_setitem_writes_where_numpy_writes(key, value):
    expected = base()
    shape = expected[key].shape
    if value == "ones":
        array = np.asarray(-np.arange(np.prod(shape, dtype=int)).reshape(shape))
    elif value == "row":
        array = np.array(-5)
    else:
        array = np.array(value)
    expected[key] = array
    got = torch.from_numpy(base().copy())
    got[as_torch(key)] = 7 if value == 7 else torch.from_numpy(array)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "key", [0, (1, 2), ..., slice(1), N, (..., N), (slice(None), 0), ()], ids=repr
)
def test_getitem_with_basic_keys_is_a_view(key):
    x = torch.zeros(2, 3, 4)
    part = x[key]
    part.fill_(1)
    assert part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.sum().item() == part.numel()
    assert part is not x


@pytest.mark.parametrize("key", [[0], [True, False], torch.tensor([0, 1]), True], ids=repr)
def test_getitem_with_tensor_keys_is_a_copy(key):
    x = torch.zeros(2, 3)
    x[key].fill_(1)
    assert x.sum().item() == 0


def test_getitem_with_zero_dim_integer_tensor_selects():
    x = torch.arange(6).view(2, 3)
    assert x[torch.tensor(1)].tolist() == [3, 4, 5]
    assert x[torch.tensor(1), 1:].tolist() == [4, 5]


def test_getitem_with_byte_tensor_is_a_mask():
    x = torch.arange(2)
    assert x[torch.tensor([1, 0], dtype=torch.uint8)].tolist() == [0]
    assert x[torch.tensor(1, dtype=torch.uint8)].shape == (1, 2)


def test_getitem_with_nested_list_is_a_tuple_with_a_warning():
    x = torch.arange(6).view(2, 3)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [1, 0]]].tolist() == [1, 3]


def test_slice_bounds_of_any_size_are_clamped():
    x = torch.arange(3)
    assert x[: 2**70].tolist() == x[-(2**70) :].tolist() == [0, 1, 2]
    assert x[2**70 :].tolist() == []


@pytest.mark.parametrize(
    ("key", "error", "phrase"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (1.5, IndexError, "only integers, slices"),
        ({}, IndexError, "only integers, slices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (slice("a", 2), TypeError, "slice indices must be integers"),
        (2**70, ValueError, "Overflow"),
        ("a", TypeError, "invalid data type 'str'"),
        ([2], IndexError, "index 2 is out of bounds"),
        (torch.tensor([1.0]), IndexError, "tensors used as indices must be"),
        (torch.tensor([True, False, True]), IndexError, r"The shape of the mask \[3\] at index 0"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:Using a non-tuple")
def test_bad_keys_raise_for_reading_and_writing(key, error, phrase):
    x = torch.zeros(2, 3, 4)
    with pytest.raises(error, match=phrase):
        x[key]
    with pytest.raises(error, match=phrase):
        x[key] = 1
    assert x.sum().item() == 0


def test_zero_dim_tensors_cannot_be_indexed_with_ints():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1)[0]
    assert torch.tensor(1)[...].item() == 1
    assert torch.tensor(1)[None].shape == (1,)


@pytest.mark.parametrize("value", ["a", None, [1, 2, 3], np.ones(3), b"x"], ids=repr)
def test_setitem_of_other_objects_raises(value):
    with pytest.raises(TypeError, match="can't assign a"):
        torch.zeros(2, 3)[0] = value


def test_setitem_ignores_leading_ones_of_the_value():
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 1, 3)
    assert x.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_setitem_with_wrong_shape_raises_and_leaves_the_tensor():
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="expanded size of the tensor"):
        x[0] = torch.ones(4)
    assert x.sum().item() == 0


def test_setitem_converts_numbers_to_the_dtype_and_checks_the_range():
    x = torch.zeros(3, dtype=torch.int64)
    x[0] = 2.9
    x[1] = True
    assert x.tolist() == [2, 1, 0]
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = float("nan")
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(1, dtype=torch.uint8)[0] = 300


def test_setitem_increases_the_version():
    x = torch.zeros(3)
    before = x._version
    x[0] = 1
    assert x._version > before


def test_augmented_assignment_changes_the_tensor_in_place():
    x = torch.zeros(4)
    x[::2] += 100
    assert x.tolist() == [100, 0, 100, 0]


def test_items_cannot_be_deleted():
    with pytest.raises(TypeError):
        del torch.zeros(2)[0]


def test_getitem_asks_torch_function():
    class Logged(torch.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.arange(4).as_subclass(Logged)
    Logged.calls.clear()
    assert type(x[0]) is Logged
    x[0] = 3
    assert Logged.calls == ["__getitem__", "__setitem__"]
