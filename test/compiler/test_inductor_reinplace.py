"""Operators of a program that write to their arguments, inside of compiled functions: results, and
what is written, are those of eager code however values are shared, and copies are made only where
the old value is read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import torch
from torch import Tensor, fx
from torch._dynamo.utils import ReinplaceCounters
from torch._inductor.compile_fx import compile_fx, compile_fx_inner

aten = torch.ops.aten


@torch.library.custom_op("test_reinplace::grow", mutates_args={"x", "y"})
def grow(x: Tensor, y: Tensor) -> None:
    x.add_(1)
    y.mul_(2)


def both_made_here(a):
    t, u = a + 1, a * 2
    grow(t, u)
    return t + u


def view_read_afterwards(a):
    t, u = a + 1, a * 3
    v = t.view(-1)
    grow(t, u)
    return v, u, t


def twice_the_other_way_round(a):
    t = a + 1
    u, w = t * 2, t.sum()
    grow(t, u)
    grow(u, t)
    return t, u, w


def input_is_written(a):
    grow(a, a + 3)
    return a + 1


def part_is_written(a):
    t, u = a + 1, a * 2
    s = t[:2]
    grow(s, u)
    return t, s


def old_value_is_kept(a):
    t, u = a + 1, a * 2
    keep = t * 1
    grow(t, u)
    return keep, t.sin()


def transposed_input(a):
    b = a.t()
    u = torch.zeros_like(b)
    grow(b, u)
    return u, a * 2


def copies_of_one_value(a):
    t = a + 1
    x, y = t.clone(), t.clone()
    grow(x, y)
    grow(y, x)
    return x, y


def copy_and_original_are_returned(a):
    t = a + 1
    x = t.clone()
    grow(x, a * 1)
    return x, t


# By function: how many copies its graph keeps.
CASES: dict[Callable, int] = {
    both_made_here: 0,
    view_read_afterwards: 0,
    twice_the_other_way_round: 0,
    input_is_written: 0,
    part_is_written: 1,
    old_value_is_kept: 0,
    transposed_input: 1,
    copies_of_one_value: 2,  # those of the function itself
    copy_and_original_are_returned: 1,
}


def _compiled(fn: Callable, a: Tensor) -> tuple[object, int]:
    seen = []

    def inner(gm: fx.GraphModule, inputs: Sequence[object], **kwargs: object):
        run = compile_fx_inner(gm, inputs, **kwargs)
        seen.append(sum(n.target is aten.clone.default for n in gm.graph.nodes))
        return run

    def backend(gm: fx.GraphModule, inputs: Sequence[object]):
        return compile_fx(gm, inputs, inner_compile=inner)

    torch._dynamo.reset()
    return torch.compile(fn, backend=backend, fullgraph=True)(a), sum(seen)


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("shape", [(4, 5), (3, 3), (1, 1)])
def test_results_are_those_of_eager_code(fn: Callable, shape: tuple) -> None:
    a = torch.randn(shape)
    b = a.clone()
    want = fn(a)
    got, copies = _compiled(fn, b)
    found, wanted = (v if isinstance(v, tuple) else (v,) for v in (got, want))
    assert all(torch.equal(p, q) for p, q in zip(found, wanted, strict=True))
    assert torch.equal(a, b)
    assert copies <= CASES[fn]


def test_nothing_is_missed_where_no_copy_is_made() -> None:
    ReinplaceCounters.clear()
    _compiled(both_made_here, torch.ones(3, 2))
    assert ReinplaceCounters.get_total_missed() == 0


def _norm_targets(fn: Callable, module: torch.nn.Module, x: torch.Tensor) -> list[object]:
    """Operators with batch norm in their name that are called after all passes."""
    seen: list[object] = []

    def inner(gm: fx.GraphModule, inputs: Sequence[object], **kwargs: object):
        run = compile_fx_inner(gm, inputs, **kwargs)
        seen.extend(n.target for n in gm.graph.nodes if "batch_norm" in str(n.target))
        return run

    def backend(gm: fx.GraphModule, inputs: Sequence[object]):
        return compile_fx(gm, inputs, inner_compile=inner)

    torch._dynamo.reset()
    state = {k: v.clone() for k, v in module.state_dict().items()}
    want = [fn(x), fn(x + 1), *module.state_dict().values()]
    want = [v.clone() for v in want]
    module.load_state_dict(state)
    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    got = [compiled(x), compiled(x + 1), *module.state_dict().values()]
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    return seen


def test_running_statistics_are_written_without_a_copy() -> None:
    module = torch.nn.BatchNorm1d(3)
    seen = _norm_targets(lambda x: module(x), module, torch.randn(5, 3))
    assert seen == [aten._native_batch_norm_legit.default]


def test_running_statistics_that_are_read_later_are_copied_first() -> None:
    module = torch.nn.BatchNorm1d(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        before = module.running_mean * 1
        return module(x) + before + module.running_mean

    _norm_targets(fn, module, torch.randn(5, 3))


def test_one_norm_used_twice_in_a_graph() -> None:
    module = torch.nn.BatchNorm1d(3)
    _norm_targets(lambda x: module(module(x) * 2), module, torch.randn(5, 3))


def test_statistics_shared_by_two_norms() -> None:
    first, second = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    second.running_mean = first.running_mean
    both = torch.nn.ModuleList([first, second])
    _norm_targets(lambda x: first(x) + second(x * 2), both, torch.randn(5, 3))


def _targets(fn: Callable, *inputs: Tensor) -> list[object]:
    """Operators called after all passes; checks results and what is written to the inputs."""
    seen: list[object] = []

    def inner(gm: fx.GraphModule, given: Sequence[object], **kwargs: object):
        run = compile_fx_inner(gm, given, **kwargs)
        seen.extend(n.target for n in gm.graph.nodes if n.op == "call_function")
        return run

    def backend(gm: fx.GraphModule, given: Sequence[object]):
        return compile_fx(gm, given, inner_compile=inner)

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    plain, ours = [x.clone() for x in inputs], [x.clone() for x in inputs]
    for _ in range(2):
        want, got = fn(*plain), compiled(*ours)
        assert torch.equal(got, want)
        assert all(torch.equal(a, b) for a, b in zip(ours, plain, strict=True))
    return seen


def test_a_cache_of_keys_is_written_where_it_lies() -> None:
    cache, row, place = torch.zeros(2, 8, 3), torch.randn(2, 1, 3), torch.tensor([5])

    def fn(cache: Tensor, row: Tensor, place: Tensor) -> Tensor:
        cache.index_copy_(1, place, row * 2)
        return (cache * row).sum()

    seen = _targets(fn, cache, row, place)
    assert aten.index_copy_.default in seen and aten.copy_.default not in seen


def test_rows_are_filled_where_they_lie() -> None:
    def fn(x: Tensor, rows: Tensor) -> Tensor:
        x.index_fill_(0, rows, 2.5)
        return x + 1

    seen = _targets(fn, torch.randn(5, 3), torch.tensor([0, 3]))
    assert aten.index_fill_.int_Scalar in seen and aten.copy_.default not in seen


def test_a_source_in_the_memory_that_is_written_is_read_first() -> None:
    def fn(x: Tensor, rows: Tensor) -> Tensor:
        x.copy_(x.index_copy(0, rows, x.flip(0)[:2] * 1 + x[1:3]))
        x.copy_(x.index_copy(0, rows, x.t()[:2]))
        return x + 1

    _targets(fn, torch.arange(16.0).view(4, 4), torch.tensor([3, 1]))
