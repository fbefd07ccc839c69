"""What users put around and into the compiler besides the stages of inductor: backends made of
their own compilers, operators that take functions, breaks that are errors for a while, custom
operators that promise what they do not keep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import torch
from torch import fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._higher_order_ops.utils import reenter_make_fx
from torch._inductor import config, metrics
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._ops import HigherOrderOperator
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    make_fx,
    track_tensor_tree,
)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    metrics.reset()
    yield
    torch._dynamo.reset()


def test_backend_of_two_compilers_gets_the_forward_and_the_backward_graph() -> None:
    seen: dict[str, list[str]] = {}

    def compiler(name: str):
        def compile_it(gm: fx.GraphModule, inputs: list) -> object:
            seen[name] = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
            return make_boxed_func(gm.forward)

        return compile_it

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        partition_fn=min_cut_rematerialization_partition,
    )
    x = torch.randn(4, requires_grad=True)
    torch.compile(lambda x: x.sin().exp().sum(), backend=backend)(x).backward()
    assert "aten.sin.default" in seen["forward"] and "aten.cos.default" in seen["backward"]
    torch.testing.assert_close(x.grad, (x.sin().exp() * x.cos()).detach())


def test_backend_may_change_graphs_and_hand_them_to_inductor() -> None:
    def doubles(gm: fx.GraphModule, inputs: list) -> object:
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        gm.recompile()
        return compile_fx_inner(gm, inputs)

    x = torch.randn(40)
    got = torch.compile(lambda x: x.sin() + 1, backend=aot_autograd(fw_compiler=doubles))(x)
    assert torch.equal(got, x.cos() + 1) and metrics.generated_kernel_count == 1


def test_inner_compiler_of_compile_fx_sees_what_is_lowered() -> None:
    graphs: list[fx.GraphModule] = []

    def inner(gm: fx.GraphModule, inputs: list, **kwargs: object) -> object:
        graphs.append(gm)
        return compile_fx_inner(gm, inputs, **kwargs)

    def backend(gm: fx.GraphModule, inputs: list) -> object:
        return compile_fx(gm, inputs, inner_compile=inner)

    model = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))
    assert len(graphs) == 1
    with torch.no_grad():
        torch.compile(model, backend=backend)(x)
    assert len(graphs) == 2


class _Twice(HigherOrderOperator):
    """twice(fn, x) is fn(fn(x)); a trace keeps fn as a graph."""

    def __init__(self) -> None:
        super().__init__("extension_points_twice")

    def __call__(self, fn: object, x: torch.Tensor) -> torch.Tensor:
        return super().__call__(fn, x)


twice = _Twice()


@twice.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
def _(fn, x):
    return fn(fn(x))


@twice.py_impl(ProxyTorchDispatchMode)
def _(mode, fn, x):
    graph = reenter_make_fx(fn)(x)
    mode.tracer.root.register_module("twice_body", graph)
    proxy = mode.tracer.create_proxy(
        "call_function", twice, (graph, mode.tracer.unwrap_proxy(x)), {}
    )
    return track_tensor_tree(graph(x), proxy, constant=None, tracer=mode.tracer)


def test_function_of_an_operator_is_traced_as_the_trace_around_it() -> None:
    with pytest.raises(RuntimeError, match="none is running"):
        reenter_make_fx(torch.sin)(torch.ones(2))
    x = torch.randn(5)
    with torch.no_grad():
        module = make_fx(lambda x: twice(lambda t: t.sin() * 2, x) + 1)(x)
    body = module.twice_body
    assert [n.target for n in body.graph.nodes if n.op == "call_function"] == [
        torch.ops.aten.sin.default,
        torch.ops.aten.mul.Tensor,
    ]
    assert torch.equal(module(x), ((x.sin() * 2).sin() * 2) + 1)


def test_breaks_are_errors_where_that_is_asked_for_and_not_inside_of_an_exception() -> None:
    @torch._dynamo.error_on_graph_break(False)
    def may_break(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    @torch._dynamo.error_on_graph_break(True)
    def strict(x: torch.Tensor, breaks: bool) -> torch.Tensor:
        x = may_break(x)
        if breaks:
            torch._dynamo.graph_break()
        return x * 2

    x = torch.ones(3)
    compiled = torch.compile(strict, backend="eager")
    assert torch.equal(compiled(x, False), (x + 1) * 2)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(x, True)


def test_custom_operator_whose_result_shares_memory_with_an_input_is_refused() -> None:
    @torch.library.custom_op("extension_points::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    @same.register_fake
    def _(x):
        return x.new_empty(x.numel())

    with pytest.raises(RuntimeError, match="alias"):
        torch.compile(lambda x: same(x) + 1)(torch.ones(2, 2))


def test_settings_of_tests_are_accepted() -> None:
    with config.patch("test_configs.runtime_triton_dtype_assert", True):
        assert config.test_configs.runtime_triton_dtype_assert


@torch.library.custom_op("test_extension_points::shifted", mutates_args=())
def shifted(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
    return x + by


@shifted.register_fake
def _(x, by=1.0):
    return torch.empty_like(x)


def test_custom_operator_is_called_by_its_own_object_without_a_break() -> None:
    torch._dynamo.reset()
    x = torch.ones(3)
    seen = []

    def backend(gm, inputs):
        seen.extend(n.target for n in gm.graph.nodes if n.op == "call_function")
        return gm

    run = torch.compile(lambda x: shifted(x, by=2.0) * shifted(x), backend=backend, fullgraph=True)
    assert torch.equal(run(x), torch.full((3,), 6.0))
    assert seen.count(torch.ops.test_extension_points.shifted.default) == 2


def test_value_that_is_to_be_in_memory_is_part_of_the_graph() -> None:
    from torch._inductor import test_operators

    torch._dynamo.reset()
    x = torch.randn(3, requires_grad=True)
    run = torch.compile(lambda x: test_operators.realize(x.sin()).cos(), fullgraph=True)
    found = run(x)
    assert torch.equal(found, x.sin().cos())
    (grad,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(grad, -x.sin().sin() * x.cos())
