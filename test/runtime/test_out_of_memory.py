"""Allocation failing at every point of thirty typical calls. Each failure has to be
torch.OutOfMemoryError, has to leave every tensor of the call as it was, leak nothing, and the same
call right after it has to give the same bits as one that never failed."""

import gc

import pytest

import torch

fail_at = torch._C._set_alloc_failure


def f(*shape):
    generator = torch.Generator().manual_seed(7)
    return torch.rand(shape, generator=generator)


def i(*shape, high=5):
    generator = torch.Generator().manual_seed(8)
    return torch.randint(0, high, shape, generator=generator)


# name: (the call, its tensors); thirty of what programs do all the time
CALLS = {
    "add": (lambda a, b: a + b, lambda: (f(3, 5), f(5))),
    "add_promote": (lambda a, b: a + b, lambda: (f(3, 5), i(3, 1))),
    "add_inplace": (lambda a, b: a.add_(b), lambda: (f(300, 5), f(5))),
    "mul_scalar": (lambda a: a * 2.5, lambda: (f(4, 4),)),
    "exp_large": (lambda a: a.exp(), lambda: (f(70000),)),
    "where": (lambda a, b: torch.where(a > 0.5, a, b), lambda: (f(9, 9), f(9, 9))),
    "clamp": (lambda a: a.clamp(0.2, 0.8), lambda: (f(7, 3),)),
    "compare": (lambda a, b: (a == b, a < b), lambda: (i(8), i(8))),
    "sum": (lambda a: a.sum(), lambda: (f(300, 301),)),
    "sum_dim": (lambda a: a.sum(0, keepdim=True), lambda: (f(30, 41),)),
    "mean_var": (lambda a: (a.mean(1), a.var(1)), lambda: (f(30, 41),)),
    "max_dim": (lambda a: tuple(a.max(1)), lambda: (f(30, 41),)),
    "argmax": (lambda a: a.argmax(), lambda: (f(30, 41),)),
    "softmax": (lambda a: a.softmax(-1), lambda: (f(30, 41),)),
    "cumsum": (lambda a: a.cumsum(1), lambda: (f(30, 41),)),
    "matmul": (lambda a, b: a @ b, lambda: (f(65, 70), f(70, 33))),
    "bmm": (lambda a, b: torch.bmm(a, b), lambda: (f(3, 8, 9), f(3, 9, 4))),
    "addmm": (lambda a, b, c: torch.addmm(c, a, b), lambda: (f(8, 9), f(9, 4), f(4))),
    "cat": (lambda a, b: torch.cat([a, b], 1), lambda: (f(3, 4), f(3, 2))),
    "stack": (lambda a, b: torch.stack([a, b]), lambda: (f(3, 4), f(3, 4))),
    "transpose_contiguous": (lambda a: a.t().contiguous(), lambda: (f(50, 60),)),
    "view_slice": (lambda a: a.view(-1)[2:9:2], lambda: (f(5, 6),)),
    "index_list": (lambda a: a[[0, 2], :], lambda: (f(5, 6),)),
    "index_mask": (lambda a: a[a > 0.5], lambda: (f(50, 6),)),
    "setitem": (lambda a, b: a.__setitem__(slice(1, 3), b), lambda: (f(5, 6), f(6))),
    "gather": (lambda a, b: a.gather(1, b), lambda: (f(5, 6), i(5, 6))),
    "scatter_add": (lambda a, b, c: a.scatter_add(1, b, c), lambda: (f(5, 6), i(5, 6), f(5, 6))),
    "index_select": (lambda a, b: a.index_select(0, b), lambda: (f(5, 6), i(7))),
    "to_dtype": (lambda a: a.to(torch.float64), lambda: (f(50, 60),)),
    "factories": (lambda: (torch.zeros(3, 4), torch.ones(2), torch.arange(7)), lambda: ()),
    "tensor_from_list": (lambda: torch.tensor([[1, 2], [3, 4]]), lambda: ()),
    "clone_numpy_like": (lambda a: a.clone(), lambda: (f(3, 1, 4).expand(3, 7, 4),)),
    "sort": (lambda a: tuple(a.sort()), lambda: (f(40),)),
    "topk": (lambda a: tuple(a.topk(3)), lambda: (f(40),)),
}
LIMIT = 200  # no typical call makes so many allocations


def bits(value):
    """The value as bytes, shapes and dtypes, through tensors of any structure."""
    if isinstance(value, torch.Tensor):
        data = value.contiguous().view(-1).view(torch.uint8).tolist() if value.numel() else []
        return (str(value.dtype), tuple(value.shape), data)
    if isinstance(value, (tuple, list)):
        return [bits(v) for v in value]
    return value


def attempt(call, tensors, k, persist):
    """Runs the call with the k-th allocation failing; (result, whether it failed)."""
    fail_at(k, persist)
    try:
        return call(*tensors), False
    except torch.OutOfMemoryError:
        return None, True
    finally:
        fail_at(0)


@pytest.mark.parametrize("persist", [False, True], ids=["once", "for_good"])
@pytest.mark.parametrize("name", CALLS)
def test_failing_allocation_raises_and_leaves_tensors_intact(name, persist):
    call, make = CALLS[name]
    first = make()
    result = bits(call(*first))
    after = bits(first)
    failures = 0
    for k in range(1, LIMIT):
        tensors = make()
        before = bits(tensors)
        value, failed = attempt(call, tensors, k, persist)
        if not failed:
            assert bits(value) == result
            break
        failures += 1
        assert bits(tensors) == before, f"allocation {k}"
        assert bits(call(*tensors)) == result, f"retry after allocation {k}"
        assert bits(tensors) == after
    else:
        raise AssertionError("the call never got through")
    # Writing into what is there needs no memory; every other call has to have been made to fail.
    assert failures > 0 or name in ("add_inplace", "setitem", "scatter_add")


@pytest.mark.parametrize("name", CALLS)
def test_failing_allocation_leaks_nothing(name):
    call, make = CALLS[name]
    tensors = make()
    call(*tensors)

    def live():
        gc.collect()
        return torch._C._live_allocations()

    before = live()
    for k in range(1, LIMIT):
        _, failed = attempt(call, tensors, k, False)
        if not failed:
            break
    del _
    assert live() == before


def test_request_beyond_memory_is_out_of_memory_error():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2**55, dtype=torch.uint8)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
