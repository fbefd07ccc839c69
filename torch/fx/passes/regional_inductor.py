"""Compilation of marked regions: nodes traced within `torch.fx.traceback.annotate(
{"compile_with_inductor": ...})` are fused into submodules, and those are compiled."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support

__all__ = ["regional_inductor"]

_PREFIX = "__marked_inductor_submod_"
_KEY = "compile_with_inductor"


def _is_marked(node: Node) -> bool:
    return node.op not in ("placeholder", "output") and _KEY in node.meta.get("custom", {})


def _regions(gm: GraphModule) -> GraphModule:
    """Fuses the marked nodes into submodules."""

    def supports(submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return _is_marked(node)

    partitioner = CapabilityBasedPartitioner(
        gm, create_op_support(supports), allows_single_node_partition=True
    )
    return partitioner.partition_and_fuse(prefix=_PREFIX)


@compatibility(is_backward_compatible=False)
def regional_inductor(gm: GraphModule, *example_args: Any) -> GraphModule:
    """Compiles the marked regions of a module with Inductor; one without marks is returned as it
    is."""
    if not any(map(_is_marked, gm.graph.nodes)):
        return gm
    return _compile_parts(_regions(gm), lambda name: name.startswith(_PREFIX))


def _compile_parts(gm: GraphModule, wanted: Callable[[str], bool]) -> GraphModule:
    from torch._inductor import standalone_compile

    for node in gm.graph.find_nodes(op="call_module"):
        if wanted(node.target):
            part = gm.get_submodule(node.target)
            values = [n.meta["val"] for n in node.all_input_nodes]
            setattr(gm, node.target, standalone_compile(part, values))
    gm.recompile()
    return gm
