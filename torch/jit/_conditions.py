"""Conditions of scripted code: truth of values, short circuits, and what a test says about the type
of a variable in the branch it leads to (refinement)."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable

import torch
from torch.jit import _types as T
from torch.jit._ir import Node, Value
from torch.jit._sugar import Class, Form, Sugar

_COMPARE = {ast.Eq: "aten::eq", ast.NotEq: "aten::ne", ast.Lt: "aten::lt", ast.LtE: "aten::le",
            ast.Gt: "aten::gt", ast.GtE: "aten::ge"}  # fmt: skip
_LIBRARY = os.path.dirname(torch.__file__) + os.sep
Refine = Callable[[object], None]


def _nothing(_c) -> None:
    pass


class Condition:
    """The value of a test; `static` when the compiler knows it. The refinements are applied at the
    start of the branch."""

    def __init__(
        self,
        value: Value | None,
        static: bool | None = None,
        refine_true: Refine = _nothing,
        refine_false: Refine = _nothing,
    ) -> None:
        self._value, self.static = value, static
        self.refine_true, self.refine_false = refine_true, refine_false

    @property
    def value(self) -> Value:
        return self._value


def _both(a: Refine, b: Refine) -> Refine:
    if a is _nothing:
        return b

    def run(c) -> None:
        a(c)
        b(c)

    return run


class Conditions:
    """The part of the compiler for tests."""

    def condition(self, node: ast.expr) -> Condition:
        before, self.place_node = self.place_node, node
        try:
            return self.test(node)
        finally:
            self.place_node = before

    def condition_value(self, node: ast.expr, raw: bool = False) -> Value:
        """The value of a test; `raw` leaves the result of a comparison as it is (a tensor)."""
        if raw and isinstance(node, ast.Compare) and len(node.ops) == 1:
            made = self.compare(node.ops[0], node.left, node.comparators[0], raw=True)
        else:
            made = self.condition(node)
        return self.const(made.static) if made.static is not None else made.value

    def test(self, node: ast.expr) -> Condition:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            if inner.static is not None:
                return Condition(None, not inner.static, inner.refine_false, inner.refine_true)
            value = self.op("aten::__not__", [inner.value])
            return Condition(value, None, inner.refine_false, inner.refine_true)
        if isinstance(node, ast.BoolOp):
            return self.short_circuit(node.values, isinstance(node.op, ast.And))
        if isinstance(node, ast.Compare):
            return self.compare_chain(node)
        if isinstance(node, ast.Call):
            special = self.type_test(node)
            if special is not None:
                return special
        found = self.as_value(self.expression(node))
        if found.type() is T.NoneT:
            return Condition(None, False)
        if isinstance(found.type(), T.TupleType) and self.in_library():
            return Condition(None, bool(found.type().contained))
        value = self.truth(found)
        origin = value.origin
        if isinstance(origin, Node) and origin.kind_name == "prim::Constant":
            return Condition(value, bool(origin.attrs["value"]))
        return Condition(value)

    def in_library(self) -> bool:
        """Whether the function is one of the library's own: those may ask whether a tuple is
        empty, which programs cannot."""
        return self.source.filename.startswith(_LIBRARY)

    def truth(self, value: Value) -> Value:
        kind = value.type()
        if kind is T.Bool:
            return value
        if kind in (T.Tensor, T.Int, T.Float):
            return self.op("aten::Bool", [value])
        if isinstance(kind, T.ListType | T.DictType) or kind is T.String:
            return self.op("aten::Bool", [self.op("aten::len", [value])])
        if isinstance(kind, T.ClassType) and "__bool__" in kind.methods:
            return self.as_value(self.call_method(value, "__bool__", [], {}))
        if isinstance(kind, T.ClassType) and "__len__" in kind.methods:
            size = self.as_value(self.call_method(value, "__len__", [], {}))
            return self.op("aten::Bool", [size])
        self.fail(f"Could not cast value of type {kind.annotation_str} to bool")

    def short_circuit(self, parts: list[ast.expr], is_and: bool) -> Condition:
        first = self.condition(parts[0])
        if len(parts) == 1:
            return first
        on = first.refine_true if is_and else first.refine_false
        if first.static is not None:
            if first.static is not is_and:
                return Condition(None, not is_and, first.refine_true, first.refine_false)
            on(self)
            return self.short_circuit(parts[1:], is_and)
        node = self.node("prim::If", (first.value,))
        rest: list[Condition] = []
        blocks = [node.add_block(), node.add_block()]

        def more() -> None:
            on(self)
            second = self.short_circuit(parts[1:], is_and)
            rest.append(second)
            value = self.const(second.static) if second.static is not None else second.value
            blocks[0 if is_and else 1].results.append(value)

        def done() -> None:
            blocks[1 if is_and else 0].results.append(self.const(not is_and))

        self.in_block(blocks[0], more if is_and else done)
        self.in_block(blocks[1], done if is_and else more)
        if rest[0].static is (not is_and):
            # The whole is known although the first part is not.
            return Condition(self.const(not is_and), not is_and)
        value = node.add_output(T.Bool)
        if is_and:
            return Condition(value, None, _both(first.refine_true, rest[0].refine_true))
        return Condition(value, None, _nothing, _both(first.refine_false, rest[0].refine_false))

    def compare_chain(self, node: ast.Compare) -> Condition:
        if len(node.ops) == 1:
            return self.compare(node.ops[0], node.left, node.comparators[0])
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = right
        return self.short_circuit(parts, True)

    def compare(
        self, op: ast.cmpop, left: ast.expr, right: ast.expr, raw: bool = False
    ) -> Condition:
        if isinstance(op, ast.Is | ast.IsNot):
            return self.identity(op, left, right)
        if isinstance(op, ast.In | ast.NotIn):
            item = self.expression(left)
            found = self.contains(self.expression(right), item)
            if isinstance(found, bool):
                return Condition(None, found is isinstance(op, ast.In))
            return Condition(
                self.op("aten::__not__", [found]) if isinstance(op, ast.NotIn) else found
            )
        a, b = self.as_value(self.expression(left)), self.as_value(self.expression(right))
        literals = isinstance(left, ast.Constant) and isinstance(right, ast.Constant)
        known = None if literals else self.compare_constants(op, a, b)
        if known is not None and not raw:
            return Condition(None, known)
        value = self.comparison(_COMPARE[type(op)], a, b)
        if raw:
            return Condition(value)
        return Condition(self.truth(value))

    def compare_constants(self, op: ast.cmpop, a: Value, b: Value) -> bool | None:
        """The result of comparing two constants."""
        from torch.jit._indexing import constant_of

        if not isinstance(op, ast.Eq | ast.NotEq):
            return None
        try:
            x, y = constant_of(a), constant_of(b)
        except LookupError:
            return None
        if type(x) is not type(y) or not isinstance(x, int | str):
            return None
        return (x == y) is isinstance(op, ast.Eq)

    def contains(self, container: Value | Sugar, item: Value | Sugar) -> Value | bool:
        from torch.jit._sugar import Module, Tuple

        if isinstance(container, Tuple):
            container = self.make_list([self.as_value(v) for v in container.items])
        if isinstance(container, Module):
            keys = self.module_keys(container.receiver)
            wanted = self.as_value(item)
            origin = wanted.origin
            if isinstance(origin, Node) and origin.kind_name == "prim::Constant":
                return origin.attrs["value"] in keys
            container = self.make_list([self.const(k) for k in keys])
            item = wanted
        value = self.as_value(container)
        kind = value.type()
        if isinstance(kind, T.TupleType):
            value = self.make_list(self.unpack(value))
        if isinstance(kind, T.ClassType) and "__contains__" in kind.methods:
            return self.truth(self.as_value(self.call_method(value, "__contains__", [item], {})))
        return self.op("aten::__contains__", [value, self.as_value(item)])

    # ---- what a test says about types

    def identity(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Condition:
        a, b = self.expression(left), self.expression(right)
        same = isinstance(op, ast.Is)
        for thing, node, other in ((a, left, b), (b, right, a)):
            if isinstance(other, Sugar) and not hasattr(other, "type"):
                continue
            if self.is_none(other):
                return self.none_test(thing, node, same)
        values = [self.as_value(a), self.as_value(b)]
        return Condition(self.op("aten::__is__" if same else "aten::__isnot__", values))

    def is_none(self, thing: Value | Sugar) -> bool:
        if isinstance(thing, Value):
            return thing.type() is T.NoneT
        return getattr(thing, "type", None) is T.NoneT

    def none_test(self, thing: Value | Sugar, node: ast.expr, same: bool) -> Condition:
        if isinstance(thing, Sugar) and not hasattr(thing, "type"):
            return Condition(None, not same)
        value = self.as_value(thing)
        kind = value.type()
        if kind is T.NoneT:
            return Condition(None, same)
        possible = T.members(kind)
        if T.NoneT not in possible and kind is not T.Any:
            return Condition(None, not same)
        plain = T.union(*(t for t in possible if t is not T.NoneT)) if kind is not T.Any else T.Any
        when_none, when_not = self.refinement(node, T.NoneT), self.refinement(node, plain)
        made = self.op("aten::__is__" if same else "aten::__isnot__", [value, self.none()])
        return Condition(made, None, *((when_none, when_not) if same else (when_not, when_none)))

    def refinement(self, node: ast.expr, kind: T.Type) -> Refine:
        """Gives the variable that the test is about its narrower type."""
        if isinstance(node, ast.NamedExpr):
            node = node.target
        if not isinstance(node, ast.Name):
            return _nothing
        name = node.id

        def run(c) -> None:
            value = c.frame.find(name)
            if not isinstance(value, Value) or value.type() is kind:
                return
            c.declared.setdefault(name, value.type())
            if kind is T.NoneT:
                c.frame.names[name] = c.none()
            else:
                made = c.value("prim::unchecked_cast", (value,), kind)
                made.setDebugName(name)
                c.frame.names[name] = made

        return run

    def type_test(self, node: ast.Call) -> Condition | None:
        """isinstance, hasattr and questions about the compiler itself."""
        if not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        try:
            function = self.expression(node.func)
        except RuntimeError:
            return None
        if not isinstance(function, Form):
            return None
        if function.name == "isinstance":
            return self.instance_test(node)
        if function.name == "hasattr":
            return Condition(None, self.has_attribute(node))
        if function.name == "is_scripting":
            return Condition(None, True)
        if function.name in ("never", "is_tracing"):
            return Condition(None, False)
        return None

    def instance_test(self, node: ast.Call) -> Condition:
        value = self.as_value(self.expression(node.args[0]))
        wanted = self.test_types(node.args[1])
        possible = T.members(value.type())
        if value.type() is T.Any:
            kind = (
                T.union(*(t for t in wanted if t not in (T.AnyList, T.AnyTuple)))
                if not any(t in (T.AnyList, T.AnyTuple) for t in wanted)
                else T.Any
            )
            refine = self.refinement(node.args[0], kind) if kind is not T.Any else _nothing
            made = self.value("prim::isinstance", (value,), T.Bool, wanted=wanted)
            return Condition(made, None, refine)
        yes = [t for t in possible if any(T.is_subtype(t, w) for w in wanted)]
        maybe = [
            w
            for w in wanted
            if any(T.is_subtype(w, t) and w not in yes for t in possible if t not in yes)
        ]
        if len(yes) == len(possible):
            return Condition(None, True)
        if not yes and not maybe:
            return Condition(None, False)
        rest = [t for t in possible if t not in yes]
        made = self.value("prim::isinstance", (value,), T.Bool, wanted=wanted)
        return Condition(
            made,
            None,
            self.refinement(node.args[0], T.union(*yes, *maybe)),
            self.refinement(node.args[0], T.union(*rest)),
        )

    def test_types(self, node: ast.expr) -> list[T.Type]:
        if isinstance(node, ast.Tuple | ast.List):
            return [t for part in node.elts for t in self.test_types(part)]
        if (
            isinstance(node, ast.Name)
            and node.id in ("list", "tuple")
            and self.frame.find(node.id) is None
        ):
            return [T.AnyList if node.id == "list" else T.AnyTuple]
        if isinstance(node, ast.Attribute) and node.attr == "__class__":
            return [self.as_value(self.expression(node.value)).type()]
        found = self.types.of_ast(node, self, several=True)
        return list(found) if isinstance(found, tuple) else [found]

    def has_attribute(self, node: ast.Call) -> bool:
        thing = self.expression(node.args[0])
        name = node.args[1].value
        kind = (
            self.as_value(thing).type()
            if isinstance(thing, Value) or hasattr(thing, "receiver")
            else None
        )
        if isinstance(kind, T.ClassType):
            return (
                name in kind.attributes
                or name in kind.methods
                or name in kind.constants
                or name in kind.properties
                or name in kind.ignored
                or (kind.is_module and self.lazy_method(kind, name) is not None)
            )
        if isinstance(kind, T.InterfaceType):
            return name in kind.schemas
        if kind is not None:
            try:
                self.value_attr(self.as_value(thing), name)
                return True
            except RuntimeError:
                return False
        owner = thing.type if isinstance(thing, Class) else thing
        return hasattr(getattr(owner, "python", None), name)
