"""From a graph to instructions of the interpreter. Every value has a register of its own; an
operand
says whether it is the last use, so that tensors are freed as soon as nothing reads them."""

from __future__ import annotations

from torch.jit import _types as T
from torch.jit._ir import Block, Graph, Node, Value

_OPCODES = (
    "Operator Builtin Move Jump JumpIfNot MakeTuple UnpackTuple TupleItem MakeList UnpackList "
    "MakeDict NewObject GetSlot SetSlot Call CallMethod IsInstance Cast Fork External Return"
).split()
_OP = {name: code for code, name in enumerate(_OPCODES)}
_SCALARS = (T.Int, T.Float, T.Bool, T.Complex, T.String, T.NoneT, T.Number, T.Any)


class Lowering:
    """The tables of one function while it is lowered."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.registers: dict[Value, int] = {}
        self.constants: list[tuple[object, object]] = []
        self.constant_of: dict[Value, int] = {}
        self.same_constant: dict[tuple[object, ...], int] = {}
        self.types: list[object] = []
        self.functions: list[object] = []
        self.externals: list[tuple[object, object]] = []
        self.names: list[str] = []
        self.places: list[str] = []
        self.code: list[list[object]] = []
        self.place_number: dict[object, int] = {}
        self.last = _last_uses(graph)

    def register(self, value: Value) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def operand(self, value: Value, node: Node | None) -> int:
        known = self.constant_of.get(value)
        if known is not None:
            return -1 - known
        final = node is not None and self.last.get(value) is node
        return self.register(value) * 2 + (1 if final else 0)

    def emit(
        self, op: str, node: Node | None, inputs=(), outputs=(), target=0, count=0, what=None
    ) -> int:
        ins = [self.operand(v, node) for v in inputs]
        for i, o in enumerate(ins):  # of two uses in one node only the last one may move
            if o >= 0 and o & 1 and o in ins[i + 1 :]:
                ins[i] = o - 1
        outs = tuple(o if isinstance(o, int) else self.register(o) for o in outputs)
        self.code.append([_OP[op], tuple(ins), outs, target, count, self.place(node), what])
        return len(self.code) - 1

    def place(self, node: Node | None) -> int:
        if node is None or node.place is None:
            return -1
        where = node.place
        key = (where.source, where.line, where.column)
        if key not in self.place_number:
            self.place_number[key] = len(self.places)
            self.places.append(where.text())
        return self.place_number[key]

    def type_index(self, kind: T.Type) -> int:
        self.types.append(kind.handle())
        return len(self.types) - 1

    def function_index(self, function) -> int:
        if function not in self.functions:
            self.functions.append(function)
        return self.functions.index(function)

    def move(self, sources: list[Value], targets: list[Value], node: Node | None = None) -> None:
        pairs = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        if pairs:
            self.emit("Move", None, [s for s, _ in pairs], [t for _, t in pairs])

    # ---- nodes

    def block(self, block: Block) -> None:
        for node in block.nodes_list:
            self.node(node)

    def node(self, node: Node) -> None:
        kind = node.kind_name
        method = getattr(self, "lower_" + kind.replace("::", "_"), None)
        if method is not None:
            method(node)
            return
        schema = node.schema_of
        if schema is None:
            raise RuntimeError(f"the interpreter has no operation {kind}")
        if schema.builtin is not None:
            self.emit("Builtin", node, node.inputs_list, node.outputs_list, what=schema.builtin)
        else:
            self.emit(
                "Operator",
                node,
                node.inputs_list,
                node.outputs_list,
                what=(schema.name, schema.overload_name),
            )

    def builtin(self, node: Node, name: str) -> None:
        from torch.jit._schema import schemas

        schema = schemas(name)[0]
        self.emit("Builtin", node, node.inputs_list, node.outputs_list, what=schema.builtin)

    def lower_prim_Constant(self, node: Node) -> None:
        value, kind = node.attrs["value"], node.output().type()
        key = (kind, type(value), value) if kind in _SCALARS else None
        if key is not None and isinstance(value, float):
            key = (kind, float, value.hex())
        if key is not None and key in self.same_constant:
            self.constant_of[node.output()] = self.same_constant[key]
            return
        self.constant_of[node.output()] = len(self.constants)
        if key is not None:
            self.same_constant[key] = len(self.constants)
        self.constants.append((value, kind.handle()))

    def lower_prim_Uninitialized(self, node: Node) -> None:
        self.constant_of[node.output()] = len(self.constants)
        self.constants.append((None, T.NoneT.handle()))

    def forward(self, node: Node) -> None:
        self.emit("Move", node, node.inputs_list[:1], node.outputs_list)

    lower_prim_annotate = lower_prim_unchecked_cast = forward

    def lower_prim_RaiseException(self, node: Node) -> None:
        self.builtin(node, "prim::RaiseException")

    def lower_aten_IntImplicit(self, node: Node) -> None:
        self.builtin(node, node.kind_name)

    lower_aten_FloatImplicit = lower_aten_ScalarImplicit = lower_aten_IntImplicit

    def lower_prim_TupleConstruct(self, node: Node) -> None:
        kind = node.output().type()
        named = isinstance(kind, T.TupleType) and kind.names
        self.emit(
            "MakeTuple",
            node,
            node.inputs_list,
            node.outputs_list,
            self.type_index(kind) if named else -1,
        )

    def lower_prim_TupleUnpack(self, node: Node) -> None:
        self.emit("UnpackTuple", node, node.inputs_list, node.outputs_list)

    def lower_prim_TupleIndex(self, node: Node) -> None:
        self.emit("TupleItem", node, node.inputs_list[:1], node.outputs_list, node.attrs["index"])

    def lower_prim_ListConstruct(self, node: Node) -> None:
        element = node.output().type().element
        self.emit("MakeList", node, node.inputs_list, node.outputs_list, self.type_index(element))

    def lower_prim_ListUnpack(self, node: Node) -> None:
        self.emit("UnpackList", node, node.inputs_list, node.outputs_list)

    def lower_prim_DictConstruct(self, node: Node) -> None:
        self.emit("MakeDict", node, node.inputs_list, node.outputs_list)

    def lower_prim_CreateObject(self, node: Node) -> None:
        self.emit("NewObject", node, (), node.outputs_list, self.type_index(node.output().type()))

    def lower_prim_GetAttr(self, node: Node) -> None:
        slot = node.inputs_list[0].type().slots[node.attrs["name"]]
        self.emit("GetSlot", node, node.inputs_list, node.outputs_list, slot)

    def lower_prim_SetAttr(self, node: Node) -> None:
        slot = node.inputs_list[0].type().slots[node.attrs["name"]]
        self.emit("SetSlot", node, node.inputs_list, (), slot)

    def lower_prim_CallFunction(self, node: Node) -> None:
        target = self.function_index(node.attrs["function"])
        self.emit("Call", node, node.inputs_list, node.outputs_list, target)

    def lower_prim_CallMethod(self, node: Node) -> None:
        if "function" in node.attrs:
            self.lower_prim_CallFunction(node)
            return
        self.names.append(node.attrs["name"])
        self.emit("CallMethod", node, node.inputs_list, node.outputs_list, len(self.names) - 1)

    def lower_prim_fork(self, node: Node) -> None:
        target = self.function_index(node.attrs["function"])
        self.emit("Fork", node, node.inputs_list, node.outputs_list, target)

    def lower_prim_isinstance(self, node: Node) -> None:
        first = len(self.types)
        for kind in node.attrs["wanted"]:
            self.type_index(kind)
        self.emit(
            "IsInstance",
            node,
            node.inputs_list,
            node.outputs_list,
            first,
            len(node.attrs["wanted"]),
        )

    def lower_prim_PythonOp(self, node: Node) -> None:
        self.externals.append((node.attrs["function"], node.output().type().handle()))
        self.emit("External", node, node.inputs_list, node.outputs_list, len(self.externals) - 1)

    def lower_prim_If(self, node: Node) -> None:
        test = self.emit("JumpIfNot", node, node.inputs_list)
        then, other = node.blocks_list
        self.block(then)
        self.move(then.results, node.outputs_list)
        skip = self.emit("Jump", None)
        self.code[test][3] = len(self.code)
        self.block(other)
        self.move(other.results, node.outputs_list)
        self.code[skip][3] = len(self.code)

    def lower_prim_Loop(self, node: Node) -> None:
        from torch.jit._schema import schemas

        body = node.blocks_list[0]
        count, start, *initial = node.inputs_list
        index, *carried = body.params
        self.move(initial, carried)
        going = Value(T.Bool, node)
        limit = Value(T.Int, node)
        self.move([count, start], [limit, going])
        zero, one = self.number(0), self.number(1)
        self.code.append([_OP["Move"], (zero,), (self.register(index),), 0, 0, -1, None])
        top = self.emit("JumpIfNot", None, [going])
        less = next(
            s for s in schemas("aten::lt") if s.overload_name == "int" and s.builtin is not None
        )
        more = Value(T.Bool, node)
        self.emit("Builtin", None, [index, limit], [more], what=less.builtin)
        out = self.emit("JumpIfNot", None, [more])
        self.block(body)
        self.move(body.results, [going, *carried])
        add = next(
            s for s in schemas("aten::add") if s.overload_name == "int" and s.builtin is not None
        )
        register = self.register(index)
        self.code.append([_OP["Builtin"], (register * 2, one), (register,), 0, 0, -1, add.builtin])
        self.emit("Jump", None, target=top)
        self.code[top][3] = self.code[out][3] = len(self.code)
        self.move(carried, node.outputs_list)

    def number(self, value: int) -> int:
        self.constants.append((value, T.Int.handle()))
        return -len(self.constants)


def _last_uses(graph: Graph) -> dict[Value, Node]:
    """For values of a block, the node of the same block that reads them last; a value that an inner
    block or the block's end reads is kept until the function returns."""
    last: dict[Value, Node | None] = {}

    def visit(block: Block) -> None:
        own = set(block.params)
        for node in block.nodes_list:
            for value in node.inputs_list:
                last[value] = node if value in own and not node.blocks_list else None
            for inner in node.blocks_list:
                visit(inner)
                if node.kind_name == "prim::Loop":
                    last[inner.params[0]] = None  # the loop itself goes on counting with it
            own |= set(node.outputs_list)
        for value in block.results:
            last[value] = None

    visit(graph.block)
    return {value: node for value, node in last.items() if node is not None}


def define(function, graph: Graph) -> None:
    """Gives a function the code of its graph."""
    low = Lowering(graph)
    for value in graph.block.params:
        low.register(value)
    low.block(graph.block)
    low.emit("Return", None, graph.block.results)
    function._define(
        len(graph.block.params),
        max(len(low.registers), 1),
        [tuple(i) for i in low.code],
        low.constants,
        low.types,
        low.functions,
        low.externals,
        low.names,
        low.places,
    )
