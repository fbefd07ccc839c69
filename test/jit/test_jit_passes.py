"""Passes over graphs, and graphs read from text: a pass changes the graph and not the result."""

import pytest

import torch
from torch._C import parse_ir


def kinds(graph) -> list[str]:
    return [node.kind() for node in graph.all_nodes() if node.kind() != "prim::Constant"]


def run(graph, *arguments):
    return torch._C._create_function_from_graph("graph", graph)(*arguments)


def test_parse_ir_of_a_printed_graph_gives_the_same_graph():
    @torch.jit.script
    def f(x: torch.Tensor, n: int):
        total = x
        for i in range(n):
            if i > 1:
                total = total + i
        return total, [n, 2]

    again = parse_ir(str(f.graph))
    bare = [line.partition(" # ")[0] for line in str(f.graph).splitlines()]
    assert str(again).splitlines() == bare
    assert run(again, torch.ones(2), 4)[0].tolist() == f(torch.ones(2), 4)[0].tolist()


def test_parse_ir_with_an_undefined_value_raises():
    with pytest.raises(RuntimeError, match="%y is not defined"):
        parse_ir("graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%y)\n  return (%1)")


def test_constant_propagation_computes_what_depends_on_constants():
    @torch.jit.script
    def f(x: int):
        a = [1, 2, 3]
        b = a[0] + len(a)
        if b > 2:
            b = b * 2
        return b - x

    torch._C._jit_pass_constant_propagation(f.graph)
    assert kinds(f.graph) == ["aten::sub"]
    assert run(f.graph, 3) == 5


def test_constant_propagation_of_a_failing_expression_leaves_it():
    @torch.jit.script
    def f(x: bool):
        y = 0
        if x:
            y = [1, 2][7]
        return y

    torch._C._jit_pass_constant_propagation(f.graph)
    assert run(f.graph, False) == 0


def test_peephole_reads_lists_and_dictionaries_that_are_not_written():
    @torch.jit.script
    def f(a: int, b: int):
        pair = [a, b]
        names = {"a": a, "b": b}
        return pair[-1] + names["a"] + len(names) + 0

    torch._C._jit_pass_peephole(f.graph)
    assert set(kinds(f.graph)) == {"aten::add"}
    assert run(f.graph, 5, 7) == 14


def test_peephole_leaves_a_list_that_is_written():
    @torch.jit.script
    def f(a: int):
        items = [a, a]
        items[0] = 3
        return items[0]

    torch._C._jit_pass_peephole(f.graph)
    assert "aten::__getitem__" in kinds(f.graph)
    assert run(f.graph, 1) == 3


def test_remove_mutation_makes_new_values_of_writes():
    @torch.jit.script
    def f(x):
        y = x + 1
        y.mul_(2)
        items = [1]
        items.append(2)
        items.insert(0, 7)
        return y, items

    torch._C._jit_pass_remove_mutation(f.graph)
    left = kinds(f.graph)
    assert "aten::mul_" not in left and "aten::append" not in left and "aten::insert" not in left
    found = run(f.graph, torch.ones(2))
    assert found[0].tolist() == [4.0, 4.0] and found[1] == [7, 1, 2]


def test_remove_mutation_of_an_input_keeps_the_write():
    @torch.jit.script
    def f(x):
        x.add_(1)
        return x

    torch._C._jit_pass_remove_mutation(f.graph)
    assert "aten::add_" in kinds(f.graph)


def test_propagated_shapes_and_dtypes_follow_from_the_inputs():
    graph = parse_ir(
        "graph(%a : Float(2, 3), %b : Double(3, 4)):\n"
        "  %1 : Tensor = aten::mm(%a, %a)\n  %2 : Tensor = aten::relu(%b)\n  return (%1, %2)"
    )
    torch._C._jit_pass_propagate_shapes_on_graph(graph)
    wrong, right = (value.type() for value in graph.outputs())
    assert wrong.sizes() is None
    assert right.sizes() == [3, 4] and right.dtype() == torch.float64


def test_methods_defined_after_scripting_are_called():
    class Net(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.part = torch.nn.ReLU()

    net = Net()
    net.define("def forward(self, x):\n    return self.part(x) + 1")
    assert net(torch.tensor([-1.0, 2.0])).tolist() == [1.0, 3.0]


def test_gradients_asked_for_inside_of_scripted_code():
    @torch.jit.script
    def f(x):
        y = (x * x).sum()
        y.backward()
        return torch.autograd.grad([(x * 3).sum()], [x])

    x = torch.tensor([2.0], requires_grad=True)
    (found,) = f(x)
    assert x.grad.tolist() == [4.0] and found.tolist() == [3.0]


def test_functions_that_return_any_may_return_values_of_several_types():
    @torch.jit.script
    def f(x: torch.Tensor) -> object:
        if x.numel() == 1:
            return x.double().long()
        return "many"

    assert f(torch.ones(2)) == "many"
    assert f(torch.ones(1)).dtype == torch.int64
