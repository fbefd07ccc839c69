"""Expressions of scripted code: literals, names, attributes, arithmetic, comprehensions."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable

import torch
from torch.jit import _types as T
from torch.jit._conditions import Conditions
from torch.jit._indexing import Indexing, constant_of
from torch.jit._ir import Node, Value
from torch.jit._sugar import Function, Module, Operator, Sugar, Tuple, iterable_of

_BINARY = {
    ast.Add: ("aten::add", "__add__", "add_"), ast.Sub: ("aten::sub", "__sub__", "sub_"),
    ast.Mult: ("aten::mul", "__mul__", "mul_"), ast.Div: ("aten::div", "__truediv__", "div_"),
    ast.FloorDiv: ("aten::floordiv", "__floordiv__", "floor_divide_"),
    ast.Mod: ("aten::remainder", "__mod__", "remainder_"),
    ast.Pow: ("aten::pow", "__pow__", "pow_"),
    ast.MatMult: ("aten::matmul", "__matmul__", None),
    ast.BitAnd: ("aten::__and__", "__and__", "bitwise_and_"),
    ast.BitOr: ("aten::__or__", "__or__", "bitwise_or_"),
    ast.BitXor: ("aten::__xor__", "__xor__", "bitwise_xor_"),
    ast.LShift: ("aten::__lshift__", "__lshift__", None),
    ast.RShift: ("aten::__rshift__", "__rshift__", None),
}  # fmt: skip
_MIRRORED = {"aten::lt": "aten::gt", "aten::gt": "aten::lt", "aten::le": "aten::ge",
             "aten::ge": "aten::le", "aten::eq": "aten::eq", "aten::ne": "aten::ne"}  # fmt: skip
_NUMBERS = (T.Int, T.Float, T.Bool, T.Complex, T.Number)
# Attributes of tensors that are operators of another name, or properties.
_TENSOR_PROPERTIES = {
    "dtype": "prim::dtype", "device": "prim::device", "shape": "aten::size", "grad": "prim::grad",
    "data": "prim::data", "is_cuda": "prim::is_cuda", "is_cpu": "prim::is_cpu",
    "is_sparse": "prim::is_sparse", "is_sparse_csr": "prim::is_sparse_csr",
    "is_mkldnn": "prim::is_mkldnn", "is_quantized": "prim::is_quantized", "is_mps": "prim::is_mps",
    "is_xpu": "prim::is_xpu", "is_xla": "prim::is_xla", "is_nested": "prim::is_nested",
    "is_vulkan": "prim::is_vulkan", "is_meta": "prim::is_meta", "is_leaf": "aten::is_leaf",
    "requires_grad": "prim::requires_grad", "layout": "prim::layout", "ndim": "aten::dim",
    "T": "aten::numpy_T", "mT": "aten::mT", "mH": "aten::mH", "H": "aten::matrix_H",
    "real": "aten::real", "imag": "aten::imag", "itemsize": "prim::itemsize",
    "nbytes": "prim::nbytes",
}  # fmt: skip
# Methods of tensors that convert to a dtype.
_TENSOR_CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16,
    "bfloat16": torch.bfloat16, "int": torch.int32, "long": torch.int64, "short": torch.int16,
    "char": torch.int8, "byte": torch.uint8, "bool": torch.bool, "cfloat": torch.complex64,
    "cdouble": torch.complex128,
}  # fmt: skip


class Expressions(Indexing, Conditions):
    """The part of the compiler that makes values of expressions."""

    def expression(self, node: ast.expr, hint: T.Type | None = None) -> Value | Sugar:
        """What an expression stands for; `hint` is the type wanted of an empty container."""
        before, self.place_node = self.place_node, node
        try:
            method = getattr(self, "on_" + type(node).__name__, None)
            if method is None:
                from torch.jit.frontend import NotSupportedError

                raise NotSupportedError(
                    self.place(), f"{type(node).__name__} expressions aren't supported"
                )
            if isinstance(
                node,
                ast.List
                | ast.Dict
                | ast.Tuple
                | ast.ListComp
                | ast.DictComp
                | ast.Call
                | ast.IfExp,
            ):
                return method(node, hint)
            return method(node)
        finally:
            self.place_node = before

    def as_value(self, thing: Value | Sugar | None) -> Value:
        if isinstance(thing, Value):
            return thing
        if thing is None:
            return self.none()
        return thing.value(self)

    def rvalue(self, node: ast.expr, hint: T.Type | None = None) -> Value:
        return self.as_value(self.expression(node, hint))

    # ---- literals

    def on_Constant(self, node: ast.Constant) -> Value:
        if node.value is Ellipsis:
            self.fail("'...' can only be used as an index", node)
        if isinstance(node.value, bytes):
            self.fail("bytes aren't supported", node)
        if isinstance(node.value, int) and not -(2**63) <= node.value < 2**63:
            self.fail("Integer literal is out of range", node)
        return self.const(node.value)

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        text, parts = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value).replace("{", "{{").replace("}", "}}")
                continue
            if part.format_spec is not None:
                from torch.jit.frontend import NotSupportedError

                raise NotSupportedError(
                    self.place(), "Don't support formatting with format specs in JoinedStr"
                )
            if part.conversion not in (-1, 115, 114):
                from torch.jit.frontend import NotSupportedError

                raise NotSupportedError(self.place(), "Don't support conversion in JoinedStr")
            text += "{}"
            value = self.rvalue(part.value)
            parts.append(self.op("prim::repr", [value]) if part.conversion == 114 else value)
        return self.op("aten::format", [self.const(text), *parts])

    def on_Name(self, node: ast.Name) -> Value | Sugar:
        found = self.frame.find(node.id)
        if found is not None:
            if isinstance(found, Sugar) and type(found).__name__ == "Undefined":
                self.fail(found.why, node)
            return found
        found = self.resolve(node.id, self)
        if found is None:
            self.fail(f"undefined value {node.id}", node)
        return found

    def on_Tuple(self, node: ast.Tuple, hint: T.Type | None = None) -> Sugar:
        return Tuple(self.elements(node.elts, hint))

    def elements(self, nodes: list[ast.expr], hint: T.Type | None = None) -> list[Value | Sugar]:
        out: list[Value | Sugar] = []
        inner = (
            hint.contained
            if isinstance(hint, T.TupleType) and len(hint.contained) == len(nodes)
            else None
        )
        for i, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                out.extend(self.spread(self.expression(node.value)))
            else:
                out.append(self.expression(node, inner[i] if inner else None))
        return out

    def spread(self, thing: Value | Sugar) -> list[Value | Sugar]:
        """The parts that a star puts in its place."""
        if isinstance(thing, Value) and isinstance(thing.type(), T.ListType):
            self.fail("cannot use a starred list here: its length is not known")
        items = iterable_of(self, thing).static(self)
        if items is None:
            self.fail("starred expressions must have a known length")
        return items

    def on_List(self, node: ast.List, hint: T.Type | None = None) -> Value:
        if isinstance(hint, T.OptionalType):
            hint = hint.element
        wanted = hint.element if isinstance(hint, T.ListType) else None
        items = [self.as_value(v) for v in self.list_elements(node.elts, wanted)]
        if not items:
            kind = hint if isinstance(hint, T.ListType) else T.ListType.of(T.Tensor)
            return self.value(
                "prim::ListConstruct", (), kind, untyped=not isinstance(hint, T.ListType)
            )
        return self.make_list(items, wanted)

    def list_elements(self, nodes, wanted) -> list[Value | Sugar]:
        out: list[Value | Sugar] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                out.extend(self.spread(self.expression(node.value)))
            else:
                out.append(self.expression(node, wanted))
        return out

    def make_list(self, items: list[Value], wanted: T.Type | None = None) -> Value:
        """A list of values, of the wanted element type or of the one they have in common."""
        if wanted is not None:
            fitted = [self.try_fit(v, wanted) for v in items]
            if all(v is not None for v in fitted):
                return self.value("prim::ListConstruct", fitted, T.ListType.of(wanted))
        kind = items[0].type()
        for item in items[1:]:
            joined = T.unify(kind, item.type())
            if joined is None and kind in _NUMBERS and item.type() in _NUMBERS:
                self.fail(
                    "Lists must contain only a single type\nFound "
                    f"{kind.annotation_str} and {item.type().annotation_str}"
                )
            kind = joined if joined is not None else T.union(kind, item.type())
        return self.value("prim::ListConstruct", items, T.ListType.of(kind))

    def on_Dict(self, node: ast.Dict, hint: T.Type | None = None) -> Value:
        if isinstance(hint, T.OptionalType):
            hint = hint.element
        known = hint if isinstance(hint, T.DictType) else None
        if not node.keys:
            kind = known or T.DictType.of(T.String, T.Tensor)
            return self.value("prim::DictConstruct", (), kind, untyped=known is None)
        inputs, keys, items = [], [], []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self.fail("'**' in dictionaries isn't supported", node)
            keys.append(self.rvalue(key))
            items.append(self.rvalue(value, known.value if known else None))
        key_type, value_type = (
            (known.key, known.value) if known else (self.common_type(keys), self.common_type(items))
        )
        for k, v in zip(keys, items, strict=True):
            inputs += [self.try_fit(k, key_type) or k, self.try_fit(v, value_type) or v]
        return self.value("prim::DictConstruct", inputs, T.DictType.of(key_type, value_type))

    def common_type(self, values: list[Value]) -> T.Type:
        kind = values[0].type()
        for value in values[1:]:
            kind = T.unify(kind, value.type()) or T.union(kind, value.type())
        return kind

    # ---- comprehensions

    def on_ListComp(self, node: ast.ListComp, hint: T.Type | None = None) -> Value:
        wanted = hint.element if isinstance(hint, T.ListType) else None
        if len(node.generators) != 1:
            self.fail("Only a single generator is supported in list comprehensions", node)
        items = self.static_comprehension(node)
        if items is not None:
            return self.make_list(items, wanted) if items else self.on_List(ast.List([]), hint)
        out = self.value("prim::ListConstruct", (), hint or T.ListType.of(T.Tensor))

        def add() -> None:
            value = self.rvalue(node.elt, wanted)
            if wanted is None:
                out.setType(T.ListType.of(value.type()))
            self.op("aten::append", [out, value])

        self.comprehension(node, add)
        return out

    def static_comprehension(self, node: ast.ListComp) -> list[Value] | None:
        generator = node.generators[0]
        before = len(self.frame.block.nodes_list)
        items = iterable_of(self, self.expression(generator.iter)).static(self)
        if items is None or generator.ifs:
            del self.frame.block.nodes_list[before:]
            return None
        saved = dict(self.frame.names)
        out = []
        for item in items:
            self.store(generator.target, item, node, fresh=True)
            out.append(self.rvalue(node.elt))
        self.frame.names = saved
        return out

    def on_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self.on_ListComp(node)

    def on_DictComp(self, node: ast.DictComp, hint: T.Type | None = None) -> Value:
        known = hint if isinstance(hint, T.DictType) else None
        out = self.value("prim::DictConstruct", (), known or T.DictType.of(T.String, T.Tensor))

        def add() -> None:
            key, value = self.rvalue(node.key), self.rvalue(node.value)
            if known is None:
                out.setType(T.DictType.of(key.type(), value.type()))
            self.op("aten::_set_item", [out, key, value])

        self.comprehension(node, add)
        return out

    def comprehension(self, node, add: Callable[[], None]) -> None:
        generator = node.generators[0]

        def body() -> None:
            if not generator.ifs:
                add()
                return
            test = (
                generator.ifs[0]
                if len(generator.ifs) == 1
                else ast.BoolOp(ast.And(), generator.ifs)
            )
            condition = self.condition(ast.copy_location(test, node))
            if condition.static is not None:
                if condition.static:
                    add()
                return

            def then() -> None:
                condition.refine_true(self)
                add()

            self.branch(condition.value, then, lambda: None)

        items = iterable_of(self, self.expression(generator.iter))

        def bind(index: Value) -> None:
            self.store(generator.target, items.item(self, index), node, fresh=True)

        outer = dict(self.frame.names)
        self.loop([body], (items.length(self), bind), None, ast.Pass())
        self.frame.names = outer

    # ---- attributes

    def on_Attribute(self, node: ast.Attribute) -> Value | Sugar:
        return self.attribute(self.expression(node.value), node.attr)

    def attribute(self, thing: Value | Sugar, name: str) -> Value | Sugar:
        if isinstance(thing, Sugar):
            return thing.attr(self, name)
        return self.value_attr(thing, name)

    def value_attr(self, value: Value, name: str) -> Value | Sugar:
        kind = value.type()
        if isinstance(kind, T.ClassType | T.InterfaceType):
            return self.module_attr(value, name)
        if isinstance(kind, T.CustomClassType):
            return self.custom_method(value, name)
        if isinstance(kind, T.AwaitType):
            return self.attribute(self.form_awaitable_wait([value], {}), name)
        if kind is T.Tensor and name in _TENSOR_PROPERTIES:
            return self.op(_TENSOR_PROPERTIES[name], [value])
        if isinstance(kind, T.TupleType) and kind.names and name in kind.names:
            return self.tuple_item(value, kind.names.index(name))
        if kind is T.Device and name in ("type", "index"):
            return self.op("prim::" + name, [value])
        if kind is T.Complex and name in ("real", "imag"):
            return self.op("aten::" + name, [value])
        if isinstance(kind, T.EnumType):
            if name == "value":
                made = self.op("prim::EnumValue", [value])
                return made.setType(kind.contained[0])
            if name == "name":
                return self.op("prim::EnumName", [value])
        if kind is T.NoneT or isinstance(kind, T.OptionalType):
            self.fail(f"'{kind.annotation_str}' object has no attribute or method '{name}'.")
        return self.value_method(value, name)

    def value_method(self, value: Value, name: str) -> Sugar:
        from torch.jit._schema import schemas

        kind = value.type()
        if kind in (T.Int, T.Float, T.Bool, T.Complex, T.Number):
            self.fail(f"'{kind.annotation_str}' object has no attribute or method '{name}'.")
        if kind is T.Tensor and name in _TENSOR_CASTS:
            number = self.const(torch._C._script_number(_TENSOR_CASTS[name]))
            return self.bound_call(
                lambda a, k: self.op("aten::to", [value, number], overload="dtype")
            )
        if kind is T.Tensor and name == "__getitem__":
            return self.bound_call(lambda a, k: self.tensor_getitem(value, a))
        if kind is T.Tensor and name == "where":
            return self.bound_call(lambda a, k: self.op("aten::where", [a[0], value, *a[1:]], k))
        if kind is T.Tensor and name in (
            "tolist",
            "to",
            "new_tensor",
            "split",
            "norm",
            "unique",
            "backward",
            "type",
            "__contains__",
            "__len__",
            "stft",
            "istft",
        ):
            if hasattr(self, "tensor_" + name):
                return self.bound_form("tensor_" + name, value)
        if isinstance(kind, T.FutureType) and name in ("wait", "value"):
            return Operator("aten::wait", value)
        if not schemas("aten::" + name) or kind is T.Any:
            if not schemas("prim::" + name):
                self.fail(f"'{kind.annotation_str}' object has no attribute or method '{name}'")
            return Operator("prim::" + name, value)
        return Operator("aten::" + name, value)

    def tensor_getitem(self, value: Value, args: list[Value | Sugar]) -> Value:
        if len(args) != 1:
            self.fail(f"__getitem__ expected exactly 1 argument, got {len(args)}")
        self.frame.names["$index"] = args[0]
        return self.tensor_item(value, ast.Name("$index", ast.Load()))

    def bound_form(self, name: str, value: Value) -> Sugar:
        method = getattr(self, name)
        return self.bound_call(lambda args, kwargs: method(value, args, kwargs))

    def bound_call(self, run: Callable[[list[typing.Any], dict[str, typing.Any]], Value]) -> Sugar:
        """Something that is called: `run` gets the arguments."""

        class Bound(Sugar):
            def call(self, c, args, kwargs):
                return run(args, kwargs)

        return Bound()

    def tuple_item(self, value: Value, i: int) -> Value:
        kind = value.type().contained[i]
        return self.value("prim::TupleIndex", (value, self.const(i)), kind, index=i)

    def unpack(self, value: Value, count: int | None = None) -> list[Value]:
        """The parts of a tuple, or of a list of which the length is asserted."""
        kind = value.type()
        if isinstance(kind, T.TupleType):
            node = self.node("prim::TupleUnpack", (value,), kind.contained)
            return list(node.outputs_list)
        if isinstance(kind, T.ListType) and count is not None:
            node = self.node("prim::ListUnpack", (value,), [kind.element] * count)
            return list(node.outputs_list)
        self.fail(f"a value of type {kind.annotation_str} cannot be used as a tuple")

    # ---- arithmetic

    def on_BinOp(self, node: ast.BinOp) -> Value | Sugar:
        left, right = self.expression(node.left), self.expression(node.right)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and isinstance(node.op, ast.Add):
            return Tuple([*left.items, *right.items])
        folded = self.folded(node.op, left, right)
        if folded is not None:
            return self.const(folded)
        return self.binary(type(node.op), self.as_value(left), self.as_value(right))

    def folded(self, op: ast.operator, left: Value | Sugar, right: Value | Sugar) -> int | None:
        """The result of integer arithmetic between two constants."""
        fold = {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__}.get(type(op))
        try:
            a, b = constant_of(left), constant_of(right)
        except LookupError:
            return None
        if fold is None or type(a) is not int or type(b) is not int:
            return None
        result = fold(a, b)
        return result if -(2**63) <= result < 2**63 else None

    def binary(self, op: type[ast.operator], left: Value, right: Value) -> Value:
        name, magic, _ = _BINARY[op]
        kind = left.type()
        if isinstance(kind, T.ClassType) and magic in kind.methods:
            return self.as_value(self.call_method(left, magic, [right], {}))
        if (
            isinstance(kind, T.TupleType)
            and isinstance(right.type(), T.TupleType)
            and op is ast.Add
        ):
            return Tuple([*self.unpack(left), *self.unpack(right)]).value(self)
        if isinstance(kind, T.ClassType):
            self.fail(f"'{kind.qualified_name}' object has no attribute or method '{magic}'")
        if kind is T.String and op is ast.Mod:
            return self.op("aten::percentFormat", [left, right])
        if op is ast.FloorDiv and T.Tensor in (kind, right.type()):
            name = "aten::floor_divide"
            if kind is not T.Tensor:
                left = self.op("prim::NumToTensor", [left])
        if kind in _NUMBERS and right.type() is T.Tensor:
            return self.number_and_tensor(name, left, right)
        if (
            kind in (T.Int,)
            and isinstance(right.type(), T.ListType | T.StringType)
            and op is ast.Mult
        ):
            left, right = right, left
        return self.op(name, [left, right])

    def number_and_tensor(self, name: str, left: Value, right: Value) -> Value:
        if name in ("aten::add", "aten::mul", "aten::__and__", "aten::__or__", "aten::__xor__"):
            return self.op(name, [right, left])
        if name == "aten::sub":
            return self.op("aten::rsub", [right, left])
        if name == "aten::div":
            return self.op("aten::mul", [self.op("aten::reciprocal", [right]), left])
        return self.op(name, [left, right])

    def comparison(self, name: str, left: Value, right: Value) -> Value:
        magic = f"__{name.rpartition('::')[2]}__"
        if isinstance(left.type(), T.ClassType) and magic in left.type().methods:
            return self.as_value(self.call_method(left, magic, [right], {}))
        if left.type() in _NUMBERS and right.type() is T.Tensor:
            return self.op(_MIRRORED[name], [right, left])
        return self.op(name, [left, right])

    def on_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.condition_value(node)
        value = self.rvalue(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            name, magic = "aten::bitwise_not", "__invert__"
        else:
            name, magic = "aten::neg", "__neg__"
            constant = value.origin if isinstance(value.origin, Node) else None
            if (
                constant is not None
                and constant.kind_name == "prim::Constant"
                and isinstance(constant.attrs["value"], int | float | complex)
                and not isinstance(constant.attrs["value"], bool)
            ):
                return self.const(-constant.attrs["value"])
        if isinstance(value.type(), T.ClassType) and magic in value.type().methods:
            return self.as_value(self.call_method(value, magic, [], {}))
        return self.op(name, [value])

    def on_Compare(self, node: ast.Compare) -> Value:
        return self.condition_value(node, raw=True)

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        return self.condition_value(node)

    def on_IfExp(self, node: ast.IfExp, hint: T.Type | None = None) -> Value | Sugar:
        condition = self.condition(node.test)
        if condition.static is not None:
            (condition.refine_true if condition.static else condition.refine_false)(self)
            return self.expression(node.body if condition.static else node.orelse, hint)
        made = self.node("prim::If", (condition.value,))
        values = []
        for part, refine in (
            (node.body, condition.refine_true),
            (node.orelse, condition.refine_false),
        ):
            block = made.add_block()

            def run(part=part, refine=refine, block=block) -> None:
                refine(self)
                value = self.rvalue(part, hint)
                values.append(value)
                block.results.append(value)

            self.in_block(block, run)
        kind = (
            hint if hint is not None and all(T.is_subtype(v.type(), hint) for v in values) else None
        )
        kind = kind or T.unify(values[0].type(), values[1].type())
        if kind is None:
            self.fail(
                f"Type mismatch: one branch of the expression has type "
                f"{values[0].type().annotation_str}, the other {values[1].type().annotation_str}",
                node,
            )
        return made.add_output(kind)

    def on_NamedExpr(self, node: ast.NamedExpr) -> Value | Sugar:
        value = self.expression(node.value)
        self.store(node.target, value, node)
        return value

    def on_Starred(self, node: ast.Starred) -> typing.NoReturn:
        self.fail("a starred expression is not allowed here", node)

    # ---- assignment

    def store(
        self, target: ast.expr, value: Value | Sugar, node: ast.AST, fresh: bool = False
    ) -> None:
        if isinstance(target, ast.Name):
            if fresh:
                self.define(target.id, value)
            else:
                self.assign(target.id, value, node)
        elif isinstance(target, ast.Tuple | ast.List):
            self.store_parts(target, value, node, fresh)
        elif isinstance(target, ast.Attribute):
            owner = self.as_value(self.expression(target.value))
            self.set_attr(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.store_item(target, self.as_value(value))
        else:
            self.fail("unsupported target of an assignment", node)

    def store_parts(self, target, value: Value | Sugar, node: ast.AST, fresh: bool) -> None:
        count = len(target.elts)
        star = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
        if star is not None and count == 1:
            self.fail(
                "A Starred expression may only appear on the lhs within the presence of another "
                "non-starred expression",
                node,
            )
        if isinstance(value, Tuple):
            parts: list[Value | Sugar] = list(value.items)
        elif isinstance(value, Module):
            parts = self.module_items(value.receiver)
        elif isinstance(value, Function):
            self.fail(f"{value.what} cannot be used as a tuple", node)
        else:
            parts = list(self.unpack(self.as_value(value), count if star is None else None))
        if star is not None:
            rest = count - star - 1
            middle = parts[star : len(parts) - rest]
            parts = [*parts[:star], Tuple(middle), *parts[len(parts) - rest :]]
        if len(parts) != count:
            few = "too many values" if len(parts) > count else "need more values"
            self.fail(
                f"{few} to unpack: need {count} values on the left-hand side but found "
                f"{len(parts)}",
                node,
            )
        for part, to in zip(parts, target.elts, strict=True):
            self.store(to.value if isinstance(to, ast.Starred) else to, part, node, fresh)

    def augmented(self, step: ast.AugAssign) -> None:
        _, _, inplace = _BINARY[type(step.op)]
        target = step.target
        if isinstance(target, ast.Subscript):
            self.augmented_item(step, inplace)
            return
        load = ast.copy_location(
            ast.Name(target.id, ast.Load())
            if isinstance(target, ast.Name)
            else ast.Attribute(target.value, target.attr, ast.Load()),
            target,
        )
        left, right = self.rvalue(load), self.rvalue(step.value)
        self.store(target, self.augmented_value(step, left, right), step)

    def augmented_value(self, step: ast.AugAssign, left: Value, right: Value) -> Value:
        _, magic, inplace = _BINARY[type(step.op)]
        kind = left.type()
        own = f"__i{magic[2:]}"
        if isinstance(kind, T.ClassType) and own in kind.methods:
            return self.as_value(self.call_method(left, own, [right], {}))
        if isinstance(kind, T.ClassType) and magic not in kind.methods:
            self.fail(
                f"Cannot emit inplace op on {kind} since it does not define an {own} or {magic} "
                "method"
            )
        if kind is T.Tensor and inplace:
            return self.op("aten::" + inplace, [left, right])
        if isinstance(kind, T.ListType) and isinstance(step.op, ast.Add):
            return self.op("aten::add_", [left, right])
        if isinstance(kind, T.ListType) and isinstance(step.op, ast.Mult):
            return self.op("aten::mul_", [left, right])
        return self.binary(type(step.op), left, right)

    def exception(self, node: ast.expr) -> tuple[Value, Value]:
        """The message and the class name of what a raise statement raises."""
        args: list[ast.expr] = []
        name = node
        if isinstance(node, ast.Call):
            args, name = node.args, node.func
        found = self.expression(name) if isinstance(name, ast.Name | ast.Attribute) else None
        python = getattr(found, "python", None)
        if isinstance(python, type) and issubclass(python, BaseException):
            cls = self.const(f"{python.__module__}.{python.__qualname__}")
        elif isinstance(found, Value) and found.type() is T.String:
            return found, self.none()
        else:
            cls = self.none()
        if not args:
            return self.const(""), cls
        parts = [
            self.op("aten::str", [self.rvalue(a)]) if not _is_string(a) else self.rvalue(a)
            for a in args
        ]
        if len(parts) == 1:
            return parts[0], cls
        return self.op(
            "aten::format", [self.const(f"({', '.join(['{}'] * len(parts))})"), *parts]
        ), cls


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
