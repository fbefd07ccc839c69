"""torch._dynamo.export: the graph takes what the function takes and returns what it returns."""

from __future__ import annotations

import pytest

import torch
import torch._dynamo
from torch._dynamo.utils import same
from torch._guards import GuardSource
from torch.fx.passes.utils.source_matcher_utils import get_source_partitions


def targets(gm: torch.fx.GraphModule) -> list[str]:
    return [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]


def test_exported_graph_keeps_nested_arguments_and_results() -> None:
    def f(x: torch.Tensor, parts: dict[str, torch.Tensor], *, scale: int = 2) -> tuple:
        y = x + 1
        return [x, x], {"y": (y, parts["k"] * scale), "three": 3, "none": None}

    args, kwargs = (torch.arange(3.0), {"k": torch.ones(2)}), {"scale": 2}
    graph, guards = torch._dynamo.export(f)(*args, **kwargs)
    assert same(graph(*args, **kwargs), f(*args, **kwargs))
    other = (torch.arange(5.0), {"k": torch.ones(4)})
    assert same(graph(*other, scale=2), f(*other))
    assert {guard.create_fn_name() for guard in guards} >= {"TENSOR_MATCH"}


def test_exported_module_owns_the_parameters_it_uses() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 3)
            self.register_buffer("offset", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.linear(x)) + self.offset

    net = Net()
    graph, _ = torch._dynamo.export(net)(torch.randn(4, 2))
    x = torch.randn(7, 2)
    assert torch.equal(graph(x), net(x))
    assert {id(p) for p in graph.parameters()} == {id(p) for p in net.parameters()}
    assert [id(b) for b in graph.buffers()] == [id(net.offset)]


def test_aten_graph_has_aten_operators_alone() -> None:
    def f(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": torch.nn.functional.relu(x) * 2}

    graph, _ = torch._dynamo.export(f, aten_graph=True)(torch.randn(3))
    assert all(target.startswith("aten.") for target in targets(graph))
    x = torch.randn(3)
    assert same(graph(x), f(x))


def test_decompositions_are_applied() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.t(x) + torch.t(x)

    table = {torch.ops.aten.t.default: lambda x: torch.ops.aten.transpose.int(x, 0, 1)}
    export = torch._dynamo.export(f, aten_graph=True, decomposition_table=table)
    graph, _ = export(torch.randn(2, 3))
    assert "aten.transpose.int" in targets(graph) and "aten.t.default" not in targets(graph)
    with pytest.raises(AssertionError, match="aten_graph"):
        torch._dynamo.export(f, decomposition_table=table)


def test_sizes_are_symbols_and_relations_are_guards() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.cos() if x.shape[0] > 10 else x.sin()

    graph, guards = torch._dynamo.export(f)(torch.ones(6, 4))
    assert torch.equal(graph(torch.ones(8, 3)), torch.ones(8, 3).sin())
    (shapes,) = (guard for guard in guards if guard.source is GuardSource.SHAPE_ENV)
    assert any("10" in line for line in shapes.code_list)
    static, _ = torch._dynamo.export(f, assume_static_by_default=True)(torch.ones(6, 4))
    assert torch.equal(static(torch.ones(6, 4)), torch.ones(6, 4).sin())


def test_graph_break_in_export_is_an_error() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.export(f)(torch.ones(1))


def test_export_without_operators_returns_its_arguments_or_fails() -> None:
    def f(x: list[torch.Tensor], y: int) -> list[torch.Tensor]:
        return x

    x = [torch.randn(3)]
    graph, _ = torch._dynamo.export(f)(x, 2)
    assert same(graph(x, 2), x)
    with pytest.raises(AssertionError, match="Failed to produce a graph"):
        torch._dynamo.export(f, same_signature=False)(x, 2)
    with pytest.raises(AssertionError, match="callable"):
        torch._dynamo.export(3)


def test_nodes_of_a_layer_come_from_its_class_and_others_from_their_function():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.nn.functional.relu(self.linear(self.linear(x)))

    graph, _ = torch._dynamo.export(Net(), aten_graph=True)(torch.randn(2, 3))
    functions = [torch.nn.Linear, torch.nn.functional.relu]
    found = get_source_partitions(graph.graph, functions)
    assert {source: len(parts) for source, parts in found.items()} == dict(
        zip(functions, (2, 1), strict=True)
    )
