"""Which values of a graph may be one object, and which of those are written. Values are put into
sets that only grow: two values in different sets are never the same object. Containers share the
set of what they hold, calls join everything they touch."""

from __future__ import annotations

from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value

_CONTAINERS = ("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct",
               "prim::TupleIndex", "prim::TupleUnpack", "prim::ListUnpack", "prim::GetAttr",
               "prim::unchecked_cast", "prim::annotate", "aten::__getitem__",
               "prim::CreateObject")  # fmt: skip
_CALLS = ("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::fork", "aten::wait")


def is_mutable(type: T.Type) -> bool:
    """Whether a value of this type can change, or hold one that can."""
    if type in (T.Int, T.Float, T.Bool, T.Complex, T.String, T.NoneT, T.Number, T.Device):
        return False
    if isinstance(type, T.EnumType):
        return False
    if isinstance(type, T.OptionalType | T.TupleType | T.UnionType):
        return any(map(is_mutable, type.contained))
    return True


class Aliases:
    """The sets of a graph, made once; a pass that changes aliasing makes them anew."""

    def __init__(self, graph: Graph, attributes_apart: bool = False) -> None:
        """`attributes_apart`: attributes of modules are objects of their own, as they are until
        code puts one into another."""
        self.attributes_apart = attributes_apart
        self.parent: dict[object, object] = {}
        self.written: set[object] = set()
        self.graph = graph
        for value in graph.block.params:
            if is_mutable(value.type()):
                self.join(value, "outside")
        self.block(graph.block)
        self.written = {self.find(v) for v in self.written}

    def find(self, thing: object) -> object:
        root = thing
        while root in self.parent:
            root = self.parent[root]
        while thing in self.parent and self.parent[thing] is not root:
            thing, self.parent[thing] = self.parent[thing], root
        return root

    def join(self, a: object, b: object) -> None:
        x, y = self.find(a), self.find(b)
        if x is not y:
            self.parent[x] = y

    def may_alias(self, a: Value, b: Value) -> bool:
        return self.find(a) is self.find(b)

    def is_written(self, value: Value) -> bool:
        return self.find(value) in self.written

    def is_outside(self, value: Value) -> bool:
        """Whether the value may be an object that the caller has."""
        return self.find(value) is self.find("outside")

    def block(self, block: Block) -> None:
        for node in block.nodes_list:
            for inner in node.blocks_list:
                self.block(inner)
            self.node(node)

    def node(self, node: Node) -> None:
        kind = node.kind_name
        mutable = [v for v in node.inputs_list if is_mutable(v.type())]
        outputs = [v for v in node.outputs_list if is_mutable(v.type())]
        if kind == "prim::If":
            for i, out in enumerate(node.outputs_list):
                for block in node.blocks_list:
                    self.join(out, block.results[i])
        elif kind == "prim::Loop":
            body = node.blocks_list[0]
            for i, out in enumerate(node.outputs_list):
                for other in (node.inputs_list[i + 2], body.params[i + 1], body.results[i + 1]):
                    self.join(out, other)
        elif kind in _CALLS:
            for value in (*mutable, *outputs):
                self.join(value, "outside")
            self.written.add("outside")
        elif kind == "prim::SetAttr":
            self.join(node.inputs_list[0], node.inputs_list[1])
            self.written.add(node.inputs_list[0])
        elif kind == "prim::GetAttr" and self.attributes_apart:
            for out in outputs:
                self.join(out, (self.find(node.input()), node.attrs["name"]))
        elif kind in _CONTAINERS:
            for value in (*mutable, *outputs):
                self.join(value, (outputs or mutable)[0])
        elif node.schema_of is not None:
            self.call(node, outputs)
        elif kind not in ("prim::Constant", "prim::Uninitialized"):
            for value in (*mutable, *outputs):
                self.join(value, "outside")

    def call(self, node: Node, outputs: list[Value]) -> None:
        schema = node.schema_of
        for formal, value in zip(schema.arguments, node.inputs_list, strict=False):
            if formal.write:
                self.written.add(value)
            letters = _letters(formal.alias)
            if not is_mutable(value.type()):
                continue
            for result, out in zip(schema.returns, node.outputs_list, strict=False):
                if out in outputs and letters & (_letters(result.alias) | {"*"}):
                    self.join(value, out)
            if "*" in letters:  # put into a container
                for other_formal, other in zip(schema.arguments, node.inputs_list, strict=False):
                    if other_formal.write:
                        self.join(value, other)
        wild = [out for r, out in zip(schema.returns, node.outputs_list, strict=False)
                if "*" in _letters(r.alias) and out in outputs]  # fmt: skip
        for out in wild:  # taken from a container
            for value in node.inputs_list:
                if is_mutable(value.type()):
                    self.join(value, out)


def _letters(alias: str) -> set[str]:
    return set(alias.replace("!", "").replace("->", "|").replace(" ", "").split("|")) - {""}


class AliasDb(Aliases):
    """The sets of a graph as programs ask for them. What is taken out of a container may be any
    value from outside (the wildcard)."""

    def __init__(self, graph: Graph, descend: bool = False) -> None:
        self.descend = descend
        super().__init__(graph)

    def node(self, node: Node) -> None:
        callee = node.attrs.get("function")
        if self.descend and node.kind_name in _CALLS[:2] and hasattr(callee, "graph"):
            inner = AliasDb(callee.graph, True)
            pairs = zip(callee.graph.block.params, node.inputs_list, strict=True)
            self.written.update(given for own, given in pairs if inner.is_written(own))
            return
        super().node(node)

    def call(self, node: Node, outputs: list[Value]) -> None:
        super().call(node, outputs)
        for result, out in zip(node.schema_of.returns, node.outputs_list, strict=False):
            if "*" in result.alias and out in outputs:
                self.join(out, "outside")

    def may_contain_alias(self, a: Value, b: Value) -> bool:
        return self.may_alias(a, b)

    def has_writers(self, value: Value) -> bool:
        return self.is_written(value)

    def _sets(self) -> dict[object, list[str]]:
        names = self.graph.names()
        out: dict[object, list[str]] = {self.find("outside"): []}
        for value, name in names.items():
            if is_mutable(value.type()):
                out.setdefault(self.find(value), []).append(f"%{name}")
        return out

    def __str__(self) -> str:
        outside = self.find("outside")
        lines = ["===1. GRAPH===", str(self.graph), "===2. ALIAS SETS==="]
        for root, members in self._sets().items():
            label = "WILDCARD" if root is outside else "set"
            lines.append(f"{label}: {', '.join(members)}")
        written = [n for root, members in self._sets().items() if root in self.written
                   for n in members]  # fmt: skip
        return "\n".join([*lines, "===3. Writes===", ", ".join(written)])

    def to_graphviz_str(self) -> str:
        """The sets as a picture's text."""
        lines = ["digraph alias_db {"]
        outside = self.find("outside")
        for i, (root, members) in enumerate(self._sets().items()):
            label = "WILDCARD" if root is outside else f"set {i}"
            lines.append(f'  s{i} [label="{label}"]')
            lines += [f'  "{m}" -> s{i}' for m in members]
        return "\n".join([*lines, "}"])
