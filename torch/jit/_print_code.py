"""Graphs as source text, in the form that archives hold and PyTorch's own reader understands: one
statement for each node, constants in their places."""

from __future__ import annotations

import keyword
import re

import torch
from torch.jit import _types as T
from torch.jit._ir import Block, Node, Value
from torch.jit._schema import NO_DEFAULT

_CASTS = {
    "aten::Float": "float",
    "aten::Int": "int",
    "aten::Bool": "bool",
    "aten::Complex": "complex",
    "aten::IntImplicit": "int",
    "aten::FloatImplicit": "float",
}
_FOREVER = 2**63 - 1

# Operators whose meaning changed, with the version of archives that have the present one. Readers
# take operators of an archive with a lower number by their old meaning: integers divided by
# integers, sizes filled with an integer as floats.
_CHANGED = {
    "aten::div": 4,
    "aten::div_": 4,
    "aten::full": 5,
    "aten::linspace": 8,
    "aten::logspace": 9,
    "aten::gelu": 10,
}
_OLDEST_VERSION = 3


class Printer:
    """Prints functions; collects constants, types and functions that the text refers to."""

    def __init__(self) -> None:
        self.constants: list[object] = []
        self.types: dict[T.Type, None] = {}
        self.functions: dict[object, str] = {}
        self.taken: set[str] = set()
        self.version = _OLDEST_VERSION  # of an archive with what was printed

    # ---- references

    def type_text(self, kind: T.Type) -> str:
        self.note(kind)
        return kind.annotation_str

    def note(self, kind: T.Type) -> None:
        if isinstance(kind, T.ClassType | T.InterfaceType | T.EnumType) or getattr(
            kind, "names", None
        ):
            self.types[kind] = None
        for inner in kind.contained:
            self.note(inner)

    def function_name(self, function) -> str:
        known = self.functions.get(function)
        if known is None:
            name = function.qualified_name
            if not name.startswith("__torch__."):
                name = f"__torch__.{name}"
            known, number = name, 0
            while known in self.taken:
                head, _, tail = name.rpartition(".")
                known = f"{head}.___torch_mangle_{1000 + len(self.taken) + number}.{tail}"
                number += 1
            self.taken.add(known)
            self.functions[function] = known
        return known

    def constant(self, value: object, kind: T.Type, member: str | None = None) -> str:
        if isinstance(kind, T.EnumType):
            self.note(kind)
            return f"{kind.name}.{member or value.name}"
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, str):
            return string_literal(value)
        if isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                return f'float("{value}")'
            return repr(value)
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        if isinstance(value, torch.Tensor):
            for i, known in enumerate(self.constants):
                if known is value:
                    return f"CONSTANTS.c{i}"
            self.constants.append(value)
            return f"CONSTANTS.c{len(self.constants) - 1}"
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return str(torch._C._script_number(value))
        if isinstance(value, tuple) and isinstance(kind, T.TupleType):
            parts = [self.constant(v, t) for v, t in zip(value, kind.contained, strict=True)]
            if kind.names:
                self.note(kind)
                return f"{kind.annotation_str}({', '.join(parts)})"
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if isinstance(value, list | tuple) and isinstance(kind, T.ListType):
            parts = ", ".join(self.constant(v, kind.element) for v in value)
            return f"annotate({self.type_text(kind)}, [{parts}])"
        if isinstance(value, dict) and isinstance(kind, T.DictType):
            parts = ", ".join(
                f"{self.constant(k, kind.key)}: {self.constant(v, kind.value)}"
                for k, v in value.items()
            )
            return f"annotate({self.type_text(kind)}, {{{parts}}})"
        return repr(value)

    # ---- functions

    def function(self, function, indent: int = 0, name: str | None = None) -> str:
        """def NAME(...) -> T: ..."""
        function.ensure_compiled()
        graph = function.graph
        return FunctionText(self, graph.block).definition(function, indent, name or function.name)


def string_literal(value: str) -> str:
    out = '"'
    for byte in value.encode("utf-8", "surrogatepass"):
        c = chr(byte)
        if c in '"\\':
            out += "\\" + c
        elif c == "\n":
            out += "\\n"
        elif c == "\t":
            out += "\\t"
        elif c == "\r":
            out += "\\r"
        elif 32 <= byte < 127:
            out += c
        else:
            out += f"\\{byte:03o}"
    return out + '"'


class FunctionText:
    """The statements of one function."""

    def __init__(self, printer: Printer, block: Block) -> None:
        self.printer = printer
        self.names: dict[Value, str] = {}
        self.used: set[str] = set()
        self.texts: dict[Value, str] = {}
        self.lines: list[str] = []
        self.count = 0
        self.forks = 0
        self.block = block

    def fresh(self, hint: str = "") -> str:
        base = re.sub(r"\W", "_", hint)
        if not base or base[0].isdigit():
            base = "_"
        if keyword.iskeyword(base) or base in (
            "torch",
            "ops",
            "CONSTANTS",
            "range",
            "fork",
            "annotate",
            "int",
            "float",
            "bool",
            "getattr",
            "isinstance",
        ):
            base += "_"
        name, number = base, 0
        if base == "_":
            name = f"_{self.count}"
        while name in self.used:
            name = f"{base}{number}" if base != "_" else f"_{self.count + number}"
            number += 1
        self.count += base == "_"
        self.used.add(name)
        return name

    def name(self, value: Value) -> str:
        if value not in self.names:
            self.names[value] = self.fresh(value.hint())
        return self.names[value]

    def use(self, value: Value) -> str:
        return self.texts.get(value) or self.name(value)

    def definition(self, function, indent: int, name: str) -> str:
        params = []
        open_ones = [i for i, p in enumerate(function.arguments) if p.default is NO_DEFAULT]
        for i, (p, value) in enumerate(zip(function.arguments, self.block.params, strict=True)):
            self.names[value] = self.fresh(p.name) if p.name in self.used else p.name
            self.used.add(p.name)
            default = ""
            # Calls in archives give every argument: a default before one without is not needed.
            if p.default is not NO_DEFAULT and i > max(open_ones, default=-1):
                default = "=" + self.printer.constant(p.default, _plain_type(p))
                if default.startswith("=annotate("):
                    default = "=" + default.partition(", ")[2][:-1]
            params.append(f"{self.names[value]}: {self.printer.type_text(p.type)}{default}")
        pad = "  " * indent
        head = f"{pad}def {name}({(',' + chr(10) + pad + '    ').join(params)}) -> "
        head += f"{self.printer.type_text(function.returns)}:"
        self.statements(self.block, indent + 1)
        self.lines.append("  " * (indent + 1) + f"return {self.use(self.block.results[0])}")
        return "\n".join([head, *self.lines, ""])

    def put(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def statements(self, block: Block, depth: int) -> None:
        for node in block.nodes_list:
            method = getattr(self, "print_" + node.kind_name.replace("::", "_"), None)
            if method is not None:
                method(node, depth)
            else:
                self.assign(node, depth, self.call(node))

    def assign(self, node: Node, depth: int, text: str) -> None:
        if not node.outputs_list:
            self.put(depth, text)
            return
        names = ", ".join(self.name(v) for v in node.outputs_list)
        self.put(depth, f"{names} = {text}")

    def call(self, node: Node) -> str:
        """An operator as a call."""
        kind = node.kind_name
        if kind in _CASTS and len(node.inputs_list) == 1:
            return f"{_CASTS[kind]}({self.use(node.input())})"
        if kind == "aten::__getitem__":
            return f"({self.use(node.inputs_list[0])})[{self.use(node.inputs_list[1])}]"
        if kind in ("prim::EnumValue", "prim::EnumName"):
            return f"({self.use(node.input())}).{kind.removeprefix('prim::Enum').lower()}"
        if kind == "aten::ScalarImplicit":
            return f"torch.item({self.use(node.input())})"
        space, _, name = kind.partition("::")
        head = f"torch.{name}" if space == "aten" else f"ops.{space}.{name}"
        schema = node.schema_of
        if schema is not None and schema.builtin is None:
            self.printer.version = max(self.printer.version, _CHANGED.get(kind, 0))
        if schema is None:
            return f"{head}({', '.join(self.use(v) for v in node.inputs_list)})"
        inputs = list(node.inputs_list)
        formal = schema.arguments
        count = len(inputs)
        if not schema.vararg:
            while (
                count
                and not formal[count - 1].kwarg_only
                and self.is_default(inputs[count - 1], formal[count - 1])
            ):
                count -= 1
        parts = []
        for i, value in enumerate(inputs):
            if i < len(formal) and formal[i].kwarg_only:
                if not self.is_default(value, formal[i]):
                    parts.append(f"{formal[i].name}={self.use(value)}")
            elif i < count or any(f.kwarg_only for f in formal):
                parts.append(self.use(value))
        return f"{head}({', '.join(parts)})"

    def is_default(self, value: Value, formal) -> bool:
        origin = value.origin
        if formal.default is NO_DEFAULT or not isinstance(origin, Node):
            return False
        return (
            origin.kind_name == "prim::Constant"
            and origin.attrs["value"] == formal.default
            and (type(origin.attrs["value"]) is type(formal.default))
        )

    # ---- values

    def print_prim_Constant(self, node: Node, depth: int) -> None:
        text = self.printer.constant(
            node.attrs["value"], node.output().type(), node.attrs.get("member")
        )
        self.texts[node.output()] = text

    def print_prim_Uninitialized(self, node: Node, depth: int) -> None:
        self.assign(node, depth, f"uninitialized({self.printer.type_text(node.output().type())})")

    def print_prim_annotate(self, node: Node, depth: int) -> None:
        kind = self.printer.type_text(node.output().type())
        self.assign(node, depth, f"annotate({kind}, {self.use(node.input())})")

    def print_prim_unchecked_cast(self, node: Node, depth: int) -> None:
        kind = self.printer.type_text(node.output().type())
        self.assign(node, depth, f"unchecked_cast({kind}, {self.use(node.input())})")

    def print_prim_isinstance(self, node: Node, depth: int) -> None:
        kinds = [self.printer.type_text(t) for t in node.attrs["wanted"]]
        text = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
        self.assign(node, depth, f"isinstance({self.use(node.input())}, {text})")

    def print_prim_TupleConstruct(self, node: Node, depth: int) -> None:
        kind = node.output().type()
        parts = [self.use(v) for v in node.inputs_list]
        if isinstance(kind, T.TupleType) and kind.names:
            self.assign(node, depth, f"{self.printer.type_text(kind)}({', '.join(parts)})")
        else:
            self.assign(node, depth, f"({', '.join(parts)}{',' if len(parts) == 1 else ''})")

    def print_prim_TupleIndex(self, node: Node, depth: int) -> None:
        self.assign(node, depth, f"({self.use(node.inputs_list[0])})[{node.attrs['index']}]")

    def print_prim_TupleUnpack(self, node: Node, depth: int) -> None:
        names = "".join(f"{self.name(v)}, " for v in node.outputs_list)
        if names:
            self.put(depth, f"{names}= {self.use(node.input())}")

    print_prim_ListUnpack = print_prim_TupleUnpack

    def print_prim_ListConstruct(self, node: Node, depth: int) -> None:
        kind = node.output().type()
        text = f"[{', '.join(self.use(v) for v in node.inputs_list)}]"
        exact = node.inputs_list and all(v.type() is kind.element for v in node.inputs_list)
        if not exact:
            text = f"annotate({self.printer.type_text(kind)}, {text})"
        self.assign(node, depth, text)

    def print_prim_DictConstruct(self, node: Node, depth: int) -> None:
        flat = [self.use(v) for v in node.inputs_list]
        pairs = ", ".join(f"{k}: {v}" for k, v in zip(flat[::2], flat[1::2], strict=True))
        kind = self.printer.type_text(node.output().type())
        self.assign(node, depth, f"annotate({kind}, {{{pairs}}})")

    # ---- objects and calls

    def print_prim_GetAttr(self, node: Node, depth: int) -> None:
        self.assign(node, depth, _attribute(self.use(node.input()), node.attrs["name"]))

    def print_prim_SetAttr(self, node: Node, depth: int) -> None:
        self.put(
            depth,
            f"{self.use(node.inputs_list[0])}.{node.attrs['name']} = "
            f"{self.use(node.inputs_list[1])}",
        )

    def print_prim_CreateObject(self, node: Node, depth: int) -> None:
        kind = self.printer.type_text(node.output().type())
        self.assign(node, depth, f"{kind}.__new__({kind})")

    def print_prim_CallFunction(self, node: Node, depth: int) -> None:
        label = _method_label(node)
        if label is not None:
            args = "".join(f"{self.use(v)}, " for v in node.inputs_list[1:])
            self.assign(node, depth, f"({self.use(node.inputs_list[0])}).{label}({args})")
            return
        args = "".join(f"{self.use(v)}, " for v in node.inputs_list)
        self.assign(node, depth, f"{self.printer.function_name(node.attrs['function'])}({args})")

    def print_prim_CallMethod(self, node: Node, depth: int) -> None:
        args = "".join(f"{self.use(v)}, " for v in node.inputs_list[1:])
        self.assign(node, depth, f"({self.use(node.inputs_list[0])}).{node.attrs['name']}({args})")

    def print_prim_fork(self, node: Node, depth: int) -> None:
        self.later_call(node, depth, "__forked_function", "fork")

    def print_prim_awaitable(self, node: Node, depth: int) -> None:
        self.later_call(node, depth, "__awaitable_function", "awaitable")

    def later_call(self, node: Node, depth: int, hint: str, form: str) -> None:
        name = self.fresh(hint)
        label = _method_label(node)
        values = [self.use(v) for v in node.inputs_list]
        target = f"({values.pop(0)}).{label}" if label else None
        target = target or self.printer.function_name(node.attrs["function"])
        self.put(depth, f"def {name}():")
        self.put(depth + 1, f"return {target}({''.join(f'{v}, ' for v in values)})")
        self.assign(node, depth, f"{form}({name})")

    def print_prim_PythonOp(self, node: Node, depth: int) -> None:
        name = getattr(node.attrs["function"], "__name__", "function")
        self.assign(node, depth, f"^{name}({', '.join(self.use(v) for v in node.inputs_list)})")
        self.printer.python = name

    def print_prim_RaiseException(self, node: Node, depth: int) -> None:
        self.put(
            depth, f"ops.prim.RaiseException({', '.join(self.use(v) for v in node.inputs_list)})"
        )

    def print_prim_Print(self, node: Node, depth: int) -> None:
        self.put(depth, f"print({', '.join(self.use(v) for v in node.inputs_list)})")

    # ---- control flow

    def print_prim_If(self, node: Node, depth: int) -> None:
        self.put(depth, f"if {self.use(node.input())}:")
        for i, block in enumerate(node.blocks_list):
            if i:
                self.put(depth, "else:")
            before = len(self.lines)
            self.statements(block, depth + 1)
            for target, value in zip(node.outputs_list, block.results, strict=True):
                self.bind(target, value, depth + 1)
            if len(self.lines) == before:
                self.put(depth + 1, "pass")

    def bind(self, target: Value, value: Value, depth: int) -> None:
        if target.type() is value.type():
            self.put(depth, f"{self.name(target)} = {self.use(value)}")
        else:
            kind = self.printer.type_text(target.type())
            self.put(depth, f"{self.name(target)} : {kind} = {self.use(value)}")

    def print_prim_Loop(self, node: Node, depth: int) -> None:
        body = node.blocks_list[0]
        count, start, *initial = node.inputs_list
        index, *carried = body.params
        go_on, *results = body.results
        for target, value in zip(carried, initial, strict=True):
            self.bind(target, value, depth)
        counted = _constant(count) != _FOREVER
        simple = _constant(go_on) is True and _constant(start) is True
        if counted and simple:
            self.put(depth, f"for {self.name(index)} in range({self.use(count)}):")
            self.loop_body(body, carried, results, depth + 1, [])
        else:
            self.while_loop(node, body, counted, depth)
        for target, value in zip(node.outputs_list, carried, strict=True):
            self.names[target] = self.name(value)

    def while_loop(self, node: Node, body: Block, counted: bool, depth: int) -> None:
        count, start = node.inputs_list[:2]
        index, *carried = body.params
        go_on, *results = body.results
        flag, number = self.fresh(), self.name(index)
        test = self.use(start)
        if counted:
            self.put(depth, f"{number} = 0")
            test = f"torch.__and__(torch.lt({number}, {self.use(count)}), {self.use(start)})"
        elif any(index in n.inputs_list for n in body.all_nodes(returns=True)):
            self.put(depth, f"{number} = 0")
            counted = True
        self.put(depth, f"{flag} = {test}")
        self.put(depth, f"while {flag}:")
        after = []
        if counted and _constant(count) != _FOREVER:
            after = [
                f"{number} = torch.add({number}, 1)",
                f"{flag} = torch.__and__(torch.lt({number}, {self.use(count)}), GO)",
            ]
        elif counted:
            after = [f"{number} = torch.add({number}, 1)", f"{flag} = GO"]
        else:
            after = [f"{flag} = GO"]
        self.loop_body(body, carried, results, depth + 1, after, go_on)

    def loop_body(
        self, body: Block, carried, results, depth: int, after: list[str], go_on=None
    ) -> None:
        before = len(self.lines)
        self.statements(body, depth)
        kept = self.fresh() if go_on is not None else ""
        if go_on is not None:
            self.put(depth, f"{kept} = {self.use(go_on)}")
        pairs = [(t, v) for t, v in zip(carried, results, strict=True) if t is not v]
        if len(pairs) == 1:
            self.put(depth, f"{self.name(pairs[0][0])} = {self.use(pairs[0][1])}")
        elif pairs:
            self.put(
                depth,
                f"{', '.join(self.name(t) for t, _ in pairs)} = "
                f"{', '.join(self.use(v) for _, v in pairs)}",
            )
        for text in after:
            self.put(depth, text.replace("GO", kept))
        if len(self.lines) == before:
            self.put(depth, "pass")


def _method_label(node: Node) -> str | None:
    """The name under which a called function is a method of its first argument."""
    kind = node.inputs_list[0].type() if node.inputs_list else None
    if not isinstance(kind, T.ClassType):
        return None
    for name, function in kind.methods.items():
        if function is node.attrs["function"]:
            return name
    return None


def _plain_type(parameter) -> T.Type:
    kind = parameter.type
    if isinstance(kind, T.OptionalType) and parameter.default is not None:
        return kind.element
    return kind


def _constant(value: Value) -> object:
    origin = value.origin
    return (
        origin.attrs["value"]
        if isinstance(origin, Node) and origin.kind_name == "prim::Constant"
        else None
    )


def _attribute(owner: str, name: str) -> str:
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{owner}.{name}"
    return f'getattr({owner}, "{name}")'


def function_code(function) -> str:
    """The text of a function or method."""
    return Printer().function(function)


def function_code_with_constants(function) -> tuple[str, dict[str, object]]:
    printer = Printer()
    text = printer.function(function)
    return text, {f"c{i}": v for i, v in enumerate(printer.constants)}
