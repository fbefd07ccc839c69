"""The intermediate representation as text, for the folders of TORCH_COMPILE_DEBUG: one entry per
operator before fusion, one per step after it, each with what it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import fx

__all__ = ["post_fusion", "pre_fusion"]


def _layout(node: fx.Node) -> str:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return str(value)
    size, stride = list(value.shape), list(value.stride())
    return f"FixedLayout('{value.device}', {value.dtype}, size={size}, stride={stride})"


def _entry(label: str, kind: str, nodes: list[fx.Node]) -> list[str]:
    inside = set(nodes)
    reads = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside)
    writes = [n for n in nodes if any(user not in inside for user in n.users)]
    lines = [f"{label}: {kind}({', '.join(str(n.target) for n in nodes)})"]
    lines.append(f"{label}.writes = [{', '.join(n.name for n in writes)}]")
    lines.append(f"{label}.reads = [{', '.join(n.name for n in reads)}]")
    lines.append(f"{label}.outputs = [")
    for node in writes:
        lines.append(f"    {node.name}.layout = {_layout(node)}")
        users = ", ".join(user.name for user in node.users if user not in inside)
        lines.append(f"    {node.name}.users = [{users}]")
    lines.append("]")
    lines += [f"    {node.format_node()}" for node in nodes]
    return lines


def pre_fusion(gm: fx.GraphModule) -> str:
    """Every operator by itself."""
    lines: list[str] = []
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    for number, node in enumerate(calls):
        lines += [*_entry(f"op{number}", "SchedulerNode", [node]), "", ""]
    return "\n".join(lines)


def post_fusion(gm: fx.GraphModule, steps: Iterable[tuple[str, str, list[int]]] | None) -> str:
    """The steps of the plan."""
    if steps is None:
        return pre_fusion(gm)
    nodes = [n for n in gm.graph.nodes if n.op != "output"]
    number = {n: i for i, n in enumerate(n for n in nodes if n.op == "call_function")}
    kinds = {"call": "ExternKernelSchedulerNode", "fused": "FusedSchedulerNode"}
    lines: list[str] = []
    for kind, name, members in steps:
        found = [nodes[i] for i in sorted(set(members))]
        label = "_".join(f"op{number[n]}" for n in found)
        shown = (
            kinds.get(kind, "FusedSchedulerNode")
            if len(found) > 1 or kind == "call"
            else ("SchedulerNode")
        )
        lines += [f"# {name}", *_entry(label, shown, found), "", ""]
    return "\n".join(lines)
