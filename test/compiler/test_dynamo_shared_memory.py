"""Inputs that share memory with an input that a compiled function writes to: a graph made for one
case is not run in another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import torch
from torch._dynamo.testing import CompileCounterWithBackend

Makers = tuple[Callable[[], tuple[torch.Tensor, ...]], ...]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _write_and_read(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x.add_(1)
    return y * 2, x


def _views(length: int, first: slice, second: slice) -> Callable[[], tuple[torch.Tensor, ...]]:
    def make() -> tuple[torch.Tensor, ...]:
        base = torch.arange(float(length))
        return base[first], base[second]

    return make


def _one() -> tuple[torch.Tensor, ...]:
    x = torch.arange(6.0)
    return x, x


APART = _views(20, slice(0, 6), slice(6, 12))
LONGER_APART = _views(40, slice(30, 36), slice(0, 6))
INTERLEAVED = _views(12, slice(0, None, 2), slice(1, None, 2))
OVERLAP = _views(10, slice(0, 6), slice(3, 9))
NEARER = _views(10, slice(0, 6), slice(1, 7))
LARGER_BASE = _views(40, slice(0, 6), slice(3, 9))


def _two() -> tuple[torch.Tensor, ...]:
    return torch.arange(6.0), torch.arange(6.0)


def _assert_as_eager(function: Callable, makers: Makers, backend: object = "inductor") -> None:
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for make in makers:
        theirs, ours = make(), make()
        wanted, got = function(*theirs), compiled(*ours)
        for a, b in zip((*got, *ours), (*wanted, *theirs), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("first", [_two, APART, INTERLEAVED, OVERLAP, NEARER, LARGER_BASE, _one])
def test_each_case_is_as_eager_after_any_other(first: Callable) -> None:
    rest = (_two, OVERLAP, APART, NEARER, _one, INTERLEAVED, LARGER_BASE, OVERLAP, _two)
    _assert_as_eager(_write_and_read, (first, *rest))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.detach().mul_(2),
        lambda x: x.data.add_(1),
        lambda x: x[1:].zero_(),
        lambda x: torch._foreach_add_([x], 1),
        lambda x: torch.sin(x + 1, out=x),
        lambda x: x.view(2, 3).t().exp_(),
    ],
    ids=["detach", "data", "slice", "foreach", "out", "view"],
)
def test_writes_through_other_tensors_count(write: Callable) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        write(x)
        return (y * 2,)

    _assert_as_eager(function, (_two, OVERLAP, APART, _two))


def test_inputs_in_lists_and_attributes_are_compared() -> None:
    class Holder:
        pass

    holder = Holder()

    def function(xs: list[torch.Tensor]) -> torch.Tensor:
        xs[0].mul_(3)
        return xs[1] + holder.kept

    compiled = torch.compile(function, fullgraph=True)
    for make in (_two, OVERLAP, APART, _two):
        results = []
        for run in (function, compiled):
            x, y = make()
            holder.kept = x[:1] if make is APART else torch.zeros(1)
            results.append(run([x, y]))
        assert torch.equal(*results)


def test_views_of_which_one_is_written_make_no_new_graph_while_they_are_apart() -> None:
    counter = CompileCounterWithBackend("eager")
    _assert_as_eager(_write_and_read, (_two, APART, LONGER_APART, _two), counter)
    assert counter.frame_count == 1


def test_inputs_that_are_only_read_may_overlap_at_will() -> None:
    counter = CompileCounterWithBackend("eager")

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + y, x * 2

    _assert_as_eager(function, (_two, OVERLAP, APART, NEARER), counter)
    assert counter.frame_count == 1


def test_what_overlaps_and_is_only_read_says_nothing_beside_a_write() -> None:
    counter = CompileCounterWithBackend("eager")

    def function(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z.add_(x.sum())
        return (x * y * z,)

    makers = tuple(
        lambda make=make: (*make(), torch.zeros(6)) for make in (OVERLAP, OVERLAP, OVERLAP)
    )
    _assert_as_eager(function, makers, counter)
    assert counter.frame_count == 1


def test_the_reason_of_the_recompilation_names_the_inputs() -> None:
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled = torch.compile(_write_and_read, backend="eager")
        compiled(*_two())
        with pytest.raises(torch._dynamo.exc.RecompileError, match="share memory"):
            compiled(*OVERLAP())


def test_sizes_that_vary_with_shared_memory() -> None:
    def views(n: int) -> Callable[[], tuple[torch.Tensor, ...]]:
        return _views(2 * n, slice(0, n), slice(n // 2, n // 2 + n))

    makers = (_two, views(6), views(8), views(10), APART, views(8))
    _assert_as_eager(_write_and_read, makers)


WARM = """
import sys, torch
torch._dynamo.config.region_cache = True

def f(x, y):
    x.add_(1)
    return y * 2

run = torch.compile(f)
run(torch.zeros(6), torch.zeros(6))
base = torch.zeros(10)
print(run(base[:6], base[3:9]).tolist())
"""


def test_a_kept_frame_has_the_condition(tmp_path: object) -> None:
    import os

    script = tmp_path / "script.py"
    script.write_text(WARM)
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        out = subprocess.run(
            [sys.executable, str(script)], env=env, capture_output=True, text=True, check=True
        )
        assert out.stdout.strip() == str([2.0, 2.0, 2.0, 0.0, 0.0, 0.0])
