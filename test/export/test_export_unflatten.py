"""Unflattened programs: modules whose calls ran different graphs, names of classes, edits."""

import pytest

import torch
from torch import nn
from torch.export import Dim, export, unflatten
from torch.export.unflatten import InterpreterModule, InterpreterModuleDispatcher


class Switched(nn.Module):
    """A module that computes something else for another flag."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("shift", torch.ones(1))

    def forward(self, x, flag):
        return self.linear(x) + self.shift if flag else x - self.shift


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Switched()

    def forward(self, x):
        return self.inner(self.inner(self.inner(x, True), False), True)


def test_calls_with_other_graphs_go_to_one_module_if_its_signature_is_kept():
    outer, x = Outer(), torch.randn(3, 2)
    tree = unflatten(export(outer, (x,), preserve_module_call_signature=("inner",)))
    assert isinstance(tree.inner, InterpreterModuleDispatcher)
    assert len(tree.inner.call_modules()) == 3
    assert set(tree.state_dict()) == set(outer.state_dict())
    for _ in range(2):  # the turn begins again
        torch.testing.assert_close(tree(x), outer(x))
    assert tree.inner.print_readable(print_output=False).count("def forward") >= 3


def test_module_in_place_of_several_graphs_takes_all_calls():
    outer, other, x = Outer(), Switched(), torch.randn(3, 2)
    tree = unflatten(export(outer, (x,), preserve_module_call_signature=("inner",)))
    tree.inner = other
    wanted = other(other(other(x, True), False), True)
    torch.testing.assert_close(tree(x), wanted)


def test_calls_with_other_graphs_are_modules_of_their_own_without_a_signature():
    outer, x = Outer(), torch.randn(3, 2)
    tree = unflatten(export(outer, (x,)))
    assert isinstance(tree.inner, InterpreterModule)
    assert isinstance(tree.get_submodule("inner@1"), InterpreterModule)
    torch.testing.assert_close(tree(x), outer(x))


def test_modules_name_the_class_that_they_come_from():
    tree = unflatten(export(Outer(), (torch.randn(3, 2),)))
    assert tree.type_name().endswith(".Outer")
    assert tree.inner.type_name().endswith(".Switched")
    assert tree.inner.linear.type_name() == "torch.nn.modules.linear.Linear"


def test_edited_graph_takes_effect_after_finalize():
    x = torch.randn(3, 2)
    outer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    tree = unflatten(export(outer, (x,)))
    relu = tree.get_submodule("1")
    (node,) = [n for n in relu.graph.nodes if n.target is torch.ops.aten.relu.default]
    node.target = torch.ops.aten.sigmoid.default
    tree.finalize()
    torch.testing.assert_close(tree(x), outer[0](x).sigmoid())


def test_inputs_are_checked_and_flattened():
    tree = unflatten(export(nn.Linear(2, 2), (torch.randn(3, 2),)))
    x = torch.randn(3, 2)
    assert tree.process_forward_inputs(x) == [x]


def test_every_module_of_the_tree_has_a_graph():
    outer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    tree = unflatten(export(outer, (torch.randn(3, 2),), preserve_module_call_signature=("0",)))
    assert all(isinstance(m.graph, torch.fx.Graph) for m in tree.modules())


def test_tree_has_state_of_its_own() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.tied = self.linear.weight
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return self.linear(x) + self.calls + self.tied.sum()

    net, x = Net(), torch.ones(1, 2)
    program = export(net, (x,))
    tree = unflatten(program)
    assert torch.equal(program.module()(x), tree(x))
    assert tree.calls.item() == program.state_dict["calls"].item() == 1
    assert tree.tied is tree.linear.weight
    assert tree.tied is not program.state_dict["linear.weight"]


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("held", torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.held.add_(1)
        return x + self.held


class Writes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Written()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(self.inner(x + self.inner.held) + 1)
        self.inner.held.add_(1)
        return x + 1


@pytest.mark.parametrize("kept", [(), ("inner",)], ids=["free", "signatures"])
def test_written_buffers_are_not_handed_from_module_to_module(kept: tuple[str, ...]) -> None:
    x = torch.ones(1)
    tree = unflatten(export(Writes(), (x,), preserve_module_call_signature=kept))
    eager = Writes()
    for _ in range(2):
        assert torch.equal(tree(x), eager(x))


def test_checks_between_the_nodes_of_a_module_do_not_part_it() -> None:
    class Cut(nn.Module):
        def forward(self, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            count = n.item()
            torch._check_is_size(count)
            torch._check(count < x.size(0))
            return x[:count]

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Cut(), Cut()

        def forward(self, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return self.first(n, x) + self.second(n, x)

    given = (torch.tensor(3), torch.randn(10))
    tree = unflatten(export(Net(), given, dynamic_shapes=(None, {0: Dim("rows")})))
    assert torch.equal(tree(*given), Net()(*given))
