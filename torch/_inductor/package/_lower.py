"""From a traced graph to the programs of a compiled model. What plans can be made of is one
program; operators whose results depend on data, on Python or on other graphs (branches, loops)
stand between programs and are called one by one."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch import Tensor, fx
from torch._inductor.graph import NotLowered, _Reader

__all__ = ["Lowered", "lower"]

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OWN = frozenset({"aten", "prims", "quantized"})
_SIZES = frozenset({"aten::sym_size", "aten::sym_stride", "aten::sym_numel",
                    "aten::sym_storage_offset"})  # fmt: skip
_BY_DATA = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class Lowered:
    """The programs of a model, encoded, and the constants that they refer to by number."""

    def __init__(self) -> None:
        self.graphs: list[tuple[bool, list[int], bytes]] = []
        self.constants: list[tuple[str, Tensor]] = []
        self._numbers: dict[int, int] = {}

    def reserve(self) -> int:
        """The number of a graph that is written later: graphs call only those behind them."""
        self.graphs.append((False, [], b""))
        return len(self.graphs) - 1

    def constant(self, name: str, value: Tensor) -> int:
        """The number of a tensor."""
        known = self._numbers.get(id(value))
        if known is None:
            known = self._numbers[id(value)] = len(self.constants)
            self.constants.append((name, value))
        return known


def _attribute(module: torch.nn.Module, path: str) -> object:
    found: object = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


class _Writer(_Reader):
    """One program: the entries of some nodes of a graph, others being its inputs."""

    def __init__(self, module: fx.GraphModule, model: Lowered) -> None:
        super().__init__(module)
        self.model = model
        self.used: list[int] = []  # numbers of the model's constants

    def add_input(self, node: fx.Node) -> None:
        """A value from outside."""
        self._put(node, ("input", node.name, self.inputs, (), {}))
        self.inputs += 1

    def add(self, node: fx.Node) -> None:
        """A node of the program."""
        self._put(node, self._entry(node))

    def add_call(self, node: fx.Node, kind: str, what: tuple, args: Sequence[object]) -> None:
        """A call of other graphs."""
        self._put(node, (kind, node.name, what, tuple(args), {}))

    def add_region(self, number: int, inputs: Sequence[fx.Node], results: list[fx.Node]) -> None:
        """A call of another program whose results are values of this one."""
        call = fx.Graph().placeholder(f"region{number}")  # a name for the results together
        self._put(call, ("graph", call.name, (0, number), tuple(inputs), {}))
        for i, node in enumerate(results):
            self._put(node, ("item", node.name, i, (call,), {}))

    def _put(self, node: fx.Node, entry: tuple) -> None:
        self.numbers[node] = len(self.entries)
        self.entries.append(entry)

    def need(self, node: fx.Node) -> None:
        """A constant, where it is first used."""
        if node in self.numbers:
            return
        value = _attribute(self.module, node.target)
        if not isinstance(value, Tensor):
            raise NotLowered(f"get_attr {node.target} is no tensor")
        self.used.append(self.model.constant(node.target, value))
        self._put(node, ("constant", node.name, len(self.used) - 1, (), {}))

    def finish(self, number: int, planned: bool, outputs: Sequence[object]) -> None:
        """Encodes the program as a graph of the model."""
        made = torch._C._inductor.build(
            self.entries, tuple(outputs), [], self.inputs, fx.Node, self.numbers
        )
        self.model.graphs[number] = (planned, self.used, made.encode())


def _is_number(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), _SYMBOLIC)


def _stands_alone(node: fx.Node) -> bool:
    """Whether a node is called by itself."""
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target.namespace not in _OWN or any(tag in target.tags for tag in _BY_DATA):
        return True
    returns = target._schema.returns
    is_size = target._schema.name in _SIZES
    return not returns or (_is_number(node) and not is_size)


def _parts(graph: fx.Graph) -> list[tuple[bool, list[fx.Node]]]:
    """The nodes as runs that stand together or alone: [(alone, nodes)]. Items follow what they are
    items of."""
    parts: list[tuple[bool, list[fx.Node]]] = []
    place: dict[fx.Node, int] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, fx.Node) and source in place:
            number = place[source]
        else:
            alone = _stands_alone(node)
            if alone or not parts or parts[-1][0]:
                parts.append((alone, []))
            number = len(parts) - 1
        parts[number][1].append(node)
        place[node] = number
    return parts


def lower(gm: fx.GraphModule, model: Lowered) -> int:
    """Writes the programs of a graph; the number of its own."""
    number = model.reserve()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "call_method"):
            raise NotLowered(f"{node.op} {node.target}")
    parts = _parts(gm.graph)
    output = gm.graph.output_node().args[0]
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    alone = any(is_alone for is_alone, _ in parts)
    writer = _Writer(gm, model)
    for node in gm.graph.find_nodes(op="placeholder"):
        writer.add_input(node)
    for is_alone, nodes in parts:
        if is_alone or not alone:
            _write_nodes(writer, nodes)
        else:
            _write_region(writer, nodes, {v for v in outputs if isinstance(v, fx.Node)})
    for value in outputs:
        if isinstance(value, fx.Node) and value.op == "get_attr":
            writer.need(value)
    writer.finish(number, not alone, outputs)
    return number


def _write_nodes(writer: _Writer, nodes: Sequence[fx.Node]) -> None:
    for node in nodes:
        graphs = isinstance(node.target, torch._ops.HigherOrderOperator)
        if graphs:
            _write_call_of_graphs(writer, node)
            continue
        for source in node.all_input_nodes:
            if source.op == "get_attr":
                writer.need(source)
        writer.add(node)


def _write_region(writer: _Writer, nodes: list[fx.Node], returned: set[fx.Node]) -> None:
    """Nodes that a plan is made of, as a program of their own."""
    model, inside = writer.model, set(nodes)
    number = model.reserve()
    region = _Writer(writer.module, model)
    inputs: dict[fx.Node, None] = {}
    for node in nodes:
        for source in node.all_input_nodes:
            if source not in inside and source.op != "get_attr":
                inputs[source] = None
    for source in inputs:
        region.add_input(source)
    _write_nodes(region, nodes)
    results = [n for n in nodes if n in returned or any(u not in inside for u in n.users)]
    lists = [n for n in results if isinstance(n.meta.get("val"), (list, tuple))]
    if lists:
        raise NotLowered(f"a list of {lists[0].target} that is used whole")
    region.finish(number, True, results)
    writer.add_region(number, list(inputs), results)


def _graph_of(writer: _Writer, node: object) -> int:
    held = _attribute(writer.module, node.target) if isinstance(node, fx.Node) else node
    if not isinstance(held, fx.GraphModule):
        raise NotLowered(f"an operator on {type(held).__name__}")
    return lower(held, writer.model)


def _write_call_of_graphs(writer: _Writer, node: fx.Node) -> None:
    name = node.target.__name__ if hasattr(node.target, "__name__") else str(node.target)
    name = name.rpartition(".")[2]

    def operands(values: Sequence[object]) -> tuple:
        for value in values:
            if isinstance(value, fx.Node) and value.op == "get_attr":
                writer.need(value)
        return tuple(values)

    args = node.args
    if name == "cond":
        graphs = [_graph_of(writer, args[1]), _graph_of(writer, args[2])]
        writer.add_call(node, "branch", (0, *graphs), operands([args[0], *args[3]]))
    elif name == "while_loop":
        graphs = [_graph_of(writer, args[0]), _graph_of(writer, args[1])]
        more = args[3] if len(args) > 3 else ()
        values = operands([*args[2], *more])
        writer.add_call(node, "loop", (len(args[2]), *graphs), values)
    elif name == "invoke_subgraph":
        graph = _graph_of(writer, args[0])
        writer.add_call(node, "graph", (0, graph), operands(args[2:]))
    else:
        raise NotLowered(f"the operator {node.target} in a compiled model")
