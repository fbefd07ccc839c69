"""NumPy inside of compiled functions: one graph, results of NumPy itself."""

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
    assert torch.equal(run(T), fn(T))


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


def test_change_of_a_view_breaks_the_graph_and_shows_in_the_array():
    torch._dynamo.reset()

    def fn(a):
        part = a[0]
        part += 1
        return a * 2

    mine = copy.deepcopy(A)
    result = torch.compile(fn, backend="eager")(mine)
    assert np.array_equal(mine[0], A[0] + 1)
    assert np.array_equal(result, mine * 2)


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


def test_random_numbers_come_from_the_stream_of_numpy():
    torch._dynamo.reset()
    fn = lambda t: t + torch.from_numpy(np.random.rand(3))
    run = torch.compile(fn, backend="eager", fullgraph=True)
    np.random.seed(5)
    got = [run(T), run(T)]
    np.random.seed(5)
    assert all(map(torch.equal, got, [fn(T), fn(T)]))


def test_tensor_of_a_tensor_is_a_copy():
    torch._dynamo.reset()

    def fn(t):
        return torch.tensor(t).add_(1)

    given = T.clone()
    assert torch.equal(torch.compile(fn, backend="eager", fullgraph=True)(given), T + 1)
    assert torch.equal(given, T)
