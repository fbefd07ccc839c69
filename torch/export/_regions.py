"""Parts of a graph in which gradients are recorded or not, or casts are made, other than around
them: a switch in a graph would depend on nobody moving nodes over it, so that each part becomes a
graph of its own which an operator runs under the switch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import fx
from torch._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled

__all__ = ["drop_switches", "wrap_autocast_regions", "wrap_grad_regions"]

_ENTER = torch.amp.autocast_mode._enter_autocast
_EXIT = torch.amp.autocast_mode._exit_autocast


class _Section(NamedTuple):
    nodes: list[fx.Node]
    operator: Callable[..., object] | None  # None: stays where it is
    arguments: tuple


def _is_switch(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is torch._C._set_grad_enabled


def drop_switches(gm: fx.GraphModule) -> None:
    """Takes the switches of gradients out of a graph that has no gradients."""
    for node in list(gm.graph.nodes):
        if _is_switch(node):
            gm.graph.erase_node(node)


def wrap_grad_regions(gm: fx.GraphModule, around: bool) -> None:
    """`around`: whether gradients are recorded where the program begins."""
    if not any(map(_is_switch, gm.graph.nodes)):
        return
    sections: list[_Section] = [_Section([], None, ())]
    for node in list(gm.graph.nodes):
        if _is_switch(node):
            flag = node.args[0]
            wrapped = None if flag == around else wrap_with_set_grad_enabled
            sections.append(_Section([], wrapped, (flag,)))
            gm.graph.erase_node(node)
        elif node.op not in ("placeholder", "output"):
            sections[-1].nodes.append(node)
    _wrap(gm, sections)


def wrap_autocast_regions(gm: fx.GraphModule) -> None:
    """Parts between entering and leaving autocast; inner ones are parts of the parts."""
    if not any(n.target is _ENTER for n in gm.graph.nodes):
        return
    sections: list[_Section] = [_Section([], None, ())]
    depth = 0
    for node in list(gm.graph.nodes):
        if node.target is _ENTER:
            depth += 1
            if depth == 1:
                sections.append(_Section([], wrap_with_autocast, tuple(node.args)))
                continue
        elif node.target is _EXIT:
            depth -= 1
            if depth == 0:
                sections.append(_Section([], None, ()))
                continue
        if node.op not in ("placeholder", "output"):
            sections[-1].nodes.append(node)
    switches = [n for n in gm.graph.nodes if n.target is _EXIT or n.target is _ENTER]
    inside = {n for s in sections for n in s.nodes}
    for node in reversed(switches):
        if node not in inside:
            gm.graph.erase_node(node)
    _wrap(gm, sections)


def _wrap(gm: fx.GraphModule, sections: Sequence[_Section]) -> None:
    for number, section in enumerate(sections):
        if section.operator is not None and section.nodes:
            _move(gm, section, number)
    gm.graph.lint()
    gm.recompile()


def _move(gm: fx.GraphModule, section: _Section, number: int) -> None:
    """Moves the nodes of a section to a graph of its own."""
    inside = set(section.nodes)
    inputs: dict[fx.Node, None] = {}
    for node in section.nodes:
        inputs.update(dict.fromkeys(n for n in node.all_input_nodes if n not in inside))
    outputs = [n for n in section.nodes if any(u not in inside for u in n.users)]
    graph = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        env[node] = graph.placeholder(node.name)
        env[node].meta.update(node.meta)
    root = torch.nn.Module()
    for node in section.nodes:
        if node.op == "get_attr":
            setattr(root, node.target, getattr(gm, node.target))
        env[node] = graph.node_copy(node, env.__getitem__)
        env[node]._rename(node.name)
    result = graph.output(tuple(env[n] for n in outputs))
    result.meta["val"] = tuple(n.meta.get("val") for n in outputs)
    while hasattr(gm, f"submod_{number}"):  # parts under another switch
        number += 1
    name = f"submod_{number}"
    part = fx.GraphModule(root, graph, name)
    wrap_autocast_regions(part)
    setattr(gm, name, part)
    _call(gm, section, name, list(inputs), outputs)
    for node in reversed(section.nodes):
        gm.graph.erase_node(node)
        if node.op == "get_attr" and not _used(gm, node.target):
            delattr(gm, node.target)


def _used(gm: fx.GraphModule, path: str) -> bool:
    return any(n.op == "get_attr" and n.target == path for n in gm.graph.nodes)


def _call(
    gm: fx.GraphModule,
    section: _Section,
    name: str,
    inputs: list[fx.Node],
    outputs: list[fx.Node],
) -> None:
    """The call of the new graph, and nodes for its results, in the place of the section."""
    graph = gm.graph
    stack = section.nodes[0].meta.get("nn_module_stack")
    with graph.inserting_before(section.nodes[0]):
        read = graph.get_attr(name)
        arguments = (*section.arguments, read, *inputs)
        call = graph.call_function(section.operator, arguments)
        call.meta["val"] = tuple(n.meta.get("val") for n in outputs)
        if stack is not None:
            call.meta["nn_module_stack"] = stack
        for i, node in enumerate(outputs):
            item = graph.call_function(operator.getitem, (call, i))
            item.meta.update(node.meta)
            node.replace_all_uses_with(item, lambda user, own=section: user not in own.nodes)
