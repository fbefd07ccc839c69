"""From a graph to instructions of the interpreter. Every value has a register of its own; an
operand
says whether it is the last use, so that tensors are freed as soon as nothing reads them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
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
        """Copies values into registers, all at once: a target that a later copy reads is written
        after it, and a circle is broken by a register of its own."""
        pairs = [(self.operand(s, None), self.register(t)) for s, t in
                 zip(sources, targets, strict=True)]  # fmt: skip
        pending = [(s, t) for s, t in pairs if s != t * 2]
        while pending:
            read = [s // 2 for s, _ in pending if s >= 0]
            free = [p for p in pending if p[1] not in read]
            if not free:
                source, target = pending.pop(0)
                spare = self.register(Value(T.Any, self.graph.block))
                self.move_register(source, spare)
                pending.append((spare * 2, target))
                continue
            for source, target in free:
                self.move_register(source, target)
            pending = [p for p in pending if p not in free]

    def move_register(self, source: int, target: int) -> None:
        self.code.append([_OP["Move"], (source,), (target,), 0, 0, -1, None])

    def share_registers(self, node: Node) -> None:
        """A value that a loop carries to its next round is computed in the register that carries
        it, where the old value is not read after that."""
        body = node.blocks_list[0]
        order = {n: i for i, n in enumerate(body.nodes_list)}
        reads: dict[Value, int] = {}
        for i, inner in enumerate(body.nodes_list):
            for value in _all_inputs(inner):
                reads[value] = i
        carried = list(zip(body.results[1:], body.params[1:], strict=True))
        for value, param in carried:
            origin = value.origin
            if origin not in order or value in self.registers or value in self.constant_of:
                continue
            if origin.kind_name in ("prim::Constant", "prim::Uninitialized"):
                continue
            alone = body.results.count(value) == 1 and param not in body.results
            if alone and reads.get(param, -1) <= order[origin] and not origin.blocks_list:
                self.registers[value] = self.register(param)

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
        if isinstance(node.output().type(), T.CustomClassType):
            return  # its constructor makes it
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
        receiver = node.inputs_list[0]
        if node.attrs["name"] == "__init__" and isinstance(receiver.type(), T.CustomClassType):
            make = _constructor(receiver.type().qualified_name)
            self.externals.append((make, receiver.type().handle()))
            index = len(self.externals) - 1
            self.emit("External", node, node.inputs_list[1:], [receiver], index)
            return
        self.names.append(node.attrs["name"])
        self.emit("CallMethod", node, node.inputs_list, node.outputs_list, len(self.names) - 1)

    def lower_prim_fork(self, node: Node) -> None:
        target = self.function_index(node.attrs["function"])
        self.emit("Fork", node, node.inputs_list, node.outputs_list, target)

    def lower_prim_awaitable(self, node: Node) -> None:
        target = self.function_index(node.attrs["function"])
        self.emit("Fork", node, node.inputs_list, node.outputs_list, target, 1)

    def lower_prim_awaitable_nowait(self, node: Node) -> None:
        self.builtin(node, "prim::awaitable_nowait")

    def lower_prim_awaitable_wait(self, node: Node) -> None:
        self.builtin(node, "aten::wait")

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

    def lower_prim_DifferentiableGraph(self, node: Node) -> None:
        inner = node.attrs["Subgraph"].block
        self.move(node.inputs_list, inner.params)
        self.block(inner)
        self.move(inner.results, node.outputs_list)

    def lower_prim_Loop(self, node: Node) -> None:
        body = node.blocks_list[0]
        count, start, *initial = node.inputs_list
        index, *carried = body.params
        self.move(initial, carried)
        self.share_registers(node)
        always = _is_constant(start, True) and _is_constant(body.results[0], True)
        counts = not _is_constant(count, _FOREVER) or index in _block_inputs(body)
        going, limit, more = (Value(t, node) for t in (T.Bool, T.Int, T.Bool))
        if not always:
            self.move([start], [going])
        if counts:
            self.move([count], [limit])
            self.move_register(self.number(0), self.register(index))
        top = len(self.code)
        leave = [] if always else [self.emit("JumpIfNot", None, [going])]
        if counts:
            self.emit("Builtin", None, [index, limit], [more], what=_integer_builtin("aten::lt"))
            leave.append(self.emit("JumpIfNot", None, [more]))
        self.block(body)
        if always:
            self.move(body.results[1:], carried)
        else:
            self.move(body.results, [going, *carried])
        if counts:
            at, one = self.register(index), self.number(1)
            add = _integer_builtin("aten::add")
            self.code.append([_OP["Builtin"], (at * 2, one), (at,), 0, 0, -1, add])
        self.emit("Jump", None, target=top)
        for jump in leave:
            self.code[jump][3] = len(self.code)
        self.move(carried, node.outputs_list)

    def number(self, value: int) -> int:
        self.constants.append((value, T.Int.handle()))
        return -len(self.constants)


_FOREVER = 2**63 - 1


def _constructor(qualified_name: str) -> Callable[..., object]:
    """Makes an object of a C++ class."""
    namespace, name = qualified_name.removeprefix(T.CUSTOM_CLASSES).split(".")

    def construct(*args: object) -> object:
        return getattr(getattr(torch.classes, namespace), name)(*args)

    return construct


def _is_constant(value: Value, wanted: object) -> bool:
    origin = value.origin
    return (
        isinstance(origin, Node)
        and origin.kind_name == "prim::Constant"
        and type(origin.attrs["value"]) is type(wanted)
        and origin.attrs["value"] == wanted
    )


def _all_inputs(node: Node) -> Iterator[Value]:
    """What a node reads, in its inner blocks as well."""
    yield from node.inputs_list
    for block in node.blocks_list:
        yield from _block_inputs(block)


def _block_inputs(block: Block) -> list[Value]:
    return [v for node in block.all_nodes(returns=True) for v in node.inputs_list]


@functools.cache
def _integer_builtin(name: str) -> int:
    from torch.jit._schema import schemas

    return next(
        s.builtin for s in schemas(name) if s.overload_name == "int" and s.builtin is not None
    )


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
