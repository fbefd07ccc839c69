"""Passes over graphs: each changed graph computes what the first one did."""

import operator

import pytest

import torch
from torch import fx, nn
from torch.fx.passes import graph_manipulation, operator_support, tools_common
from torch.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from torch.fx.passes.graph_drawer import FxGraphDrawer
from torch.fx.passes.graph_transform_observer import GraphTransformObserver
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from torch.fx.passes.reinplace import reinplace
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module
from torch.fx.passes.split_utils import split_by_tags
from torch.fx.passes.utils import compare_graphs
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from torch.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.weight = nn.Parameter(torch.arange(4.0))
        self.last = nn.Linear(4, 2)

    def forward(self, x, y):
        a = self.first(x) + self.weight
        b = a * y
        return self.last(b) + self.last(a), b, self.weight


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 4), torch.randn(3, 4)


def same(left, right) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_shapes_dtypes_and_formats_are_noted():
    module = fx.symbolic_trace(Model())
    ShapeProp(module).propagate(*inputs())
    linear = module.graph.find_nodes(op="call_module", target="last")[0].meta["tensor_meta"]
    assert linear.shape == (3, 2) and linear.dtype == torch.float32 and linear.stride == (2, 1)
    assert linear.requires_grad and linear.memory_format is torch.contiguous_format
    out = module.graph.output_node().meta["tensor_meta"]
    assert [m.shape for m in out] == [(3, 2), (3, 4), (4,)]
    last = fx.symbolic_trace(lambda x: x.relu())
    ShapeProp(last).propagate(torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last))
    assert list(last.graph.nodes)[1].meta["tensor_meta"].memory_format is torch.channels_last


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("tuple_return", [False, True])
def test_split_module_computes_the_same(parts, tuple_return):
    model = Model()
    module = fx.symbolic_trace(model)
    place = {node: i for i, node in enumerate(module.graph.nodes)}
    paths: dict[str, str] = {}
    whole = split_module(
        module,
        model,
        lambda node: place[node] * parts // len(place),
        paths,
        tuple_return=tuple_return,
    )
    x = inputs()
    assert same(whole(*x), model(*x))
    whole.graph.lint()
    assert len(list(whole.children())) <= parts
    assert set(paths.values()) == {"first.0", "first.1", "last"}
    assert all(isinstance(whole.get_submodule(path), nn.Module) for path in paths)


def test_split_that_needs_a_cycle_is_refused():
    module = fx.symbolic_trace(lambda x: ((x + 1) * 2) + 3)
    numbers = iter([0, 1, 0])
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(module, None, lambda node: next(numbers))


def test_split_by_tags_follows_the_tags():
    model = Model()
    module = fx.symbolic_trace(model)
    for node in module.graph.nodes:
        node.tag = "late" if node.target == "last" or node.name == "add_1" else "early"
    whole, paths = split_by_tags(module, ["early", "late"], return_fqn_mapping=True)
    x = inputs()
    assert same(whole(*x), model(*x))
    assert [name for name, _ in whole.named_children()] == ["early", "late"]
    assert paths["last"] == "late.last" and paths["first.0"] == "early.first.0"
    with pytest.raises(AssertionError, match="comes later"):
        split_by_tags(module, ["late", "early"])


class Supports(operator_support.OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.target in (operator.add, operator.getitem)


def blocked(a, b, c):
    s = a + b
    t = s + b
    u = t.relu()
    v = t + u
    return v + t, c + c


def test_partitions_hold_no_path_that_leaves_and_returns():
    module = fx.symbolic_trace(blocked)
    partitioner = CapabilityBasedPartitioner(module, Supports(), allows_single_node_partition=True)
    partitions = partitioner.propose_partitions()
    names = [sorted(node.name for node in p.nodes) for p in partitions]
    assert names == [["add_2", "add_3", "add_4"], ["add", "add_1"]]
    x = tuple(torch.randn(3) for _ in range(3))
    expected = blocked(*x)
    fused = partitioner.fuse_partitions(partitions)
    assert same(fused(*x), expected)
    assert [n.target for n in fused.graph.find_nodes(op="call_module")] == ["fused_1", "fused_0"]


@pytest.mark.parametrize("seed", range(15))
def test_partitions_of_random_graphs_compute_the_same(seed):
    import random

    rng = random.Random(seed)
    graph = fx.Graph()
    nodes = [graph.placeholder(name) for name in "abc"]
    for _ in range(30):
        pair = tuple(rng.choices(nodes[-6:], k=2))
        if rng.random() < 0.6:
            nodes.append(graph.call_function(operator.add, pair))
        else:
            nodes.append(graph.call_function(torch.maximum, pair))
    graph.output(tuple(rng.choices(nodes, k=4)))
    module = fx.GraphModule(nn.Module(), graph)
    x = tuple(torch.randn(2) for _ in range(3))
    expected = module(*x)
    fused = CapabilityBasedPartitioner(module, Supports(), True).partition_and_fuse()
    fused.graph.lint()
    assert same(fused(*x), expected)
    assert not fused.graph.find_nodes(op="call_function", target=operator.add)


def test_single_nodes_are_left_out_unless_allowed():
    module = fx.symbolic_trace(lambda a: (a + 1).relu())
    assert CapabilityBasedPartitioner(module, Supports()).propose_partitions() == []
    allowed = CapabilityBasedPartitioner(
        module, Supports(), allowed_single_node_partition_ops=["_operator.add"]
    )
    assert len(allowed.propose_partitions()) == 1


def test_order_is_restored():
    module = fx.symbolic_trace(Model())
    nodes = list(module.graph.nodes)
    nodes[0].prepend(nodes[-2])
    nodes[3].prepend(nodes[6])
    tools_common.legalize_graph(module)
    module.graph.lint()
    assert module.graph.output_node() is nodes[-1]
    nodes[2].args = (nodes[5],)
    with pytest.raises(RuntimeError, match="cycles"):
        tools_common.legalize_graph(module)


def test_common_subexpressions_are_shared_and_random_ones_not():
    module = fx.symbolic_trace(
        lambda x: (
            torch.sin(x)
            + torch.sin(x)
            + torch.ops.aten.rand_like.default(x) * 0
            + torch.ops.aten.rand_like.default(x) * 0
            + (x * 1)
            + (x * 1.0)
        )
    )
    result = CSEPass(get_CSE_banned_ops())(module)
    assert result.modified
    graph = result.graph_module.graph
    assert len(graph.find_nodes(op="call_function", target=torch.sin)) == 1
    targets = [n.target for n in graph.nodes]
    assert targets.count(torch.ops.aten.rand_like.default) == 2
    x = torch.ones(2)
    assert torch.equal(result.graph_module(x), module(x))
    assert not CSEPass(get_CSE_banned_ops())(result.graph_module).modified


def test_pattern_is_replaced_everywhere_it_does_not_overlap():
    def program(x, y):
        a = torch.neg(x) + torch.relu(x)
        b = torch.neg(y) + torch.relu(y)
        return torch.neg(a) + torch.relu(a) + b

    module = fx.symbolic_trace(program)
    matches = replace_pattern(
        module, lambda z: torch.neg(z) + torch.relu(z), lambda z: torch.sigmoid(z)
    )
    assert len(matches) == 3
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(module(x, y), torch.sigmoid(torch.sigmoid(x)) + torch.sigmoid(y))
    module.graph.lint()


def test_pattern_whose_inside_is_used_elsewhere_is_kept():
    shared = fx.Graph()
    x = shared.placeholder("x")
    neg = shared.call_function(torch.neg, (x,))
    shared.output((shared.call_function(torch.relu, (neg,)), neg))
    kept = fx.GraphModule(nn.Module(), shared)
    assert replace_pattern(kept, lambda z: torch.relu(torch.neg(z)), lambda z: torch.sin(z)) == []


def test_filters_and_callbacks_decide_about_matches():
    module = fx.symbolic_trace(lambda x: (x + 1) * (x + 2))
    made: list[int] = []

    def replacement(match, graph, pattern):
        made.append(match.placeholder_nodes[1])
        return fx.symbolic_trace(lambda x, n: x - n).graph

    done = replace_pattern_with_filters(
        module,
        lambda x, n: x + n,
        match_filters=[lambda match, graph, pattern: match.placeholder_nodes[1] == 2],
        replacement_callback=replacement,
    )
    assert made == [2] and len(done) == 1 and len(done[0].replacements) == 1
    assert module(5) == 6 * 3


def test_matcher_treats_literals_as_told():
    graph = fx.symbolic_trace(lambda x: torch.add(x, 1)).graph
    pattern = fx.symbolic_trace(lambda x: torch.add(x, 2)).graph
    assert SubgraphMatcher(pattern).match(graph) == []
    assert len(SubgraphMatcher(pattern, ignore_literals=True).match(graph)) == 1
    assert compare_graphs(graph, fx.symbolic_trace(lambda q: torch.add(q, 1)).graph)
    assert not compare_graphs(graph, pattern)


class AddToMul(PassBase):
    def call(self, graph_module):
        changed = graph_module.graph.find_nodes(op="call_function", target=operator.add)
        for node in changed:
            node.target = operator.mul
        return PassResult(graph_module, bool(changed))


def test_pass_manager_orders_checks_and_explains():
    def mul_to_sub(module):
        for node in module.graph.find_nodes(op="call_function", target=operator.mul):
            node.target = operator.sub

    passes = [pass_result_wrapper(mul_to_sub), AddToMul()]
    manager = PassManager(passes, [this_before_that_pass_constraint(passes[1], passes[0])])
    result = manager(fx.symbolic_trace(lambda x: x + 3))
    assert result.modified and result.graph_module(10) == 7

    def fails(module):
        raise ValueError("no")

    with pytest.raises(Exception, match=r"'fails' pass after the following passes: \['AddToMul'\]"):
        PassManager([AddToMul(), fails])(fx.symbolic_trace(lambda x: x + 3))
    with pytest.raises(TypeError, match="one variable"):
        PassManager().add_checks(lambda a, b: None)


def _doubled(x):
    return torch.ops.aten.add.Tensor(x, x)


def test_reinplace_of_a_diagonal_that_is_put_back_writes_to_the_view():
    def function(x):
        base = torch.ops.aten.clone.default(x)
        filled = torch.ops.aten.fill.Scalar(torch.ops.aten.diagonal.default(base), 0)
        return torch.ops.aten.diagonal_scatter.default(base, filled)

    made = reinplace(fx.symbolic_trace(function), torch.ones(2, 2))
    assert made(torch.ones(2, 2)).tolist() == [[0, 1], [1, 0]]
    names = [str(n.target) for n in made.graph.nodes]
    assert "aten.fill_.Scalar" in names and "aten.diagonal_scatter.default" not in names


@pytest.mark.parametrize(
    "function, written",
    [
        (lambda x: torch.ops.aten.add.Tensor(torch.ops.aten.clone.default(x), 1), 1),
        (lambda x: torch.ops.aten.add.Tensor(x, 1), 0),
        (lambda x: torch.ops.aten.ge.Tensor(torch.ops.aten.clone.default(x), x), 0),
        (
            lambda x: torch.ops.aten.add.Tensor(
                torch.ops.aten.expand.default(torch.ops.aten.clone.default(x), [3, 4]), 1
            ),
            0,
        ),
        (lambda x: _doubled(torch.ops.aten.clone.default(x)), 0),
    ],
)
def test_reinplace_writes_only_where_nobody_sees_it(function, written):
    module = fx.symbolic_trace(function)
    x = torch.randn(4)
    expected = function(x)
    kept = x.clone()
    made = reinplace(module, x)
    assert torch.equal(made(x), expected) and torch.equal(x, kept)
    names = [str(n.target) for n in made.graph.nodes]
    assert names.count("aten.add_.Tensor") == written


def test_reinplace_turns_a_scatter_back_into_a_write():
    aten = torch.ops.aten

    def function(x):
        a = aten.clone.default(x)
        part = aten.select.int(a, 0, 1)
        return aten.select_scatter.default(a, aten.add.Tensor(part, 1), 0, 1)

    x = torch.randn(3, 2)
    expected = function(x)
    made = reinplace(fx.symbolic_trace(function), x)
    names = [str(n.target) for n in made.graph.nodes]
    assert "aten.select_scatter.default" not in names and "aten.add_.Tensor" in names
    assert torch.equal(made(x), expected)


def test_drawing_has_a_box_per_node_and_an_edge_per_use():
    module = fx.symbolic_trace(Model())
    ShapeProp(module).propagate(*inputs())
    text = FxGraphDrawer(module, "net").get_dot_text()
    assert text.startswith('digraph "net" {') and '"add" -> "mul";' in text
    assert "shape=(3, 4)" in text and "torch.nn.modules.linear.Linear" in text
    assert '"last.weight" -> "last";' in text
    pydot = pytest.importorskip("pydot", reason="pictures need pydot")
    assert isinstance(FxGraphDrawer(module, "net").get_dot_graph(), pydot.Dot)


def test_observer_notes_and_draws_what_a_pass_did(tmp_path):
    module = fx.symbolic_trace(lambda x: torch.neg(x) + 1)
    with GraphTransformObserver(module, "swap", log_url=str(tmp_path)) as seen:
        replace_pattern(module, lambda z: torch.neg(z), lambda z: torch.relu(z))
        assert "relu" in seen.created_nodes and "neg" in seen.erased_nodes
    assert len(list(tmp_path.glob("*_swap_*_graph.dot"))) == 2


def test_sizes_in_bytes_count_parameters():
    module = fx.symbolic_trace(Model())
    graph_manipulation.get_size_of_all_nodes(module, list(inputs()))
    linear = module.graph.find_nodes(op="call_module", target="last")[0]
    assert linear.size_bytes == (3 * 2 * 4, 3 * 2 * 4 + (4 * 2 + 2) * 4)


def test_support_rules_combine():
    module = fx.symbolic_trace(lambda x: torch.relu(x).sum())
    relu, total = list(module.graph.nodes)[1:3]
    table = operator_support.OperatorSupport({"torch.relu": None})
    only = operator_support.OpSupports.decline_if_node_in_names({"relu"})
    assert table.is_node_supported({}, relu) and not table.is_node_supported({}, total)
    assert not operator_support.chain(table, only).is_node_supported({}, relu)
    assert operator_support.any_chain(table, only).is_node_supported({}, total)


# ---- splitting for a backend, and finding what it gets wrong
class OnlyAdd(operator_support.OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return node.target in (operator.add, operator.mul)


def test_splitter_alternates_between_the_sides():
    from torch.fx.passes.splitter_base import _SplitterBase, _SplitterSettingBase

    module = fx.symbolic_trace(lambda a, b: torch.relu((a + b) * b) + torch.relu(a))
    x = (torch.randn(3), torch.randn(3))
    expected = module(*x)
    splitter = _SplitterBase(module, x, OnlyAdd(), _SplitterSettingBase())
    result = splitter.generate_split_results()
    names = [name for name, _ in result.split_module.named_children()]
    assert torch.equal(result.split_module(*x), expected)
    assert [n.rstrip("0123456789") for n in names].count("_run_on_acc_") == 2
    assert set(result.submodule_inputs) == set(names)
    small = _SplitterBase(
        fx.symbolic_trace(lambda a, b: torch.relu(a + b) + b),
        x,
        OnlyAdd(),
        _SplitterSettingBase(min_acc_module_size=2),
    )
    assert [name for name, _ in small().named_children()] == ["_run_on_cpu_0"]


@pytest.mark.parametrize("method", ["sequential", "binary", "accumulate"])
def test_minimizer_finds_the_node_that_differs(method):
    from torch.fx.passes.net_min_base import _MinimizerBase, _MinimizerSettingBase

    class Wrong(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            value = super().call_function(target, args, kwargs)
            return value + 1 if target is torch.tanh else value

    class Minimizer(_MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            return Wrong(mod).run(*inputs)

    def close(a, b, names):
        both = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        return 0.0, all(torch.allclose(p, q) for p, q in both)

    module = fx.symbolic_trace(lambda x: torch.sin(torch.tanh(torch.relu(x)) * 2) + x)
    settings = _MinimizerSettingBase(traverse_method=method)
    found = Minimizer(module, (torch.randn(3),), close, settings).minimize()
    assert [node.name for node in found] == ["tanh"]


def test_deferred_assertions_become_nodes():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

    env = ShapeEnv()
    size = env.create_unbacked_symint()
    torch._check(size <= 4)
    torch._check(size * 2 != 6)
    module = fx.symbolic_trace(lambda n, x: x * n)
    module.graph.find_nodes(op="placeholder")[0].meta["val"] = size
    insert_deferred_runtime_asserts(module, env, "graph")
    assert module(2, 5) == 10
    for bad in (5, 3):
        with pytest.raises((RuntimeError, AssertionError), match="Runtime assertion failed"):
            module(bad, 1)


def test_pattern_that_spells_out_a_default_matches_a_call_that_leaves_it_out():
    def program(x):
        return torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])

    def pattern(x, kernel_size, stride):
        return torch.ops.aten.max_pool2d_with_indices.default(
            x, kernel_size, stride, padding=[0, 0]
        )

    traced = torch.fx.symbolic_trace(program)
    assert len(replace_pattern(traced, pattern, pattern)) == 1
