"""Operators made of a program's Triton kernels, with a stand-in for Triton whose kernels are Python
functions: launches are operators of traces, writes are seen, and without Triton the error says
what is missing."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import torch
from torch._functorch.aot_autograd import aot_function, make_boxed_func
from torch._higher_order_ops.triton_kernel_wrap import (
    kernel_side_table,
    triton_kernel_wrapper_functional,
    triton_kernel_wrapper_mutation,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import triton_op, wrap_triton


class JITFunction:
    """What triton.jit makes: launched with a grid, its function runs once here."""

    def __init__(self, fn) -> None:
        self.fn = fn
        self.arg_names = list(fn.__code__.co_varnames[: fn.__code__.co_argcount])
        self.grids: list[tuple] = []

    def __getitem__(self, grid):
        def launch(**kwargs) -> None:
            self.grids.append(grid(kwargs) if callable(grid) else grid)
            self.fn(**kwargs)

        return launch


class Autotuner:
    """What triton.autotune makes: takes the last of its configurations here."""

    def __init__(self, fn: JITFunction, configs) -> None:
        self.fn, self.configs, self.arg_names = fn, configs, fn.arg_names

    def __getitem__(self, grid):
        chosen = self.configs[-1].kwargs

        def launch(**kwargs) -> None:
            self.fn[grid({**kwargs, **chosen})](**kwargs, **chosen)

        return launch


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    root, runtime = types.ModuleType("triton"), types.ModuleType("triton.runtime")
    jit, tuner = types.ModuleType("triton.runtime.jit"), types.ModuleType("autotuner")
    jit.JITFunction, tuner.Autotuner = JITFunction, Autotuner
    for name, module in {
        "triton": root,
        "triton.runtime": runtime,
        "triton.runtime.jit": jit,
        "triton.runtime.autotuner": tuner,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    yield
    kernel_side_table.reset_table()


def add_kernel(x, y, out, n, BLOCK):
    out.copy_(x + y)


def made_add(kernel):
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        n = out.numel()
        wrap_triton(kernel)[lambda meta: (-(-n // meta["BLOCK"]),)](x, y, out, n, BLOCK=16)
        return out * 2

    return add


X, Y = torch.arange(40.0), torch.ones(40)


def test_operator_runs_its_kernel():
    kernel = JITFunction(add_kernel)
    op = triton_op("test_triton_a::add", made_add(kernel), mutates_args=())
    assert torch.equal(op(X, Y), (X + Y) * 2)
    assert kernel.grids == [(3,)]
    assert torch.equal(torch.ops.test_triton_a.add(X, Y), (X + Y) * 2)


def test_trace_of_the_function_holds_the_launch():
    kernel = JITFunction(add_kernel)
    graph = make_fx(made_add(kernel))(X, Y)
    (node,) = [n for n in graph.graph.nodes if n.target is triton_kernel_wrapper_mutation]
    assert list(node.kwargs["kwargs"]) == ["x", "y", "out", "n", "BLOCK"]
    assert node.kwargs["grid"] == [(3,)]
    kernel.grids.clear()
    assert torch.equal(graph(Y, Y), (Y + Y) * 2) and kernel.grids == [(3,)]


def test_graphs_without_writes_hold_the_launch_on_copies():
    kernel = JITFunction(add_kernel)
    op = triton_op("test_triton_b::add", made_add(kernel), mutates_args=())
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    assert torch.equal(aot_function(lambda x, y: op(x, y) + 1, keep)(X, Y), (X + Y) * 2 + 1)
    targets = [n.target for n in graphs[0].graph.nodes]
    assert triton_kernel_wrapper_functional in targets
    assert torch.ops.test_triton_b.add.default not in targets


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_function_launches_the_kernel(backend):
    kernel = JITFunction(add_kernel)
    op = triton_op("test_triton_c::add", made_add(kernel), mutates_args=())
    torch._dynamo.reset()
    run = torch.compile(lambda x, y: op(x.sin(), y).cos(), backend=backend, fullgraph=True)
    kernel.grids.clear()
    torch.testing.assert_close(run(X, Y), ((X.sin() + Y) * 2).cos())
    assert (3,) in kernel.grids


def test_argument_that_the_operator_writes_is_written():
    @triton_op("test_triton_d::double_", mutates_args={"x"})
    def double_(x: torch.Tensor) -> None:
        wrap_triton(JITFunction(scale_kernel))[(1,)](x, 2.0)

    def fn(x):
        y = x + 1
        torch.ops.test_triton_d.double_(y)
        return y * 3

    torch._dynamo.reset()
    assert torch.equal(fn(X), (X + 1) * 6)
    assert torch.equal(torch.compile(fn, fullgraph=True)(X), (X + 1) * 6)


def scale_kernel(x, factor):
    x.mul_(factor)


def test_kernel_that_chooses_gets_the_grid_of_its_configuration():
    inner = JITFunction(add_kernel)
    kernel = Autotuner(inner, [types.SimpleNamespace(kwargs={"BLOCK": b}) for b in (8, 20)])

    def add(x, y):
        out = torch.empty_like(x)
        wrap_triton(kernel)[lambda meta: (-(-40 // meta["BLOCK"]),)](x, y, out, 40)
        return out

    graph = make_fx(add)(X, Y)
    (node,) = [n for n in graph.graph.nodes if n.target is triton_kernel_wrapper_mutation]
    assert node.kwargs["grid"] == [(5,), (2,)]
    inner.grids.clear()
    assert torch.equal(graph(X, Y), X + Y) and inner.grids == [(2,)]


def test_only_kernels_can_be_wrapped_and_only_with_a_grid():
    with pytest.raises(RuntimeError, match=r"only works on functions annotated with triton\.jit"):
        wrap_triton(lambda x: x)
    wrapped = wrap_triton(JITFunction(add_kernel))
    assert wrap_triton(wrapped) is wrapped
    with pytest.raises(RuntimeError, match=r"kernel\[grid\]"):
        wrapped(X)
    with pytest.raises(TypeError, match="takes 5 arguments"):
        wrapped[(1,)](X, X, X, 1, 2, 3)


def test_without_triton_the_error_says_so():
    program = (
        "import sys, torch\nsys.modules['triton'] = None\n"
        "op = torch.library.triton_op('test_triton_e::f', mutates_args=())\n"
        "@op\ndef f(x: torch.Tensor) -> torch.Tensor:\n"
        "    return torch.library.wrap_triton(f)[(1,)](x)\n"
        "f(torch.ones(2))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "RuntimeError: torch.library.wrap_triton: Triton cannot be imported" in done.stderr


def test_launches_with_the_same_constants_share_an_entry():
    kernel = wrap_triton(JITFunction(lambda x, mode, table: x.add_(len(mode))))
    x = torch.zeros(2)
    for _ in range(3):
        kernel[(1,)](x, "ab", None)
        kernel[(1,)](x, "abc", None)
        kernel[(1,)](x, "ab", [])  # no key of a table
    assert x.tolist() == [21.0, 21.0]
    assert len(kernel_side_table._constants) == 5
