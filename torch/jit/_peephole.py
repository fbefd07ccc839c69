"""Local simplifications of graphs: each looks at one node and what made its inputs. Containers are
looked into only where nothing writes to them."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._alias import Aliases
from torch.jit._constants import is_constant
from torch.jit._ir import Block, Graph, Node, Value
from torch.jit._rewrites import eliminate_dead_code
from torch.jit._schema import schemas

_CONV_DIMS = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
_NEUTRAL = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::div": 1, "aten::floordiv": 1}
_SAFE_KEYS = (int, float, str, bool)


def simplify(graph: Graph, shapes: bool = True) -> bool:
    """Whether anything changed."""
    changed = _Peephole(graph, shapes).run()
    if changed:
        eliminate_dead_code(graph)
    return changed


class _Peephole:
    def __init__(self, graph: Graph, shapes: bool) -> None:
        self.graph, self.shapes = graph, shapes
        self.aliases = Aliases(graph)
        self.changes: dict[Value, Value] = {}

    def run(self) -> bool:
        again, changed = True, False
        while again:
            again = self.block(self.graph.block)
            changed |= again
        return changed

    def block(self, block: Block) -> bool:
        changed = False
        for node in list(block.nodes_list):
            for inner in node.blocks_list:
                changed |= self.block(inner)
            node.inputs_list[:] = [self.current(v) for v in node.inputs_list]
            if node.kind_name == "prim::If":
                changed |= self.condition(node)
                continue
            if len(node.outputs_list) != 1 or node.output() in self.changes:
                continue
            made = self.value_of(node)
            if made is not None:
                self.replace(node, made)
                changed = True
        return changed

    def current(self, value: Value) -> Value:
        while value in self.changes:
            value = self.changes[value]
        return value

    def replace(self, node: Node, value: Value) -> None:
        self.changes[node.output()] = value
        node.output().replaceAllUsesWith(value)
        if value.type() is T.Any:
            value.setType(node.output().type())

    def constant(self, value: object, node: Node) -> Value:
        made = Node("prim::Constant", node.block_of, (), node.place)
        made.attrs["value"] = value
        out = made.add_output(T.infer(value))
        made.insertBefore(node)
        return out

    def value_of(self, node: Node) -> Value | None:
        """What the node's result can be replaced by."""
        kind = node.kind_name
        if kind in ("aten::len", "aten::__getitem__", "aten::slice"):
            return self.container(node)
        if kind == "prim::unchecked_cast" and T.is_subtype(node.input().type(),
                                                           node.output().type()):  # fmt: skip
            return node.input()
        if kind in ("aten::__is__", "aten::__isnot__"):
            return self.none_test(node)
        if kind in ("aten::eq", "aten::ne") and node.inputs_list[0] is node.inputs_list[1]:
            type = node.inputs_list[0].type()
            if type in (T.Int, T.Bool, T.String) or type is T.ListType.of(T.Int):
                return self.constant(kind == "aten::eq", node)
        if kind in _NEUTRAL:
            return self.arithmetic(node)
        if kind == "aten::Int":
            return self.integer(node)
        if kind in ("aten::Float", "aten::Bool") and node.input().type() is node.output().type():
            return node.input()
        return self.tensor_question(node)

    # ---- containers

    def made_by(self, value: Value, kind: str) -> Node | None:
        origin = value.origin
        if not isinstance(origin, Node) or origin.kind_name != kind:
            return None
        return None if self.aliases.is_written(value) else origin

    def container(self, node: Node) -> Value | None:
        items = self.made_by(node.inputs_list[0], "prim::ListConstruct")
        if items is not None:
            return self.list_question(node, items.inputs_list)
        entries = self.made_by(node.inputs_list[0], "prim::DictConstruct")
        if entries is not None and node.kind_name != "aten::slice":
            return self.dict_question(node, entries.inputs_list)
        size = self.made_by(node.inputs_list[0], "aten::size")
        if size is not None and node.kind_name == "aten::len" and self.shapes:
            known = size.inputs_list[0].type()
            if len(size.inputs_list) == 1 and known.dim() is not None:
                return self.constant(known.dim(), node)
        return None

    def list_question(self, node: Node, items: list[Value]) -> Value | None:
        if node.kind_name == "aten::len":
            return self.constant(len(items), node)
        if not all(is_constant(v) for v in node.inputs_list[1:]):
            return None
        given = [v.toIValue() for v in node.inputs_list[1:]]
        if node.kind_name == "aten::__getitem__":
            return items[given[0]] if -len(items) <= given[0] < len(items) else None
        made = Node("prim::ListConstruct", node.block_of, items[slice(*given)], node.place)
        made.add_output(node.output().type())
        made.insertBefore(node)
        return made.output()

    def dict_question(self, node: Node, flat: list[Value]) -> Value | None:
        if not all(is_constant(k) and type(k.toIValue()) in _SAFE_KEYS for k in flat[::2]):
            return None
        keys = [k.toIValue() for k in flat[::2]]
        if len(set(keys)) != len(keys):
            return None
        if node.kind_name == "aten::len":
            return self.constant(len(keys), node)
        key = node.inputs_list[1]
        if not is_constant(key) or key.toIValue() not in keys:
            return None
        return flat[2 * keys.index(key.toIValue()) + 1]

    # ---- tests

    def none_test(self, node: Node) -> Value | None:
        left, right = node.inputs_list
        if right.type() is not T.NoneT:
            return None
        same = node.kind_name == "aten::__is__"
        if left.type() is T.NoneT:
            return self.constant(same, node)
        if T.NoneT not in T.members(left.type()) and left.type() is not T.Any:
            return self.constant(not same, node)
        return None

    def condition(self, node: Node) -> bool:
        """Outputs that are the test itself, and those that need not be optional."""
        changed = False
        for i in reversed(range(len(node.outputs_list))):
            out = node.outputs_list[i]
            a, b = (block.results[i] for block in node.blocks_list)
            if is_constant(a) and is_constant(b) and a.toIValue() is True and b.toIValue() is False:
                out.replaceAllUsesWith(node.input())
                self.changes[out] = node.input()
                del node.outputs_list[i]
                for block in node.blocks_list:
                    del block.results[i]
                changed = True
            elif isinstance(out.type(), T.OptionalType):
                joined = T.unify(a.type(), b.type())
                if joined is not None and not isinstance(joined, T.OptionalType):
                    if joined is not T.NoneT:
                        out.setType(joined)
                        changed = True
        return changed

    # ---- numbers

    def arithmetic(self, node: Node) -> Value | None:
        left, right = node.inputs_list[:2]
        neutral, kind = _NEUTRAL[node.kind_name], node.output().type()
        if kind is T.Int and {left.type(), right.type()} == {T.Int}:
            if is_constant(right) and right.toIValue() == neutral:
                return left
            if kind is T.Int and is_constant(left) and left.toIValue() == neutral:
                if node.kind_name in ("aten::add", "aten::mul"):
                    return right
            return self.sum_with_constant(node)
        if isinstance(left.type(), T.TensorType) and is_constant(right):
            return self.tensor_neutral(node, left, right.toIValue(), neutral)
        return None

    def sum_with_constant(self, node: Node) -> Value | None:
        """(x + a) - b is x + (a - b)."""
        shift = _shift(node)
        inner = _shift(shift[0].origin) if shift and isinstance(shift[0].origin, Node) else None
        if inner is None:
            return None
        total = shift[1] + inner[1]
        if total == 0:
            return inner[0]
        if not -(2**63) <= total < 2**63:
            return None
        made = Node("aten::add", node.block_of, [inner[0], self.constant(total, node)], node.place)
        made.schema_of = next(s for s in schemas("aten::add") if s.overload_name == "int")
        made.add_output(T.Int)
        made.insertBefore(node)
        return made.output()

    def tensor_neutral(self, node: Node, left: Value, number: object, neutral: int) -> Value | None:
        if number != neutral or isinstance(number, bool) or node.kind_name == "aten::floordiv":
            return None
        if len(node.inputs_list) > 2 and not is_constant(node.inputs_list[2]):
            return None
        dtype = left.type().dtype()
        if isinstance(number, float) or node.kind_name == "aten::div":
            if not self.shapes or dtype is None or not dtype.is_floating_point:
                return None
        out = node.output()
        if self.aliases.is_written(left) or self.aliases.is_written(out):
            return None
        # A result of the graph stays another tensor than the graph's inputs and other results.
        if any(self.aliases.may_alias(out, r) for r in self.graph.block.results):
            return None
        return left

    def integer(self, node: Node) -> Value | None:
        given = node.input()
        if given.type() is T.Int:
            return given
        origin = given.origin
        if isinstance(origin, Node) and origin.kind_name == "aten::div":
            a, b = origin.inputs_list[:2]
            if a.type() is T.Int and is_constant(b) and b.toIValue() == 1:
                return a
        return None

    def tensor_question(self, node: Node) -> Value | None:
        if not node.inputs_list or not isinstance(node.inputs_list[0].type(), T.TensorType):
            return None
        value, kind = node.inputs_list[0], node.kind_name
        if kind == "aten::dim":
            origin = value.origin if isinstance(value.origin, Node) else None
            if origin is not None and origin.kind_name in _CONV_DIMS:
                if not self.aliases.is_written(value):
                    return self.constant(_CONV_DIMS[origin.kind_name], node)
        if not self.shapes:
            return None
        known: T.TensorType = value.type()
        answers = {"aten::dim": known.dim(), "prim::dtype": known.dtype(),
                   "prim::device": known.device()}  # fmt: skip
        answer = answers.get(kind)
        if answer is None or self.aliases.is_written(value):
            return None
        number = isinstance(answer, torch.dtype)
        return self.constant(torch._C._script_number(answer) if number else answer, node)


def _shift(node: Node) -> tuple[Value, int] | None:
    """x and c where the node computes x + c."""
    if node.kind_name not in ("aten::add", "aten::sub") or node.output().type() is not T.Int:
        return None
    left, right = node.inputs_list[:2]
    if is_constant(right) and not is_constant(left):
        number = right.toIValue()
        return left, number if node.kind_name == "aten::add" else -number
    if node.kind_name == "aten::add" and is_constant(left) and not is_constant(right):
        return right, left.toIValue()
    return None


def lower_tuples(graph: Graph) -> None:
    """Reads of tuples made in the graph become reads of their parts."""
    for node in list(graph.all_nodes()):
        if node.kind_name not in ("prim::TupleUnpack", "prim::TupleIndex"):
            continue
        origin = node.inputs_list[0].origin
        if not isinstance(origin, Node) or origin.kind_name != "prim::TupleConstruct":
            continue
        parts = origin.inputs_list
        if node.kind_name == "prim::TupleIndex":
            parts = [parts[node.attrs["index"]]]
        graph.replace(dict(zip(node.outputs_list, parts, strict=True)))
        node.destroy()
    for kind in ("params", "results"):
        _spread(graph, kind)
    eliminate_dead_code(graph)


def _spread(graph: Graph, kind: str) -> None:
    """Tuples among the results of the graph become several results."""
    if kind != "results":
        return
    again = True
    while again:
        again = False
        results: list[Value] = []
        for value in graph.block.results:
            origin = value.origin
            if isinstance(origin, Node) and origin.kind_name == "prim::TupleConstruct":
                results.extend(origin.inputs_list)
                again = True
            else:
                results.append(value)
        graph.block.results[:] = results
