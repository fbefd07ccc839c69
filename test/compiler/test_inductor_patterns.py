"""torch._inductor.pattern_matcher as users of torch.compile use it: patterns written as expressions
and as functions, their passes and counters."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import pytest

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.pattern_matcher import (
    MULTIPLE,
    Arg,
    CallFunction,
    CallFunctionVarArgs,
    CallMethod,
    Ignored,
    KeywordArg,
    ListOf,
    Match,
    MultiOutputPattern,
    PatternMatcherPass,
    PatternPrettyPrinter,
    filter_nodes,
    fwd_only,
    gen_pattern,
    is_mutation_op,
    joint_fwd_bwd,
    register_graph_pattern,
    register_lowering_pattern,
    register_replacement,
    stable_topological_sort,
)
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def _calls(graph: fx.Graph) -> list[str]:
    return [str(n.target) for n in graph.nodes if n.op == "call_function"]


def test_replacement_in_a_compiled_function_computes_what_replaces_it() -> None:
    passes = PatternMatcherPass()
    register_replacement(
        lambda x, y: torch.relu(x + y),
        lambda x, y: torch.sigmoid(x * y),
        [torch.empty(2, 3), torch.empty(2, 3)],
        fwd_only,
        passes,
    )
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    with config.patch(post_grad_custom_post_pass=passes.apply):
        got = torch.compile(lambda x, y: torch.relu(x + y) - 1)(x, y)
    torch.testing.assert_close(got, torch.sigmoid(x * y) - 1)
    assert counters["inductor"]["pattern_matcher_count"] == 1
    assert counters["inductor"]["pattern_matcher_nodes"] == 2


def test_replacement_with_numbers_fits_only_equal_numbers() -> None:
    passes = PatternMatcherPass()
    register_replacement(
        lambda x: torch.softmax(x, 1), lambda x: x * 0, [torch.empty(2, 3)], fwd_only, passes
    )
    over_rows = make_fx(lambda x: torch.softmax(x, 0))(torch.randn(3, 3))
    over_columns = make_fx(lambda x: torch.softmax(x, 1))(torch.randn(3, 3))
    for gm in (over_rows, over_columns):
        for node in gm.graph.nodes:
            if "val" not in node.meta and node.op == "placeholder":
                node.meta["val"] = torch.empty(3, 3)
    assert passes.apply(over_rows) == 0
    assert passes.apply(over_columns) == 1
    over_columns.recompile()
    assert over_columns(torch.ones(3, 3)).abs().sum() == 0


def test_extra_check_decides_whether_a_match_counts() -> None:
    passes = PatternMatcherPass()
    seen = []

    def small(match: Match) -> bool:
        seen.append(match.kwargs["x"].meta["val"].numel())
        return seen[-1] < 10

    register_replacement(
        lambda x: x.sin(), lambda x: x.cos(), [torch.empty(3)], fwd_only, passes, extra_check=small
    )
    with config.patch(post_grad_custom_post_pass=passes.apply):
        few, many = torch.randn(4), torch.randn(40)
        assert torch.equal(torch.compile(lambda x: x.sin())(few), few.cos())
        torch._dynamo.reset()
        assert torch.equal(torch.compile(lambda x: x.sin())(many), many.sin())
    assert seen == [4, 40]


def test_joint_replacement_changes_forward_and_backward() -> None:
    passes = PatternMatcherPass()
    register_replacement(
        lambda x: torch.sin(x) * torch.cos(x),
        lambda x: torch.sin(2 * x) / 2,
        [torch.empty(3, requires_grad=True)],
        joint_fwd_bwd,
        passes,
    )
    x = torch.randn(7, requires_grad=True)
    with config.patch(joint_custom_post_pass=passes.apply):
        out = torch.compile(lambda x: torch.sin(x) * torch.cos(x) + 1)(x)
        out.sum().backward()
    torch.testing.assert_close(out, torch.sin(2 * x) / 2 + 1)
    torch.testing.assert_close(x.grad, torch.cos(2 * x))
    assert counters["inductor"]["pattern_matcher_count"] == 1


def test_graph_pattern_handler_gets_positional_and_named_arguments() -> None:
    passes = PatternMatcherPass()
    seen: list[tuple] = []

    @register_graph_pattern(
        CallFunction(aten.addmm, Arg(), Arg(), Arg(), beta=KeywordArg("beta"),
                     alpha=KeywordArg("alpha")),
        pass_dict=passes,
    )  # fmt: skip
    def handler(match: Match, bias: fx.Node, a: fx.Node, b: fx.Node, beta: float, alpha: float):
        seen.append((bias.name, a.name, b.name, beta, alpha))

        def replacement(bias, a, b):
            return (a @ b) * alpha + bias * beta

        match.replace_by_example(replacement, [bias, a, b])

    def run(call):
        torch._dynamo.reset()
        with config.patch(post_grad_custom_post_pass=passes.apply):
            return torch.compile(call)(bias, a, b)

    bias, a, b = torch.randn(4), torch.randn(3, 5), torch.randn(5, 4)
    for call in (
        lambda bias, a, b: aten.addmm(bias, a, b),
        lambda bias, a, b: aten.addmm(bias, a, b, beta=1.0),
        lambda bias, a, b: aten.addmm(bias, a, b, beta=2.0, alpha=0.5),
    ):
        torch.testing.assert_close(run(call), call(bias, a, b))
    assert [s[3:] for s in seen] == [(1, 1), (1.0, 1), (2.0, 0.5)]


def test_pattern_that_names_fewer_arguments_needs_defaults_for_the_rest() -> None:
    pattern = CallFunction(aten.addmm.default, Arg(), Arg(), Arg())
    graph = fx.Graph()
    x = graph.placeholder("x")
    usual = graph.call_function(aten.addmm.default, (x, x, x), {"beta": 1.0})
    scaled = graph.call_function(aten.addmm.default, (x, x, x), {"beta": 2.0})
    assert pattern.match(usual)
    failed = pattern.match(scaled)
    assert not failed and "arguments" in str(failed)


def test_users_of_inner_nodes_are_counted_and_multiple_lifts_that() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    sin = graph.call_function(torch.sin, (x,))
    add = graph.call_function(torch.add, (sin, 1))
    graph.output((add, sin))
    strict = CallFunction(torch.add, CallFunction(torch.sin, Arg()), 1)
    loose = CallFunction(torch.add, CallFunction(torch.sin, Arg(), _users=MULTIPLE), Ignored())
    assert not strict.match(add)
    assert loose.match(add).args == [x]


def test_same_name_stands_for_the_same_value() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    squared = graph.call_function(torch.mul, (x, x))
    product = graph.call_function(torch.mul, (x, y))
    pattern = CallFunction(torch.mul, KeywordArg("a"), KeywordArg("a"))
    assert pattern.match(squared).kwargs == {"a": x}
    assert not pattern.match(product)


def test_several_outputs_are_found_from_what_they_share() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    exp = graph.call_function(torch.exp, (x,))
    total = graph.call_function(torch.sum, (exp,))
    other = graph.call_function(torch.mul, (exp, 2))
    graph.output((other, total))
    shared = CallFunction(torch.exp, KeywordArg("x"), _users=2)
    pattern = MultiOutputPattern(
        [CallFunction(torch.sum, shared), CallFunction(torch.mul, shared, 2)]
    )
    found = pattern.match(total)
    assert found.output_nodes() == [total, other]
    assert set(found.nodes) == {exp, total, other}


def test_list_pattern_gathers_its_items() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    parts = [graph.call_function(torch.sin, (v,)) for v in (x, y)]
    cat = graph.call_function(torch.cat, (parts, 0))
    mixed = graph.call_function(torch.cat, ([parts[0], x], 0))
    graph.output((cat, mixed))
    item = CallFunction(torch.sin, Arg(), _users=MULTIPLE)
    assert CallFunction(torch.cat, ListOf(item), 0).match(cat).args == [(x, y)]
    assert not CallFunction(torch.cat, ListOf(item), 0).match(mixed)
    assert CallFunction(torch.cat, ListOf(item, partial=True), 0).match(mixed).args == [(x,)]


def test_methods_and_any_arguments_can_be_matched() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    view = graph.call_method("view", (x, 2, 3))
    cat = graph.call_function(torch.cat, ([view, x],), {"dim": 1})
    assert CallMethod("view", Arg(), 2, KeywordArg("n")).match(view).kwargs == {"n": 3}
    found = CallFunctionVarArgs(torch.cat).match(cat)
    assert list(found.args[0]) == [view, x] and found.kwargs == {"dim": 1}


def test_match_across_a_write_is_refused() -> None:
    passes = PatternMatcherPass()
    counted = []

    @register_graph_pattern(
        CallFunction(torch.add, KeywordArg("x"), CallFunction(torch.sin, KeywordArg("x"))),
        pass_dict=passes,
    )
    def handler(match: Match, x: fx.Node) -> None:
        counted.append(x)

    def graph_of(written: bool) -> fx.Graph:
        graph = fx.Graph()
        x, y = graph.placeholder("x"), graph.placeholder("y")
        sin = graph.call_function(torch.sin, (x,))
        if written:
            graph.call_method("copy_", (x, y))
        graph.output(graph.call_function(torch.add, (x, sin)))
        return graph

    assert passes.apply(graph_of(False)) == 1
    assert passes.apply(graph_of(True)) == 0
    assert len(counted) == 1


def test_lowering_pattern_becomes_part_of_the_compiled_graph() -> None:
    from torch._inductor.lowering import lowerings

    passes = PatternMatcherPass()

    @register_lowering_pattern(
        CallFunction(aten.relu.default, CallFunction(aten.neg.default, Arg())), pass_dict=passes
    )
    def handler(match: Match, x):
        return lowerings[aten.clamp_max](lowerings[aten.mul](x, 3), 0)

    x = torch.randn(30)
    with config.patch(post_grad_custom_post_pass=passes.apply):
        got = torch.compile(lambda x: torch.relu(-x) + 1)(x)
    torch.testing.assert_close(got, (x * 3).clamp_max(0) + 1)


def test_pattern_of_a_function_prints_as_python() -> None:
    pattern = gen_pattern(
        lambda x, y: torch.relu(x * 2 + y), [torch.empty(3), torch.empty(3)], fwd_only
    )
    text = PatternPrettyPrinter.run(pattern)
    assert text.startswith("output = CallFunction(aten.relu.default, CallFunction(aten.add.Tensor")
    assert "KeywordArg('x')" in text and "Ignored()" in text


def test_sort_puts_nodes_behind_what_they_read_and_keeps_the_order() -> None:
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    c = graph.call_function(operator.add, (b, a))
    c.append(a)
    stable_topological_sort(graph)
    assert list(graph.nodes) == [b, a, c]


@pytest.mark.parametrize(
    ("kind", "target", "writes"),
    [
        ("call_method", "relu_", True),
        ("call_method", "relu", False),
        ("call_function", torch._C._set_grad_enabled, True),
        ("call_function", torch.manual_seed, True),
        ("call_function", aten.copy_.default, True),
        ("call_function", aten.__rshift__.Scalar, False),
        ("call_function", torch.add, False),
    ],
)
def test_writes_are_known(kind: str, target: object, writes: bool) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = getattr(graph, kind)(target, (x, x))
    assert is_mutation_op(node) is writes


def test_filter_finds_all_overloads_of_a_packet() -> None:
    graph = make_fx(lambda x: (x + 1) + x.sin())(torch.randn(3)).graph
    assert [n.name for n in filter_nodes(graph.nodes, aten.add)] == ["add", "add_1"]


def test_replacement_may_use_sizes_of_its_arguments() -> None:
    passes = PatternMatcherPass()
    register_replacement(
        lambda x, y: x + y,
        lambda x, y: (x - (-y.size(0))) - (y * -1) - y.size(0),
        [torch.empty(8, 1), torch.empty(10)],
        fwd_only,
        passes,
    )
    x, y = torch.rand(8, 1), torch.rand(10)
    with config.patch(post_grad_custom_post_pass=passes.apply, pattern_matcher=False):
        got = torch.compile(lambda x, y: x + y, dynamic=True)(x, y)
    torch.testing.assert_close(got, x + y)
    assert counters["inductor"]["pattern_matcher_count"] == 1
