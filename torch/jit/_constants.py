"""Constant propagation: what depends on constants alone is computed while compiling. Conditions
with a known test become the branch they take, loops that never run disappear."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._alias import Aliases, is_mutable
from torch.jit._ir import Block, Graph, Node, Value, copy_node
from torch.jit._rewrites import eliminate_dead_code, has_effect, pool_constants

_PARTS = ("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::TupleIndex",
          "prim::TupleUnpack", "prim::ListUnpack", "prim::unchecked_cast")  # fmt: skip


def propagate(graph: Graph, immutable_only: bool = False) -> bool:
    """Whether anything was computed."""
    changed = _Propagation(graph, immutable_only).block(graph.block)
    eliminate_dead_code(graph)
    pool_constants(graph)
    return changed


def is_constant(value: Value) -> bool:
    return isinstance(value.origin, Node) and value.origin.kind_name == "prim::Constant"


class _Propagation:
    def __init__(self, graph: Graph, immutable_only: bool) -> None:
        self.graph, self.immutable_only = graph, immutable_only
        self.aliases = Aliases(graph)
        self.changes: dict[Value, Value] = {}

    def block(self, block: Block) -> bool:
        changed = False
        old, block.nodes_list = block.nodes_list, []
        for node in old:
            node.inputs_list[:] = [self.current(v) for v in node.inputs_list]
            changed |= self.node(node, block)
        block.results[:] = [self.current(v) for v in block.results]
        return changed

    def current(self, value: Value) -> Value:
        while value in self.changes:
            value = self.changes[value]
        return value

    def node(self, node: Node, block: Block) -> bool:
        if node.kind_name == "prim::If" and is_constant(node.input()):
            return self.take_branch(node, block)
        if node.kind_name == "prim::Loop" and self.never_runs(node):
            for out, first in zip(node.outputs_list, node.inputs_list[2:], strict=True):
                self.changes[out] = first
            return True
        changed = False
        for inner in node.blocks_list:
            changed |= self.block(inner)
        if node.kind_name == "prim::If":
            changed |= self.same_results(node)
        if node.kind_name == "prim::Loop":
            changed |= self.unchanged_carried(node)
        if not self.is_computable(node):
            block.nodes_list.append(node)
            return changed
        results = evaluate(node)
        if results is None or not all(map(self.can_hold, results, node.outputs_list)):
            block.nodes_list.append(node)
            return changed
        for out, result in zip(node.outputs_list, results, strict=True):
            self.changes[out] = self.constant(result, out, block, node)
        return True

    def constant(self, result: object, out: Value, block: Block, node: Node) -> Value:
        made = Node("prim::Constant", block, (), node.place)
        if isinstance(result, torch.dtype | torch.layout | torch.memory_format):
            result = torch._C._script_number(result)
        made.attrs["value"] = result
        type = T.NoneT if result is None else out.type()
        value = made.add_output(type, out.hint())
        block.nodes_list.append(made)
        return value

    def take_branch(self, node: Node, block: Block) -> bool:
        chosen = node.blocks_list[0 if node.input().toIValue() else 1]
        values: dict[Value, Value] = dict(self.changes)
        inner = Block(self.graph, None)
        for step in chosen.nodes_list:
            copy_node(step, inner, values)
        results = [values.get(v, v) for v in chosen.results]
        for step in inner.nodes_list:
            step.block_of = block
            step.inputs_list[:] = [self.current(v) for v in step.inputs_list]
            self.node(step, block)
        for out, result in zip(node.outputs_list, results, strict=True):
            self.changes[out] = self.current(result)
        return True

    def never_runs(self, node: Node) -> bool:
        count, start = node.inputs_list[:2]
        if is_constant(start) and start.toIValue() is False:
            return True
        return is_constant(count) and count.toIValue() <= 0

    def same_results(self, node: Node) -> bool:
        """Outputs for which both branches give one and the same value."""
        changed = False
        for i in reversed(range(len(node.outputs_list))):
            a, b = (block.results[i] for block in node.blocks_list)
            if a is b or (_equal_constants(a, b)):
                if a is not b:  # a constant inside of a branch is not seen behind it
                    a.origin.block_of.nodes_list.remove(a.origin)
                    a.origin.block_of = node.block_of
                    node.block_of.nodes_list.append(a.origin)
                self.changes[node.outputs_list[i]] = a
                del node.outputs_list[i]
                for block in node.blocks_list:
                    del block.results[i]
                changed = True
        return changed

    def unchanged_carried(self, node: Node) -> bool:
        """Values that a loop carries and never sets."""
        body, changed = node.blocks_list[0], False
        for i in reversed(range(len(node.outputs_list))):
            param, result = body.params[i + 1], body.results[i + 1]
            if result is not param and result is not node.inputs_list[i + 2]:
                continue
            first = node.inputs_list[i + 2]
            self.changes[node.outputs_list[i]] = first
            for inner in body.all_nodes(returns=True):
                inner.inputs_list[:] = [first if v is param else v for v in inner.inputs_list]
            del node.outputs_list[i], node.inputs_list[i + 2]
            del body.params[i + 1], body.results[i + 1]
            changed = True
        return changed

    def is_computable(self, node: Node) -> bool:
        if node.blocks_list or node.kind_name == "prim::Constant" or not node.outputs_list:
            return False
        if node.schema_of is None and node.kind_name not in _PARTS:
            return False
        if has_effect(node) and node.kind_name != "prim::ListUnpack":
            return False
        if node.kind_name.endswith("_like") or "empty" in node.kind_name:
            return False
        if not all(is_constant(v) for v in node.inputs_list):
            return False
        return not any(self.aliases.is_written(v) for v in node.outputs_list)

    def can_hold(self, result: object, out: Value) -> bool:
        if self.immutable_only and is_mutable(out.type()):
            return False
        if isinstance(result, torch.Tensor):
            return not result.requires_grad and result.numel() <= 1 << 20
        if isinstance(result, list | dict) and not result:
            return False
        return T.infer(result) is not None and not isinstance(out.type(), T.ClassType)


def _equal_constants(a: Value, b: Value) -> bool:
    if not (is_constant(a) and is_constant(b)) or a.type() is not b.type():
        return False
    x, y = a.toIValue(), b.toIValue()
    return type(x) is type(y) and isinstance(x, bool | int | float | str | None) and x == y


def evaluate(node: Node) -> tuple[object, ...] | None:
    """The results of a node whose inputs are constants; None when it fails."""
    from torch.jit._function import ScriptFunction
    from torch.jit._trace import TraceSource

    graph = Graph()
    values: dict[Value, Value] = {}
    for value in node.inputs_list:
        if value not in values:
            copy_node(value.origin, graph.block, values)
    made = copy_node(node, graph.block, values)
    outputs = list(made.outputs_list)
    packed = Node("prim::TupleConstruct", graph.block, outputs)
    result = packed.add_output(T.tuple_of(*(v.type() for v in outputs)))
    graph.block.nodes_list.append(packed)
    graph.block.results.append(result)
    function = ScriptFunction("constant", "__torch__.constant", TraceSource(graph, []))
    try:
        function.ensure_compiled()
        with torch.no_grad():
            return function()
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None  # what fails, fails when the program runs
