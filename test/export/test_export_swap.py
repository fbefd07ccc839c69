"""Exchanging modules of exported programs."""

import pytest

import torch
from torch import fx, nn
from torch.export import export
from torch.export._swap import _swap_modules


class Pair(nn.Module):
    """Structured arguments and results, one of them passed through."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, values, *, by):
        return {"product": values[0] * by["a"] * self.factor, "same": values[1]}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Module()
        self.block.pair = Pair(2.0)
        self.linear = nn.Linear(3, 3)

    def forward(self, x, y):
        first = self.block.pair((x, y), by={"a": y})
        second = self.block.pair((first["product"], first["same"]), by={"a": x})
        return self.linear(second["product"]) + second["same"]


@pytest.mark.parametrize("strict", [False, True])
def test_all_calls_go_to_the_module_that_was_given(strict):
    outer = Outer()
    inputs = torch.randn(2, 3), torch.randn(2, 3)
    program = export(outer, inputs, strict=strict, preserve_module_call_signature=("block.pair",))
    swapped = _swap_modules(program, {"block.pair": Pair(5.0)})
    assert swapped.get_submodule("block.pair").factor == 5.0
    targets = [n.target for n in swapped.graph.nodes if n.op == "call_module"]
    assert targets == ["block.pair", "block.pair"]
    outer.block.pair = Pair(5.0)
    torch.testing.assert_close(swapped(*inputs), outer(*inputs))


def test_program_without_exchanges_runs_node_by_node_too():
    linear, x = nn.Linear(3, 3), torch.randn(2, 3)
    swapped = _swap_modules(export(linear, (x,)), {})
    torch.testing.assert_close(fx.Interpreter(swapped).run(x), linear(x))


def test_module_without_a_kept_signature_is_refused():
    program = export(Outer(), (torch.randn(2, 3), torch.randn(2, 3)))
    with pytest.raises(RuntimeError, match="preserve_module_call_signature"):
        _swap_modules(program, {"block.pair": Pair(5.0)})
