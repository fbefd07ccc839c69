"""Transformations of graphs: dead code, constants, common expressions, inlining."""

from __future__ import annotations

from torch.jit._ir import Block, Graph, Node, Value, copy_node

_EFFECTS = frozenset(
    "prim::SetAttr prim::RaiseException prim::Print prim::CallFunction prim::CallMethod "
    "prim::PythonOp prim::fork prim::awaitable_wait aten::wait aten::warn "
    "aten::set_grad_enabled aten::manual_seed "
    "prim::ListUnpack aten::requires_grad_ aten::retain_grad prim::CreateObject".split()
)
_RANDOM = (
    "rand",
    "normal",
    "bernoulli",
    "dropout",
    "multinomial",
    "poisson",
    "uniform",
    "exponential",
)


def has_effect(node: Node) -> bool:
    """Whether a node does something beside making its outputs."""
    if node.kind_name in _EFFECTS:
        return True
    if node.kind_name.endswith("_") and not node.kind_name.endswith("__"):
        return True
    schema = node.schema_of
    if schema is not None and (schema.mutates or not schema.name.startswith(("aten::", "prim::"))):
        return True
    name = node.kind_name.rpartition("::")[2]
    if name.startswith(_RANDOM) and schema is not None:
        return True
    return any(has_effect(n) for block in node.blocks_list for n in block.nodes_list)


def eliminate_dead_code(graph: Graph) -> None:
    """Removes nodes, outputs of conditions and carried values of loops that nobody reads."""
    while _drop_outputs(graph) | _drop_nodes(graph.block, _used(graph)):
        pass


def _used(graph: Graph) -> set[Value]:
    return {v for node in graph.all_nodes(returns=True) for v in node.inputs_list}


def _drop_nodes(block: Block, used: set[Value]) -> bool:
    kept, changed = [], False
    for node in block.nodes_list:
        for inner in node.blocks_list:
            changed |= _drop_nodes(inner, used)
        if any(v in used for v in node.outputs_list) or has_effect(node):
            kept.append(node)
        else:
            changed = True
    block.nodes_list[:] = kept
    return changed


def _drop_outputs(graph: Graph) -> bool:
    used, changed = _used(graph), False
    for node in graph.all_nodes():
        if node.kind_name == "prim::If":
            dead = [i for i, v in enumerate(node.outputs_list) if v not in used]
            for i in reversed(dead):
                del node.outputs_list[i]
                for block in node.blocks_list:
                    del block.results[i]
            changed |= bool(dead)
        elif node.kind_name == "prim::Loop":
            changed |= _drop_carried(node, used)
    return changed


def _drop_carried(node: Node, used: set[Value]) -> bool:
    body = node.blocks_list[0]
    inside = {v for n in body.all_nodes() for v in n.inputs_list}
    for n in body.all_nodes():
        for block in n.blocks_list:
            inside |= set(block.results)
    dead = []
    for i, value in enumerate(node.outputs_list):
        param = body.params[i + 1]
        carried_elsewhere = any(r is param for j, r in enumerate(body.results) if j != i + 1)
        if value not in used and param not in inside and not carried_elsewhere:
            dead.append(i)
    for i in reversed(dead):
        del node.outputs_list[i], body.params[i + 1], body.results[i + 1], node.inputs_list[i + 2]
    return bool(dead)


def pool_constants(graph: Graph) -> None:
    """One node for equal constants, at the start of the graph."""
    seen: dict[tuple[object, ...], Value] = {}
    changes: dict[Value, Value] = {}
    pooled: list[Node] = []

    def visit(block: Block) -> None:
        kept = []
        for node in block.nodes_list:
            for inner in node.blocks_list:
                visit(inner)
            if node.kind_name != "prim::Constant" or not _plain(node.attrs["value"]):
                kept.append(node)
                continue
            value = node.attrs["value"]
            key = (node.output().type(), type(value), repr(value))
            if key in seen:
                changes[node.output()] = seen[key]
            else:
                seen[key] = node.output()
                node.block_of = graph.block
                pooled.append(node)
        block.nodes_list[:] = kept

    visit(graph.block)
    graph.block.nodes_list[:0] = pooled
    graph.replace(changes)


def _plain(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | str | type(None))


def inline(graph: Graph) -> None:
    """Replaces calls of scripted functions by their graphs."""
    _inline_block(graph.block, {})


def _inline_block(block: Block, changes: dict[Value, Value]) -> None:
    old, block.nodes_list = block.nodes_list, []
    for node in old:
        node.inputs_list[:] = [changes.get(v, v) for v in node.inputs_list]
        for inner in node.blocks_list:
            _inline_block(inner, changes)
        function = node.attrs.get("function")
        if node.kind_name not in ("prim::CallFunction", "prim::CallMethod") or function is None:
            block.nodes_list.append(node)
            continue
        body = function.inlined_graph
        values = dict(zip(body.block.params, node.inputs_list, strict=True))
        for inner in body.block.nodes_list:
            copy_node(inner, block, values)
        results = [values.get(v, v) for v in body.block.results]
        changes.update(zip(node.outputs_list, results, strict=True))
    block.results[:] = [changes.get(v, v) for v in block.results]


def eliminate_common_expressions(graph: Graph) -> None:
    """Computes equal pure expressions of a block once."""
    changes: dict[Value, Value] = {}
    writes = any(has_effect(n) for n in graph.all_nodes())

    def visit(block: Block, known: dict[tuple[object, ...], Node]) -> None:
        for node in list(block.nodes_list):
            node.inputs_list[:] = [changes.get(v, v) for v in node.inputs_list]
            for inner in node.blocks_list:
                visit(inner, dict(known))
            if node.blocks_list or writes or has_effect(node) or node.schema_of is None:
                continue
            key = (node.kind_name, node.schema_of, *map(id, node.inputs_list))
            if key in known:
                changes.update(zip(node.outputs_list, known[key].outputs_list, strict=True))
            else:
                known[key] = node
        block.results[:] = [changes.get(v, v) for v in block.results]

    visit(graph.block, {})
    eliminate_dead_code(graph)
