"""The text of graphs, as tools and people read them."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value


class _Shown:
    """Whether graphs are printed with the places of their nodes."""

    places = True


def graph_text(graph: Graph, places: bool | None = None) -> str:
    """graph(%x : Tensor): ... return (%y)"""
    before = _Shown.places
    _Shown.places = before if places is None else places
    try:
        return _graph_text(graph)
    finally:
        _Shown.places = before


def _graph_text(graph: Graph) -> str:
    names = graph.names()
    params = (",\n" + " " * 6).join(_declared(v, names) for v in graph.block.params)
    lines = [f"graph({params}):"]
    _block_lines(graph.block, names, 1, lines)
    results = ", ".join("%" + names[v] for v in graph.block.results)
    text = "\n".join([*lines, f"  return ({results})", ""])
    for node in graph.all_nodes():
        if "Subgraph" in node.attrs:
            text += f"with {_numbered(node)} = {_graph_text(node.attrs['Subgraph'])}"
    return text


def _numbered(node: Node) -> str:
    """The kind of a node with a graph of its own, with its number among those."""
    alike = [n for n in node.owning_graph().all_nodes() if "Subgraph" in n.attrs]
    return f"{node.kind_name}_{alike.index(node)}"


def _declared(value: Value, names: dict[Value, str]) -> str:
    return f"%{names[value]} : {value.type()}"


def _block_lines(block: Block, names: dict[Value, str], depth: int, lines: list[str]) -> None:
    for node in block.nodes_list:
        if node.kind_name == "prim::CallFunction":
            lines.append("  " * depth + _function_line(node, names))
        lines.append("  " * depth + _line(node, names))
        for i, inner in enumerate(node.blocks_list):
            params = ", ".join(_declared(v, names) for v in inner.params)
            lines.append("  " * (depth + 1) + f"block{i}({params}):")
            _block_lines(inner, names, depth + 2, lines)
            results = ", ".join("%" + names[v] for v in inner.results)
            lines.append("  " * (depth + 2) + f"-> ({results})")


def _function_line(node: Node, names: dict[Value, str]) -> str:
    """The function of a call, as a value of the graph."""
    taken, number = set(names.values()), len(names)
    while str(number) in taken:
        number += 1
    names[node] = str(number)
    label = node.attrs["function"].name
    return f'%{number} : Function = prim::Constant[name="{label}"]()'


def _line(node: Node, names: dict[Value, str]) -> str:
    outputs = ", ".join(_declared(v, names) for v in node.outputs_list)
    called = [node] if node in names else []
    inputs = ", ".join("%" + names.get(v, "?") for v in (*called, *node.inputs_list))
    attrs = _attributes(node)
    place = ""
    if node.place is not None and _Shown.places:
        where = node.place
        line = where.source.first_line + where.line - 1
        place = f" # {where.source.filename}:{line}:{where.column}"
    kind = node.kind_name
    if "Subgraph" in node.attrs:
        kind = _numbered(node)
    if kind == "prim::PythonOp":
        kind = "^" + getattr(node.attrs["function"], "__name__", "function")
    return f"{outputs}{' = ' if outputs else ''}{kind}{attrs}({inputs}){place}"


def _attributes(node: Node) -> str:
    attrs = dict(node.attrs)
    attrs.pop("function", None)
    attrs.pop("untyped", None)
    attrs.pop("Subgraph", None)
    attrs.pop("index", None)
    if node.kind_name == "prim::CallFunction":
        return ""
    if node.kind_name == "prim::Constant":
        value, kind = attrs.get("value"), node.output().type()
        if kind is T.NoneT:
            return ""
        if isinstance(kind, T.EnumType):
            return f"[value={kind.name}.{attrs.get('member') or value.name}]"
        return f"[value={_constant(value)}]"
    if node.kind_name == "prim::isinstance":
        return f"[types=[{', '.join(map(str, attrs['wanted']))}]]"
    shown = ", ".join(f"{k}={_constant(v)}" for k, v in attrs.items())
    return f"[{shown}]" if shown else ""


def _constant(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        from torch.jit._print_code import string_literal

        return string_literal(value)
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
