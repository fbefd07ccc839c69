"""Making a submodule of some nodes of a graph, and calling it in their place."""

import copy
from collections.abc import Iterable

from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.tools_common import NodeList, NodeSet, legalize_graph
from torch.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


@compatibility(is_backward_compatible=False)
def topo_sort(nodes: NodeList) -> NodeList:
    """The nodes with inputs before users; nodes that are ready come in the order they became so."""
    mine = set(nodes)
    missing = {node: sum(i in mine for i in node.all_input_nodes) for node in nodes}
    out = [node for node in nodes if missing[node] == 0]
    for node in out:
        for user in node.users:
            if user in mine:
                missing[user] -= 1
                if missing[user] == 0:
                    out.append(user)
    if len(out) != len(nodes):
        raise AssertionError(
            "topological sorted nodes doesn't have same length as input nodes: there is a cycle"
        )
    return out


@compatibility(is_backward_compatible=False)
def validate_partition(partition: NodeList) -> bool:
    """Whether the nodes can be run as one: no path leaves them and comes back."""
    inside = set(partition)
    last = max(partition)
    seen: set[Node] = set()
    todo = [user for node in partition for user in node.users if user not in inside]
    while todo:
        node = todo.pop()
        if node in seen or node > last:
            continue
        seen.add(node)
        for user in node.users:
            if user in inside:
                return False
            todo.append(user)
    return True


@compatibility(is_backward_compatible=False)
def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of its own that does what the nodes do. Returns it with the nodes of the graph that
    are its inputs and those whose values are its outputs."""
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes) if partition_lookup_table is None else partition_lookup_table
    graph = Graph()
    values: dict[Node, Node] = {}

    def value_of(outer: Node) -> Node:
        if outer not in values:
            # Attributes belong to the module that is made; everything else flows in.
            if outer.op == "get_attr" and outer not in inside:
                values[outer] = graph.node_copy(outer)
            else:
                values[outer] = made = graph.placeholder(outer.name, type_expr=outer.type)
                made.meta = copy.copy(outer.meta)
        return values[outer]

    inputs = dict.fromkeys(
        used
        for node in nodes
        for used in node.all_input_nodes
        if used not in inside and used.op != "get_attr"
    )
    for used in inputs:
        value_of(used)
    for node in nodes:
        values[node] = graph.node_copy(node, value_of)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(values[node] for node in outputs)
    alone = len(results) == 1 and not always_return_tuple
    graph.output(results[0] if alone else results)
    graph.lint()
    made_gm, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return made_gm, tuple(inputs), tuple(outputs)


@compatibility(is_backward_compatible=False)
def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Calls a module that was made of nodes of the graph, and uses its results in place of
    theirs."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    place = gm.graph.inserting_after(insertion_point) if insertion_point else None
    if place is None:
        place = gm.graph.inserting_before(gm.graph.output_node())
    with place:
        call = gm.graph.call_module(name, args=orig_inputs)
    returns_tuple = isinstance(sub_gm.graph.output_node().args[0], tuple)
    if len(orig_outputs) == 1 and not returns_tuple:
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    import operator

    after = call
    for i, node in enumerate(orig_outputs):
        with gm.graph.inserting_after(after):
            after = gm.graph.call_function(operator.getitem, (call, i))
        node.replace_all_uses_with(after, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


@compatibility(is_backward_compatible=False)
def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erases nodes, users before what they use."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


@compatibility(is_backward_compatible=False)
def fuse_by_partitions(
    gm: GraphModule,
    partitions: Iterable[NodeList | NodeSet],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Replaces each partition by a call of a submodule that does what it did."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        sub_gm, inputs, outputs = fuse_as_graphmodule(
            gm,
            nodes,
            f"{prefix}{number}",
            dict.fromkeys(nodes),
            always_return_tuple=always_return_tuple,
        )
        insert_subgm(gm, sub_gm, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    gm.recompile()
    return gm
