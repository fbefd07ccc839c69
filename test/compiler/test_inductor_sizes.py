"""Graphs with symbolic sizes in torch._inductor: one plan with symbols serves the sizes that pass
its guards. Results are those of the operators run one by one, bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx

F = torch.nn.functional


class Planned:
    """A function traced with symbols and compiled, with a count of its plans."""

    def __init__(self, fn: Callable, *args: torch.Tensor) -> None:
        self.module = make_fx(fn, tracing_mode="symbolic")(*args)
        examples = [n.meta["val"] for n in self.module.graph.find_nodes(op="placeholder")]
        self.compiled = compile_fx_inner(self.module, examples)

    def check(self, *args: torch.Tensor) -> None:
        expected = self.module(*(a.clone() for a in args))
        got = self.compiled(list(args))
        expected = expected if isinstance(expected, (tuple, list)) else [expected]
        for g, e in zip(got, expected, strict=True):
            if isinstance(e, torch.Tensor):
                assert g.dtype == e.dtype and g.stride() == e.stride() and torch.equal(g, e)
            else:
                assert g == e

    def count(self) -> int:
        return self.compiled.compiled.planned()


def lengths(
    fn: Callable, make: Callable[[int], Sequence[torch.Tensor]], sizes: Sequence[int]
) -> int:
    """Checks a function for all sizes and says how often it was planned after the first."""
    planned = Planned(fn, *make(sizes[0]))
    planned.check(*make(sizes[0]))
    first = planned.count()
    for n in sizes:
        planned.check(*make(n))
    return planned.count() - first


def rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.gelu(x @ w).softmax(-1).mean(0)


def columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (w @ x).softmax(-1).sum(-1) + (x * 2).amax(-1).sum()


def norms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = F.layer_norm(x @ w, (16,))
    return y + y.transpose(0, 1).contiguous().sum(1)[None, :]


def views(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = (x @ w).view(-1, 4, 4).permute(1, 0, 2)
    return y.reshape(4, -1) * 2, torch.cat([y, y + 1]).sum(0)


def test_fifty_lengths_are_planned_once_more_than_one() -> None:
    w = torch.randn(16, 16)
    for fn in (rows, norms, views):
        assert lengths(fn, lambda n: (torch.randn(n, 16), w), range(10, 60)) == 1
    v = torch.randn(5, 7)
    assert lengths(columns, lambda n: (torch.randn(7, n), v), range(10, 60)) == 1


def test_long_rows_and_many_rows_equal_eager_after_short_ones() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = (x * 2 + y).sin()
        return z.softmax(-1) - y, z.sum(-1)

    sizes = [(3, 5), (4, 700), (900, 6), (33, 4097), (70, 300), (2, 20000), (5, 5)]
    planned = Planned(fn, torch.randn(3, 5), torch.randn(5))
    for n, m in sizes:
        planned.check(torch.randn(n, m), torch.randn(m))


def test_two_sizes_that_change_apart_get_symbols_of_their_own() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x[:, None] * y[None, :]).sum(1)

    planned = Planned(fn, torch.randn(4), torch.randn(5))
    counts = []
    for n, m in [(4, 4), (5, 5), (6, 7), (8, 8), (9, 20)]:
        planned.check(torch.randn(n), torch.randn(m))
        counts.append(planned.count())
    # One for sizes that were equal so far, one for those that are not.
    assert [c - counts[0] for c in counts] == [0, 1, 2, 2, 2]


@pytest.mark.parametrize("n", [0, 1])
def test_sizes_zero_and_one_get_plans_of_their_own(n: int) -> None:
    def pointwise(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + x.sum(0)).relu()

    apart = Planned(pointwise, torch.randn(4, 3))
    for length in (4, 5, n, 6):
        apart.check(torch.randn(length, 3))


def test_strided_inputs_of_other_lengths_equal_eager() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y.t()).exp().sum(0)

    planned = Planned(fn, torch.randn(6, 8)[:, ::2], torch.randn(4, 6))
    for n in (6, 7, 12, 9):
        planned.check(torch.randn(n, 8)[:, ::2], torch.randn(4, n))
        planned.check(torch.randn(n, 4), torch.randn(4, n))
        planned.check(torch.randn(4, n).t(), torch.randn(4, n))


def test_sizes_that_the_graph_computes_with_follow_the_inputs() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        n = x.shape[0]
        return x.new_full((n // 2, 3), 2.0) + 1, x * n, x.view(n * 3).narrow(0, 1, n)

    planned = Planned(fn, torch.randn(4, 3))
    for n in (4, 6, 7, 12, 31):
        planned.check(torch.randn(n, 3))


def test_write_to_an_input_of_another_length_is_seen() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y.sin())
        return x * 2

    planned = Planned(fn, torch.randn(4), torch.randn(4))
    for n in (4, 5, 900, 3):
        x, y = torch.randn(n), torch.randn(n)
        expected = x + y.sin()
        (got,) = planned.compiled([x, y])
        assert torch.equal(x, expected) and torch.equal(got, expected * 2)
    shared = torch.randn(7)
    expected = shared + shared.sin()
    (got,) = planned.compiled([shared, shared])
    assert torch.equal(shared, expected) and torch.equal(got, expected * 2)


def test_threads_that_meet_new_lengths_at_once_get_their_own_results() -> None:
    w = torch.randn(16, 16)
    planned = Planned(rows, torch.randn(4, 16), w)
    wrong: list[int] = []

    def work(first: int) -> None:
        for n in range(first, first + 40):
            x = torch.randn(n, 16)
            if not torch.equal(planned.compiled([x, w])[0], rows(x, w)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(2 + 7 * k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_training_over_many_lengths_compiles_twice_and_equals_eager() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    )
    counter = CompileCounterWithBackend("inductor")
    run = torch.compile(model, backend=counter)
    for n in range(3, 30):
        x = torch.randn(n, 8)
        results = []
        for f in (model, run):
            model.zero_grad()
            loss = f(x).square().mean()
            loss.backward()
            results.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b)
    assert counter.frame_count <= 2
