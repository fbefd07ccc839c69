"""Sorting, selecting, gathering and adding within rows on CUDA against the CPU: every length class
of the sort, selections whose best elements crowd together, and the dense layouts of gather and
scatter_add, whose sums must keep the order of the elements."""

import pytest
from cuda_support import cuda

import torch


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(11)


def same(got, want):
    assert got.device.type == "cuda"
    torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, equal_nan=True)


def numbers(dtype, *shape):
    x = (torch.randn(*shape) * 20).to(dtype)
    if dtype.is_floating_point and shape[-1] > 4:
        x[0, 1], x[0, 3] = float("nan"), -0.0
        x[1, 0], x[1, 2], x[1, 3] = -0.0, float("inf"), 0.0
    return x


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int16],
)
@pytest.mark.parametrize("n", [5, 600, 2048, 2500, 8192])
def test_rows_are_sorted_stably(dtype, n):
    x = numbers(dtype, 2, n)
    for descending in (False, True):
        got = torch.sort(x.to(cuda), 1, descending=descending)
        want = torch.sort(x, dim=1, descending=descending, stable=True)
        same(got.indices, want.indices)
        same(got.values, want.values)
        if dtype.is_floating_point:
            same(torch.signbit(got.values), torch.signbit(want.values))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (100, 64), (3000, 10), (9000, 64), (20000, 3)])
def test_selected_elements_come_in_order_and_the_earlier_of_equals_first(dtype, n, k):
    x = numbers(dtype, 2, n)
    for largest in (False, True):
        got = torch.topk(x.to(cuda), k, 1, largest)
        want = torch.sort(x, dim=1, descending=largest, stable=True).indices[:, :k]
        same(got.indices, want)
        same(got.values, x.gather(1, want))


def test_selection_where_the_best_crowd_in_one_place():
    x = torch.randn(2, 200000)
    x[:, ::1024] += 100
    x[:, 1::1024] += 50
    want = torch.sort(x, dim=1, descending=True, stable=True).indices[:, :7]
    same(torch.topk(x.to(cuda), 7, 1).indices, want)
    equal = torch.zeros(2, 30000, device=cuda)
    same(torch.topk(equal, 64, 1).indices, torch.arange(64).expand(2, 64))


DENSE = [
    ((70, 50), (70, 33), 1),
    ((70, 50), (66, 3000), 1),
    ((70, 50), (30, 50), 0),
    ((3, 7, 200), (3, 9, 200), 1),
    ((5, 6), (4, 8), 1),
    ((100,), (2500,), 0),
    ((9, 20000), (9, 300), 1),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.complex128])
@pytest.mark.parametrize(("shape", "asked", "dim"), DENSE)
def test_gather_of_dense_tensors(dtype, shape, asked, dim):
    x, i = (torch.randn(shape) * 50).to(dtype), torch.randint(0, shape[dim], asked)
    same(x.to(cuda).gather(dim, i.to(cuda)), x.gather(dim, i))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize(
    ("shape", "given", "dim"),
    [
        ((70, 50), (70, 500), 1),
        ((90, 5), (66, 100), 1),
        ((50, 200), (77, 200), 0),
        ((3, 7, 200), (3, 19, 200), 1),
        ((2, 3), (2, 40), 1),
        ((300, 70), (600, 70), 0),
        ((2, 30, 40), (2, 513, 40), 1),
    ],
)
def test_sums_of_dense_tensors(dtype, shape, given, dim):
    x, s = (torch.randn(shape) * 50).to(dtype), (torch.randn(given) * 50).to(dtype)
    i = torch.randint(0, shape[dim], given)
    got = x.to(cuda).scatter_add(dim, i.to(cuda), s.to(cuda))
    want = x.double().scatter_add(dim, i, s.double())
    torch.testing.assert_close(got.cpu().double(), want, rtol=1e-5, atol=2e-3)
    same(x.to(cuda).scatter_add(dim, i.to(cuda), s.to(cuda)), got.cpu())


def test_sums_of_half_types_are_rounded_once():
    x, s = torch.randn(70, 50).bfloat16(), torch.randn(70, 200).bfloat16()
    i = torch.randint(0, 50, (70, 200))
    want = x.float().scatter_add(1, i, s.float()).bfloat16()
    same(x.to(cuda).scatter_add(1, i.to(cuda), s.to(cuda)), want)


def test_sums_of_half_types_along_columns_are_rounded_once():
    x, s = torch.randn(50, 70).half(), torch.randn(520, 70).half()
    i = torch.randint(0, 50, (520, 70))
    want = x.float().scatter_add(0, i, s.float()).half()
    same(x.to(cuda).scatter_add(0, i.to(cuda), s.to(cuda)), want)


def test_rows_chosen_by_a_mask_or_an_index_tensor():
    x = torch.randn(40, 8)
    on_gpu = x.to(cuda)
    mask = torch.rand(40) > 0.5
    same(on_gpu[mask.to(cuda)], x[mask])
    i = torch.randint(-40, 40, (3, 6))
    same(on_gpu[i.to(cuda)], x[i])
    same(on_gpu[i], x[i])
    same(on_gpu[i[:, ::2].to(cuda)], x[i[:, ::2]])
    same(on_gpu[:, (i % 8).to(cuda)], x[:, i % 8])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, i: x[i[:1, 0] + 71], "index 71"),
        (lambda x, i: x.gather(1, i + 8), "index 8"),
        (lambda x, i: x.scatter_add(1, i - 1, x), "index -1"),
        (lambda x, i: x.t().contiguous().scatter_add(0, i[:8].new_full((8, 70), 9), x.t()), "9"),
    ],
)
def test_bad_indices_are_reported(call, text):
    x = torch.zeros(70, 8, device=cuda)
    i = torch.zeros(70, 8, dtype=torch.int64, device=cuda)
    with pytest.raises(IndexError, match=text):
        call(x, i)
        torch.cuda.synchronize()
    assert x.sum().item() == 0
