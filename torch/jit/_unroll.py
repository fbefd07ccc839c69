"""Rewrites of loops, calls and activations: loops of known length as straight code, forked calls as
calls, activations in place and back."""

from __future__ import annotations

from torch.jit import _types as T
from torch.jit._alias import Aliases
from torch.jit._constants import is_constant
from torch.jit._ir import Block, Graph, Node, Value, copy_node
from torch.jit._rewrites import eliminate_dead_code
from torch.jit._schema import schemas

_MOST_ROUNDS, _MOST_NODES = 32, 128
_ACTIVATIONS = ("hardsigmoid", "hardtanh", "hardswish", "relu", "relu6", "sigmoid", "tanh", "elu",
                "selu", "celu", "leaky_relu", "silu")  # fmt: skip
# These keep the dtype of their input, so that the result fits where the input was.
_SAME_DTYPE = frozenset(_ACTIVATIONS) - {"sigmoid", "tanh"}


def _constant(block: Block, value: object, before: Node) -> Value:
    node = Node("prim::Constant", block, (), before.place)
    node.attrs["value"] = value
    node.insertBefore(before)
    return node.add_output(T.infer(value))


def unroll_loops(graph: Graph) -> bool:
    """Loops that run a known, small number of times become that many copies of their body."""
    changed = False
    for node in list(graph.all_nodes()):
        if node.kind_name == "prim::Loop" and _rounds(node) is not None:
            _unroll(graph, node)
            changed = True
    if changed:
        eliminate_dead_code(graph)
    return changed


def _rounds(node: Node) -> int | None:
    count, start = node.inputs_list[:2]
    body = node.blocks_list[0]
    if not (is_constant(count) and is_constant(start) and is_constant(body.results[0])):
        return None
    rounds = count.toIValue()
    if start.toIValue() is not True or body.results[0].toIValue() is not True:
        return None
    small = rounds <= _MOST_ROUNDS and rounds * len(list(body.all_nodes())) <= _MOST_NODES
    return rounds if small else None


def _unroll(graph: Graph, node: Node) -> None:
    block, body = node.block_of, node.blocks_list[0]
    carried = list(node.inputs_list[2:])
    for i in range(_rounds(node)):
        values = dict(zip(body.params, [_constant(block, i, node), *carried], strict=True))
        scratch = Block(graph, None)
        for inner in body.nodes_list:
            copy_node(inner, scratch, values)
        for made in scratch.nodes_list:
            made.insertBefore(node)
        carried = [values.get(v, v) for v in body.results[1:]]
    graph.replace(dict(zip(node.outputs_list, carried, strict=True)))
    node.destroy()


def inline_forks(graph: Graph) -> None:
    """A forked call that the graph waits for itself becomes a plain call."""
    for node in list(graph.all_nodes()):
        if node.kind_name != "prim::fork":
            continue
        waits = [use.user for use in node.output().uses()]
        if any(w.kind_name != "aten::wait" for w in waits):
            continue
        node.kind_name = "prim::CallFunction"
        result = node.output().setType(node.output().type().element)
        for wait in waits:
            wait.output().replaceAllUsesWith(result)
            wait.destroy()


def activations_in_place(graph: Graph) -> bool:
    """Activations of values that nobody else sees write into them."""
    aliases, changed = Aliases(graph), False
    for node in list(graph.all_nodes()):
        name = node.kind_name.removeprefix("aten::")
        if name not in _SAME_DTYPE or not node.kind_name.startswith("aten::"):
            continue
        value = node.inputs_list[0]
        fresh = isinstance(value.origin, Node) and not aliases.is_outside(value)
        made = value.origin.schema_of if fresh else None
        if made is None or any(r.alias for r in made.returns) or len(value.uses()) != 1:
            continue
        changed |= _rename(node, f"aten::{name}_")
    return changed


def activations_out_of_place(graph: Graph) -> bool:
    """Activations that write into their input become new values."""
    changed = False
    for node in list(graph.all_nodes()):
        name = node.kind_name.removeprefix("aten::")
        if not name.endswith("_") or name[:-1] not in _ACTIVATIONS:
            continue
        if not _rename(node, f"aten::{name[:-1]}"):
            continue
        block = node.block_of
        behind = block.nodes_list[block.nodes_list.index(node) + 1 :]
        old, new = node.inputs_list[0], node.output()
        for later in behind:
            for inner in [later, *(n for b in later.blocks_list for n in b.all_nodes(True))]:
                inner.inputs_list[:] = [new if v is old else v for v in inner.inputs_list]
        block.results[:] = [new if v is old else v for v in block.results]
        changed = True
    return changed


def _rename(node: Node, kind: str) -> bool:
    for schema in schemas(kind):
        if schema.builtin is None and len(schema.arguments) == len(node.inputs_list):
            node.kind_name, node.schema_of = kind, schema
            return True
    return False
