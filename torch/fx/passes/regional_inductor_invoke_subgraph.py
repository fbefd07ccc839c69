"""Compilation of regions that are subgraphs already: calls of invoke_subgraph that carry the
mark."""

from typing import Any

from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.passes.regional_inductor import _KEY

__all__ = ["regional_inductor_invoke_subgraph"]


@compatibility(is_backward_compatible=False)
def regional_inductor_invoke_subgraph(gm: GraphModule, *example_args: Any) -> GraphModule:
    """Compiles the subgraphs whose calls are marked with `compile_with_inductor`; a module without
    such calls is returned as it is."""
    for node in gm.graph.nodes:
        name = getattr(node.target, "__name__", "")
        if name != "invoke_subgraph" or _KEY not in node.meta.get("custom", {}):
            continue
        from torch._inductor import standalone_compile

        read = node.args[0]
        values = [n.meta["val"] for n in node.all_input_nodes[1:]]
        setattr(gm, read.target, standalone_compile(getattr(gm, read.target), values))
    return gm
