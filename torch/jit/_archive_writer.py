"""Archives of scripted programs: writing. The code is printed by _print_code, the data is a pickle
of
the few opcodes that readers of archives know."""

from __future__ import annotations

import contextlib
import enum
import io
import keyword
import os
import struct
import sys
from collections.abc import Iterator

import torch
from torch._serialization.atomic_file import replacing
from torch._serialization.plain_pickle import StorageCollector
from torch._serialization.zip_writer import ZipWriter
from torch.jit import _types as T
from torch.jit._function import ScriptFunction
from torch.jit._modules import RecursiveScriptModule
from torch.jit._print_code import Printer
from torch.jit._schema import parse
from torch.storage import UntypedStorage


class DataPickle:
    """Pickles values of scripted programs by their types."""

    def __init__(self, storages: StorageCollector) -> None:
        self.out = bytearray(b"\x80\x02")
        self.storages = storages
        self.memo: dict[int, int] = {}
        self.classes: dict[T.ClassType, None] = {}  # of the instances, in their order
        self.kept: list[object] = []
        self.open: set[int] = set()  # objects whose state is being written

    def finish(self) -> bytes:
        return bytes(self.out + b".")

    def remember(self, thing: object) -> None:
        number = len(self.kept)
        self.memo[id(thing)] = number
        self.kept.append(thing)
        self.out += b"r" + struct.pack("<I", number)

    def recall(self, thing: object) -> bool:
        number = self.memo.get(id(thing))
        if number is None:
            return False
        self.out += b"j" + struct.pack("<I", number)
        return True

    def text(self, value: str) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(data)) + data

    def integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def named(self, module: str, name: str) -> None:
        self.out += b"c" + f"{module}\n{name}\n".encode()

    def class_name(self, full: str) -> None:
        module, _, name = full.rpartition(".")
        self.named(module, name)

    def value(self, value: object, kind: T.Type) -> None:
        """One value of the type."""
        if isinstance(kind, T.OptionalType):
            kind = T.NoneT if value is None else kind.element
        if value is None:
            self.out += b"N"
        elif isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, torch.Tensor):
            self.tensor(value)
        elif isinstance(value, enum.Enum):
            self.class_name(kind.name)
            self.value(value.value, kind.contained[0])
            self.out += b"R"
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, torch.device):
            self.named("torch", "device")
            self.out += b"("
            self.text(str(value))
            self.out += b"tR"
        else:
            self.composite(value, kind)

    def composite(self, value: object, kind: T.Type) -> None:
        if isinstance(value, RecursiveScriptModule) or hasattr(value, "_script_handle"):
            self.instance(value)
        elif isinstance(value, torch.ScriptObject):
            self.custom(value)
        elif isinstance(value, complex):
            self.named("builtins", "complex")
            self.out += (
                b"(G" + struct.pack(">d", value.real) + b"G" + struct.pack(">d", value.imag) + b"tR"
            )
        elif isinstance(value, list):
            self.listed(value, kind)
        elif isinstance(value, dict):
            self.mapping(value, kind)
        elif isinstance(value, tuple):
            self.out += b"("
            inner = kind.contained if isinstance(kind, T.TupleType) else [T.infer(v) for v in value]
            for item, item_kind in zip(value, inner, strict=True):
                self.value(item, item_kind)
            self.out += b"t"
        else:
            raise RuntimeError(
                f"a value of type {type(value).__name__} cannot be saved in an archive"
            )

    def listed(self, value: list, kind: T.Type) -> None:
        element = kind.element if isinstance(kind, T.ListType) else (T.infer(value).element)
        maker = {
            T.Int: "build_intlist",
            T.Float: "build_doublelist",
            T.Bool: "build_boollist",
            T.Tensor: "build_tensorlist",
        }.get(element)
        self.named("torch.jit._pickle", maker or "restore_type_tag")
        self.out += b"(](" if value else b"(]"
        for item in value:
            self.value(item, element)
        self.out += b"e" if value else b""
        if maker is None:
            self.text(T.ListType.of(element).annotation_str)
        self.out += b"tR"

    def mapping(self, value: dict, kind: T.Type) -> None:
        kind = kind if isinstance(kind, T.DictType) else T.infer(value)
        self.named("torch.jit._pickle", "restore_type_tag")
        self.out += b"(}(" if value else b"(}"
        for key, item in value.items():
            self.value(key, kind.key)
            self.value(item, kind.value)
        self.out += b"u" if value else b""
        self.text(kind.annotation_str)
        self.out += b"tR"

    def tensor(self, value: torch.Tensor) -> None:
        if self.recall(value):
            return
        pid = self.storages.persistent_id(value._typed_storage())
        maker = "_rebuild_qtensor" if value.is_quantized else "_rebuild_tensor_v2"
        self.named("torch._utils", maker)
        self.out += b"(("
        self.text(pid[0])
        self.named("torch", pid[1].__name__)
        self.text(pid[2])
        self.text(pid[3])
        self.integer(pid[4])
        self.out += b"tQ"
        self.integer(value.storage_offset())
        for numbers in (value.shape, value.stride()):
            self.out += b"("
            for number in numbers:
                self.integer(number)
            self.out += b"t"
        if value.is_quantized:
            self.grid(value)
        self.out += b"\x88" if value.requires_grad else b"\x89"
        self.named("collections", "OrderedDict")
        self.out += b")RtR"
        self.remember(value)

    def grid(self, value: torch.Tensor) -> None:
        """The scheme of a quantized tensor with its scales and zero points."""
        self.out += b"("
        self.named("torch", str(value.qscheme()).removeprefix("torch."))
        if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            self.value(value.q_scale(), T.Float)
            self.integer(value.q_zero_point())
        else:
            self.tensor(value.q_per_channel_scales())
            self.tensor(value.q_per_channel_zero_points())
            self.integer(value.q_per_channel_axis())
        self.out += b"t"

    def instance(self, value) -> None:
        if self.recall(value):
            return
        kind = value._script_type
        self.classes[kind] = None
        self.class_name(kind.qualified_name)
        self.out += b")\x81"
        with self.within(value):
            self.state(value, kind)
        self.out += b"b"
        self.remember(value)

    @contextlib.contextmanager
    def within(self, value: object) -> Iterator[None]:
        """While the state of an object is written. Readers know an object only when it has its
        state, so that it cannot be a part of itself."""
        if id(value) in self.open:
            raise RuntimeError("an object that holds itself cannot be saved in an archive")
        self.open.add(id(value))
        yield
        self.open.discard(id(value))

    def state(self, value, kind: T.ClassType) -> None:
        if "__getstate__" in kind.methods:
            from torch.jit._modules import ScriptMethod

            function = kind.methods["__getstate__"]
            function.ensure_compiled()
            self.value(ScriptMethod(function, value._script_handle)(), function.returns)
            return
        self.out += b"}("
        for name, attribute in kind.attributes.items():
            self.text(name)
            held = value._modules.get(name) if isinstance(value, RecursiveScriptModule) else None
            self.value(
                held if held is not None else value._script_handle.get(kind.slots[name]), attribute
            )
        self.out += b"u"

    def custom(self, value: torch.ScriptObject) -> None:
        """An object of a C++ class, by the state that its class gives."""
        if self.recall(value):
            return
        name = value._type().qualified_name()
        schema = torch._C._custom_method_schema(name, "__getstate__")
        if schema is None:
            raise RuntimeError(f"objects of {name} cannot be saved: the class has no def_pickle")
        self.class_name(name)
        self.out += b")\x81"
        with self.within(value):
            self.value(value.__getstate__(), parse(schema).returns[0].type)
        self.out += b"b"
        self.remember(value)


class CodeFiles:
    """The source files of an archive."""

    def __init__(self) -> None:
        self.printer = Printer()
        self.files: dict[str, list[str]] = {}
        self.done: set[object] = set()

    def add(self, root: T.ClassType) -> None:
        self.printer.note(root)
        while True:
            kinds = [t for t in self.printer.types if t not in self.done]
            functions = [f for f in self.printer.functions if f not in self.done]
            if not kinds and not functions:
                return
            for kind in kinds:
                self.done.add(kind)
                self.put(_name_of(kind), self.class_text(kind))
            for function in functions:
                self.done.add(function)
                full = self.printer.functions[function]
                self.put(full, self.printer.function(function, 0, full.rpartition(".")[2]))

    def put(self, full: str, text: str) -> None:
        module = full.rpartition(".")[0]
        self.files.setdefault(f"code/{module.replace('.', '/')}.py", []).append(text)

    def class_text(self, kind: T.Type) -> str:
        if isinstance(kind, T.EnumType):
            lines = [f"  {n} = {self.printer.constant(v, T.infer(v))}" for n, v in kind.members]
            return "\n".join([f"class {kind.name.rpartition('.')[2]}(Enum):", *lines, ""])
        if isinstance(kind, T.TupleType):
            fields = zip(kind.names, kind.contained, strict=True)
            lines = [f"  {n} : {self.printer.type_text(t)}" for n, t in fields]
            return "\n".join(
                [f"class {kind.qualified_name.rpartition('.')[2]}(NamedTuple):", *lines, ""]
            )
        if isinstance(kind, T.InterfaceType):
            return self.interface_text(kind)
        return self.script_class(kind)

    def interface_text(self, kind: T.InterfaceType) -> str:
        base = "ModuleInterface" if kind.is_module else "Interface"
        lines = [f"class {kind.name.rpartition('.')[2]}({base}):"]
        for name, function in kind.schemas.items():
            params = ", ".join(
                [
                    "self",
                    *(
                        f"{p.name}: {self.printer.type_text(p.type)}"
                        for p in function.arguments[1:]
                    ),
                ]
            )
            lines += [
                f"  def {name}({params}) -> {self.printer.type_text(function.returns)}:",
                "    pass",
            ]
        return "\n".join([*lines, ""])

    def script_class(self, kind: T.ClassType) -> str:
        lines = [f"class {kind.name()}{'(Module)' if kind.is_module else ''}:"]
        if kind.is_module:
            for label, role in (("__parameters__", "parameter"), ("__buffers__", "buffer")):
                names = "".join(f'"{n}", ' for n, r in kind.roles.items() if r == role)
                lines.append(f"  {label} = [{names}]")
            for label, hooks in (
                ("__forward_pre_hooks__", kind.pre_hooks),
                ("__forward_hooks__", kind.hooks),
            ):
                if hooks:
                    names = "".join(f'"{h.name}", ' for h in hooks)
                    lines.append(f"  {label} = [{names}]")
        for name, attribute in kind.attributes.items():
            text = self.printer.type_text(attribute)
            if name.isidentifier() and not keyword.iskeyword(name):
                lines.append(f"  {name} : {text}")
            else:
                lines.append(f'  __annotations__["{name}"] = {text}')
        for name, (value, constant_kind) in kind.constants.items():
            if name in kind.attributes:
                continue
            text = self.printer.constant(value, constant_kind)
            lines.append(f"  {name} : Final[{self.printer.type_text(constant_kind)}] = {text}")
        for name, function in kind.methods.items():
            if isinstance(function, ScriptFunction):
                lines.append(self.printer.function(function, 1, name).rstrip("\n"))
        hooks = {hook.name: hook for hook in (*kind.pre_hooks, *kind.hooks)}
        for hook in hooks.values():
            lines.append(self.printer.function(hook, 1).rstrip("\n"))
        return "\n".join([*lines, ""])


def _name_of(kind: T.Type) -> str:
    return kind.name if isinstance(kind, T.EnumType | T.InterfaceType) else kind.qualified_name


def _as_module(m) -> RecursiveScriptModule:
    if isinstance(m, RecursiveScriptModule):
        return m
    if isinstance(m, ScriptFunction):
        return _function_module(m)
    raise RuntimeError("torch.jit.save writes scripted modules and functions")


def _function_module(function: ScriptFunction) -> RecursiveScriptModule:
    """A module whose forward is the function."""
    from torch.jit._classes import unique_name
    from torch.jit._function import Parameter
    from torch.jit._ir import Graph

    kind = T.ClassType(unique_name("__torch__.PlaceholderModule"), True)
    kind.add_attribute("training", T.Bool)

    class Forward:
        def signature(self, _made):
            return [Parameter("self", kind), *function.arguments], function.returns

        def compile(self, made):
            graph = Graph()
            values = [graph.block.add_param(p.type, p.name) for p in made.arguments]
            from torch.jit._ir import Node

            node = Node("prim::CallFunction", graph.block, values[1:])
            node.attrs["function"] = function
            graph.block.nodes_list.append(node)
            graph.block.results.append(node.add_output(function.returns))
            return graph

    function.ensure_compiled()
    forward = ScriptFunction("forward", f"{kind.qualified_name}.forward", Forward())
    kind.add_method("forward", forward)
    forward.ensure_compiled()
    handle = torch._C._script_object(kind.info)
    handle.set(0, True, T.Bool.handle())
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    RecursiveScriptModule.__init__(made, handle, kind, {})
    return made


def write(m, f, extra=None) -> None:
    """Writes the archive to a path or file."""
    module = _as_module(m)
    storages, constant_storages = StorageCollector(), StorageCollector()
    data = DataPickle(storages)
    data.value(module, module._script_type)
    code = CodeFiles()
    # Behind an interface or Any stand classes that no type names.
    for kind in data.classes:
        code.add(kind)
    python = getattr(code.printer, "python", None)
    if python is not None:
        raise RuntimeError(
            f"Could not export Python function call '{python}'. Remove calls to Python "
            "functions before export. Did you forget to add @script or @script_method "
            "annotation? If this is a nn.ModuleList, add it to __constants__"
        )
    constants = DataPickle(constant_storages)
    constants.value(
        tuple(code.printer.constants), T.tuple_of(*(T.infer(c) for c in code.printer.constants))
    )
    records: list[tuple[str, bytes]] = []
    for key, (untyped, _) in storages.by_key.items():
        records.append((f"data/{key}", _bytes(untyped)))
    records.append(("data.pkl", data.finish()))
    for path, texts in code.files.items():
        records.append((path, "".join(texts).encode()))
    for key, (untyped, _) in constant_storages.by_key.items():
        records.append((f"constants/{key}", _bytes(untyped)))
    records.append(("constants.pkl", constants.finish()))
    for name, content in (extra or {}).items():
        records.append(
            (f"extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
        )
    version = f"{code.printer.version}\n".encode()
    records += [("version", version), ("byteorder", sys.byteorder.encode())]

    def store(file, root: str) -> None:
        writer = ZipWriter(file, root)
        for name, content in records:
            writer.add(name, content)
        writer.add(".data/serialization_id", writer.serialization_id())
        writer.finish()

    if isinstance(f, str | os.PathLike):
        stem = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        with replacing(f) as file:
            store(file, stem or "archive")
    else:
        buffer = io.BytesIO()
        store(buffer, "archive")
        f.write(buffer.getvalue())
        if hasattr(f, "flush"):
            f.flush()


def _bytes(untyped: UntypedStorage) -> bytes:
    from torch._serialization.storages import host_bytes

    return bytes(host_bytes(untyped.cpu()))
