"""Lifting part of a module into a module of its own, and comparing graphs."""

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


@compatibility(is_backward_compatible=False)
class HolderModule(torch.nn.Module):
    """A module that holds others under given names and does nothing."""

    def __init__(self, d: dict[str, torch.nn.Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


@compatibility(is_backward_compatible=False)
def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module for a graph whose targets are attributes of `gm`. Returns it with {path in the new
    module: path in the old one}."""
    moved: dict[str, str] = {}
    root = HolderModule({})
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *path, last = node.target.split(".")
        source: object = gm
        place: torch.nn.Module = root
        for part in path:
            if not hasattr(source, part):
                raise RuntimeError(f"Attribute {node.target} not found in original graph module")
            source = getattr(source, part)
            if not hasattr(place, part):
                place.add_module(part, HolderModule({}))
            place = getattr(place, part)
        value = getattr(source, last)
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            place.register_buffer(last, value)
        else:
            setattr(place, last, value)
        moved[f"{comp_name}.{node.target}"] = node.target
    return GraphModule(root, subgraph, class_name), moved


@compatibility(is_backward_compatible=False)
def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs do the same, names aside."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(left.nodes) == len(right.nodes) and bool(matcher.match(right))
