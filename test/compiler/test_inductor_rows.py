"""Chains of rows in compiled graphs: softmax, norms and reductions of rows run with what stands
before and after them on a few rows at a time. Results are those of the operators one by one, bit
for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch._inductor import metrics
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def _counted() -> Iterator[None]:
    metrics.reset()
    yield
    assert metrics.not_lowered == []


def check(fn: Callable, *args: torch.Tensor, kernels: int, calls: int = 0) -> list[torch.Tensor]:
    run = compile_fx_inner(make_fx(fn)(*args), list(args))
    expected = fn(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    got = run(list(args))
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype and g.stride() == e.stride()
        assert torch.equal(g.nan_to_num(), e.nan_to_num())
    assert (metrics.generated_kernel_count, metrics.num_calls) == (kernels, calls)
    return got


@pytest.mark.parametrize("shape", [(2, 3), (5, 64), (300, 70), (7, 11, 130), (2048, 9)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_norm_softmax_and_sum_of_rows_are_one_kernel(shape: tuple, dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype)
    w, b = torch.randn(2, shape[-1], dtype=dtype)

    def fn(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.layer_norm(x, (shape[-1],), w, b)
        return F.gelu((y * 3).softmax(-1) * x).sum(-1)

    check(fn, x, w, b, kernels=1)


def test_rows_divided_by_their_sum_equal_numpy() -> None:
    x = torch.randn(200, 33)
    (got,) = check(lambda x: x.exp() / x.exp().sum(1, keepdim=True), x, kernels=1)
    e = np.exp(x.numpy().astype(np.float64))
    np.testing.assert_allclose(got.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_sum_of_two_tensors_is_kept_beside_its_norm() -> None:
    x, y, w = torch.randn(40, 24), torch.randn(40, 24), torch.randn(24)

    def fn(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = x + y
        rms, _ = torch.ops.aten._fused_rms_norm(z, (24,), w, 1e-5)
        return z, F.layer_norm(z, (24,), w), rms * 2

    check(fn, x, y, w, kernels=1)


def test_half_rows_round_where_eager_rounds() -> None:
    x = torch.randn(50, 40).bfloat16()
    check(lambda x: (x * 2).log_softmax(-1).relu() + x, x, kernels=1)


def test_gradient_of_softmax_is_part_of_the_chain() -> None:
    grad, y = torch.randn(60, 31), torch.randn(60, 31).softmax(-1)

    def fn(grad: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._softmax_backward_data(grad * 2, y, -1, torch.float32) * 0.5

    check(fn, grad, y, kernels=1)


def test_value_read_across_rows_is_in_memory_first() -> None:
    x = torch.randn(32, 32)

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.softmax(-1)
        return (y + y.t()).softmax(-1)

    check(fn, x, kernels=1, calls=1)


def test_part_of_a_result_is_no_row_of_it() -> None:
    x = torch.randn(64, 16)
    check(lambda x: (x * 2)[:32].softmax(-1).sum(-1), x, kernels=2)


def test_input_at_an_offset_is_read_from_there() -> None:
    whole = torch.randn(80, 16)
    run = compile_fx_inner(
        make_fx(lambda x: (x.sum(1), x.softmax(1) + 1))(whole[:40]), [whole[:40]]
    )
    x = whole[40:]
    total, soft = run([x])
    assert torch.equal(total, x.sum(1)) and torch.equal(soft, x.softmax(1) + 1)


def test_reduction_longer_than_a_block_equals_eager() -> None:
    x = torch.randn(6, 9001)
    check(lambda x: (x * 2).sum(1) + 1, x, kernels=2)


@pytest.mark.parametrize("width", [1, 3, 10, 700, 1500])
def test_column_sum_computes_its_elements_in_the_order_of_eager(width: int) -> None:
    x = torch.randn(777, width)
    check(lambda x: (x * 3).exp().sum(0), x, kernels=1)


def test_dropped_rows_of_statistics_need_no_memory() -> None:
    x = torch.randn(512, 64)
    check(lambda x: F.layer_norm(x + 1, (64,)) * 2, x, kernels=1)
    assert metrics.num_bytes_accessed <= 2 * x.numel() * 4


def test_replaced_kernel_of_softmax_is_called() -> None:
    library = torch.library.Library("aten", "IMPL")
    library.impl("_softmax", lambda x, dim, half: torch.zeros_like(x), "CPU")
    try:
        x = torch.randn(8, 4)
        run = compile_fx_inner(make_fx(lambda x: (x + 1).softmax(-1) * 2)(x), [x])
        assert run([x])[0].count_nonzero() == 0
    finally:
        library._destroy()


def test_rows_are_one_kernel_after_autocast_was_used() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.ones(2, 2) @ torch.ones(2, 2)
    check(lambda x: x.softmax(-1) * 2, torch.randn(6, 5), kernels=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_result_of_a_chain_takes_memory_that_dies_in_it(dtype: torch.dtype) -> None:
    x, w = torch.randn(90, 40, dtype=dtype), torch.randn(40, 40, dtype=dtype)

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.gelu(x @ w).softmax(-1)

    run = compile_fx_inner(make_fx(fn)(x, w), [x, w])
    first, second = run([x, w])[0], run([x, w])[0]
    assert torch.equal(first, fn(x, w)) and torch.equal(second, first)
    assert first.data_ptr() != second.data_ptr()
    made = run.prepare([x, w])[0].splitlines()[1]
    assert "softmax" in made and " in b2" in made


def test_memory_that_a_later_part_of_a_chain_reads_is_not_taken() -> None:
    x, w = torch.randn(90, 40), torch.randn(40, 40)

    def fn(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x @ w
        p = F.gelu(y).softmax(-1)
        return p, F.layer_norm(y + p, (40,))

    run = compile_fx_inner(make_fx(fn)(x, w), [x, w])
    for got, wanted in zip(run([x, w]), fn(x, w), strict=True):
        assert torch.equal(got, wanted)
    y = x @ w
    kept = compile_fx_inner(make_fx(lambda y: F.gelu(y).softmax(-1))(y), [y])
    before = y.clone()
    assert torch.equal(kept([y])[0], F.gelu(before).softmax(-1)) and torch.equal(y, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("weighted", [True, False])
def test_rms_norm_stays_whole_in_what_torch_compile_traces(
    dtype: torch.dtype, weighted: bool
) -> None:
    torch._dynamo.reset()
    results = []
    weight = torch.randn(24).to(dtype) if weighted else None

    def fn(x: torch.Tensor, w: torch.Tensor | None) -> torch.Tensor:
        return F.rms_norm(x * 2, (24,), w, 1e-3).tanh()

    for run in (fn, torch.compile(fn, fullgraph=True)):
        for rows in (5, 6, 1):
            x = torch.linspace(-3, 3, rows * 24).to(dtype).view(rows, 24).requires_grad_()
            w = None if weight is None else weight.clone().requires_grad_()
            found = run(x, w)
            found.sum().backward()
            results.append([found.detach(), x.grad, *([] if w is None else [w.grad])])
    for wanted, got in zip(results[:3], results[3:], strict=True):
        for a, b in zip(wanted, got, strict=True):
            assert a.dtype == b.dtype and torch.equal(a, b)
    assert torch._C._aot.record_whole_operators(False) is False


def test_other_backends_see_what_rms_norm_is_made_of() -> None:
    seen: list[object] = []

    def keep(gm: torch.fx.GraphModule, inputs: object) -> torch.fx.GraphModule:
        seen.extend(n.target for n in gm.graph.nodes)
        return gm

    from functorch.compile import aot_function

    x = torch.randn(3, 8)
    got = aot_function(lambda x: F.rms_norm(x, (8,)), keep)(x)
    torch.testing.assert_close(got, F.rms_norm(x, (8,)))
    assert torch.ops.aten.rsqrt.default in seen
    assert torch.ops.aten._fused_rms_norm.default not in seen
