"""Graphs from their text (torch._C.parse_ir): what str(graph) prints is read back. Types with
shapes (`Float(2, 3)`) are read as Tensor with the shape kept."""

from __future__ import annotations

import ast
import re

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value
from torch.jit._schema import bind, schemas

_TOKEN = re.compile(
    r'\s*(->|"(?:[^"\\]|\\.)*"|[%^]?[A-Za-z_0-9][\w.]*(?:::[\w.]+)?|-?\.?\d[\w.]*(?:e[-+]?\d+)?'
    r"|<[^>]*>|\S)"
)
_DTYPES = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16,
    "BFloat16": torch.bfloat16, "Long": torch.int64, "Int": torch.int32, "Short": torch.int16,
    "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool,
    "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128,
}  # fmt: skip
_SIMPLE = {
    "int": T.Int, "float": T.Float, "bool": T.Bool, "complex": T.Complex, "str": T.String,
    "Scalar": T.Number, "number": T.Number, "NoneType": T.NoneT, "Device": T.Device, "Any": T.Any,
    "None": T.NoneT, "Generator": T.Generator, "Tensor": T.Tensor, "SymInt": T.Int,
}  # fmt: skip


class _Reader:
    def __init__(self, text: str) -> None:
        # A comment runs to the end of its line; "#" inside of strings stays.
        lines = [
            re.sub(r'(^|\s)#(?=([^"]*"[^"]*")*[^"]*$).*', "", row) for row in text.splitlines()
        ]
        self.tokens = _TOKEN.findall("\n".join(lines))
        self.at = 0
        self.values: dict[str, Value] = {}

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if wanted is not None and token != wanted:
            raise RuntimeError(f"parse_ir: expected '{wanted}' but found '{token}'")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    # ---- types

    def type(self) -> T.Type:
        if self.accept("("):
            parts = self.types(")")
            made: T.Type = T.tuple_of(*parts)
        else:
            made = self.named(self.take())
        while True:
            if self.peek() == "[" and self.peek(1) == "]":
                self.at += 2
                made = T.ListType.of(made)
            elif self.accept("?"):
                made = T.optional(made)
            else:
                return made

    def types(self, end: str) -> list[T.Type]:
        out = []
        while not self.accept(end):
            out.append(self.type())
            self.accept(",")
        return out

    def named(self, name: str) -> T.Type:
        if name in ("Dict", "Future", "Union"):
            parts = self.types(")" if self.take() == "(" else "]")
            made = {"Dict": T.DictType.of, "Future": T.FutureType.of, "Union": T.union}[name]
            return made(*parts)
        if name in _DTYPES or (name == "Tensor" and self.peek() == "("):
            return self.tensor(_DTYPES.get(name))
        if name in _SIMPLE:
            return _SIMPLE[name]
        from torch.jit._script_class import known_class

        known = known_class(name)
        if known is None:
            raise RuntimeError(f"parse_ir: unknown type '{name}'")
        return known

    def tensor(self, dtype: torch.dtype | None) -> T.Type:
        sizes: list[int | None] = []
        if not self.accept("("):
            return T.Tensor
        while not self.accept(")"):
            token = self.take()
            if self.peek() == "=":  # strides=[...], requires_grad=0, device=cpu
                self.take()
                self.value()
            elif token == "*":
                sizes.append(None)
            elif token.lstrip("-").isdigit():
                sizes.append(int(token))
            self.accept(",")
        return T.Tensor.with_sizes(sizes).with_dtype(dtype)

    # ---- attributes

    def value(self) -> object:
        token = self.take()
        if token == "[":
            items = []
            while not self.accept("]"):
                items.append(self.value())
                self.accept(",")
            return items
        if token == "{":
            items = []
            while not self.accept("}"):
                items.append(self.value())
                self.accept(",")
            return torch.tensor(items[0] if len(items) == 1 else items)
        if token[0] == '"':
            return ast.literal_eval(token)
        if token[0] == "<":
            raise RuntimeError("parse_ir: the values of this tensor are not in the text")
        if token[0] == "-" and len(token) == 1:
            return -self.value()
        try:
            return ast.literal_eval(token)
        except (ValueError, SyntaxError):
            return token

    def attributes(self) -> dict[str, object]:
        out: dict[str, object] = {}
        if not self.accept("["):
            return out
        while not self.accept("]"):
            name = self.take()
            self.take("=")
            out[name] = self.value()
            self.accept(",")
        return out

    # ---- graphs

    def declared(self) -> tuple[str, T.Type]:
        name = self.take()
        if name[0] != "%":
            raise RuntimeError(f"parse_ir: expected a value but found '{name}'")
        return name[1:], self.type() if self.accept(":") else T.Tensor

    def params(self, block: Block) -> None:
        self.take("(")
        while not self.accept(")"):
            name, kind = self.declared()
            self.values[name] = block.add_param(kind, _hint(name))
            self.accept(",")
        self.take(":")

    def uses(self) -> list[Value]:
        self.take("(")
        out = []
        while not self.accept(")"):
            name = self.take().removeprefix("%")
            if name not in self.values:
                raise RuntimeError(f"parse_ir: the value %{name} is not defined")
            out.append(self.values[name])
            self.accept(",")
        return out

    def nodes(self, block: Block, end: str) -> None:
        while not self.accept(end):
            if not self.peek():
                raise RuntimeError(f"parse_ir: the text ends before '{end}'")
            self.node(block)

    def node(self, block: Block) -> None:
        outputs = []
        while self.peek().startswith("%"):
            outputs.append(self.declared())
            self.accept(",")
        if outputs:
            self.take("=")
        kind = self.take()
        made = Node(kind, block)
        made.attrs.update(self.attributes())
        made.inputs_list[:] = self.uses()
        block.nodes_list.append(made)
        while re.fullmatch(r"block\d+", self.peek()):
            self.take()
            inner = made.add_block()
            self.params(inner)
            self.nodes(inner, "->")
            inner.results[:] = self.uses()
        for name, type in outputs:
            self.values[name] = made.add_output(type, _hint(name))
        _complete(made)


def _hint(name: str) -> str:
    return "" if name.isdigit() else name


def _complete(node: Node) -> None:
    """What the text leaves out: the overload, and the value of constants as their type has it."""
    kind = node.kind_name
    if kind == "prim::Constant":
        value, type = node.attrs.get("value"), node.output().type()
        if type is T.Float and isinstance(value, int):
            value = float(value)
        if type is T.Bool:
            value = bool(value)
        node.attrs = {"value": value}
        return
    if kind == "prim::TupleIndex":
        index = node.inputs_list[1].toIValue()
        node.attrs["index"] = index
        return
    for schema in schemas(kind):
        if len(schema.arguments) != len(node.inputs_list) and not schema.vararg:
            continue
        bound: dict[str, T.Type] = {}
        pairs = zip(schema.arguments, node.inputs_list, strict=False)
        if all(bind(a.type, _plain(v.type()), bound) for a, v in pairs):
            node.schema_of = schema
            return


def _plain(type: T.Type) -> T.Type:
    return T.Tensor if isinstance(type, T.TensorType) else type


def parse_ir(text: str, parse_tensor_constants: bool = False) -> Graph:
    """The graph that a text describes."""
    reader = _Reader(text)
    graph = Graph()
    reader.take("graph")
    reader.params(graph.block)
    reader.nodes(graph.block, "return")
    graph.block.results[:] = reader.uses()
    return graph
