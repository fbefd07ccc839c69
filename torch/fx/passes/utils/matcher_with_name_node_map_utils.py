"""Patterns whose output ends with a dict {name: value}: a match says which node of the graph
stands for each name."""

from torch.fx import Graph, GraphModule, Node
from torch.fx._compatibility import compatibility
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(
    gm: GraphModule,
) -> tuple[GraphModule, dict[str, Node]]:
    """The module without the dict at the end of its output, and the dict."""
    from torch.utils._pytree import tree_flatten, tree_unflatten

    output = gm.graph.output_node()
    result = output.args[0]
    spec = getattr(gm, "_out_spec", None)
    if spec is not None and isinstance(result, list | tuple):
        result = tree_unflatten(list(result), spec)
    if not (isinstance(result, tuple) and len(result) > 1 and isinstance(result[-1], dict)):
        raise AssertionError("the pattern must return (results..., {name: value})")
    *values, names = result
    leaves, new_spec = tree_flatten(values[0] if len(values) == 1 else tuple(values))
    output.args = (tuple(leaves),)
    codegen = gm.graph._codegen
    info = getattr(codegen, "pytree_info", None)
    if info is not None:
        codegen.pytree_info = info._replace(out_spec=new_spec)
    elif len(leaves) == 1 and len(values) == 1:
        output.args = (leaves[0],)
    gm.recompile()
    return gm, dict(names)


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher for such patterns; each match has name_node_map."""

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, names = _split_to_graph_and_name_node_map(pattern_gm)
        self.name_node_map = names
        super().__init__(
            pattern_gm.graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern occurs."""
        found = super().match(graph, node_name_match)
        for match in found:
            for name, node in self.name_node_map.items():
                if node in match.nodes_map:
                    match.name_node_map[name] = match.nodes_map[node]
        return found
