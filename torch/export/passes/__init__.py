"""Passes over exported programs."""

from __future__ import annotations

import copy

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch.export.exported_program import ExportedProgram

__all__ = ["move_to_device_pass"]


def move_to_device_pass(
    ep: ExportedProgram, location: torch.device | str | dict[str, str]
) -> ExportedProgram:
    """The program on another device: its state, constants, example inputs, and the devices that its
    operators name. `location` may be a table from devices to devices."""
    moved = copy.deepcopy(ep.graph_module)

    def target(device: torch.device) -> torch.device:
        if isinstance(location, dict):
            for key in (str(device), device.type):
                if key in location:
                    return torch.device(location[key])
            return device
        return torch.device(location)

    def tensor(value: Tensor) -> Tensor:
        place = target(value.device)
        if isinstance(value, torch.nn.Parameter):
            held = value.detach().to(place)
            return torch.nn.Parameter(held, requires_grad=value.requires_grad)
        return value.to(place)

    for module in moved.modules():
        if isinstance(module, fx.GraphModule):
            _move_nodes(module, target)
    state = {name: tensor(value) for name, value in ep.state_dict.items()}
    constants = {
        name: tensor(value) if isinstance(value, Tensor) else value
        for name, value in ep.constants.items()
    }
    made = ep._update(
        moved, copy.deepcopy(ep.graph_signature), state_dict=state, constants=constants
    )
    if ep.example_inputs is not None:
        made._example_inputs = pytree.tree_map_only(Tensor, tensor, ep.example_inputs)
    return made


def _move_nodes(module: fx.GraphModule, target: object) -> None:
    for node in module.graph.nodes:
        if "device" in node.kwargs and node.kwargs["device"] is not None:
            place = target(torch.device(node.kwargs["device"]))
            node.kwargs = {**node.kwargs, "device": place}
        node.args = pytree.tree_map_only(torch.device, target, tuple(node.args))
        node.meta["val"] = pytree.tree_map_only(
            Tensor, lambda t: t.to(target(t.device)), node.meta.get("val")
        )
    module.recompile()
