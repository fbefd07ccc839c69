"""Graphs that a plan cannot hold as a whole: functions of functions, numbers read from data,
results whose shape depends on values. What lies between such nodes is compiled piece by piece, and
the pieces are called by a graph of their own in the order of the program.

A node that reads and makes numbers only is computed before the piece that is open at that moment,
so that arithmetic on sizes and checks of them do not cut a piece in two."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._inductor import metrics
from torch._inductor.graph import FirstCall, NotLowered, as_it_is, compiled_graph, is_symbolic

__all__ = ["divided", "first_apart"]

_TENSORS = {"Tensor", "Tensor?", "Tensor[]", "Tensor?[]"}
# With fewer operators than this a piece costs more than it saves.
_LEAST_CALLS = 2

_ATTENTION = {"flex_attention", "flex_attention_backward"}

Run = Callable[[list[object]], Sequence[object]]


def _has_unknown_size(node: fx.Node) -> bool:
    """Whether the shape of a result depends on values: some operators say so of themselves and do
    it for some of their arguments only (index with a mask)."""
    if torch.Tag.dynamic_output_shape not in node.target.tags:
        return False
    found = node.meta.get("val")
    results = found if isinstance(found, (list, tuple)) else [found]
    sizes = [n for t in results if isinstance(t, torch.Tensor) for n in t.shape]
    return any(isinstance(n, torch.SymInt) and n.node.hint is None for n in sizes)


@functools.cache
def _makes_tensors(target: torch._ops.OpOverload) -> bool:
    """Whether an operator returns tensors alone, or nothing and reads some, or a size of one."""
    schema = target._schema
    if schema.name.startswith("aten::sym_"):
        return True
    returned = [str(entry.type) in _TENSORS for entry in schema.returns]
    return all(returned or [str(entry.type) in _TENSORS for entry in schema.arguments[:1]])


def _is_planned(node: fx.Node) -> bool:
    """Whether a plan can hold the call of a node."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    if torch.Tag.data_dependent_output in target.tags or _has_unknown_size(node):
        return False
    return _makes_tensors(target)


def _is_light(node: fx.Node) -> bool:
    """Whether a node that stays outside reads no memory."""
    if node.op == "call_function" and node.target is operator.getitem:
        return True
    return not any(
        isinstance(source.meta.get("val"), (torch.Tensor, list, tuple)) or "val" not in source.meta
        for source in node.all_input_nodes
    )


def first_apart(gm: fx.GraphModule) -> fx.Node | None:
    """The first node that no plan can hold and that is more than a number; None where all of the
    graph may become one plan."""
    for node in gm.graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module"):
            continue
        if node.target is not operator.getitem and not _is_planned(node) and not _is_light(node):
            return node
    return None


class _Piece(torch.nn.Module):
    """A compiled part of a graph, as a module of the graph around it."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def forward(self, *args: object) -> Sequence[object]:
        return self.run(list(args))


class _Divider:
    """Sorts the nodes of one graph into pieces and writes the graph around them."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self.gm = gm
        self.order: list[fx.Node | list[fx.Node]] = []
        self.piece_of: dict[fx.Node, list[fx.Node]] = {}
        self.outer = fx.Graph()
        self.modules: dict[str, torch.nn.Module] = {}
        self.values: dict[fx.Node, fx.Node] = {}

    def sort(self) -> None:
        open_piece: list[fx.Node] = []
        for node in self.gm.graph.nodes:
            if node.op == "output":
                continue
            source = node.args[0] if node.target is operator.getitem else None
            if source in self.piece_of:
                piece = self.piece_of[source]
            elif _is_planned(node):
                piece = open_piece
            else:
                reads_piece = any(self.piece_of.get(n) is open_piece for n in node.all_input_nodes)
                stays = node.op in ("placeholder", "get_attr") or _is_light(node)
                if open_piece and (reads_piece or not stays):
                    self.order.append(open_piece)
                    open_piece = []
                self.order.append(node)
                continue
            piece.append(node)
            self.piece_of[node] = piece
        if open_piece:
            self.order.append(open_piece)

    def write(self) -> fx.GraphModule:
        for part in self.order:
            if isinstance(part, fx.Node):
                self._copy(part)
            elif sum(n.target is not operator.getitem for n in part) < _LEAST_CALLS:
                for node in part:
                    self._copy(node)
            else:
                self._call(part)
        self._copy(self.gm.graph.output_node())
        self._attend_by_tiles()
        for name, module in self.modules.items():
            self.gm.add_submodule(name, module)
        return fx.GraphModule(self.gm, self.outer)

    def _copy(self, node: fx.Node) -> None:
        self.values[node] = self.outer.node_copy(node, lambda n: self.values[n])

    def _attend_by_tiles(self) -> None:
        """Attention with functions of scores has a compiled form of its own."""
        for node in self.outer.nodes:
            is_operator = isinstance(node.target, torch._ops.HigherOrderOperator)
            if is_operator and node.target._name in _ATTENTION:
                from torch._inductor import flex

                flex.with_tiles(node)

    def _call(self, part: list[fx.Node]) -> None:
        members = set(part)
        given = dict.fromkeys(n for node in part for n in node.all_input_nodes if n not in members)
        # A list that nobody outside takes as a whole is seen by its items.
        used = [n for n in part if any(user not in members for user in n.users)]
        inner = fx.Graph()
        values = {node: inner.placeholder(node.name) for node in given}
        for node, place in zip(given, values.values(), strict=True):
            place.meta = dict(node.meta)
        for node in part:
            values[node] = inner.node_copy(node, lambda n: values[n])
        inner.output(tuple(values[n] for n in used))
        run = _compiled(fx.GraphModule(self.gm, inner), [n.meta.get("val") for n in given])
        name = f"compiled_piece_{len(self.modules)}"
        self.modules[name] = _Piece(run)
        call = self.outer.create_node(
            "call_module", name, tuple(self.values[n] for n in given), {}, name
        )
        for place, node in enumerate(used):
            self.values[node] = self.outer.call_function(operator.getitem, (call, place))
            self.values[node].meta = dict(node.meta)


def _compiled(gm: fx.GraphModule, examples: list[object]) -> Run:
    known = None if any(value is None for value in examples) else examples
    try:
        compiled, made = compiled_graph(gm, known)
    except NotLowered as reason:
        metrics.not_lowered.append(str(reason))
        return as_it_is(gm)
    if made is not None:
        metrics.note_plan(*made[1:])
    return FirstCall(compiled, gm) if known is None or is_symbolic(known) else compiled


def divided(gm: fx.GraphModule) -> Run:
    """The graph as a function of a list, with what can be compiled of it compiled."""
    divider = _Divider(gm)
    divider.sort()
    return as_it_is(divider.write())
