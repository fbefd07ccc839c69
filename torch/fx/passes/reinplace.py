"""reinplace turns functional operators back into writing ones where nobody sees the difference: the
memory written is no input's, has room for the result, and is not read again. A scatter that puts
such a result back where it came from then does nothing and goes away; any other scatter becomes a
view and a copy.

What shares memory is found by running the graph on copies of the sample inputs; it is run anew
after each change, so that every decision is made on the graph as it is."""

from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx._compatibility import compatibility
from torch.utils._pytree import tree_map_only

__all__ = ["reinplace"]

# scatter -> the view whose elements it replaces.
_SCATTERS = {
    "select_scatter": ("select", "int"),
    "slice_scatter": ("slice", "Tensor"),
    "diagonal_scatter": ("diagonal", "default"),
    "as_strided_scatter": ("as_strided", "default"),
}


class _Place(NamedTuple):
    """Where a tensor lies."""

    storage: int
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @staticmethod
    def of(value: torch.Tensor) -> "_Place":
        return _Place(
            value.untyped_storage()._cdata,
            value.storage_offset(),
            tuple(value.shape),
            tuple(value.stride()),
            value.dtype,
        )

    def overlaps_itself(self) -> bool:
        return any(n > 1 and step == 0 for n, step in zip(self.size, self.stride, strict=True))


class _Run(Interpreter):
    """Runs the graph and notes where values lie; keeps them, so that no memory is used twice."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.places: dict[Node, _Place] = {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, torch.Tensor) and n.op != "output":
            self.places[n] = _Place.of(result)
        return result


class _Graph:
    """A graph with what a run of it showed."""

    def __init__(self, gm: GraphModule, sample: tuple) -> None:
        self.gm = gm
        self.sample = sample
        self.refresh()

    def refresh(self) -> None:
        copies = tree_map_only(torch.Tensor, lambda t: t.detach().clone(), self.sample)
        run = _Run(self.gm)
        with torch.no_grad():
            run.run(*copies)
        self._kept = run.env  # the memory of values stays theirs
        self.places = run.places
        inputs = self.gm.graph.find_nodes(op="placeholder") + self.gm.graph.find_nodes(
            op="get_attr"
        )
        self.fixed = {self.places[n].storage for n in inputs if n in self.places}

    def later_uses(self, node: Node, storage: int) -> list[Node]:
        """Nodes behind one that take a value in some memory."""
        found: dict[Node, None] = {}
        for alias, place in self.places.items():
            if place.storage == storage:
                found.update((user, None) for user in alias.users if node < user)
        return list(found)

    def is_view(self, node: Node) -> bool:
        place = self.places.get(node)
        schema = getattr(node.target, "_schema", None)
        if place is None or schema is None or schema.is_mutable:
            return False
        return any(
            i in self.places and self.places[i].storage == place.storage
            for i in node.all_input_nodes
        )


def _scatter_of(node: Node) -> tuple[Any, Node, Node, tuple, dict] | None:
    """(view operator, base, source, arguments of the view) of a scatter."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return None
    name = target._schema.name.split("::")[1]
    if name not in _SCATTERS or len(node.args) < 2:
        return None
    packet, overload = _SCATTERS[name]
    view = getattr(getattr(torch.ops.aten, packet), overload)
    base, source, *rest = node.args
    return view, base, source, tuple(rest), dict(node.kwargs)


def _puts_back(graph: _Graph, scatter: Node, written: Node, target: _Place) -> bool:
    """Whether a scatter writes the value of `written`, if it lay at `target`, to where it lies."""
    parts = _scatter_of(scatter)
    if parts is None:
        return False
    view, base, source, args, kwargs = parts
    if source not in graph.places or base not in graph.places:
        return False
    made, here = graph.places[source], graph.places[written]
    if made.storage != here.storage or graph.places[base].storage != target.storage:
        return False
    spot = _Place.of(view(graph._kept[base], *args, **kwargs))
    if made == here:
        return (spot.offset, spot.size, spot.stride) == (
            target.offset,
            target.size,
            target.stride,
        )
    if here.stride != target.stride:
        return False
    offset = target.offset + made.offset - here.offset
    return (spot.offset, spot.size, spot.stride) == (offset, made.size, made.stride)


def _inplace_form(node: Node) -> Any:
    """The overload that writes to the first argument, or None."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return None
    schema = target._schema
    namespace, name = schema.name.split("::")
    if schema.is_mutable or name.endswith("_"):
        return None
    packet = getattr(getattr(torch.ops, namespace), f"{name}_", None)
    overload = schema.overload_name or "default"
    if packet is None or overload not in packet.overloads():
        return None
    return getattr(packet, overload)


def _may_write(graph: _Graph, node: Node, target: Node) -> bool:
    """Whether the node may put its result where its argument lies."""
    place, result = graph.places.get(target), graph.places.get(node)
    if place is None or result is None or place.storage in graph.fixed:
        return False
    if (place.size, place.dtype) != (result.size, result.dtype) or place.overlaps_itself():
        return False
    return all(
        graph.is_view(user) or _puts_back(graph, user, node, place)
        for user in graph.later_uses(node, place.storage)
    )


def _write_in_place(graph: _Graph, node: Node) -> bool:
    form = _inplace_form(node)
    target = node.args[0] if node.args else None
    if form is None or not isinstance(target, Node) or not _may_write(graph, node, target):
        return False
    if any(other is target for other in node.args[1:]):
        return False  # what is read would be written
    place = graph.places[target]
    undone = [
        user
        for user in graph.later_uses(node, place.storage)
        if _puts_back(graph, user, node, place)
    ]
    node.target = form
    node.replace_all_uses_with(target, lambda user: user is not node)
    for scatter in undone:
        _drop(graph, scatter)
    return True


def _drop(graph: _Graph, scatter: Node) -> None:
    scatter.replace_all_uses_with(scatter.args[0])
    graph.gm.graph.erase_node(scatter)


def _copy_in_place(graph: _Graph, node: Node) -> bool:
    """A scatter as a view and a copy."""
    parts = _scatter_of(node)
    if parts is None:
        return False
    view, base, source, args, kwargs = parts
    place = graph.places.get(base)
    if place is None or place.storage in graph.fixed or place.overlaps_itself():
        return False
    if not all(graph.is_view(user) for user in graph.later_uses(node, place.storage)):
        return False
    g = graph.gm.graph
    with g.inserting_before(node):
        spot = g.call_function(view, (base, *args), kwargs)
        g.call_function(torch.ops.aten.copy_.default, (spot, source))
    _drop(graph, node)
    return True


@compatibility(is_backward_compatible=True)
def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Replaces functional operators by writing ones where that cannot be seen; returns the
    module."""
    graph = _Graph(gm, sample_args)
    for node in list(gm.graph.nodes):
        if node._erased:
            continue
        if _write_in_place(graph, node) or _copy_in_place(graph, node):
            graph.refresh()
    gm.recompile()
    return gm
