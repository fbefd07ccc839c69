"""Exchanging modules in an exported program: the nodes of each call of a module whose signature was
kept give way to a call of another module, with the arguments and results that the module had."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch.utils._pytree as pytree
from torch import fx, nn
from torch.export.exported_program import ExportedProgram, ModuleCallSignature
from torch.export.graph_signature import ConstantArgument

__all__: list[str] = []


def _swap_modules(ep: ExportedProgram, modules_to_swap: Mapping[str, nn.Module]) -> fx.GraphModule:
    """The program as a module in which calls of the named modules go to those that are given. Their
    signatures must have been preserved by `export`."""
    made = ep.module()
    kept = {e.fqn: e.signature for e in ep.module_call_graph if e.fqn and e.signature is not None}
    nodes = {node.name: node for node in made.graph.nodes}
    for name, module in modules_to_swap.items():
        calls = {key: sig for key, sig in kept.items() if key.split("@")[0] == name}
        if not calls:
            raise RuntimeError(
                f"the signature of {name!r} was not kept: name it in "
                "export(..., preserve_module_call_signature=...)"
            )
        made.add_submodule(name, module)
        for key, signature in calls.items():
            _exchange(made.graph, nodes, name, key, signature)
    for node in reversed(made.graph.nodes):
        if node.target is operator.getitem and not node.users:
            made.graph.erase_node(node)
    made.graph.lint()
    made.delete_all_unused_submodules()
    made.recompile()
    return made


def _exchange(
    graph: fx.Graph,
    nodes: dict[str, fx.Node],
    target: str,
    key: str,
    signature: ModuleCallSignature,
) -> None:
    """Puts one call of a module into the place of its nodes. `nodes`: what is known by the names of
    the program, to which the results of the call are added."""
    own = [n for n in graph.nodes if key in (n.meta.get("nn_module_stack") or {})]
    first = own[0] if own else _after_inputs(graph, nodes, signature)
    with graph.inserting_before(first):
        given = [
            arg.value if isinstance(arg, ConstantArgument) else nodes.get(arg.name)
            for arg in signature.inputs
        ]
        args, kwargs = pytree.tree_unflatten(given, signature.in_spec)
        call = graph.call_module(target, tuple(args), dict(kwargs))
        flat = graph.call_function(pytree.tree_leaves, (call,))
        results = [
            (nodes[arg.name], graph.call_function(operator.getitem, (flat, index)))
            for index, arg in enumerate(signature.outputs)
            if not isinstance(arg, ConstantArgument) and arg.name in nodes
        ]
    later = _behind(graph, flat)
    for old, new in results:
        new.meta["val"] = old.meta.get("val")
        # What is passed through belongs to others as well, who have read it before.
        old.replace_all_uses_with(new, lambda user: user in later and user not in own)
        if old in own:
            nodes[old.name] = new
    for node in reversed(own):
        if not node.users:
            graph.erase_node(node)


def _after_inputs(
    graph: fx.Graph, nodes: dict[str, fx.Node], signature: ModuleCallSignature
) -> fx.Node:
    """Where a call without nodes of its own can stand: behind everything that it takes."""
    wanted = {nodes[a.name] for a in signature.inputs if getattr(a, "name", None) in nodes}
    last = next(n for n in graph.nodes if n.op != "placeholder")
    for node in graph.nodes:
        if node in wanted and node.op != "placeholder":
            last = node.next
    return last


def _behind(graph: fx.Graph, place: fx.Node) -> set[fx.Node]:
    every = list(graph.nodes)
    return set(every[every.index(place) + 1 :])
