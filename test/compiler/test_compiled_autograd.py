"""Compiled autograd: a backward pass that is captured as a graph and run from it leaves what the
engine leaves: gradients, effects of hooks and errors. Passes of one form are captured once."""

import pytest

import torch
from torch import nn
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import counters


@pytest.fixture(autouse=True)
def clean():
    compiled_autograd.reset()
    counters["compiled_autograd"].clear()
    yield
    compiled_autograd.reset()


class Kept:
    """A compiler that keeps graphs and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph):
        self.graphs.append(graph)
        return graph

    def targets(self, index=0):
        nodes = self.graphs[index].graph.nodes
        return [n.target for n in nodes if n.op == "call_function"]


def both_ways(program):
    found = []
    kept = Kept()
    for run in (compiled_autograd._disable(), compiled_autograd._enable(kept)):
        torch.manual_seed(0)
        with run:
            found.append(program())
    for a, b in zip(*found, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b)
        else:
            assert a == b
    return kept


def perceptron():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))
    for _ in range(3):
        loss = nn.functional.cross_entropy(net(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
        loss.backward()
    return [p.grad for p in net.parameters()]


def convolutions():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Dropout(0.5)
    )
    net(torch.randn(2, 3, 8, 8)).pow(2).sum().backward()
    return [p.grad for p in net.parameters()]


def writes_to_views():
    x = torch.randn(4, requires_grad=True)
    y = x * 1
    y[1:3].mul_(2)
    v = y.view(2, 2)
    v.add_(x.view(2, 2))
    v.exp().sum().backward()
    return [x.grad]


def hooks_of_all_kinds():
    seen = []
    w = torch.randn(3, requires_grad=True)
    y = w * 2
    y.register_hook(lambda g: seen.append("tensor") or g * 3)
    y.retain_grad()
    w.register_hook(lambda g: g + 1)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(round(float(p.grad.sum()), 4)))
    z = y.exp()
    z.grad_fn.register_prehook(lambda grads: seen.append("before") or (grads[0] * 2,))
    z.grad_fn.register_hook(lambda given, taken: seen.append((len(given), len(taken))))
    z.sum().backward()
    return [w.grad, y.grad, seen]


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad * ctx.factor * x.cos() if ctx.factor < 7 else None), None


def functions_of_users():
    x = torch.randn(3, requires_grad=True)
    found = []
    for factor in (2, 5, 7):
        (Scaled.apply(x.sin(), factor) + x).sum().backward()
        found.append(x.grad.clone())
    return found


def gradients_asked_for():
    x, u = (torch.randn(3, requires_grad=True) for _ in range(2))
    w = torch.randn(3, 3, requires_grad=True)
    y = (w @ x).tanh()
    first = torch.autograd.grad(y.sum(), (x, w, u, y), allow_unused=True, retain_graph=True)
    return [*first, *torch.autograd.grad(y, (x,), torch.full((3,), 2.0))]


def several_roots_and_inputs():
    x, w = (torch.randn(3, requires_grad=True) for _ in range(2))
    roots = [(x * w).sum(), (x + w.exp()).sum()]
    torch.autograd.backward(roots, inputs=[w])
    return [w.grad, x.grad]


PROGRAMS = [
    perceptron,
    convolutions,
    writes_to_views,
    hooks_of_all_kinds,
    functions_of_users,
    gradients_asked_for,
    several_roots_and_inputs,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_captured_pass_leaves_what_the_engine_leaves(program):
    assert both_ways(program).graphs


def test_passes_of_one_form_are_captured_once():
    kept = both_ways(perceptron)
    assert len(kept.graphs) == 1 and counters["compiled_autograd"]["captures"] == 1
    assert kept.targets().count(torch.ops.inductor.accumulate_grad_.default) == 6


def test_a_number_that_a_node_saved_belongs_to_the_form():
    def powers():
        x = torch.randn(3, requires_grad=True)
        for exponent in (2, 3, 2):
            x.pow(exponent).sum().backward()
        return [x.grad]

    assert len(both_ways(powers).graphs) == 2


def test_other_sizes_are_another_form():
    def sums():
        found = []
        for n in (2, 5, 2):
            x = torch.randn(n, requires_grad=True)
            x.sin().sum().backward()
            found.append(x.grad)
        return found

    assert len(both_ways(sums).graphs) == 2


def test_hooks_of_later_passes_are_the_later_ones():
    seen = []

    def passes():
        found = []
        for i in range(3):
            x = torch.ones(2, requires_grad=True)
            y = x * 2
            y.register_hook(lambda g, i=i: seen.append(i) or g * i)
            y.sum().backward()
            found.append(x.grad)
        return found

    kept = both_ways(passes)
    assert seen == [0, 1, 2] * 2 and len(kept.graphs) == 1


def test_graph_of_a_pass_is_freed_unless_it_is_kept():
    x = torch.ones(2, requires_grad=True)
    with compiled_autograd._enable(Kept()):
        y = x.sin().sum()
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(x.grad, 2 * x.detach().cos())
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()


def test_gradients_of_gradients_are_refused():
    x = torch.ones(2, requires_grad=True)
    with compiled_autograd._enable(Kept()), pytest.raises(RuntimeError, match="create_graph"):
        torch.autograd.grad(x.sin().sum(), x, create_graph=True)


def test_error_in_a_hook_reaches_the_caller_and_the_next_pass_works():
    def fail(grad):
        raise ValueError("no")

    x = torch.ones(2, requires_grad=True)
    with compiled_autograd._enable(Kept()):
        y = x * 2
        y.register_hook(fail)
        with pytest.raises(ValueError, match="no"):
            y.sum().backward()
        assert x.grad is None and not compiled_autograd.in_compiled_autograd_region
        (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert not compiled_autograd.enabled()


def test_pass_inside_of_a_hook_is_run_by_the_engine():
    inner = torch.ones(2, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (inner * 2).sum().backward()
        return grad

    x = torch.ones(2, requires_grad=True)
    kept = Kept()
    with compiled_autograd._enable(kept):
        y = x * 2
        y.register_hook(hook)
        y.sum().backward()
        assert compiled_autograd.enabled()
    assert inner.grad.tolist() == x.grad.tolist() == [2.0, 2.0] and len(kept.graphs) == 1


def test_blocks_nest():
    kept = Kept()
    x = torch.ones(2, requires_grad=True)
    with compiled_autograd._enable(kept), compiled_autograd._disable():
        x.sum().backward()
        assert not compiled_autograd.enabled()
    assert not kept.graphs


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_forward_is_compiled_while_backward_passes_are_captured(backend: str) -> None:
    torch._dynamo.reset()
    captured = []

    def compiler(graph: torch.fx.GraphModule) -> object:
        captured.append(graph)
        return graph

    x = torch.randn(4, requires_grad=True)
    with compiled_autograd._enable(compiler):
        torch.compile(lambda x: x.mul(2).sin(), backend=backend)(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).cos())
    assert len(captured) == 1
