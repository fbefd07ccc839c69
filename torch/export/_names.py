"""Names of nodes in exported graphs. What the caller passes has the name of its parameter and the
keys below it; parameters, buffers and constants have theirs with a prefix; everything else makes
way. Inputs of graphs that operators take are called as what they get."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind

__all__ = ["name_inputs", "name_of_path"]

_PREFIX = {
    InputKind.PARAMETER: "p_",
    InputKind.BUFFER: "b_",
    InputKind.CONSTANT_TENSOR: "c_",
    InputKind.CUSTOM_OBJ: "obj_",
    InputKind.TOKEN: "token",
}


def _identifier(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "_", text).lower()


def name_of_path(path: tuple) -> str:
    """x_k_0 of ("x", "k", 0)"""
    parts = [path[0]]
    for key in path[1:]:
        found = next((getattr(key, n) for n in ("idx", "key", "name") if hasattr(key, n)), key)
        parts.append(str(found))
    return _identifier("_".join(parts))


class _Names:
    """Names that are taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """The name, with a number behind it if it is taken."""
        name = wanted
        if name in self.taken:
            base, number = _split(wanted)
            while name in self.taken:
                number += 1
                name = f"{base}_{number}"
        self.taken.add(name)
        return name


def _split(name: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.*)_(\d+)", name)
    return (found[1], int(found[2])) if found else (name, 0)


def name_inputs(
    gm: fx.GraphModule, signature: ExportGraphSignature, user_names: Sequence[str]
) -> None:
    """Names the nodes of a graph whose inputs are those of the signature, and changes the signature
    accordingly."""
    names = _Names()
    inputs = gm.graph.find_nodes(op="placeholder")
    chosen: dict[fx.Node, str] = {}
    given = iter(user_names)
    pairs = list(zip(inputs, signature.input_specs, strict=True))
    for node, spec in pairs:
        if spec.kind is InputKind.USER_INPUT:
            chosen[node] = names.take(next(given))
    for node, spec in pairs:
        if spec.kind is not InputKind.USER_INPUT:
            fixed = _PREFIX[spec.kind]
            target = spec.target if spec.target is not None else ""
            chosen[node] = names.take(_identifier(f"{fixed}{target}"))
    before = {node.name: spec for node, spec in pairs}
    _give(gm, chosen, names)
    for node, spec in pairs:
        spec.arg.name = node.name
    after = {name: spec.arg.name for name, spec in before.items()}
    _name_outputs(gm, signature, after)
    _name_subgraphs(gm)
    gm.recompile()


def _give(gm: fx.GraphModule, chosen: dict[fx.Node, str], names: _Names) -> None:
    """Gives the chosen names, and all other nodes their own unless it is taken."""
    for node in gm.graph.nodes:
        if node not in chosen:
            chosen[node] = names.take(node.name)
    graph = gm.graph
    graph._graph_namespace = namespace = type(graph._graph_namespace)()
    for node in graph.nodes:
        node.name = namespace.create_name(chosen[node], None)
        if node.op == "placeholder":
            node.target = node.name


def _name_outputs(
    gm: fx.GraphModule, signature: ExportGraphSignature, inputs: dict[str, str]
) -> None:
    values = gm.graph.output_node().args[0]
    for value, spec in zip(values, signature.output_specs, strict=True):
        if isinstance(value, fx.Node):
            spec.arg.name = value.name
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            spec.target = inputs.get(spec.target, spec.target)


def _name_subgraphs(gm: fx.GraphModule) -> None:
    """Graphs that operators take: their inputs are called as the operands."""
    for node in list(gm.graph.nodes):
        if not isinstance(node.target, torch._ops.HigherOrderOperator):
            continue
        flat = pytree.tree_leaves((node.args, node.kwargs))
        graphs = [n for n in flat if _module_of(gm, n) is not None]
        operands = [n for n in flat if n not in graphs]
        for graph in graphs:
            module = _module_of(gm, graph)
            inputs = module.graph.find_nodes(op="placeholder")
            if len(operands) < len(inputs):
                continue
            tail = operands[len(operands) - len(inputs) :]
            _name_subgraph(module, inputs, tail)


def _name_subgraph(
    module: fx.GraphModule, inputs: Sequence[fx.Node], operands: Sequence[object]
) -> None:
    names = _Names()
    chosen: dict[fx.Node, str] = {}
    for node, operand in zip(inputs, operands, strict=True):
        wanted = operand.name if isinstance(operand, fx.Node) else node.name
        chosen[node] = names.take(wanted)
    _give(module, chosen, names)
    _name_subgraphs(module)
    module.recompile()


def _module_of(gm: fx.GraphModule, node: object) -> fx.GraphModule | None:
    """The graph that an operator is given, where the node reads one."""
    if not isinstance(node, fx.Node) or node.op != "get_attr":
        return None
    found: object = gm
    for name in node.target.split("."):
        found = getattr(found, name, None)
    return found if isinstance(found, fx.GraphModule) else None
