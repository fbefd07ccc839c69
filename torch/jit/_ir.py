"""The graph of a scripted function: values, nodes, blocks. Values are assigned once. A node of kind
prim::If has two blocks, prim::Loop has one; what a block computes for its node are the block's
outputs. Nodes keep their order in plain lists: graphs are built once and read often."""

from __future__ import annotations

import contextlib
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

    s = i = f = t = ty = ival = z = ss = is_ = g = _attribute

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

    def matches(self, schema: str) -> bool:
        """Whether the node calls the operator of this schema; defaults and names of the overload
        may be left out."""
        from torch.jit._schema import parse

        wanted, own = parse(schema), self.schema_of
        if own is None or own.name != wanted.name:
            return False
        kinds = [[str(a.type) for a in s.arguments] for s in (own, wanted)]
        return kinds[0][: len(kinds[1])] == kinds[1]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        return [n for block in self.blocks_list for n in block.findAllNodes(kind, recurse)]

    def addBlock(self) -> Block:
        return self.add_block()

    def addOutput(self) -> Value:
        return self.add_output(T.Tensor)

    def eraseOutput(self, i: int) -> None:
        del self.outputs_list[i]

    def removeInput(self, i: int) -> None:
        del self.inputs_list[i]

    def removeAllInputs(self) -> None:
        self.inputs_list.clear()

    def replaceInputWith(self, old: Value, new: Value) -> None:
        self.inputs_list[:] = [new if v is old else v for v in self.inputs_list]

    def replaceAllUsesWith(self, other: Node) -> None:
        for mine, theirs in zip(self.outputs_list, other.outputs_list, strict=True):
            mine.replaceAllUsesWith(theirs)

    def copyAttributes(self, other: Node) -> Node:
        self.attrs = dict(other.attrs)
        return self

    def copyMetadata(self, other: Node) -> Node:
        self.place = other.place
        return self

    def owningBlock(self) -> Block:
        return self.block_of

    def owningGraph(self) -> Graph:
        return self.owning_graph()

    def prev(self) -> Node:
        order = self.block_of.nodes_list
        return order[order.index(self) - 1]

    def next(self) -> Node:
        order = self.block_of.nodes_list
        at = order.index(self) + 1
        return order[at] if at < len(order) else self.block_of.return_node

    def moveBefore(self, other: Node) -> None:
        self.destroy()
        self.insertBefore(other)

    def moveAfter(self, other: Node) -> None:
        self.destroy()
        self.insertAfter(other)

    def hasMultipleOutputs(self) -> bool:
        return len(self.outputs_list) > 1

    def isNondeterministic(self) -> bool:
        from torch.jit._rewrites import _RANDOM

        return self.kind_name.rpartition("::")[2].startswith(_RANDOM)

    def mustBeNone(self) -> bool:
        return bool(self.outputs_list) and self.outputs_list[0].type() is T.NoneT

    def kindOf(self, name: str) -> str:
        """How an attribute is stored, by the name of its getter."""
        value = self.attrs[name]
        for kind, cls in (("s", str), ("i", int), ("f", float), ("c", complex)):
            if isinstance(value, cls):
                return kind
        return "ival"

    def removeAttribute(self, name: str) -> None:
        del self.attrs[name]

    def _set(self, name: str, value: object) -> Node:
        self.attrs[name] = value
        return self

    s_ = i_ = f_ = t_ = ty_ = ival_ = z_ = ss_ = is__ = g_ = _set

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
        self.point: Node | None = None  # nodes are inserted before it

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

    # ---- editing

    @property
    def insert_block(self) -> Block:
        return self.point.block_of if self.point is not None else self.block

    def create(self, kind: str, inputs=(), outputs: int = 1) -> Node:
        """A node that is not in the graph yet."""
        given = list(inputs) if not isinstance(inputs, int) else []
        if any(not isinstance(v, Value) for v in given):
            raise ValueError(f"the inputs of {kind} must be values of the graph")
        node = Node(kind, self.block, given)
        for _ in range(inputs if isinstance(inputs, int) else outputs):
            node.add_output(T.Tensor)
        return node

    def insertNode(self, node: Node) -> Node:
        """Puts a node before the point where nodes are inserted."""
        if self.point is None or self.point.kind_name == "prim::Return":
            node.block_of = self.insert_block
            self.insert_block.nodes_list.append(node)
        else:
            node.insertBefore(self.point)
        return node

    appendNode = insertNode

    def prependNode(self, node: Node) -> Node:
        node.block_of = self.block
        self.block.nodes_list.insert(0, node)
        return node

    def insertConstant(self, value: object) -> Value:
        node = self.insertNode(self.create("prim::Constant", (), 0))
        node.attrs["value"] = value
        return node.add_output(T.infer(value))

    def setInsertPoint(self, at: Node | Block) -> None:
        self.point = at if isinstance(at, Node) else at.return_node

    def insertPoint(self) -> Node:
        return self.point or self.block.return_node

    @contextlib.contextmanager
    def insert_point_guard(self, at: Node | Block) -> Iterator[None]:
        """Inserts before a node, or at the end of a block."""
        before = self.point
        self.setInsertPoint(at)
        try:
            yield
        finally:
            self.point = before

    def insertGraph(self, other: Graph, inputs) -> list[Value]:
        """Copies the nodes of another graph to the insertion point; its outputs."""
        values = dict(zip(other.block.params, inputs, strict=True))
        scratch = Block(self, None)
        for node in other.block.nodes_list:
            copy_node(node, scratch, values)
        for node in scratch.nodes_list:
            self.insertNode(node)
        return [values.get(v, v) for v in other.block.results]

    def permuteInputs(self, order) -> None:
        self.block.params[:] = [self.block.params[int(i)] for i in order]

    def makeMultiOutputIntoTuple(self) -> None:
        """Several outputs become one tuple."""
        if len(self.block.results) < 2:
            return
        node = self.insertNode(self.create("prim::TupleConstruct", self.block.results, 0))
        made = node.add_output(T.tuple_of(*(v.type() for v in self.block.results)))
        self.block.results[:] = [made]

    def alias_db(self, isFrozen: bool = False, descend_function_calls: bool = False):
        """Which values may be one object."""
        from torch.jit._alias import AliasDb

        return AliasDb(self, descend_function_calls)

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

    def str(self, print_source_ranges: bool = True) -> str:
        from torch.jit._print_graph import graph_text

        return graph_text(self, print_source_ranges)


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
        behind = "".join(f"    {line.rstrip()}\n" for line in lines[row + 1 : row + 3])
        return f"{head}{shown}    {mark} <--- HERE\n{behind}"


class Source:
    """The text of a function or file, with its name and first line."""

    def __init__(self, text: str, filename: str, first_line: int = 1) -> None:
        self.lines = text.splitlines()
        self.filename, self.first_line = filename, first_line
