"""Graphs with loggers: behind and before the operators of one model, or with the operators of a
second model that run in the shadow of the first one's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.ao.ns.fx import pattern_utils
from torch.ao.ns.fx.mappings import get_base_name_to_sets_of_related_ops
from torch.ao.ns.fx.ns_types import NSNodeTargetType, NSSingleResultValuesType, NSSubgraph
from torch.ao.ns.fx.weight_utils import target_text
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

Pairs = dict[str, tuple[NSSubgraph, NSSubgraph]]
IoTypes = dict[str, set[NSNodeTargetType]]
_INPUT = NSSingleResultValuesType.NODE_INPUT.value
_OUTPUT = NSSingleResultValuesType.NODE_OUTPUT.value


class NotShadowed(Exception):
    """An operator cannot run in the shadow of another; the reason is the text."""


def copied(gm: GraphModule) -> tuple[GraphModule, dict[Node, Node]]:
    """A module with a graph of its own and the same parts, and where each node went."""
    graph, places = Graph(), {}
    result = graph.graph_copy(gm.graph, places)
    output = next(n for n in gm.graph.nodes if n.op == "output")
    places[output] = graph.output(result)
    made = GraphModule(gm, graph)
    made._node_name_to_scope = getattr(gm, "_node_name_to_scope", None) or {}
    return made, places


def _binary() -> set[NSNodeTargetType]:
    families = get_base_name_to_sets_of_related_ops().values()
    kinds = (torch.add, torch.mul, torch.matmul)
    return {op for family in families if any(k in family for k in kinds) for op in family}


def input_slots(node: Node, gm: GraphModule) -> Iterable[tuple[Any, int, int, Node]]:
    """The values that an operator computes with, weights and grids aside: where each stands (an
    index or a name), the number of the argument, its place in a list, the node."""
    count = 2 if pattern_utils.op_of(node, gm) in _binary() else 1
    slots = [(i, arg) for i, arg in enumerate(node.args[:count])]
    if not node.args:
        slots = list(node.kwargs.items())[:count]
    for number, (where, arg) in enumerate(slots):
        if isinstance(arg, Node):
            yield where, number, 0, arg
        elif isinstance(arg, list | tuple):
            for place, part in enumerate(arg):
                if isinstance(part, Node):
                    yield where, number, place, part


def _with_arg(node: Node, where: Any, place: int, new: Node) -> None:
    """Sets one of the values that input_slots gives."""

    def changed(arg: Any) -> Any:
        if not isinstance(arg, list | tuple):
            return new
        parts = list(arg)
        parts[place] = new
        return type(arg)(parts)

    if isinstance(where, int):
        args = list(node.args)
        args[where] = changed(args[where])
        node.args = tuple(args)
    else:
        node.kwargs = {**node.kwargs, where: changed(node.kwargs[where])}


@dataclasses.dataclass
class Instrument:
    """Puts loggers into a graph."""

    gm: GraphModule
    logger_cls: Callable[..., nn.Module]

    def fresh(self, prefix: str) -> str:
        number = 0
        while hasattr(self.gm, f"{prefix}_{number}"):
            number += 1
        return f"{prefix}_{number}"

    def log(
        self,
        value: Node,
        ref: Node,
        base: str,
        model: str,
        name: str,
        kind: str,
        *,
        label: str = "",
        within: int = 0,
        of: int = 0,
        fqn: str | None = None,
    ) -> Node:
        """A call of a new logger on a value, right behind it."""
        target = self.fresh(f"{value.name}_ns_logger{label}")
        logger = self.logger_cls(
            ref.name,
            value.name,
            model,
            name,
            target_text(value, self.gm),
            base,
            kind,
            within,
            of,
            fqn,
        )
        setattr(self.gm, target, logger)
        with self.gm.graph.inserting_after(value):
            return self.gm.graph.create_node("call_module", target, (value,), name=target)

    def log_output(self, value: Node, **rest: Any) -> Node:
        """Logs a value; its users get it from the logger."""
        users = list(value.users)
        call = self.log(value, kind=_OUTPUT, **rest)
        for user in users:
            user.replace_input_with(value, call)
        return call

    def log_inputs(self, node: Node, **rest: Any) -> None:
        """Logs what an operator computes with."""
        for where, number, place, value in list(input_slots(node, self.gm)):
            call = self.log(value, kind=_INPUT, within=place, of=number, **rest)
            _with_arg(node, where, place, call)


def _fqn(gm: GraphModule, node: Node) -> str | None:
    scopes = getattr(gm, "_node_name_to_scope", None) or {}
    return scopes.get(node.name, (None,))[0]


def with_loggers(
    model: str,
    gm: GraphModule,
    subgraphs: dict[str, NSSubgraph],
    logger_cls: Callable[..., nn.Module],
    should_log_inputs: bool,
) -> GraphModule:
    """The module with loggers behind, and before, its operators."""
    made, places = copied(gm)
    work = Instrument(made, logger_cls)
    for name, part in subgraphs.items():
        fqn, base = _fqn(gm, part.base_op_node), target_text(part.base_op_node, gm)
        shared = {"base": base, "model": model, "name": name, "fqn": fqn}
        if should_log_inputs:
            start = places[part.start_node]
            work.log_inputs(start, ref=start, **shared)
        end = places[part.end_node]
        work.log_output(end, ref=end, **shared)
    made.graph.lint()
    made.recompile()
    return made


# ---- shadows -------------------------------------------------------------------------------------
_KINDS = {"call_function": "funs", "call_module": "mods", "call_method": "meths"}


def io_type(node: Node, gm: GraphModule, table: IoTypes) -> str:
    """fp32, int8, fp32_or_int8, fp16 or unknown."""
    op, prefix = pattern_utils.op_of(node, gm), _KINDS.get(node.op, "")
    for kind in ("fp32", "int8", "fp32_or_int8", "fp16"):
        if op in table.get(f"{prefix}_io_type_{kind}", ()):
            return kind
    return "unknown"


def _first_input(node: Node, gm: GraphModule) -> tuple[Any, Node]:
    found = next(iter(input_slots(node, gm)), None)
    if found is None or found[2] or isinstance(node.args and node.args[0], list | tuple):
        raise NotShadowed(f"{node.name} does not take one tensor first")
    return found[0], found[3]


def _value_type(node: Any, gm: GraphModule, table: IoTypes) -> str:
    """What a value is, by the operator that made it."""
    while isinstance(node, Node):
        if node.op == "placeholder":
            return "fp32"
        if node.target is torch.quantize_per_tensor:
            return "int8"
        if node.op == "call_method" and node.target == "dequantize":
            return "fp32"
        kind = io_type(node, gm, table)
        if kind in ("fp32", "int8"):
            return kind
        node = next(iter(node.all_input_nodes), None)
    return "fp32"


def _number_of(value: Any, gm: GraphModule) -> Any:
    if isinstance(value, Node) and value.op == "get_attr":
        held: Any = gm
        for part in str(value.target).split("."):
            held = getattr(held, part)
        return held
    return value


def grid_of(node: Any, gm: GraphModule) -> tuple[Any, Any]:
    """Scale and zero point of a value on levels, by the operator that made it."""
    while isinstance(node, Node):
        if node.op == "call_module":
            module = gm.get_submodule(str(node.target))
            if hasattr(module, "scale") and hasattr(module, "zero_point"):
                return module.scale, module.zero_point
        if node.target is torch.quantize_per_tensor:
            return _number_of(node.args[1], gm), _number_of(node.args[2], gm)
        found = _grid_of_call(node, gm)
        if found is not None:
            return found
        node = next(iter(node.all_input_nodes), None)
    raise NotShadowed("the grid of an input is not known")


def _grid_of_call(node: Node, gm: GraphModule) -> tuple[Any, Any] | None:
    """The grid that a call of an operator on levels names among its arguments."""
    if not isinstance(node.target, torch._ops.OpOverloadPacket):
        return None
    schema = getattr(node.target, node.target.overloads()[0])._schema
    names = [a.name for a in schema.arguments]
    places = [next((i for i, n in enumerate(names) if n.endswith(end)), None)
              for end in ("scale", "zero_point")]  # fmt: skip
    if None in places or max(places) >= len(node.args):
        return None
    scale, zero_point = (_number_of(node.args[i], gm) for i in places)
    return scale, zero_point


class Shadows(Instrument):
    """Copies operators of one graph behind the matching ones of another."""

    def copy_value(self, node: Node, source: GraphModule, prefix: str, after: Node) -> Node:
        """An argument that does not depend on inputs: an attribute, maybe observed or converted."""
        if node.op == "get_attr":
            return self._attribute(node, source, prefix, after)
        plain = node.op == "call_method" or pattern_utils.is_observer(node, source)
        plain = plain or node.target in (torch.quantize_per_tensor, torch.quantize_per_channel)
        if not plain or not node.all_input_nodes:
            raise NotShadowed(f"{node.name} cannot be copied")
        last = after
        places = {}
        for arg in node.all_input_nodes:
            places[arg] = last = self.copy_value(arg, source, prefix, last)
        return self._call(node, source, prefix, places, last)

    def _attribute(self, node: Node, source: GraphModule, prefix: str, after: Node) -> Node:
        target = self.fresh(f"{prefix}_attr")
        held = _number_of(node, source)
        if isinstance(held, torch.Tensor) and not isinstance(held, nn.Parameter):
            self.gm.register_buffer(target, held)
        else:
            setattr(self.gm, target, held)
        with self.gm.graph.inserting_after(after):
            return self.gm.graph.create_node("get_attr", target, name=target)

    def _call(
        self, node: Node, source: GraphModule, prefix: str, places: dict[Node, Node], after: Node
    ) -> Node:
        target, name = node.target, self.fresh(f"{prefix}_shadow_copy")
        if node.op == "call_module":
            setattr(self.gm, name, source.get_submodule(str(node.target)))
            target = name
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: places[n])
        with self.gm.graph.inserting_after(after):
            return self.gm.graph.create_node(node.op, target, args, kwargs, name=name)

    def cast(self, value: Node, have: str, want: str, source: GraphModule, start: Node) -> Node:
        """The value as the shadow takes it."""
        if have == want:
            return value
        graph, name = self.gm.graph, f"{start.name}_dtype_cast_0"
        if want == "fp32":
            with graph.inserting_after(value):
                return graph.create_node("call_function", torch.dequantize, (value,), name=name)
        grid = grid_of(_first_input(start, source)[1], source)
        nodes, last = [], value
        for label, held in zip(("scale", "zero_point"), grid, strict=True):
            target = self.fresh(f"{start.name}_input_{label}")
            setattr(self.gm, target, held)
            with graph.inserting_after(last):
                last = graph.create_node("get_attr", target, name=target)
            nodes.append(last)
        with graph.inserting_after(last):
            args = (value, *nodes, torch.quint8)
            return graph.create_node("call_function", torch.quantize_per_tensor, args, name=name)

    def copy_subgraph(
        self,
        part: NSSubgraph,
        source: GraphModule,
        value: Node,
        further: dict[Node, Node],
        prefix: str,
        after: Node,
    ) -> tuple[Node, Node]:
        """Copies of an operator's nodes, fed by a value and further inputs; the first and the
        last."""
        chain, node = [], part.end_node
        while node is not part.start_node:
            chain.append(node)
            node = node.all_input_nodes[0]
        chain.append(part.start_node)
        entry = _first_input(part.start_node, source)[1]
        places, last, first = {entry: value, **further}, after, None
        for node in reversed(chain):
            for arg in node.all_input_nodes:
                if arg not in places:
                    places[arg] = last = self.copy_value(arg, source, prefix, last)
            places[node] = last = self._call(node, source, prefix, places, last)
            first = first or last
        return first, last


def _further_inputs(node: Node, gm: GraphModule, other: Node) -> dict[Node, Node]:
    """Inputs of the whole model, maybe observed, that an operator takes behind its first argument,
    as a recurrent layer its state, with those of the matching operator."""
    pairs: list[tuple[Any, Any]] = list(zip(node.args[1:], other.args[1:], strict=False))
    found: dict[Node, Node] = {}
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            pairs += zip(a, b, strict=False)
        elif isinstance(a, Node) and isinstance(b, Node):
            source = a.args[0] if pattern_utils.is_observer(a, gm) else a
            if isinstance(source, Node) and source.op == "placeholder":
                found[a] = b
    return found


def _check_shadow(
    part_a: NSSubgraph, gm_a: GraphModule, part_b: NSSubgraph, gm_b: GraphModule, table: IoTypes
) -> tuple[str, str]:
    """What the shadow takes and what there is; NotShadowed where it cannot run."""
    binary = _binary() | {torch.cat, torch.stack}
    types = []
    for part, gm in ((part_a, gm_a), (part_b, gm_b)):
        if pattern_utils.op_of(part.base_op_node, gm) in binary:
            raise NotShadowed("operators with several inputs have no shadow")
        types.append(io_type(part.base_op_node, gm, table))
    if "unknown" in types or types[0] == types[1] == "fp32_or_int8":
        raise NotShadowed(f"the dtypes of {part_b.base_op_node.name} are not known")
    entries = [_first_input(p.start_node, g)[1] for p, g in ((part_a, gm_a), (part_b, gm_b))]
    want, have = (
        _value_type(entry, gm, table) if kind == "fp32_or_int8" else kind
        for kind, entry, gm in zip(types, entries, (gm_a, gm_b), strict=True)
    )
    return want, have


def create_a_shadows_b(
    names: tuple[str, str],
    gm_a: GraphModule,
    gm_b: GraphModule,
    pairs: Pairs,
    logger_cls: Callable[..., nn.Module],
    should_log_inputs: bool,
    table: IoTypes,
) -> GraphModule:
    """Model b, whose operators are each followed by a copy of model a's on the same inputs."""
    made, places = copied(gm_b)
    work = Shadows(made, logger_cls)
    for name, (part_a, part_b) in pairs.items():
        before = set(made.graph.nodes)
        try:
            want, have = _check_shadow(part_a, gm_a, part_b, gm_b, table)
            start, end = places[part_b.start_node], places[part_b.end_node]
            entry = _first_input(start, made)[1]
            cast = work.cast(entry, have, want, gm_a, part_a.start_node)
            further = _further_inputs(part_a.start_node, gm_a, start)
            first, last = work.copy_subgraph(part_a, gm_a, cast, further, start.name, end)
        except NotShadowed:
            for node in reversed([n for n in made.graph.nodes if n not in before]):
                made.graph.erase_node(node)
            continue
        for label, part, gm, model, (first_node, last_node) in (
            ("_a", part_a, gm_a, names[0], (first, last)),
            ("_b", part_b, gm_b, names[1], (start, end)),
        ):
            shared = {
                "base": target_text(part.base_op_node, gm),
                "model": model,
                "name": name,
                "fqn": _fqn(gm, part.base_op_node),
            }
            if should_log_inputs:
                work.log_inputs(first_node, ref=first_node, label=f"{label}_inp", **shared)
            work.log_output(last_node, ref=last_node, label=label, **shared)
    made.graph.lint()
    made.recompile()
    return made
