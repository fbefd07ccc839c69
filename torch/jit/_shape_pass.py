"""Shapes and dtypes along a graph: every operator whose inputs are known is run on the meta device,
and its results give the types of its outputs. What is not known stays a plain Tensor."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value
from torch.utils import _pytree as pytree

_UNKNOWN = object()


class _Propagation:
    def __init__(self, keep_sizes: bool) -> None:
        self.known: dict[Value, object] = {}
        self.keep_sizes = keep_sizes

    def value(self, value: Value) -> object:
        if value in self.known:
            return self.known[value]
        type = value.type()
        if isinstance(type, T.SizedTensor) and type.sizes() is not None and type.dtype():
            made = torch.empty(type.sizes(), dtype=type.dtype(), device="meta")
            self.known[value] = made
            return made
        return _UNKNOWN

    def block(self, block: Block) -> None:
        for node in block.nodes_list:
            if node.kind_name == "prim::If":
                self.condition(node)
            elif node.blocks_list:
                for inner in node.blocks_list:
                    self.block(inner)
            else:
                self.node(node)

    def condition(self, node: Node) -> None:
        for inner in node.blocks_list:
            self.block(inner)
        for i, out in enumerate(node.outputs_list):
            found = [self.value(block.results[i]) for block in node.blocks_list]
            tensors = [v for v in found if isinstance(v, torch.Tensor)]
            if len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
                if tensors[0].dtype == tensors[1].dtype:
                    self.know(out, tensors[0])

    def node(self, node: Node) -> None:
        kind = node.kind_name
        if kind == "prim::Constant":
            value = node.attrs.get("value")
            self.known[node.output()] = value.to("meta") if _is_tensor(value) else value
            return
        inputs = [self.value(v) for v in node.inputs_list]
        if any(v is _UNKNOWN for v in inputs):
            return
        if kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            self.known[node.output()] = inputs if kind == "prim::ListConstruct" else tuple(inputs)
        elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            for out, part in zip(node.outputs_list, inputs[0], strict=False):
                self.know(out, part)
        elif kind == "prim::TupleIndex":
            self.know(node.output(), inputs[0][node.attrs["index"]])
        elif node.schema_of is not None:
            results = run_on_meta(node, inputs)
            for out, result in zip(node.outputs_list, results, strict=False):
                self.know(out, result)

    def know(self, out: Value, result: object) -> None:
        self.known[out] = result
        if not isinstance(result, torch.Tensor) or not isinstance(out.type(), T.TensorType):
            return
        sizes = tuple(result.shape) if self.keep_sizes else None
        out.setType(T.SizedTensor(sizes, result.dtype))


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def run_on_meta(node: Node, inputs: list[object]) -> tuple[object, ...]:
    """The results of an operator on inputs without data; empty where it cannot be run so."""
    from torch.jit._constants import evaluate

    schema = node.schema_of
    if not any(isinstance(v, torch.Tensor) for v in pytree.tree_leaves(inputs)):
        constants = all(
            isinstance(v.origin, Node) and v.origin.kind_name == "prim::Constant"
            for v in node.inputs_list
        )
        return (evaluate(node) or ()) if constants and not schema.mutates else ()
    if schema.builtin is not None:
        return ()
    space, _, name = schema.name.partition("::")
    packet = getattr(getattr(torch.ops, space), name)
    overload = getattr(packet, schema.overload_name or "default")
    plain = inputs[: sum(not a.kwarg_only for a in schema.arguments)]
    named = {
        a.name: v
        for a, v in zip(schema.arguments, inputs, strict=False)
        if a.kwarg_only and not (a.name == "device" and v is not None)
    }
    if any(a.name == "device" for a in schema.arguments) and "like" not in name:
        named["device"] = torch.device("meta")
    try:
        with torch.no_grad():
            out = overload(*plain, **named)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return ()
    return tuple(out) if len(schema.returns) > 1 else (out,)


def propagate(graph: Graph, keep_sizes: bool = True) -> bool:
    """Gives the values of a graph the types that follow from those of its inputs."""
    _Propagation(keep_sizes).block(graph.block)
    return True
