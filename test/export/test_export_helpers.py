"""Names beside torch.export: passes, questions about nodes, descriptions of sizes as data."""

import torch
from torch import nn
from torch._export import utils
from torch._export.serde.dynamic_shapes import _dump_dynamic_shapes, _load_dynamic_shapes
from torch._export.tools import report_exportability
from torch.export import Dim, export
from torch.export.passes import move_to_device_pass


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("offset", torch.ones(2))

    def forward(self, x):
        return self.linear(x) + self.offset + torch.zeros(2, device=x.device)


def test_utils_find_the_state_that_a_node_stands_for():
    net = Net()
    ep = export(net, (torch.randn(4, 3),))
    nodes = {n.name: n for n in ep.graph.find_nodes(op="placeholder")}
    assert utils.get_param(ep, nodes["p_linear_weight"]) is net.linear.weight
    assert utils.get_buffer(ep, nodes["b_offset"]) is net.offset
    assert not utils.is_param(ep, nodes["x"]) and not utils.is_buffer(ep, nodes["x"])


def test_move_to_device_pass_moves_state_and_named_devices():
    ep = move_to_device_pass(export(Net(), (torch.randn(4, 3),)), "meta")
    assert {t.device.type for t in ep.state_dict.values()} == {"meta"}
    assert isinstance(ep.state_dict["linear.weight"], nn.Parameter)
    named = [n.kwargs["device"] for n in ep.graph.nodes if n.kwargs.get("device")]
    assert named and {d.type for d in named} == {"meta"}


def test_dynamic_shapes_come_back_from_data():
    dx = Dim("dx", min=4, max=16)
    args = ([torch.randn(8), torch.randn(9)], torch.randn(3))
    data = _dump_dynamic_shapes(([(dx,), (dx + 1,)], (Dim.AUTO,)), args, to_dict=True)
    assert data["dynamic_shapes"] == ([["dx"], ["dx + 1"]], ["_DimHint.AUTO"])
    assert data["dims"] == {"dx": {"min": 4, "max": 16, "derived": ["dx + 1"]}}
    first, second = _load_dynamic_shapes(data, from_dict=True)
    assert [d[0].__name__ for d in first] == ["dx", "dx + 1"]
    assert first[1][0].root is first[0][0] and second[0] == Dim.AUTO


def test_report_exportability_names_the_submodule_that_cannot_be_exported():
    class Bad(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bad, self.good = Bad(), nn.ReLU()

        def forward(self, x):
            return self.bad(x) + self.good(x)

    report = report_exportability(Both(), (torch.ones(2),), strict=False, pre_dispatch=True)
    assert report["good"] is None
    assert report[""] is not None and report["bad"] is not None
