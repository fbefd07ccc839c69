"""Operators that take functions, in joint traces: results and gradients of a compiled function are
those of the function itself, also for tensors that an inner function only refers to."""

import contextlib

import pytest

import torch
import torch.utils._pytree as pytree
from torch._functorch.aot_autograd import aot_function, aot_module, make_boxed_func
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.cond import cond
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph, mark_compile_region
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.utils import UnsupportedAliasMutationException
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

hops = torch.ops.higher_order


def compiled(function):
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    return aot_function(function, keep), graphs


def targets(graph):
    return [n.target for n in graph.graph.nodes if n.op == "call_function"]


def gradients(outputs, inputs):
    total = sum((o * (i + 1)).sum() for i, o in enumerate(outputs) if o.requires_grad)
    return torch.autograd.grad(total, inputs, allow_unused=True)


def branch(x, w):
    def positive(x):
        y = x.sin()
        return y.add_(w)

    return cond(x.sum() > 0, positive, lambda x: x.cos() * w, (x,))


def branch_on_arguments(x, w):
    return cond(x.sum() < 0, lambda x, w: (x * w, x), lambda x, w: (x + w, w * x), (x, w))


def slices(x, w):
    return map_slices(lambda row: row * w.sin(), x)


def recurrence(x, w):
    return scan(lambda carry, row: (carry * row + w, (carry + row) * w), x[0], x)


def recurrence_backwards(x, w):
    def step(carry, row):
        total, count = carry
        return (total + row * w, count + 1), total.exp()

    start = (torch.zeros(2, dtype=x.dtype), torch.zeros((), dtype=torch.int64))
    return scan(step, start, x, reverse=True)


def products(x, w):
    return associative_scan(lambda a, b: a * b * w, x, 0)


def part(x, w):
    return invoke_subgraph(lambda x, w: ((x * w).sin(), x.exp()), "part", x, w)


CALLS = {
    branch: hops.cond,
    branch_on_arguments: hops.cond,
    slices: hops.map_impl,
    recurrence: hops.scan,
    recurrence_backwards: hops.scan,
    part: hops.invoke_subgraph,
    products: None,  # differentiated as the products themselves
}


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sign", [1, -1])
def test_joint_graph_of_operator_with_functions_equals_eager(function, sign):
    x = (sign * torch.rand(4, 2, dtype=torch.float64)).requires_grad_()
    w = torch.rand(2, dtype=torch.float64).requires_grad_()
    call, graphs = compiled(function)
    got, want = pytree.tree_leaves(call(x, w)), pytree.tree_leaves(function(x, w))
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)
    for a, b in zip(gradients(got, (x, w)), gradients(want, (x, w)), strict=True):
        torch.testing.assert_close(a, b)
    if CALLS[function] is not None:
        assert CALLS[function] in targets(graphs[0])
        assert CALLS[function] in targets(graphs[1])


def test_joint_graph_keeps_one_graph_for_both_calls_of_a_named_part():
    def twice(x):
        for _ in range(2):
            (x,) = invoke_subgraph(lambda x: (x.sin(),), "block", x)
        return x

    call, graphs = compiled(twice)
    x = torch.rand(3, requires_grad=True)
    call(x).sum().backward()
    forward = [n for n in graphs[0].graph.nodes if n.target is hops.invoke_subgraph]
    assert len(forward) == 2 and len(list(graphs[0].children())) == 1
    torch.testing.assert_close(x.grad, x.detach().sin().cos() * x.detach().cos())


def test_loop_refers_to_tensor_outside_of_it():
    def loop(x, step):
        return while_loop(lambda x: x.sum() < 5, lambda x: (x + step,), (x,))

    graph = make_fx(loop, tracing_mode="fake")(torch.zeros(2), torch.ones(2))
    assert hops.while_loop in targets(graph)
    (got,) = graph(torch.zeros(2), torch.full((2,), 2.0))
    assert got.tolist() == [4.0, 4.0]


def test_loop_has_no_gradient_in_traces_and_says_so():
    def loop(x):
        return while_loop(lambda x: x.sum() < 5, lambda x: (x + 1,), (x,))[0]

    with pytest.raises(RuntimeError, match="Autograd not implemented for while_loop"):
        compiled(loop)[0](torch.zeros(2, requires_grad=True))


def test_function_that_writes_to_its_argument_is_refused():
    def write(x):
        return cond(x.sum() > 0, lambda x: x.add_(1), lambda x: x + 2, (x,))

    with pytest.raises(UnsupportedAliasMutationException, match="might be modifying the input"):
        compiled(write)[0](torch.ones(2))


def test_functionalize_reaches_the_functions_of_an_operator():
    def f(x):
        y = x.clone()
        return cond(y.sum() > 0, lambda y: y.sin().add_(1), lambda y: y.cos(), (y,))

    graph = make_fx(torch.func.functionalize(f))(torch.ones(2))
    inner = [n.target for n in graph.true_graph_0.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.add_.Tensor not in inner and torch.ops.aten.add.Tensor in inner
    torch.testing.assert_close(graph(torch.ones(2)), torch.ones(2).sin() + 1)


def test_kernel_for_transform_gets_the_level_it_runs_in():
    class Doubled(torch._ops.HigherOrderOperator):
        def __init__(self):
            super().__init__("doubled_for_test")

        def __call__(self, x):
            return super().__call__(x)

    doubled, seen = Doubled(), []
    functorch = torch._C._functorch

    @doubled.py_impl(functorch.TransformType.Vmap)
    def batched(interpreter, x):
        seen.append((interpreter.level(), interpreter.batch_size()))
        dim = functorch.maybe_get_bdim(x)
        with interpreter.lower():
            out = doubled(functorch.get_unwrapped(x))
        return functorch._add_batch_dim(out, dim, interpreter.level())

    @doubled.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
    def plain(x):
        return x * 2

    x = torch.rand(3, 5)
    torch.testing.assert_close(torch.vmap(torch.vmap(doubled))(x), 2 * x)
    assert seen == [(2, 5), (1, 3)]


def test_compiled_function_without_gradient_returns_tensors_without_history():
    call, _ = compiled(lambda x: x.detach() + 1)
    assert not call(torch.ones(2, requires_grad=True)).requires_grad

    def reads_only(x):
        with torch.no_grad():
            return x * 2

    assert not compiled(reads_only)[0](torch.ones(2, requires_grad=True)).requires_grad


def test_marked_blocks_of_a_module_share_their_graphs():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        @mark_compile_region
        def forward(self, x):
            return x + self.inner(x).relu()

    net = torch.nn.Sequential(*(Block() for _ in range(4))).double()
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    x = torch.randn(3, 4, dtype=torch.float64)
    got, want = aot_module(net, keep)(x), net(x)
    torch.testing.assert_close(got, want)
    parameters = list(net.parameters())
    for a, b in zip(
        torch.autograd.grad(got.sum(), parameters),
        torch.autograd.grad(want.sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b)
    calls = [targets(g).count(hops.invoke_subgraph) for g in graphs]
    # The first block's input needs no gradient: its backward is another graph.
    assert calls == [4, 4] and [len(list(g.children())) for g in graphs] == [1, 2]


def test_marked_function_outside_of_traces_is_the_function():
    @mark_compile_region
    def add(x, *, amount=1):
        return {"sum": x + amount}

    assert add(torch.zeros(2), amount=3)["sum"].tolist() == [3.0, 3.0]
    graph = make_fx(lambda x: add(add(x)["sum"], amount=3))(torch.zeros(2))
    assert targets(graph).count(hops.invoke_subgraph) == 2
    assert graph(torch.zeros(2))["sum"].tolist() == [4.0, 4.0]


def _two_products(x, w):
    return torch.sigmoid(torch.mm(torch.sin(torch.mm(x, w)), w))


def _saves_products(context, operator, *args, **kwargs):
    if operator is torch.ops.aten.mm.default:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("selective, products", [(False, 6), (True, 4)])
def test_checkpointed_part_is_computed_again_but_for_what_its_policy_saves(
    partition, selective, products
):
    def function(x, w):
        settings = {"use_reentrant": False}
        if selective:
            settings["context_fn"] = lambda: create_selective_checkpoint_contexts(_saves_products)
        return hops.tag_activation_checkpoint(_two_products, x, w, **settings)

    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    x, w = (torch.randn(4, 4, dtype=torch.float64).requires_grad_() for _ in range(2))
    got = aot_function(function, keep, partition_fn=partition)(x, w)
    want = _two_products(x, w)
    torch.testing.assert_close(got, want)
    for a, b in zip(gradients([got], (x, w)), gradients([want], (x, w)), strict=True):
        torch.testing.assert_close(a, b)
    # The derivative has four products of its own.
    assert targets(graphs[1]).count(torch.ops.aten.mm.default) == products


def test_checkpoint_with_other_contexts_is_refused_in_traces():
    def function(x):
        contexts = lambda: (contextlib.nullcontext(), contextlib.nullcontext())
        return hops.tag_activation_checkpoint(torch.sin, x, context_fn=contexts)

    with pytest.raises(RuntimeError, match="create_selective_checkpoint_contexts"):
        compiled(function)[0](torch.ones(2, requires_grad=True))
