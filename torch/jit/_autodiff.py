"""The parts of a graph that are differentiated as a whole: runs of operators with derivative
formulas of their own, connected by their values, become nodes of kind prim::DifferentiableGraph.
The interpreter runs the nodes of such a part like any others, and autograd records them."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value, copy_node
from torch.jit._rewrites import eliminate_dead_code, has_effect, pool_constants

_OPERATORS = frozenset(
    "abs acos add addcmul addmm asin atan bmm cat ceil clamp cos cosh div dot erf erfc exp expm1 "
    "floor frac gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu lerp linear log log10 "
    "log1p log2 log_softmax logsumexp matmul max mean min mm mul mv nanmean neg permute pow "
    "reciprocal relu relu6 remainder round rsqrt rsub sigmoid silu sin sinh softmax sqrt squeeze "
    "stack std sub tan tanh trunc type_as unsqueeze var view where threshold".split()
)
_SMALLEST = 2  # a single operator gains nothing


def executed_graph(graph: Graph, args: tuple[object, ...], whole: bool) -> Graph:
    """A copy of the graph as it is run for these arguments; `whole` keeps parts of one operator."""
    out = graph.copy()
    wanted = _with_gradients(out, args)
    if not wanted:
        return out
    pool_constants(out)
    group(out, wanted, 1 if whole else _SMALLEST)
    return out


def _with_gradients(graph: Graph, args: tuple[object, ...]) -> set[Value]:
    """The values that depend on an argument, or a parameter, that requires a gradient."""
    given = list(graph.block.params)
    if given and isinstance(given[0].type(), T.ClassType) and len(given) == len(args) + 1:
        args = (None, *args)
    found = {
        value
        for value, arg in zip(given, args, strict=False)
        if any(isinstance(t, torch.Tensor) and t.requires_grad for t in _tensors(arg))
    }

    def visit(block: Block) -> None:
        for node in block.nodes_list:
            for inner in node.blocks_list:
                visit(inner)
            role = node.kind_name == "prim::GetAttr" and node.output().type() is T.Tensor
            inner_found = any(v in found for b in node.blocks_list for v in b.results)
            if role or inner_found or any(v in found for v in node.inputs_list):
                found.update(v for v in node.outputs_list if isinstance(v.type(), _CARRIERS))

    visit(graph.block)
    return found


_CARRIERS = (T.TensorType, T.ListType, T.TupleType)


def _tensors(thing: object) -> list[object]:
    return list(thing) if isinstance(thing, list | tuple) else [thing]


def group(graph: Graph, wanted: set[Value] | None, smallest: int) -> list[Node]:
    """Makes the parts of every block; the nodes that stand for them."""
    made: list[Node] = []
    for block in [graph.block, *(b for n in graph.all_nodes() for b in n.blocks_list)]:
        made += _Grouping(graph, block, wanted).run(smallest)
    eliminate_dead_code(graph)
    return made


class _Grouping:
    """The nodes of one block while they are grouped."""

    def __init__(self, graph: Graph, block: Block, wanted: set[Value] | None) -> None:
        self.graph, self.block, self.wanted = graph, block, wanted
        self.order = list(block.nodes_list)
        self.maker = {v: n for n in self.order for v in n.outputs_list}
        self.leader: dict[Node, Node] = {}
        self.writes = any(has_effect(n) for n in self.order)

    def run(self, smallest: int) -> list[Node]:
        for node in self.order:
            if self.is_differentiable(node):
                self.leader[node] = node
                for maker in self.makers(node):
                    if maker in self.leader and self.can_join(maker, node):
                        self.join(maker, node)
        groups: dict[Node, list[Node]] = {}
        for node in self.order:
            if node in self.leader:
                groups.setdefault(self.find(node), []).append(node)
        chosen = [g for g in groups.values() if sum(map(_counts, g)) >= smallest]
        return [self.replace(g) for g in chosen]

    def is_differentiable(self, node: Node) -> bool:
        name = node.kind_name.removeprefix("aten::")
        if node.schema_of is None or node.schema_of.builtin is not None or node.blocks_list:
            return False
        if name not in _OPERATORS or node.schema_of.mutates:
            return False
        return self.wanted is None or any(v in self.wanted for v in node.inputs_list)

    def makers(self, node: Node) -> list[Node]:
        """The nodes of the block whose results the node reads, lists of tensors seen through."""
        out = []
        for value in self.reads(node):
            maker = self.maker.get(value)
            if maker is None:
                continue
            if maker.kind_name == "prim::ListConstruct":
                out += [self.maker[v] for v in maker.inputs_list if v in self.maker]
            out.append(maker)
        return out

    def reads(self, node: Node) -> list[Value]:
        inner = [v for b in node.blocks_list for n in b.all_nodes(True) for v in n.inputs_list]
        return [*node.inputs_list, *inner]

    def find(self, node: Node) -> Node:
        while self.leader[node] is not node:
            node = self.leader[node]
        return node

    def join(self, a: Node, b: Node) -> None:
        self.leader[self.find(b)] = self.find(a)

    def can_join(self, a: Node, b: Node) -> bool:
        """Whether nothing between the two groups depends on one and is needed by the other."""
        roots = {self.find(a), self.find(b)}
        inside = {n for n in self.order if n in self.leader and self.find(n) in roots}
        places = [self.order.index(n) for n in inside]
        between = self.order[min(places) : max(places)]
        if any(has_effect(n) for n in between):
            return False
        depends: set[Node] = set()
        for node in between + [self.order[max(places)]]:
            hit = any(m in inside or m in depends for m in self.makers(node))
            if node in inside:
                if any(m in depends for m in self.makers(node)):
                    return False
            elif hit and node.kind_name != "prim::ListConstruct":
                depends.add(node)
        return True

    def replace(self, nodes: list[Node]) -> Node:
        members = set(nodes)
        for node in self.order:  # lists that only the group reads go with it
            users = {u.user for v in node.outputs_list for u in v.uses()}
            if node.kind_name == "prim::ListConstruct" and users and users <= members:
                members.add(node)
        nodes = [n for n in self.order if n in members]
        sub, values = Graph(), {}
        inputs: list[Value] = []
        made = {v for n in nodes for v in n.outputs_list}
        for node in nodes:
            for value in node.inputs_list:
                if value in values or value in made:
                    continue
                origin = value.origin
                if isinstance(origin, Node) and origin.kind_name == "prim::Constant":
                    copy_node(origin, sub.block, values)
                else:
                    inputs.append(value)
                    values[value] = sub.block.add_param(value.type(), value.hint())
            copy_node(node, sub.block, values)
        outputs = [v for n in nodes for v in n.outputs_list
                   if any(u.user not in members for u in v.uses())]  # fmt: skip
        sub.block.results[:] = [values[v] for v in outputs]
        node = Node("prim::DifferentiableGraph", self.block, inputs, nodes[-1].place)
        node.attrs["Subgraph"] = sub
        fresh = [node.add_output(v.type(), v.hint()) for v in outputs]
        node.insertAfter(nodes[-1])
        self.graph.replace(dict(zip(outputs, fresh, strict=True)))
        self.move_users(node, nodes)
        for old in nodes:
            old.destroy()
        return node

    def move_users(self, made: Node, nodes: list[Node]) -> None:
        """What reads the group and stood before its end is moved behind it."""
        order = self.block.nodes_list
        moved = set(made.outputs_list)
        start, end = order.index(nodes[0]), order.index(made)
        late = []
        for node in order[start:end]:
            if node not in nodes and any(v in moved for v in self.reads(node)):
                moved.update(node.outputs_list)
                late.append(node)
        for node in reversed(late):
            node.moveAfter(made)


def _counts(node: Node) -> bool:
    return node.kind_name != "prim::ListConstruct"
