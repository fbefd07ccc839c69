"""The graph of a scripted function: values, nodes, blocks. Values are assigned once. A node of kind
prim::If has two blocks, prim::Loop has one; what a block computes for its node are the block's
outputs. Nodes keep their order in plain lists: graphs are built once and read often."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterator

from torch.jit import _types as T


class Value:
    """The result of a node, or an input of a block."""

    __slots__ = ("_name", "_type", "index", "origin")

    def __init__(self, type: T.Type, origin: Node | Block, index: int = 0, name: str = "") -> None:
        self._type, self.origin, self.index, self._name = type, origin, index, name

    def type(self) -> T.Type:
        return self._type

    def setType(self, type: T.Type) -> Value:
        self._type = type
        return self

    def node(self) -> Node:
        return self.origin if isinstance(self.origin, Node) else self.origin.param_node

    def debugName(self) -> str:
        graph = self.origin.owning_graph()
        return graph.names().get(self, self._name or str(self.index))

    def setDebugName(self, name: str) -> Value:
        self._name = name
        return self

    def hint(self) -> str:
        return self._name

    def unique(self) -> int:
        return self.index

    def uses(self) -> list[Use]:
        graph = self.origin.owning_graph()
        return [
            Use(node, i)
            for node in graph.all_nodes(returns=True)
            for i, v in enumerate(node.inputs_list)
            if v is self
        ]

    def replaceAllUsesWith(self, other: Value) -> None:
        self.origin.owning_graph().replace({self: other})

    def toIValue(self) -> object:
        node = self.origin
        return node.attrs.get("value") if isinstance(node, Node) else None

    def isCompleteTensor(self) -> bool:
        return False

    def requires_grad(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{self.debugName()} defined in ({self.node()})"


class Use(typing.NamedTuple):
    """Where a value is used."""

    user: Node
    offset: int


class Node:
    """One operation."""

    def __init__(
        self, kind: str, block: Block | None, inputs=(), place: Place | None = None
    ) -> None:
        self.kind_name = kind
        self.block_of = block
        self.inputs_list: list[Value] = list(inputs)
        self.outputs_list: list[Value] = []
        self.attrs: dict[str, typing.Any] = {}
        self.blocks_list: list[Block] = []
        self.place = place
        self.schema_of = None

    def kind(self) -> str:
        return self.kind_name

    def inputs(self) -> Iterator[Value]:
        return iter(list(self.inputs_list))

    def outputs(self) -> Iterator[Value]:
        return iter(list(self.outputs_list))

    def inputsAt(self, i: int) -> Value:
        return self.inputs_list[i]

    def outputsAt(self, i: int) -> Value:
        return self.outputs_list[i]

    def inputsSize(self) -> int:
        return len(self.inputs_list)

    def outputsSize(self) -> int:
        return len(self.outputs_list)

    def input(self) -> Value:
        return self.inputs_list[0]

    def output(self) -> Value:
        return self.outputs_list[0]

    def blocks(self) -> Iterator[Block]:
        return iter(self.blocks_list)

    def schema(self) -> str:
        return str(self.schema_of) if self.schema_of else "(no schema)"

    def scopeName(self) -> str:
        return ""

    def sourceRange(self) -> str:
        return self.place.text() if self.place else ""

    def hasAttribute(self, name: str) -> bool:
        return name in self.attrs

    def attributeNames(self) -> list[str]:
        return list(self.attrs)

    def _attribute(self, name: str):
        return self.attrs[name]

    s = i = f = t = ty = ival = z = ss = is_ = _attribute

    def add_output(self, type: T.Type, name: str = "") -> Value:
        value = Value(type, self, len(self.outputs_list), name)
        self.outputs_list.append(value)
        return value

    def add_block(self) -> Block:
        block = Block(self.owning_graph(), self)
        self.blocks_list.append(block)
        return block

    def owning_graph(self) -> Graph:
        return self.block_of.graph

    def addInput(self, value: Value) -> None:
        self.inputs_list.append(value)

    def replaceInput(self, i: int, value: Value) -> None:
        self.inputs_list[i] = value

    def destroy(self) -> None:
        self.block_of.nodes_list.remove(self)

    def insertBefore(self, other: Node) -> None:
        self.block_of = other.block_of
        other.block_of.nodes_list.insert(other.block_of.nodes_list.index(other), self)

    def insertAfter(self, other: Node) -> None:
        self.block_of = other.block_of
        other.block_of.nodes_list.insert(other.block_of.nodes_list.index(other) + 1, self)

    def __repr__(self) -> str:
        from torch.jit._print_graph import node_text

        return node_text(self)

    __str__ = __repr__


class Block:
    """Nodes in order, with inputs and outputs."""

    def __init__(self, graph: Graph, owner: Node | None) -> None:
        self.graph, self.owner = graph, owner
        self.params: list[Value] = []
        self.nodes_list: list[Node] = []
        self.return_node = Node("prim::Return", self)
        self.param_node = Node("prim::Param", self)

    @property
    def results(self) -> list[Value]:
        return self.return_node.inputs_list

    def nodes(self) -> Iterator[Node]:
        return iter(list(self.nodes_list))

    def inputs(self) -> Iterator[Value]:
        return iter(list(self.params))

    def outputs(self) -> Iterator[Value]:
        return iter(list(self.results))

    def paramNode(self) -> Node:
        return self.param_node

    def returnNode(self) -> Node:
        return self.return_node

    def add_param(self, type: T.Type, name: str = "") -> Value:
        value = Value(type, self, len(self.params), name)
        self.params.append(value)
        return value

    def owning_graph(self) -> Graph:
        return self.graph

    def all_nodes(self, returns: bool = False) -> Iterator[Node]:
        """Every node, those of inner blocks behind the node that has them."""
        for node in list(self.nodes_list):
            yield node
            for block in node.blocks_list:
                yield from block.all_nodes(returns)
        if returns:
            yield self.return_node

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        found = self.findAllNodes(kind, recurse)
        return found[0] if found else None

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        nodes = self.all_nodes() if recurse else iter(self.nodes_list)
        return [n for n in nodes if n.kind_name == kind]


class Graph:
    """The outermost block with the names of its values."""

    def __init__(self) -> None:
        self.block = Block(self, None)

    def nodes(self) -> Iterator[Node]:
        return self.block.nodes()

    def inputs(self) -> Iterator[Value]:
        return self.block.inputs()

    def outputs(self) -> Iterator[Value]:
        return self.block.outputs()

    def all_nodes(self, returns: bool = False) -> Iterator[Node]:
        return self.block.all_nodes(returns)

    def param_node(self) -> Node:
        return self.block.param_node

    def return_node(self) -> Node:
        return self.block.return_node

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        return self.block.findNode(kind, recurse)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        return self.block.findAllNodes(kind, recurse)

    def addInput(self, name: str = "") -> Value:
        return self.block.add_param(T.Tensor, name)

    def registerOutput(self, value: Value) -> int:
        self.block.results.append(value)
        return len(self.block.results) - 1

    def eraseInput(self, i: int) -> None:
        del self.block.params[i]

    def replace(self, changes: dict[Value, Value]) -> None:
        """Every use of a key becomes a use of its value."""
        for node in self.all_nodes(returns=True):
            node.inputs_list[:] = [changes.get(v, v) for v in node.inputs_list]

    def copy(self) -> Graph:
        out = Graph()
        copy_block(self.block, out.block, {})
        return out

    def lint(self) -> None:
        """RuntimeError unless every value is made before it is used."""
        _check_block(self.block, set())

    def names(self) -> dict[Value, str]:
        """A name for every value: its hint, numbered where two have the same, else a number."""
        out: dict[Value, str] = {}
        taken: set[str] = set()
        numbers = itertools.count()
        for value in _values(self.block):
            hint = value.hint()
            name = hint
            if not hint or hint.isdigit():
                name = str(next(numbers))
                while name in taken:
                    name = str(next(numbers))
            elif hint in taken:
                base = hint.rstrip("0123456789").rstrip(".") or hint
                tail = itertools.count(1)
                while name in taken:
                    name = f"{base}.{next(tail)}"
            taken.add(name)
            out[value] = name
        return out

    def owning_graph(self) -> Graph:
        return self

    def __repr__(self) -> str:
        from torch.jit._print_graph import graph_text

        return graph_text(self)

    __str__ = __repr__

    def str(self, *_args) -> str:
        return repr(self)


def _values(block: Block) -> Iterator[Value]:
    yield from block.params
    for node in block.nodes_list:
        for inner in node.blocks_list:
            yield from _values(inner)
        yield from node.outputs_list


def _check_block(block: Block, known: set[Value]) -> None:
    known = known | set(block.params)
    for node in block.nodes_list:
        for value in node.inputs_list:
            if value not in known:
                raise RuntimeError(f"{node.kind_name} uses a value before it is made")
        for inner in node.blocks_list:
            _check_block(inner, known)
        known |= set(node.outputs_list)
    for value in block.results:
        if value not in known:
            raise RuntimeError("a block returns a value that it does not have")


def copy_node(node: Node, into: Block, values: dict[Value, Value]) -> Node:
    """A copy of `node` at the end of `into`; `values` maps old values to new ones."""
    made = Node(node.kind_name, into, [values.get(v, v) for v in node.inputs_list], node.place)
    made.attrs, made.schema_of = dict(node.attrs), node.schema_of
    into.nodes_list.append(made)
    for block in node.blocks_list:
        copy_block(block, made.add_block(), values)
    for value in node.outputs_list:
        values[value] = made.add_output(value.type(), value.hint())
    return made


def copy_block(block: Block, into: Block, values: dict[Value, Value]) -> None:
    for value in block.params:
        values[value] = into.add_param(value.type(), value.hint())
    for node in block.nodes_list:
        copy_node(node, into, values)
    into.results[:] = [values.get(v, v) for v in block.results]


class Place:
    """Where in a source a node comes from."""

    __slots__ = ("column", "function", "line", "source")

    def __init__(self, source, line: int, column: int, function: str) -> None:
        self.source, self.line, self.column, self.function = source, line, column, function

    def text(self) -> str:
        """The traceback entry of this place."""
        lines = self.source.lines
        row = self.line - 1
        head = f'  File "{self.source.filename}", line {self.source.first_line + row}, in '
        head += f"{self.function}\n"
        if not 0 <= row < len(lines):
            return head
        mark = " " * self.column + "~" * max(1, len(lines[row].rstrip()) - self.column)
        shown = "".join(f"    {line.rstrip()}\n" for line in lines[max(0, row - 2) : row + 1])
        return f"{head}{shown}    {mark} <--- HERE\n"


class Source:
    """The text of a function or file, with its name and first line."""

    def __init__(self, text: str, filename: str, first_line: int = 1) -> None:
        self.lines = text.splitlines()
        self.filename, self.first_line = filename, first_line
