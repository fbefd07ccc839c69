"""Operators that take functions, in a compiled function: the functions use values from around
them, and the graph holds one node for the whole operator."""

from __future__ import annotations

import pytest

import torch
import torch._dynamo
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._higher_order_ops.wrap import wrap

X = torch.arange(12.0).reshape(4, 3) / 12
W = torch.tensor([0.5, 1.0, 2.0])


class Graphs:
    def __init__(self):
        self.graphs = []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        return gm


def operators(gm):
    """The names of the operators that take functions."""
    ops = [n.target for n in gm.graph.nodes if n.op == "call_function"]
    return [op.name() for op in ops if isinstance(op, torch._ops.HigherOrderOperator)]


def rows(x, w):
    return map_rows(lambda row: row * w + 1, x)


def running(x, w):
    return scan(lambda total, row: (total + row * w, total * 2), torch.zeros(3), x)


def products(x, w):
    return associative_scan(lambda a, b: a * b * w, x, 0, combine_mode="generic")


def powers(x, w):
    body = lambda i, y: (i + 1, y * w)
    return while_loop(lambda i, y: i < 3, body, (torch.tensor(0), x))[1]


def by_hand(fn, x, w):
    if fn is rows:
        return torch.stack([row * w + 1 for row in x])
    if fn is running:
        total, seen = torch.zeros(3), []
        for row in x:
            seen.append(total * 2)
            total = total + row * w
        return total, torch.stack(seen)
    if fn is products:
        found = [x[0]]
        for row in x[1:]:
            found.append(found[-1] * row * w)
        return torch.stack(found)
    return x * w * w * w


@pytest.mark.parametrize("fn", [rows, running, products, powers])
def test_loop_with_a_captured_tensor_is_one_operator(fn):
    torch._dynamo.reset()
    seen = Graphs()
    result = torch.compile(fn, backend=seen, fullgraph=True)(X, W)
    torch.testing.assert_close(result, by_hand(fn, X, W))
    assert len(seen.graphs) == 1
    assert len(operators(seen.graphs[0])) == 1


def test_marked_region_called_twice_has_one_graph():
    torch._dynamo.reset()
    seen = Graphs()

    @torch.compiler.nested_compile_region
    def region(x, w):
        return x.sin() * w

    def fn(x, w):
        return region(region(x, w), w)

    result = torch.compile(fn, backend=seen, fullgraph=True)(X, W)
    assert torch.equal(result, (X.sin() * W).sin() * W)
    assert operators(seen.graphs[0]) == ["invoke_subgraph"] * 2
    assert len(list(seen.graphs[0].children())) == 1


def test_names_of_inner_graphs_count_from_the_innermost():
    torch._dynamo.reset()
    seen = Graphs()

    def fn(x):
        def outer(y):
            return torch.cond(y.sum() > 1, torch.sin, torch.cos, (y,))

        return torch.cond(x.sum() > 0, outer, torch.cos, (x,))

    torch.compile(fn, backend=seen, fullgraph=True)(X)
    names = {name for name, _ in seen.graphs[0].named_modules() if name}
    assert names == {"cond_true_1", "cond_false_1", "cond_true_1.cond_true_0",
                     "cond_true_1.cond_false_0"}  # fmt: skip


def test_function_of_an_operator_that_changes_something_around_it_breaks_the_graph():
    torch._dynamo.reset()

    def fn(x):
        seen = []

        def true(y):
            seen.append(y.sin())
            return y + 1

        result = wrap(true, x)
        return result, seen

    result, seen = torch.compile(fn, backend="eager")(X)
    assert torch.equal(result, X + 1) and torch.equal(seen[0], X.sin())


def test_jvp_in_a_compiled_function_is_one_graph():
    torch._dynamo.reset()
    seen = Graphs()

    def fn(x):
        return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))

    value, slope = torch.compile(fn, backend=seen, fullgraph=True)(X)
    assert torch.equal(value, X.sin()) and torch.allclose(slope, X.cos())
    assert len(seen.graphs) == 1
