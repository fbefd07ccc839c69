"""Graphs that hold something no plan can hold: what lies around it is compiled all the same, in the
order of the program, with the results of eager code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import metrics
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    metrics.reset()
    yield
    torch._dynamo.reset()


def test_parts_around_a_branch_are_kernels() -> None:
    def fn(x, flag):
        y = (x + 1).sin() * 2
        z = torch.cond(flag, lambda a: a.cos(), lambda a: a - 1, (y,))
        return (z * y + 3).exp().sum(-1)

    compiled = torch.compile(fn, fullgraph=True)
    x = torch.randn(8, 40)
    for flag in (True, False):
        flag = torch.tensor(flag)
        assert torch.equal(compiled(x, flag), fn(x, flag))
    assert metrics.generated_kernel_count == 2


def test_parts_around_attention_with_functions_are_kernels() -> None:
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 16, 16, device="cpu")

    def fn(q, k, v):
        q = (q * 2 + 1).tanh()
        out = flex_attention(q, k, v, lambda s, b, h, i, j: s + (i - j), block_mask=mask)
        return (out + q).relu() * 0.5

    q, k, v = (torch.randn(2, 2, 16, 8) for _ in range(3))
    torch.testing.assert_close(torch.compile(fn, fullgraph=True)(q, k, v), fn(q, k, v))
    assert metrics.generated_kernel_count >= 2


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True)
def test_parts_around_results_of_unknown_size_are_compiled() -> None:
    def fn(x):
        y = (x * 3).sin() + x
        found = y.nonzero().squeeze(1)
        n = int(found.numel())
        torch._check(n >= 0)
        picked = y[found]
        return (picked * 2 + 1).exp(), n * 2

    compiled = torch.compile(fn, fullgraph=True)
    for zeros in (0, 3, 7):
        x = torch.randn(30)
        x[:zeros] = 0
        got, want = compiled(x), fn(x)
        assert torch.equal(got[0], want[0]) and got[1] == want[1]
    assert metrics.generated_kernel_count >= 1


def test_number_read_from_data_feeds_the_next_part() -> None:
    def fn(x):
        y = (x + 1).sin() * x
        scale = y.sum().item()
        return (y * scale).cos() + y

    x = torch.randn(50)
    graph = make_fx(fn, tracing_mode="symbolic", _allow_non_fake_inputs=True)(x)
    places = graph.graph.find_nodes(op="placeholder")
    compiled = compile_fx_inner(graph, [place.meta["val"] for place in places])
    inputs = [p.meta["val"] for p in places]
    for n in (50, 31):
        x = torch.randn(n)
        given = [x if isinstance(v, torch.Tensor) else n for v in inputs]
        assert torch.equal(compiled(given)[0], fn(x))


def test_writes_and_random_numbers_keep_their_order_over_parts() -> None:
    def fn(x, buffer, flag):
        buffer.add_(1)
        y = x * buffer + torch.rand(6)
        z = torch.cond(flag, lambda a: a * 2, lambda a: a * 3, (y,))
        buffer.mul_(2)
        return z + torch.rand(6) * buffer

    x, flag = torch.randn(6), torch.tensor(True)
    one, two = torch.ones(6), torch.ones(6)
    torch.manual_seed(3)
    want = fn(x, one, flag)
    torch.manual_seed(3)
    assert torch.equal(torch.compile(fn)(x, two, flag), want)
    assert torch.equal(one, two)


def test_several_results_of_one_operator_cross_a_part() -> None:
    def fn(x, flag):
        a, b, c = (x + 1).sin().split(4, -1)
        z = torch.cond(flag, lambda t: t.cos(), lambda t: t, (a,))
        return z * c + b

    x, flag = torch.randn(3, 12), torch.tensor(False)
    assert torch.equal(torch.compile(fn, fullgraph=True)(x, flag), fn(x, flag))


def test_gradients_over_parts_are_those_of_eager() -> None:
    layer = nn.Linear(6, 6)

    def fn(x, flag):
        y = torch.relu(layer(x)) * 2
        z = torch.cond(flag, lambda t: t.sin(), lambda t: t.cos(), (y,))
        return (z * y + 1).exp().mean()

    flag = torch.tensor(True)
    x = torch.randn(5, 6)
    fn(x, flag).backward()
    want = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    torch.compile(fn, fullgraph=True)(x, flag).backward()
    for p, grad in zip(layer.parameters(), want, strict=True):
        torch.testing.assert_close(p.grad, grad)
