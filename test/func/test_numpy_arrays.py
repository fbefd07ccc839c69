"""`torch._numpy` against NumPy itself: values, dtypes, shapes and errors."""

from __future__ import annotations

import copy
import pickle

import numpy
import pytest

import torch
import torch._numpy as np

DTYPES = "bool int8 int16 int32 int64 uint8 float16 float32 float64 complex64 complex128".split()


def same(ours: object, theirs: object, rtol: float = 1e-6) -> None:
    """Equal shape, dtype and values."""
    assert isinstance(ours, np.ndarray)
    theirs = numpy.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype.name.rstrip("_") == theirs.dtype.name
    numpy.testing.assert_allclose(ours.tensor.numpy(), theirs, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_two_dtypes_become_what_they_become_in_numpy(first: str, second: str) -> None:
    expected = numpy.result_type(first, second).name
    assert np.result_type(first, second).name.rstrip("_") == expected
    for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
        assert np.can_cast(first, second, casting) == numpy.can_cast(first, second, casting)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 1.5, 1j])
def test_a_number_of_python_has_a_kind_but_no_size(dtype: str, number: complex) -> None:
    same(np.ones(3, dtype=dtype) + number, numpy.ones(3, dtype=dtype) + number)
    same(number + np.ones(3, dtype=dtype), number + numpy.ones(3, dtype=dtype))


def test_a_number_outside_the_range_of_the_array_raises() -> None:
    with pytest.raises(OverflowError, match="300 out of bounds"):
        np.ones(2, dtype="uint8") + 300
    assert (np.ones(2, dtype="uint8") < 300).all() and not (np.ones(2, dtype="uint8") == -1).any()


UNARY = "sin cos tan exp log sqrt abs negative sign floor ceil rint isnan square conj exp2".split()
BINARY = """add subtract multiply divide floor_divide remainder power maximum minimum fmax arctan2
    hypot equal less logical_and copysign nextafter logaddexp""".split()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_functions_of_one_array(name: str, dtype: str) -> None:
    values = numpy.array([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    expected = getattr(numpy, name)(values)
    result = getattr(np, name)(np.asarray(values))
    numpy.testing.assert_allclose(result.tensor.numpy(), expected, rtol=1e-6)
    if dtype != "int32":
        assert result.dtype.name.rstrip("_") == expected.dtype.name


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_broadcast(name: str) -> None:
    a = numpy.array([[1.5, 2, 3], [4, 5, 6]])
    b = numpy.array([3.0, 2, 0.5])
    same(getattr(np, name)(np.asarray(a), np.asarray(b)), getattr(numpy, name)(a, b))


def test_out_takes_what_the_casting_rule_allows() -> None:
    out = np.empty(3, dtype="float32")
    assert np.add(np.arange(3.0), 1, out=out) is out
    assert out.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(np.arange(3.0), 1, out=out, casting="safe")
    with pytest.raises(ValueError, match="out has shape"):
        np.sum(np.ones((2, 3)), axis=0, out=np.empty(2))
    with pytest.raises(NotImplementedError, match="'where' parameter"):
        np.add(out, out, where=False)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", "sum prod mean var std any all max min".split())
def test_reductions(name: str, axis: object, keepdims: bool) -> None:
    values = numpy.random.default_rng(0).standard_normal((2, 3, 4))
    expected = getattr(numpy, name)(values, axis=axis, keepdims=keepdims)
    result = getattr(np, name)(values, axis=axis, keepdims=keepdims)
    numpy.testing.assert_allclose(result.tensor.numpy(), expected, rtol=1e-12)
    assert result.shape == numpy.shape(expected)


CALLS = {
    "quantiles": lambda m, x: m.quantile(x, [0.1, 0.5, 0.9], axis=1),
    "median": lambda m, x: m.median(x, axis=0, keepdims=True),
    "percentile": lambda m, x: m.percentile(x, 30),
    "cumsum": lambda m, x: m.cumsum(x, axis=1),
    "diff": lambda m, x: m.diff(x, axis=0),
    "gradient": lambda m, x: m.gradient(x, 0.5, axis=1, edge_order=2),
    "cov": lambda m, x: m.cov(x),
    "corrcoef": lambda m, x: m.corrcoef(x),
    "average": lambda m, x: m.average(x, axis=1, weights=[1, 2, 3, 4]),
    "sort": lambda m, x: m.sort(x, axis=0),
    "argsort": lambda m, x: m.argsort(x, axis=1),
    "roll": lambda m, x: m.roll(x, (1, 2), axis=(0, 1)),
    "rot90": lambda m, x: m.rot90(x),
    "tile": lambda m, x: m.tile(x, (2, 1)),
    "pad": lambda m, x: m.pad(x, ((1, 2), (0, 1)), constant_values=7),
    "where": lambda m, x: m.where(x > 0, x, 0),
    "clip": lambda m, x: m.clip(x, -0.5, 0.5),
    "outer": lambda m, x: m.outer(x, x),
    "kron": lambda m, x: m.kron(x, x),
    "tensordot": lambda m, x: m.tensordot(x, x, axes=([1], [1])),
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "einsum by numbers": lambda m, x: m.einsum(x, [0, 1], x, [2, 1], [0, 2]),
    "cross": lambda m, x: m.cross(x[:, :3], x[:, 1:]),
    "concatenate": lambda m, x: m.concatenate([x, x], axis=1),
    "stack": lambda m, x: m.stack([x, x], axis=-1),
    "vander": lambda m, x: m.vander(x[0]),
    "linspace": lambda m, x: m.linspace(0, 1, 7, endpoint=False),
    "geomspace": lambda m, x: m.geomspace(1, 1000, 4),
    "logspace": lambda m, x: m.logspace(0, 2, 5),
    "kaiser": lambda m, x: m.kaiser(9, 4.0),
    "hamming": lambda m, x: m.hamming(8),
    "bartlett": lambda m, x: m.bartlett(8),
    "convolve": lambda m, x: m.convolve(x[0], x[1], "same"),
    "correlate": lambda m, x: m.correlate(x[0], x[1], "full"),
    "trace": lambda m, x: m.trace(x),
    "take": lambda m, x: m.take(x, [[0, 1], [2, -1]], axis=1),
    "choose": lambda m, x: m.choose([0, 1, 0, 1], [x[0], x[1]]),
    "searchsorted": lambda m, x: m.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0], side="right"),
    "indices": lambda m, x: m.indices((2, 3)),
    "norm": lambda m, x: m.linalg.norm(x, axis=1),
    "solve": lambda m, x: m.linalg.solve(x[:, :3] + 3 * m.eye(3), x[:, 3]),
    "det": lambda m, x: m.linalg.det(x[:, :3]),
    "fft": lambda m, x: m.fft.rfft(x, axis=0),
    "fftshift": lambda m, x: m.fft.fftshift(x),
    "histogram": lambda m, x: m.histogram(x, bins=4, range=(-2, 2))[0],
    "bincount": lambda m, x: m.bincount([1, 2, 2, 5]),
    "meshgrid": lambda m, x: m.meshgrid(x[0], x[1])[1],
    "nan_to_num": lambda m, x: m.nan_to_num(x / 0.0 if False else x),
    "unique": lambda m, x: m.unique([3, 1, 2, 1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_give_what_numpy_gives(name: str) -> None:
    values = numpy.random.default_rng(1).standard_normal((3, 4))
    expected = CALLS[name](numpy, values)
    result = CALLS[name](np, np.asarray(values))
    same(result, expected, rtol=1e-9)


def test_indices_are_numbers_and_never_masks_of_bytes() -> None:
    a = np.arange(5) * 10
    assert a[np.asarray([1, 0, 1], dtype="uint8")].tolist() == [10, 0, 10]
    assert a[[True, False, True, False, False]].tolist() == [0, 20]
    a[1:3] = [7.9, 8.9]
    assert a.tolist() == [0, 7, 8, 30, 40]
    with pytest.raises(IndexError, match="integer"):
        a[np.asarray([1.0])]


def test_arrays_are_objects_of_python() -> None:
    a = np.arange(6).reshape(2, 3)
    assert len(a) == 2 and 5 in a and 7 not in a
    assert [row.tolist() for row in a] == [[0, 1, 2], [3, 4, 5]]
    assert int(np.int32(3)) == 3 and range(4)[np.array(2)] == 2
    assert copy.deepcopy(a).tolist() == pickle.loads(pickle.dumps(a)).tolist() == a.tolist()
    assert a.T.flags["F_CONTIGUOUS"] and not a.T.flags.c_contiguous
    assert repr(a) == "torch.ndarray([[0, 1, 2],\n        [3, 4, 5]])"
    with pytest.raises(TypeError, match="unsized"):
        len(np.array(1))
    with pytest.raises(np.AxisError, match="axis 2 is out of bounds for array of dimension 2"):
        a.sum(axis=2)


def test_gradients_flow_through_functions_of_arrays() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    total = np.sum(np.sin(np.asarray(x)) ** 2)
    total.tensor.backward()
    assert torch.allclose(x.grad, torch.sin(2 * x.detach()))


def test_default_dtypes_can_be_those_of_pytorch() -> None:
    try:
        np.set_default_dtype("pytorch")
        assert np.asarray([1.5]).dtype == np.float32 and (np.ones(2) * 1j).dtype == "complex64"
    finally:
        np.set_default_dtype("numpy")
    assert np.asarray([1.5]).dtype == "float64"


@pytest.mark.parametrize("bad", ["S1", "V3", "foo", object, torch.bfloat16])
def test_dtypes_without_a_counterpart_are_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="not understood"):
        np.dtype(bad)


def test_random_numbers_come_from_the_stream_that_was_chosen() -> None:
    import torch._dynamo.config as config

    torch.manual_seed(5)
    expected = torch.rand(3, dtype=torch.float64)
    torch.manual_seed(5)
    assert torch.equal(np.random.rand(3).tensor, expected)
    assert isinstance(np.random.normal(), float)
    with config.patch(use_numpy_random_stream=True):
        numpy.random.seed(3)
        values = numpy.random.rand(3)
        np.random.seed(3)
        assert np.random.rand(3).tolist() == values.tolist()
    picked = np.random.choice(5, size=4, replace=False)
    assert len(set(picked.tolist())) == 4
    with pytest.raises(NotImplementedError, match="lists"):
        np.random.shuffle([1, 2])
