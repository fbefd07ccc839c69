"""Passes that write an exported graph anew, node by node."""

from __future__ import annotations

import pytest

import torch
from torch import nn
from torch._export.pass_base import ExportPassBaseError, _ExportPassBaseDeprecatedDoNotUse
from torch._export.pass_infra.node_metadata import NodeMetadata
from torch._export.pass_infra.proxy_value import ProxyValue
from torch.export import export


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(2))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple:
        y = torch.cat([x, x]) * self.w
        self.count.add_(1)
        chosen = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))
        return torch.ops.aten.tensor_split.sections(y, 2), chosen


class MulToSub(_ExportPassBaseDeprecatedDoNotUse):
    def call_operator(
        self, op: object, args: tuple, kwargs: dict, meta: NodeMetadata
    ) -> ProxyValue:
        mul, sub = torch.ops.aten.mul.Tensor, torch.ops.aten.sub.Tensor
        return super().call_operator(sub if op is mul else op, args, kwargs, meta)


def test_a_pass_without_changes_keeps_names_and_results() -> None:
    x = torch.randn(3, 2)
    net = Net()
    program = export(net, (x,))
    again = program._transform_do_not_use(_ExportPassBaseDeprecatedDoNotUse())
    assert [n.name for n in again.graph.nodes] == [n.name for n in program.graph.nodes]
    (a, b), chosen = again.module()(x)
    y = torch.cat([x, x]) * net.w
    assert torch.equal(torch.cat([a, b]), y)
    assert torch.equal(chosen, x + 1 if x.sum() > 0 else x - 1)


def test_a_pass_changes_operators() -> None:
    x = torch.randn(3, 2)
    net = Net()
    changed = export(net, (x,))._transform_do_not_use(MulToSub())
    (a, b), _ = changed.module()(x)
    assert torch.equal(torch.cat([a, b]), torch.cat([x, x]) - net.w)


def test_graphs_of_something_else_are_refused() -> None:
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    with pytest.raises(ExportPassBaseError, match="call_module"):
        _ExportPassBaseDeprecatedDoNotUse()(traced)
    with pytest.raises(RuntimeError, match="val"):
        NodeMetadata({})["val"] = 1
