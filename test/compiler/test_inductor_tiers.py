"""Compiled forms of hot kernels, and the store they are kept in: bits stay those of eager code,
and nothing of it is needed for a result."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

import torch
from torch._dynamo.utils import counters
from torch._inductor import cache_store, codecache, config
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None,
    reason="this machine has no C++ compiler; kernels then stay as they are",
)


@pytest.fixture(autouse=True)
def _own_store(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    counters["inductor"].clear()
    global _rejected_before
    _rejected_before = torch._C._inductor.rejected_kernels()
    with config.patch({"cpp.hot_kernel_elements": 1}):
        yield
    codecache.wait_for_kernels()


_rejected_before = 0


def rejected() -> int:
    """How many compiled kernels this test found to differ."""
    return torch._C._inductor.rejected_kernels() - _rejected_before


def run_hot(fn: Callable, *args: torch.Tensor) -> None:
    """The function gives the bits of eager code before and after its kernels are compiled."""
    run = compile_fx_inner(make_fx(fn)(*args), list(args))
    expected = fn(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)

    def compare() -> None:
        for got, want in zip(run(list(args)), expected, strict=True):
            assert got.dtype == want.dtype
            assert torch.equal(got.isnan(), want.isnan())
            assert torch.equal(got.nan_to_num(), want.nan_to_num())

    compare()
    codecache.wait_for_kernels()
    for _ in range(40):
        compare()


def mixed(n: int, dtype: torch.dtype) -> torch.Tensor:
    x = torch.randn(n, dtype=torch.float64) * 3
    x[::7] = 0
    x[3::11] = float("nan")
    x[5::13] = float("inf")
    x[6::17] = -1e30
    return x.to(dtype)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_compiled_bounds_keep_the_sign_of_a_zero(dtype: torch.dtype) -> None:
    x = torch.tensor([-0.0, 0.0, -1.0, 2.0, float("nan")] * 9, dtype=dtype)
    functions = (
        lambda t: (1 / t.clamp(0, 1),),
        lambda t: (1 / t.clamp(min=0),),
        lambda t: (1 / t.clamp(max=0),),
        lambda t: (1 / t.clamp(-0.0, float("nan")),),
    )
    for function in functions:
        run_hot(function, x)
    assert rejected() == 0


@needs_compiler
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
def test_compiled_kernel_has_the_bits_of_the_loops(dtype: torch.dtype) -> None:
    x, y = mixed(5003, dtype), mixed(5003, dtype).flip(0)

    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = (x * 2 + 1).sin() * y.exp()
        chosen = torch.where(z > y, z.relu(), torch.nn.functional.gelu(x))
        return chosen + x.sigmoid() * y, (x < y).to(dtype) * 3, x.tanh() - y.abs().sqrt()

    run_hot(fn, x, y)
    assert counters["inductor"]["kernels_compiled"] >= 1
    assert rejected() == 0


@needs_compiler
def test_kernel_that_differs_late_is_dropped_where_every_tile_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = codecache._compile

    def wrong_for_large_values(command: Sequence[str], text: str) -> bytes | None:
        zero, one, limit = "Vec<C>(C(0))", "Vec<C>(C(1))", "Vec<C>(C(2.9))"
        text, count = re.subn(
            r"store<float, C>\((\w+), (\w+)\);",
            rf"store<float, C>(\1, \2 + at::vec::select(\2 > {limit}, {one}, {zero}));",
            text,
        )
        assert count == 1
        return compiled(command, text)

    monkeypatch.setattr(codecache, "_compile", wrong_for_large_values)
    with config.patch({"cpp.check_tiers": True}):
        run_hot(lambda x: x * 2 + 1, torch.linspace(-1, 1, 100_000))
    assert rejected() >= 1  # two threads may find it at once


@needs_compiler
def test_compiled_kernel_reads_rows_columns_and_numbers() -> None:
    x, row, column = torch.randn(67, 131), torch.randn(131), torch.randn(67, 1)
    one = torch.tensor(0.3)
    run_hot(lambda x, r, c, o: ((x + r) * c - o).tanh() * r, x, row, column, one)
    run_hot(lambda x, r, c, o: (x.t() * 2 + c.t()).exp() * o, x, row, column, one)
    assert counters["inductor"]["kernels_compiled"] == 2
    assert rejected() == 0


@needs_compiler
def test_compiled_kernel_keeps_several_gathered_operands_apart() -> None:
    x, y, z = torch.randn(6, 5, 4), torch.randn(4, 5, 6), torch.randn(5, 6, 4)

    def fn(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        first = (x + 1).exp() / y.permute(2, 1, 0)
        return torch.atan2(z.permute(1, 0, 2), first) * x.flip(0)[:, :1]

    run_hot(fn, x, y, z)
    assert counters["inductor"]["kernels_compiled"] >= 1
    assert rejected() == 0


@needs_compiler
def test_kernel_inside_of_a_chain_and_of_a_reduction_is_compiled() -> None:
    x = torch.randn(300, 65)
    run_hot(lambda x: ((x * 2 + 1).softmax(-1) * x + 1).sum(-1), x)
    run_hot(lambda x: (x.exp() * 2 + x).sum(0), x)
    assert counters["inductor"]["kernels_compiled"] >= 2
    assert rejected() == 0


@needs_compiler
def test_second_plan_takes_the_kernel_from_the_store() -> None:
    for n in (1000, 2000):
        run_hot(lambda x: (x + 1).exp() * x, torch.randn(n))
    assert counters["inductor"]["kernel_cache_miss"] == 1
    assert counters["inductor"]["kernel_cache_hit"] == 1


def test_without_a_compiler_kernels_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    run_hot(lambda x: (x + 1).exp() * x, torch.randn(1000))
    assert counters["inductor"]["kernels_not_compiled"] == 1


def test_compiler_that_fails_leaves_kernels_as_they_are(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cxx"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\nexit 3\n')
    broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    run_hot(lambda x: (x + 1).exp() * x, torch.randn(1000))
    assert counters["inductor"]["kernels_not_compiled"] == 1


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "folder"])
def test_damaged_entry_is_compiled_anew(damage: str) -> None:
    run_hot(lambda x: (x + 1).exp() * x, torch.randn(1000))
    kernels = pathlib.Path(cache_store.store().root) / "kernel"
    (entry,) = (p for p in kernels.rglob("*") if p.is_file())
    raw = entry.read_bytes()
    if damage == "folder":
        entry.unlink()
        entry.mkdir()
    else:
        changed = raw[:700] + b"!" + raw[701:]
        entry.write_bytes({"cut": raw[:-9], "changed": changed, "empty": b""}[damage])
    run_hot(lambda x: (x + 1).exp() * x, torch.randn(1000))
    assert counters["inductor"]["kernel_cache_miss"] == 2
    assert counters["inductor"]["kernels_compiled"] == 2


@needs_compiler
def test_cache_folder_that_cannot_be_made_costs_nothing_else(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(taken / "cache"))
    run_hot(lambda x: (x + 1).exp() * x, torch.randn(1000))
    assert counters["inductor"]["kernels_compiled"] == 1


def test_folder_that_others_may_write_to_is_not_used() -> None:
    kept = cache_store.store()
    key = kept.key(b"something")
    assert kept.put("kernel", key, b"content") and kept.get("kernel", key) == b"content"
    os.chmod(kept.root, stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
    assert kept.get("kernel", key) is None
    assert not kept.put("kernel", key, b"content")


def test_artifacts_of_one_cache_fill_another(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torch.compiler.save_cache_artifacts() is None
    kept = cache_store.store()
    key = kept.key(b"something")
    kept.put("kernel", key, b"content")
    raw, info = torch.compiler.save_cache_artifacts()
    assert info.inductor_artifacts == [key] and not info.empty()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "other"))
    assert cache_store.store().get("kernel", key) is None
    loaded = torch.compiler.load_cache_artifacts(raw)
    assert loaded.artifacts == {"kernel": [key]}
    assert cache_store.store().get("kernel", key) == b"content"
    assert torch.compiler.load_cache_artifacts(raw[:-1]) is None
    assert torch.compiler.load_cache_artifacts(b"") is None


_CHILD = """
import os, torch
from torch._inductor import codecache, config
f = torch.compile(lambda x: (x + 1).exp() * x)
x = torch.randn(1000)
with config.patch({"cpp.hot_kernel_elements": 1}):
    want = (x + 1).exp() * x
    for _ in range(3):
        assert torch.equal(f(x), want)
    if os.environ.get("FORKS"):
        child = os.fork()
        if child == 0:
            g = torch.compile(lambda x: (x + 2).exp() * x)
            ok = torch.equal(f(x), want) and torch.equal(g(x), (x + 2).exp() * x)
            codecache.wait_for_kernels()
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
    codecache.wait_for_kernels()
    for _ in range(40):
        assert torch.equal(f(x), want)
print("done")
"""


def _child(**env: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD], env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    )


def test_several_processes_share_a_cold_cache() -> None:
    children = [_child() for _ in range(4)]
    assert [child.communicate(timeout=120)[0] for child in children] == ["done\n"] * 4


def test_forked_child_compiles_by_itself() -> None:
    assert _child(FORKS="1").communicate(timeout=120)[0] == "done\n"


@needs_compiler
def test_kernel_is_compiled_once_for_all_lengths():
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1).sin() * x

    graph = make_fx(fn, tracing_mode="symbolic")(torch.randn(8))
    places = graph.graph.find_nodes(op="placeholder")
    run = compile_fx_inner(graph, [place.meta["val"] for place in places])
    for n in (8, 600, 1000, 31):
        x = torch.randn(n)
        assert torch.equal(run([x])[0], fn(x))
        codecache.wait_for_kernels()
    assert counters["inductor"]["kernel_cache_hit"] + counters["inductor"]["kernel_cache_miss"] == 1
