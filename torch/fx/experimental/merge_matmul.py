"""One product for several that share a right operand: the left ones are stacked."""

import itertools
import operator

import torch
from torch.fx._symbolic_trace import symbolic_trace
from torch.fx.node import Node

__all__ = ["merge_matmul"]


def split_result_tensors(
    result: torch.Tensor, inputs: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Cuts the rows of a product where the rows of the operands end. Under a trace sizes are not
    known, and the cut is made when the graph runs."""
    if isinstance(result, torch.fx.Proxy):
        return (result,) * len(inputs)
    return torch.split(result, [x.shape[0] for x in inputs])


def _depends_on(node: Node, others: list[Node]) -> bool:
    """Whether a node is computed from one of the others."""
    seen: set[Node] = set()
    todo = list(node.all_input_nodes)
    targets = set(others)
    while todo:
        current = todo.pop()
        if current in targets:
            return True
        if current not in seen:
            seen.add(current)
            todo += current.all_input_nodes
    return False


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a is computed from b."""
    return a is b or _depends_on(a, [b])


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether none of the nodes is computed from another."""
    return not any(
        may_depend_on(i, j) or may_depend_on(j, i) for i, j in itertools.combinations(nodes, 2)
    )


def merge_matmul(in_mod: torch.nn.Module) -> torch.fx.GraphModule:
    """Traces a module and merges torch.matmul calls with one right operand that do not depend on
    each other."""
    gm = symbolic_trace(in_mod)
    shared: dict[object, list[Node]] = {}
    for node in gm.graph.find_nodes(op="call_function", target=torch.matmul):
        right = node.args[1]
        key = (right.op, right.target) if right.op == "get_attr" else right
        shared.setdefault(key, []).append(node)
    for products in shared.values():
        if len(products) > 1 and are_nodes_independent(products):
            _merge(gm.graph, products)
    gm.recompile()
    gm.graph.lint()
    return gm


def _merge(graph: torch.fx.Graph, products: list[Node]) -> None:
    lefts = [node.args[0] for node in products]
    right = products[0].args[1]
    # Behind every operand; the results then stand before their first user because the products do
    # not depend on each other.
    last = max([*lefts, right])
    with graph.inserting_after(last):
        stacked = graph.call_function(torch.cat, (lefts,))
    with graph.inserting_after(stacked):
        product = graph.call_function(torch.matmul, (stacked, right))
    with graph.inserting_after(product):
        parts = graph.call_function(split_result_tensors, (product, lefts))
    place = parts
    for i, node in enumerate(products):
        with graph.inserting_after(place):
            place = graph.call_function(operator.getitem, (parts, i))
        node.replace_all_uses_with(place)
        graph.erase_node(node)
    _restore_order(graph)


def _restore_order(graph: torch.fx.Graph) -> None:
    from torch.fx.passes.tools_common import _sorted_nodes

    for node in _sorted_nodes(graph) or ():
        graph._root.prepend(node)
