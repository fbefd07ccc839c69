"""Conditions on sizes, given as text over sources, as one program of the guard tree. Numbers that
the program needs are put into its slots while the tree is walked; no Python runs. Conditions with
something else in them (floats, functions that programs do not know) are left to the caller."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch._C._dynamo import guards as _guards

if TYPE_CHECKING:
    from torch._guards import Source

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_COMPARE = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_CALLS = {
    "Min": "min",
    "Max": "max",
    "min": "min",
    "max": "max",
    "Mod": "mod",
    "PythonMod": "mod",
    "FloorDiv": "floordiv",
}
_PROPERTIES = {"size": 0, "stride": 1, "storage_offset": 2}


class Unknown(Exception):
    """A condition that a program cannot state."""


class ShapeCompiler:
    """Collects the steps of conditions and the slots they read."""

    def __init__(self, sources: list[Source]) -> None:
        # A key of a dictionary may be an object whose text is no Python: such a source gets a name.
        self._names: dict[str, str] = {}
        for source in sources:
            if not _is_python(source.name()):
                self._names[source.name()] = f"__source{len(self._names)}"
        self._sources = {_plain(self._named(source.name())): source for source in sources}
        self._slots: dict[tuple[str, int, int], int] = {}
        self.steps: list[tuple[str, int]] = []

    def _named(self, text: str) -> str:
        for unwieldy, name in self._names.items():
            text = text.replace(unwieldy, name)
        return text

    def add(self, text: str) -> bool:
        """Adds a condition; False, with nothing added, if it cannot be stated."""
        steps, slots = len(self.steps), dict(self._slots)
        try:
            self._write(ast.parse(self._named(text), mode="eval").body)
        except (Unknown, SyntaxError):
            del self.steps[steps:]
            self._slots = slots
            return False
        self.steps.append(("assert", 0))
        return True

    def install(
        self, root: _guards.RootGuardManager, manager: Callable[[Source], _guards.GuardManager],
        texts: list[str],
    ) -> None:  # fmt: skip
        """Puts the program and the leaves that fill it into a tree."""
        program = _guards._shape_program(self.steps, len(self._slots))
        rows: dict[str, list[tuple[int, int, int]]] = {}
        for (name, what, dim), slot in self._slots.items():
            if what < 0:
                manager(self._sources[name]).add_shape_int_guard(program, slot, [name])
            else:
                rows.setdefault(name, []).append((slot, what, dim))
        for name, found in rows.items():
            text = [f"sizes of {name}"]
            manager(self._sources[name]).add_shape_tensor_guard(program, tuple(found), text)
        root.add_symbolic_shape_guard(program, 0, texts)

    def _write(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            self._constant(int(node.value))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            self._write(node.operand)
            self.steps.append(("neg" if isinstance(node.op, ast.USub) else "not", 0))
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            self._write(node.left)
            self._write(node.right)
            self.steps.append((_BINARY[type(node.op)], 0))
        elif isinstance(node, ast.BoolOp):
            self._fold(node.values, "and" if isinstance(node.op, ast.And) else "or")
        elif isinstance(node, ast.Compare):
            self._compare(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in _CALLS or not node.args or node.keywords:
                raise Unknown
            self._fold(node.args, _CALLS[node.func.id])
        else:
            self._slot(node)

    def _constant(self, value: int) -> None:
        if not -(1 << 62) < value < 1 << 62:
            raise Unknown
        self.steps.append(("const", value))

    def _fold(self, parts: list[ast.expr], step: str) -> None:
        for i, part in enumerate(parts):
            self._write(part)
            if i:
                self.steps.append((step, 0))

    def _compare(self, node: ast.Compare) -> None:
        values = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            if type(op) not in _COMPARE:
                raise Unknown
            self._write(values[i])
            self._write(values[i + 1])
            self.steps.append((_COMPARE[type(op)], 0))
            if i:
                self.steps.append(("and", 0))

    def _slot(self, node: ast.expr) -> None:
        """A number of the frame: an integer, or base.size()[i], base.storage_offset()."""
        whole = ast.unparse(node)
        if whole in self._sources:
            return self._read((whole, -1, 0))
        dim, call = 0, node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            dim, call = node.slice.value, node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not call.args:
            base, what = ast.unparse(call.func.value), _PROPERTIES.get(call.func.attr)
            if base in self._sources and what is not None and isinstance(dim, int):
                return self._read((base, what, dim))
        raise Unknown

    def _read(self, key: tuple[str, int, int]) -> None:
        self.steps.append(("slot", self._slots.setdefault(key, len(self._slots))))


def _is_python(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _plain(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return text
