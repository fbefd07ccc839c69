"""The code of an archive: classes and functions of its source files, compiled when they are needed.
Nothing of it is run by Python. Names mean what the archive format says: `torch.x` and `ops.ns.x`
are
operators, `__torch__.a.b` is a class or function of the archive, `CONSTANTS.c0` a constant."""

from __future__ import annotations

import ast

import torch
from torch.jit import _types as T
from torch.jit._annotations import SyntaxTypes
from torch.jit._classes import unique_name
from torch.jit._function import Parameter, ScriptFunction, compile_body, read_signature
from torch.jit._ir import Graph, Source
from torch.jit._resolve import library_function
from torch.jit._sugar import Class, Constant, Form, Function, Operator, Sugar

_FORMS = (
    "bool int float complex str range annotate unchecked_cast uninitialized getattr fork awaitable "
    "isinstance print list len min max tuple dict abs sorted"
).split()


class Namespace(Sugar):
    """A prefix of operator names."""

    def __init__(self, prefix: str | None) -> None:
        self.prefix = prefix

    def attr(self, c, name: str) -> Sugar:
        if self.prefix is None:
            return Namespace(name)
        if name == "inf" and self.prefix == "aten":
            return Constant(float("inf"), T.Float)
        if self.prefix == "aten" and name == "broadcast_shapes":
            return library_function(torch.broadcast_shapes)
        if self.prefix == "prim" and name in ("awaitable_wait", "awaitable_nowait"):
            return Form(name)
        return Operator(f"{self.prefix}::{name}")


class Dotted(Sugar):
    """A name of the archive that may become a class or function."""

    def __init__(self, code: ArchiveCode, name: str) -> None:
        self.code, self.name = code, name
        self.what = f"'{name}'"

    def attr(self, c, name: str) -> Sugar:
        full = f"{self.name}.{name}"
        found = self.code.find(full)
        if found is None:
            return Dotted(self.code, full)
        return Function(found) if isinstance(found, ScriptFunction) else Class(found)


class ConstantTable(Sugar):
    """CONSTANTS."""

    def __init__(self, constants) -> None:
        self.constants = constants

    def attr(self, c, name: str) -> Sugar:
        if (
            not name.startswith("c")
            or not name[1:].isdigit()
            or int(name[1:]) >= len(self.constants)
        ):
            c.fail(f"the archive has no constant {name}")
        value = self.constants[int(name[1:])]
        kind = T.infer(value)
        if kind is None:
            c.fail(f"the constant {name} is of a type that scripted code cannot hold")
        return Constant(value, kind)


class ArchiveClass(T.ClassType):
    """A class of an archive."""

    container = ""

    def make_method(self, name: str):
        return self.methods.get(name)


class FunctionSource:
    """A function definition of an archive."""

    def __init__(
        self, code: ArchiveCode, node: ast.FunctionDef, source: Source, receiver=None
    ) -> None:
        self.code, self.node, self.source, self.receiver = code, node, source, receiver

    def signature(self, function: ScriptFunction) -> tuple[list[Parameter], T.Type | None]:
        args = self.node.args
        defaults = {}
        for arg, value in zip(
            args.args[len(args.args) - len(args.defaults) :], args.defaults, strict=True
        ):
            defaults[arg.arg] = self.constant(value)
        return read_signature(self.node, self.code.types, defaults, None, function)

    def constant(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
            return float(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
            return -float(node.operand.id)
        if isinstance(node, ast.Call):
            return torch.device(ast.literal_eval(node.args[0]))
        constants = self.code.constants
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "CONSTANTS":
            number = node.attr.removeprefix("c")
            if number.isdecimal() and int(number) < len(constants):
                return constants[int(number)]
        try:
            return ast.literal_eval(node)
        except (ValueError, SyntaxError):
            raise RuntimeError(f"the default {ast.unparse(node)} is not a constant") from None

    def compile(self, function: ScriptFunction) -> Graph:
        return compile_body(
            function, self.node.body, self.source, self.code.resolve, self.code.types
        )


class ArchiveCode:
    """All code of one archive; `read(path)` gives the text of a source file or None."""

    def __init__(self, read, constants) -> None:
        self.read, self.constants = read, constants
        self.files: dict[str, dict[str, ast.stmt] | None] = {}
        self.sources: dict[str, Source] = {}
        self.found: dict[str, T.Type | ScriptFunction] = {}
        self.types = SyntaxTypes(self.type_named)

    def definitions(self, module: str) -> dict[str, ast.stmt]:
        if module not in self.files:
            path = f"code/{module.replace('.', '/')}.py"
            text = self.read(path)
            self.files[module] = {}
            if text is not None:
                try:
                    tree = ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
                    raise RuntimeError(f"{path} in the archive is not code: {e}") from None
                self.sources[module] = Source(text, path)
                self.files[module] = {
                    n.name: n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)
                }
        return self.files[module]

    def find(self, name: str) -> T.Type | ScriptFunction | None:
        """The class or function of that full name."""
        known = self.found.get(name) or T.custom_class(name)
        if known is not None:
            return known
        module, _, label = name.rpartition(".")
        node = self.definitions(module).get(label) if module else None
        if node is None:
            return None
        source = self.sources[module]
        if isinstance(node, ast.FunctionDef):
            made = ScriptFunction(label, name, FunctionSource(self, node, source))
            self.found[name] = made
            return made
        return self.class_of(name, node, source)

    def type_named(self, name: str) -> T.Type | None:
        found = self.find(name)
        return found if isinstance(found, T.Type) else None

    def class_of(self, name: str, node: ast.ClassDef, source: Source) -> T.Type:
        bases = [ast.unparse(b) for b in node.bases]
        if "NamedTuple" in bases:
            return self.named_tuple(name, node)
        if "Enum" in bases:
            return self.enumeration(name, node)
        if "Interface" in bases or "ModuleInterface" in bases:
            return self.interface(name, node, source, "ModuleInterface" in bases)
        kind = ArchiveClass(unique_name(name), "Module" in bases)
        self.found[name] = kind
        roles: dict[str, str] = {}
        hooks: list[tuple[str, list[ScriptFunction]]] = []
        for step in node.body:
            listed = _hook_list(step)
            if listed:
                target = kind.pre_hooks if listed == "__forward_pre_hooks__" else kind.hooks
                hooks += [(name, target) for name in ast.literal_eval(step.value)]
            else:
                self.class_member(kind, step, source, roles)
        for attribute, role in roles.items():
            if attribute in kind.attributes:
                kind.roles[attribute] = role
        for name, listed in hooks:
            if name not in kind.methods:
                raise RuntimeError(f"the archive has no hook {name} of {kind.qualified_name}")
            listed.append(kind.methods[name])
        for name in {name for name, _ in hooks}:
            del kind.methods[name]
        for attribute, type in kind.attributes.items():
            if isinstance(type, T.ClassType) and type.is_module:
                kind.roles[attribute] = "module"
        if (
            kind.attributes
            and all(n.isdigit() for n, r in kind.roles.items() if r == "module")
            and any(r == "module" for r in kind.roles.values())
        ):
            kind.container = "list"
        from torch.jit._script_class import _by_name

        _by_name[kind.qualified_name] = kind
        return kind

    def class_member(self, kind: ArchiveClass, step: ast.stmt, source: Source, roles) -> None:
        if isinstance(step, ast.FunctionDef):
            origin = FunctionSource(self, step, source, kind)
            function = ScriptFunction(step.name, f"{kind.qualified_name}.{step.name}", origin)
            kind.add_method(step.name, function)
        elif isinstance(step, ast.AnnAssign) and isinstance(step.target, ast.Name):
            type = self.types.of_ast(step.annotation)
            if step.value is None:
                kind.add_attribute(step.target.id, type)
            else:
                kind.constants[step.target.id] = (self.class_constant(step.value, type), type)
        elif isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Name):
            listed = {"__parameters__": "parameter", "__buffers__": "buffer"}.get(
                step.targets[0].id
            )
            if listed and isinstance(step.value, ast.List):
                roles.update({ast.literal_eval(e): listed for e in step.value.elts})
        elif isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Subscript):
            name = ast.literal_eval(step.targets[0].slice)
            kind.add_attribute(name, self.types.of_ast(step.value))

    def class_constant(self, node: ast.expr, type: T.Type) -> object:
        if isinstance(node, ast.Attribute):
            return self.constants[int(node.attr[1:])]
        return FunctionSource(self, None, None).constant(node)

    def named_tuple(self, name: str, node: ast.ClassDef) -> T.TupleType:
        fields = [s for s in node.body if isinstance(s, ast.AnnAssign)]
        elements = tuple(self.types.of_ast(f.annotation) for f in fields)
        names = tuple(f.target.id for f in fields)
        made = T.TupleType(
            elements,
            names,
            name,
            tuple((f.target.id, ast.literal_eval(f.value)) for f in fields if f.value is not None),
        )
        self.found[name] = made
        return made

    def enumeration(self, name: str, node: ast.ClassDef) -> T.EnumType:
        import enum

        members = tuple(
            (s.targets[0].id, ast.literal_eval(s.value))
            for s in node.body
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
        )
        if not members:
            raise RuntimeError(f"the enumeration {name} of the archive is empty")
        python = enum.Enum(node.name, list(members))
        made = T.EnumType(name, T.infer(members[0][1]) or T.Any, members, python)
        self.found[name] = made
        return made

    def interface(
        self, name: str, node: ast.ClassDef, source: Source, is_module: bool
    ) -> T.InterfaceType:
        made = T.InterfaceType(name, is_module)
        self.found[name] = made
        for step in node.body:
            if isinstance(step, ast.FunctionDef):
                step.args.args[0].annotation = None
                function = ScriptFunction(
                    step.name, f"{name}.{step.name}", FunctionSource(self, step, source)
                )
                parameters, returns = read_signature(step, self.types, {}, made, function)
                function.arguments, function.returns, function._state = (
                    parameters,
                    returns,
                    "declared",
                )
                made.schemas[step.name] = function
        return made

    def resolve(self, name: str, c) -> Sugar | None:
        """What a free name of the archive's code stands for."""
        if name == "torch":
            return Namespace("aten")
        if name == "ops":
            return Namespace(None)
        if name == "__torch__":
            return Dotted(self, "__torch__")
        if name == "CONSTANTS":
            return ConstantTable(self.constants)
        if name in ("inf", "nan"):
            return Constant(float(name), T.Float)
        if name in _FORMS:
            return Form(name)
        return None


def _hook_list(step: ast.stmt) -> str | None:
    """The name of a list of hooks that a statement of a class assigns."""
    if isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Name):
        name = step.targets[0].id
        return name if name in ("__forward_pre_hooks__", "__forward_hooks__") else None
    return None
