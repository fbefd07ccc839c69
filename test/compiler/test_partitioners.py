"""Dividing joint graphs: the two optimisation problems against enumeration, and what partitions
save and compute again. Joint graphs are recorded from the mathematics of small functions."""

import itertools
import math

import numpy as np
import pytest

import torch
from torch import fx
from torch._C import _aot
from torch._functorch import config
from torch._functorch.compile_utils import fx_graph_cse, get_outputs, get_placeholders
from torch._functorch.fx_minifier import minifier
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import CheckpointPolicy

aten = torch.ops.aten

# ---- the algorithms -------------------------------------------------------------------------


def cheapest_cut(count, edges):
    """The value of the best cut between 0 and 1, by trying all."""
    best = math.inf
    for sides in itertools.product([False, True], repeat=count - 2):
        inside = (True, False, *sides)
        best = min(best, sum(c for a, b, c in edges if inside[a] and not inside[b]))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_min_cut_equals_the_best_of_all_cuts(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 9))
    edges = []
    for a, b in itertools.permutations(range(count), 2):
        if random.random() < 0.4:
            endless = random.random() < 0.15
            edges.append((a, b, math.inf if endless else float(random.integers(0, 10))))
    value, side = _aot.min_cut(count, edges, 0, 1)
    assert value == cheapest_cut(count, edges)
    if math.isfinite(value):
        assert side[0] and not side[1]
        assert sum(c for a, b, c in edges if side[a] and not side[b]) == value


def test_min_cut_of_a_long_chain_does_not_recurse():
    count = 200_000
    edges = [(i, i + 1, 2.0) for i in range(2, count - 1)]
    edges += [(0, 2, 5.0), (count - 1, 1, 1.0)]
    assert _aot.min_cut(count, edges, 0, 1)[0] == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: _aot.min_cut(2, [(0, 2, 1.0)], 0, 1),
        lambda: _aot.min_cut(2, [(0, 1, -1.0)], 0, 1),
        lambda: _aot.min_cut(2, [], 0, 0),
        lambda: _aot.knapsack([1.0], [], 1.0, 10),
        lambda: _aot.knapsack([-1.0], [1.0], 1.0, 10),
    ],
)
def test_impossible_problem_raises_value_error(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("seed", range(20))
def test_knapsack_equals_the_best_of_all_choices(seed):
    random = np.random.default_rng(seed)
    weights = random.integers(0, 12, 8).astype(float)
    values = random.integers(1, 20, 8).astype(float)
    budget = float(random.integers(0, 40))
    best = max(
        sum(v for v, t in zip(values, taken, strict=True) if t)
        for taken in itertools.product([0, 1], repeat=8)
        if sum(w for w, t in zip(weights, taken, strict=True) if t) <= budget
    )
    value, weight, taken = _aot.knapsack(list(weights), list(values), budget, max(int(budget), 1))
    assert value == best and weight <= budget
    assert sum(v for v, t in zip(values, taken, strict=True) if t) == best


# ---- partitions -----------------------------------------------------------------------------


def joint_of(function, inputs):
    """The recorded graph of (outputs, gradients) of a function with one output."""

    def joint(primals, tangents):
        out = function(*primals)
        wanted = [p for p in primals if p.requires_grad]
        grads = iter(torch.autograd.grad(out, wanted, tangents, allow_unused=True))
        return [out, *(next(grads) if p.requires_grad else None for p in primals)]

    out = function(*inputs)
    return make_fx(joint)(list(inputs), [torch.ones_like(out)])


def run(parts, inputs, tangent):
    forward, backward = parts
    out, *saved = forward(*[i.detach() for i in inputs])
    return out, backward(*saved, tangent)


def leaves(*shapes):
    return [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]


def deep(a, b, c):
    return torch.tanh(torch.sin(a @ b).cos() + c).exp() @ b.t()


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_partition_computes_what_the_function_and_its_derivative_do(partition):
    torch.manual_seed(0)
    inputs = leaves((4, 5), (5, 6), (6,))
    expected = deep(*inputs)
    tangent = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, inputs, tangent)
    out, grads = run(partition(joint_of(deep, inputs), [], num_fwd_outputs=1), inputs, tangent)
    assert torch.equal(out, expected)
    for got, want in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)


def counts(module):
    return len(get_placeholders(module.graph)), len(get_outputs(module.graph))


def test_min_cut_saves_one_value_of_a_pointwise_chain():
    forward, backward = min_cut_rematerialization_partition(
        joint_of(lambda x: x.cos().cos().cos(), leaves((3,))), [], num_fwd_outputs=1
    )
    assert counts(forward) == (1, 2) and counts(backward) == (2, 1)


def test_min_cut_saves_the_sum_and_not_its_terms():
    graph = joint_of(lambda a, b, c, d: (a + b + c + d).cos().cos(), leaves(*[(3,)] * 4))
    forward, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    assert counts(forward) == (4, 2) and counts(backward) == (2, 4)


def names(module):
    return [n.target.overloadpacket.__name__ for n in module.graph.nodes if n.op == "call_function"]


def test_min_cut_computes_no_product_twice():
    graph = joint_of(deep, leaves((40, 5), (5, 60), (60,)))
    forward, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    # Of the products of the joint graph (2 forward, 4 backward) none is in both parts.
    assert names(forward).count("mm") == 2 and names(backward).count("mm") == 4


def test_min_cut_on_the_cpu_keeps_a_function_that_a_product_reads():
    graph = joint_of(lambda a, b: torch.nn.functional.gelu(a) @ b, leaves((40, 30), (30, 20)))
    _, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    assert "gelu" not in names(backward) and "gelu_backward" in names(backward)


def test_several_results_of_one_operator_are_saved_one_by_one():
    weight = torch.ones(10, requires_grad=True)
    bias = torch.zeros(10, requires_grad=True)
    x = torch.randn(3, 10, requires_grad=True)
    graph = joint_of(
        lambda x, w, b: torch.nn.functional.layer_norm(x, [10], w, b), [x, weight, bias]
    )
    forward, backward = default_partition(graph, [], num_fwd_outputs=1)
    assert counts(forward) == (3, 6) and counts(backward) == (6, 3)


def test_value_tagged_by_a_checkpoint_is_computed_again():
    torch.manual_seed(0)
    inputs = leaves((8, 8), (8, 8))
    function = lambda a, b: torch.sin(a @ b).exp()
    graph = joint_of(function, inputs)
    for node in graph.graph.nodes:
        if node.op == "call_function":
            node.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE
    _, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    assert names(backward).count("mm") == 3  # a @ b again, and the two gradients
    saved = [n.name for n in get_placeholders(backward.graph) if "tangents" not in n.name]
    assert saved == ["primals_1", "primals_2"]


def test_random_operator_that_is_computed_again_draws_the_same_numbers():
    x = torch.randn(50, requires_grad=True)

    def noisy(x):
        return (x * torch.rand_like(x)).sin()

    graph = joint_of(noisy, [x])
    for node in graph.graph.nodes:
        if node.op == "call_function":
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
    parts = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    torch.manual_seed(3)
    out, (grad,) = run(parts, [x], torch.ones(50))
    torch.manual_seed(3)
    expected = noisy(x)
    (wanted,) = torch.autograd.grad(expected.sum(), x)
    assert torch.equal(out, expected) and torch.equal(grad, wanted)


def test_random_operator_without_a_tag_is_saved():
    graph = joint_of(lambda x: x * torch.rand_like(x), [torch.randn(5, requires_grad=True)])
    _, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
    assert "rand_like" not in names(backward)


def saved_bytes(backward):
    nodes = [n for n in get_placeholders(backward.graph) if "primals" not in n.name]
    values = [n.meta["val"] for n in nodes if "tangents" not in n.name]
    return sum(v.numel() * v.element_size() for v in values)


def test_memory_budget_saves_less_the_smaller_it_is():
    sizes = []
    for budget in (1.0, 0.5, 0.0):
        graph = joint_of(lambda a, b: ((a @ b).sin() @ b).sin() @ b, leaves((30, 30), (30, 30)))
        with config.patch(activation_memory_budget=budget):
            _, backward = min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)
        sizes.append(saved_bytes(backward))
    assert sizes[0] > sizes[1] > sizes[2] == 0


def test_memory_budget_outside_of_its_range_raises():
    graph = joint_of(torch.sin, leaves((3,)))
    with config.patch(activation_memory_budget=1.5), pytest.raises(RuntimeError, match="budget"):
        min_cut_rematerialization_partition(graph, [], num_fwd_outputs=1)


# ---- graphs ---------------------------------------------------------------------------------


def test_cse_shares_equal_calls_but_not_draws_and_not_numbers_of_other_types():
    def function(x):
        return x.sum(1) + x.sum(1) + torch.rand_like(x).sum() + torch.rand_like(x).sum()

    graph = make_fx(function)(torch.randn(2, 2)).graph
    shared = fx_graph_cse(graph)
    assert len(shared.nodes) == len(graph.nodes) - 1
    assert len(fx_graph_cse(shared).nodes) == len(shared.nodes)
    tracer = fx.Graph()
    x = tracer.placeholder("x")
    a, b = (tracer.call_function(aten.add.Tensor, (x, n)) for n in (1, 1.0))
    tracer.output((a, b))
    assert len(fx_graph_cse(tracer).nodes) == 4


def test_cse_keeps_returned_values_and_written_memory_apart():
    tracer = fx.Graph()
    x = tracer.placeholder("x")
    sums = [tracer.call_function(aten.add.Tensor, (x, 1)) for _ in range(4)]
    views = [tracer.call_function(aten.view.default, (s, [-1])) for s in sums]
    written = [tracer.call_function(aten.clone.default, (x,)) for _ in range(2)]
    for noise in written:
        tracer.call_function(aten.rrelu_with_noise.default, (x, noise))
    tracer.output((views[0], sums[1], sums[2].graph.call_function(aten.sin.default, (views[3],))))

    def count(graph, target):
        return sum(n.target is target for n in graph.nodes)

    free = fx_graph_cse(tracer)
    assert count(free, aten.add.Tensor) == count(free, aten.view.default) == 1
    apart = fx_graph_cse(tracer, get_outputs(tracer))
    assert count(apart, aten.add.Tensor) == 2
    for graph in (free, apart):
        assert count(graph, aten.clone.default) == 2
        assert count(graph, aten.rrelu_with_noise.default) == 2


def has(target):
    return lambda graph, inputs: target in [n.target for n in graph.graph.nodes]


def test_minifier_keeps_the_one_node_that_matters():
    def failing(x, y):
        y = y / 3
        x = x + 3
        x = x * y
        return x + y

    inputs = [torch.randn(3), torch.randn(3)]
    graph, kept = minifier(make_fx(failing)(*inputs), inputs, has(aten.mul.Tensor))
    assert len(graph.graph.nodes) == 4 and len(kept) == 2


def test_minifier_finds_where_nan_begins():
    def failing(x):
        x = (x * 3 + 5).cos()
        zero = x - x
        return ((zero / zero + 3) * 2,)

    def fails(graph, inputs):
        if any(torch.isnan(i).any() for i in inputs):
            return False
        return torch.isnan(graph(*inputs)[0]).any()

    inputs = [torch.randn(3)]
    graph, kept = minifier(make_fx(failing)(*inputs), inputs, fails)
    assert len(graph.graph.nodes) == 3 and len(kept) == 1


def test_minifier_refuses_a_graph_that_does_not_fail():
    graph = make_fx(torch.sin)(torch.ones(2))
    with pytest.raises(RuntimeError, match="did not fail the tester"):
        minifier(graph, [torch.ones(2)], has(aten.cos.default))
