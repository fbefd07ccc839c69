"""NumPy inside of compiled functions: one graph of torch._numpy, arrays at its edges, compared with
NumPy itself."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter

A = np.arange(6.0).reshape(2, 3)
T = torch.tensor([0.5, 1.0, 2.0])


def sums(a):
    return a.sum(0) * 2 + np.sin(a)[0]


def facts(a):
    return a.mean(), a.shape, a.dtype, a.ndim, a.size, list(a), len(a)


def joined(a):
    return np.concatenate([a, np.ones((1, 3))]).T


def grids(a):
    return np.meshgrid(a[0], a[1])


def numbers(a):
    return a * int(np.prod((2, 3))) + np.float32(2) + np.iinfo(np.int16).max


def same(x, y):
    if isinstance(x, (tuple, list)):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, torch.Tensor):
        return torch.equal(x, y)
    return type(x) is type(y) and np.array_equal(x, y)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [sums, facts, joined, grids, numbers])
def test_function_of_arrays_gives_what_numpy_gives(fn, backend):
    torch._dynamo.reset()
    run = torch.compile(fn, backend=backend, fullgraph=True)
    for scale in (1.0, 3.0):
        assert same(run(A * scale), fn(A * scale))


def test_tensors_become_arrays_and_come_back():
    torch._dynamo.reset()

    def fn(t):
        return torch.from_numpy(np.exp(t.numpy()) + 1) * 2

    run = torch.compile(fn, backend="eager", fullgraph=True)
    torch.testing.assert_close(run(T), fn(T))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradient_flows_through_arrays(backend):
    torch._dynamo.reset()

    def fn(t):
        return torch.from_numpy(np.sin(t.numpy()) ** 2).sum()

    given = T.clone().requires_grad_()
    torch.compile(fn, backend=backend, fullgraph=True)(given).backward()
    torch.testing.assert_close(given.grad, 2 * T.sin() * T.cos())


def test_tensor_of_a_list_of_arrays_holds_them_all():
    torch._dynamo.reset()
    fn = lambda a: torch.tensor([a, [a[1], a[0]]], dtype=torch.float32)
    assert torch.equal(torch.compile(fn, backend="aot_eager", fullgraph=True)(A), fn(A))


def test_forced_array_has_no_gradient():
    torch._dynamo.reset()
    fn = torch.compile(
        lambda t: torch.from_numpy(np.sin(t.numpy(force=True))), backend="eager", fullgraph=True
    )
    assert not fn(T.clone().requires_grad_()).requires_grad


SINGLE = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: a + 1.5,
        lambda a: a * np.float64(2),
        lambda a: a * np.pi,
        lambda a: np.arange(4) / 2,
        lambda a: np.arange(4) ** 2,
        lambda a: np.zeros(3, dtype=a.dtype),
        lambda a: a.astype(np.float16),
        lambda a: np.linspace(0, 1, 4),
        lambda a: a + np.finfo(a.dtype).eps,
        lambda a: (a.max(), a.argmax(), a.min(axis=1)),
        lambda a: np.where(a > 2, a, 0),
        lambda a: np.array([1, 2.5]),
        lambda a: (a[0, 1], a[..., 0], a[0, 1, ...], a.T, a.flat[2]),
        lambda a: np.add(a, a, out=a.copy()),
        lambda a: np.linalg.norm(a),
        lambda a: np.einsum("ij,kj->ik", a, a),
    ],
)
def test_dtypes_and_kinds_of_results_are_those_of_numpy(fn):
    torch._dynamo.reset()
    got = torch.compile(fn, backend="eager", fullgraph=True)(SINGLE)
    wanted = fn(SINGLE)
    for x, y in zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]:
        assert type(x) is type(y) and x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_array_given_is_changed_in_place():
    torch._dynamo.reset()

    def fn(a, b):
        a[..., 0] = b
        a += 1
        return a

    mine, wanted = copy.deepcopy(A), copy.deepcopy(A)
    result = torch.compile(fn, backend="eager", fullgraph=True)(mine, np.array([7.0, 8.0]))
    fn(wanted, np.array([7.0, 8.0]))
    assert np.array_equal(mine, wanted) and np.array_equal(result, wanted)


@pytest.mark.parametrize("key", [0, slice(None, None, -1)], ids=["row", "reversed"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_change_of_a_view_shows_in_the_array(backend, key):
    torch._dynamo.reset()

    def fn(a):
        part = a[key]
        part += 1
        part[0] = 7
        return a * 2

    mine, wanted = copy.deepcopy(A), copy.deepcopy(A)
    # Tensors have no negative steps: the change of such a view breaks the graph.
    result = torch.compile(fn, backend=backend, fullgraph=key == 0)(mine)
    assert np.array_equal(result, fn(wanted)) and np.array_equal(mine, wanted)


def test_result_whose_shape_depends_on_values_breaks_the_graph():
    torch._dynamo.reset()
    fn = torch.compile(lambda a: np.unique(a) * 2, backend="eager")
    assert np.array_equal(fn(np.array([1.0, 1.0, 2.0])), np.array([2.0, 4.0]))


def test_other_dtype_or_shape_is_compiled_again():
    torch._dynamo.reset()
    count = CompileCounter()
    fn = torch.compile(lambda a: a * 2, backend=count, fullgraph=True)
    for array in (A, A + 1, A.astype(np.float32), A[:1]):
        assert same(fn(array), array * 2)
    assert count.frame_count == 3


def test_random_numbers_come_from_the_stream_of_torch():
    torch._dynamo.reset()
    run = torch.compile(lambda: np.random.rand(3), backend="eager", fullgraph=True)
    torch.manual_seed(5)
    got = [run(), run()]
    torch.manual_seed(5)
    wanted = [torch.rand(3, dtype=torch.float64).numpy() for _ in range(2)]
    assert all(map(np.array_equal, got, wanted))


def test_random_numbers_come_from_the_stream_of_numpy_where_that_is_asked_for():
    torch._dynamo.reset()
    fn = lambda t: t + torch.from_numpy(np.random.rand(3))
    with torch._dynamo.config.patch(use_numpy_random_stream=True):
        run = torch.compile(fn, backend="eager")
        np.random.seed(5)
        got = [run(T), run(T)]
        np.random.seed(5)
        assert all(map(torch.equal, got, [fn(T), fn(T)]))


def test_function_that_is_not_traced_breaks_the_graph():
    torch._dynamo.reset()
    fn = torch.compile(lambda a: np.add.reduce(a * 2) + 1, backend="eager")
    assert np.array_equal(fn(A), A.sum(0) * 2 + 1)


def test_tensor_of_a_tensor_is_a_copy():
    torch._dynamo.reset()

    def fn(t):
        return torch.tensor(t).add_(1)

    given = T.clone()
    assert torch.equal(torch.compile(fn, backend="eager", fullgraph=True)(given), T + 1)
    assert torch.equal(given, T)


NUMBERS = [np.int64(3), np.float32(2.5), np.float64(2.5), np.ones(3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.float16])
@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: type(v).__name__)
def test_operator_beside_a_tensor_gives_the_tensor_that_eager_gives(value, dtype):
    torch._dynamo.reset()
    tensor = torch.arange(3).to(dtype)
    compiled = torch.compile(lambda t, n: (t + n, t * n), backend="eager", fullgraph=True)
    got, wanted = compiled(tensor, value), (tensor + value, tensor * value)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


def test_number_of_numpy_before_a_tensor_gives_a_tensor():
    torch._dynamo.reset()
    fn = lambda t, n: n * t
    got = torch.compile(fn, backend="eager", fullgraph=True)(T, np.float64(2))
    assert got.dtype == fn(T, np.float64(2)).dtype and torch.equal(got, T * 2)


def test_number_that_varies_and_one_of_numpy_are_traced_together():
    torch._dynamo.reset()
    fn = torch.compile(lambda t, a, b: t + a % b, backend="eager", fullgraph=True, dynamic=True)
    for number in (4099, 4101):
        assert torch.equal(fn(T, number, np.int64(8)), T + number % 8)
