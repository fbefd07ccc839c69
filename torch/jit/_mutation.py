"""Writes to values that a graph made itself, as new values: x = [1]; x.append(2) becomes
x = [1, 2], a fresh tensor's add_ becomes add. A write stays where the value was read before it, or
could be seen under another name."""

from __future__ import annotations

from torch.jit import _types as T
from torch.jit._constants import is_constant
from torch.jit._ir import Block, Graph, Node, Value
from torch.jit._rewrites import eliminate_dead_code
from torch.jit._schema import Schema, bind, schemas

_LISTS = ("aten::append", "aten::insert", "aten::_set_item")


def remove_list_mutation(graph: Graph) -> bool:
    return _everywhere(graph, _replace_list_write)


def remove_tensor_mutation(graph: Graph) -> bool:
    return _everywhere(graph, _replace_tensor_write)


def _everywhere(graph: Graph, replace) -> bool:
    changed = False
    blocks = [graph.block, *(b for n in graph.all_nodes() for b in n.blocks_list)]
    for block in blocks:
        for node in list(block.nodes_list):
            changed |= replace(graph, block, node)
    if changed:
        eliminate_dead_code(graph)
    return changed


def _users(value: Value) -> list[Node]:
    return [use.user for use in value.uses()]


def _top(node: Node, block: Block) -> Node | None:
    """The node of `block` that holds `node`, or None when it is elsewhere."""
    while node.block_of is not block:
        owner = node.block_of.owner
        if owner is None:
            return None
        node = owner
    return node


def _free_before(block: Block, made: Node, write: Node, value: Value) -> bool:
    """Whether nothing between the making and the write uses the value."""
    order = block.nodes_list
    if made not in order:
        return False
    first, last = order.index(made), order.index(write)
    for user in _users(value):
        if user is write or user.kind_name == "prim::Return":
            continue
        top = _top(user, block)
        if top is None or first < order.index(top) < last:
            return False
    return first < last


def _use_instead(block: Block, write: Node, old: list[Value], new: Value) -> None:
    """Every use behind the write reads the new value."""
    for value in old:
        for use in value.uses():
            if use.user is not write and use.user is not new.origin:
                use.user.inputs_list[use.offset] = new


def _replace_list_write(graph: Graph, block: Block, node: Node) -> bool:
    if node.kind_name not in _LISTS or not isinstance(node.inputs_list[0].type(), T.ListType):
        return False
    target = node.inputs_list[0]
    made = target.origin
    if not isinstance(made, Node) or made.kind_name != "prim::ListConstruct":
        return False
    if not _free_before(block, made, node, target):
        return False
    items = list(made.inputs_list)
    if node.kind_name == "aten::append":
        items.append(node.inputs_list[1])
    else:
        if not is_constant(node.inputs_list[1]):
            return False
        at = node.inputs_list[1].toIValue()
        if node.kind_name == "aten::insert":
            items.insert(at, node.inputs_list[2])
        elif -len(items) <= at < len(items):
            items[at] = node.inputs_list[2]
        else:
            return False
    fresh = Node("prim::ListConstruct", block, items, node.place)
    new = fresh.add_output(target.type(), target.hint())
    fresh.insertBefore(node)
    _use_instead(block, node, [target, *node.outputs_list], new)
    node.destroy()
    return True


# ---- tensors


def _is_fresh(value: Value, block: Block) -> bool:
    """Whether the value is a tensor that its node made and nothing else holds."""
    node = value.origin
    if not isinstance(node, Node) or node.block_of is not block:
        return False
    if node.kind_name == "prim::If":
        i = node.outputs_list.index(value)
        return all(
            _is_fresh(inner.results[i], inner) and len(inner.results[i].uses()) == 1
            for inner in node.blocks_list
        )
    if node.schema_of is None:
        return False
    i = node.outputs_list.index(value)
    returned = node.schema_of.returns
    return i < len(returned) and not returned[i].alias


def _replace_tensor_write(graph: Graph, block: Block, node: Node) -> bool:
    schema = node.schema_of
    if schema is None or not node.kind_name.endswith("_") or len(node.outputs_list) != 1:
        return False
    if not schema.arguments or not schema.arguments[0].write:
        return False
    target = node.inputs_list[0]
    if not isinstance(target.type(), T.TensorType) or not _is_fresh(target, block):
        return False
    if not _free_before(block, target.origin, node, target):
        return False
    made = _functional(node, block)
    if made is None:
        return False
    _use_instead(block, node, [target, node.output()], made.output())
    node.destroy()
    return True


def _functional(node: Node, block: Block) -> Node | None:
    """The node that computes what the write leaves, put before it."""
    inputs = list(node.inputs_list)
    name = node.kind_name.removesuffix("_")
    if name == "aten::zero":
        name = "aten::zeros_like"
    elif name == "aten::fill" and inputs[1].type() is not T.Tensor:
        name = "aten::full_like"
    found = _matching(name, inputs)
    if found is None:
        return None
    for formal in found.arguments[len(inputs) :]:
        constant = Node("prim::Constant", block, (), node.place)
        constant.attrs["value"] = formal.default
        kind = T.NoneT if formal.default is None else formal.type
        constant.add_output(kind if not isinstance(kind, T.OptionalType) else kind.element)
        constant.insertBefore(node)
        inputs.append(constant.output())
    made = Node(name, block, inputs, node.place)
    made.schema_of = found
    made.add_output(T.Tensor, node.inputs_list[0].hint())
    made.insertBefore(node)
    return made


def _matching(name: str, inputs: list[Value]) -> Schema | None:
    for schema in schemas(name):
        formals = schema.arguments
        if schema.builtin is not None or schema.mutates or len(formals) < len(inputs):
            continue
        bound: dict[str, T.Type] = {}
        pairs = zip(formals, inputs, strict=False)
        if all(bind(f.type, v.type(), bound) for f, v in pairs) and all(
            f.has_default_value() for f in formals[len(inputs) :]
        ):
            return schema
    return None
