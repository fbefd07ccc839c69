"""The text of graphs, as tools and people read them."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value


def graph_text(graph: Graph) -> str:
    """graph(%x : Tensor): ... return (%y)"""
    names = graph.names()
    params = (",\n" + " " * 6).join(_declared(v, names) for v in graph.block.params)
    lines = [f"graph({params}):"]
    _block_lines(graph.block, names, 1, lines)
    results = ", ".join("%" + names[v] for v in graph.block.results)
    return "\n".join([*lines, f"  return ({results})", ""])


def _declared(value: Value, names: dict[Value, str]) -> str:
    return f"%{names[value]} : {value.type()}"


def _block_lines(block: Block, names: dict[Value, str], depth: int, lines: list[str]) -> None:
    for node in block.nodes_list:
        lines.append("  " * depth + _line(node, names))
        for i, inner in enumerate(node.blocks_list):
            params = ", ".join(_declared(v, names) for v in inner.params)
            lines.append("  " * (depth + 1) + f"block{i}({params}):")
            _block_lines(inner, names, depth + 2, lines)
            results = ", ".join("%" + names[v] for v in inner.results)
            lines.append("  " * (depth + 2) + f"-> ({results})")


def _line(node: Node, names: dict[Value, str]) -> str:
    outputs = ", ".join(_declared(v, names) for v in node.outputs_list)
    inputs = ", ".join("%" + names.get(v, "?") for v in node.inputs_list)
    attrs = _attributes(node)
    place = ""
    if node.place is not None:
        where = node.place
        line = where.source.first_line + where.line - 1
        place = f" # {where.source.filename}:{line}:{where.column}"
    kind = node.kind_name
    if kind == "prim::PythonOp":
        kind = "^" + getattr(node.attrs["function"], "__name__", "function")
    return f"{outputs}{' = ' if outputs else ''}{kind}{attrs}({inputs}){place}"


def _attributes(node: Node) -> str:
    attrs = dict(node.attrs)
    function = attrs.pop("function", None)
    attrs.pop("untyped", None)
    attrs.pop("index", None)
    if node.kind_name == "prim::CallFunction":
        return f'[name="{function.name}"]'
    if node.kind_name == "prim::Constant":
        value, kind = attrs.get("value"), node.output().type()
        if kind is T.NoneT:
            return ""
        return f"[value={_constant(value)}]"
    if node.kind_name == "prim::isinstance":
        return f"[types=[{', '.join(t.annotation_str for t in attrs['wanted'])}]]"
    shown = ", ".join(f"{k}={_constant(v)}" for k, v in attrs.items())
    return f"[{shown}]" if shown else ""


def _constant(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, torch.Tensor):
        return "{" + (f"{value.item()}" if value.numel() == 1 else "<Tensor>") + "}"
    if (
        isinstance(value, float) and value == int(value)
        if isinstance(value, float) and abs(value) < 1e15
        else False
    ):
        return f"{int(value)}."
    if isinstance(value, torch.device):
        return f'"{value}"'
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        from torch.jit._resolve import number_of

        return str(number_of(value))
    return str(value)


def node_text(node: Node) -> str:
    """One node, with its blocks."""
    names = node.owning_graph().names()
    lines = [_line(node, names)]
    for i, inner in enumerate(node.blocks_list):
        params = ", ".join(_declared(v, names) for v in inner.params)
        lines.append(f"  block{i}({params}):")
        _block_lines(inner, names, 2, lines)
        lines.append(f"    -> ({', '.join('%' + names[v] for v in inner.results)})")
    return "\n".join(lines)
