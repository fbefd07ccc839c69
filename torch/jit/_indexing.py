"""Subscripts of scripted code: tensors by numbers, slices, masks and None; lists, tuples,
dictionaries, strings and modules."""

from __future__ import annotations

import ast

import torch
from torch.jit import _types as T
from torch.jit._ir import Node, Value
from torch.jit._sugar import Module, Slice, Sugar, Tuple


def constant_of(value: Value | Sugar) -> object:
    """The Python value of a constant; raises LookupError where it is none."""
    if isinstance(value, Value):
        origin = value.origin
        if isinstance(origin, Node) and origin.kind_name == "prim::Constant":
            return origin.attrs["value"]
    elif hasattr(value, "python"):
        return value.python
    raise LookupError


def plain_index(node: ast.expr) -> ast.expr:
    """An index as syntax: generated code spells slices and the ellipsis as calls and names."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([plain_index(e) for e in node.elts], node.ctx), node)
    if isinstance(node, ast.Name) and node.id == "Ellipsis":
        return ast.copy_location(ast.Constant(Ellipsis), node)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return node
    if node.func.id != "slice" or node.keywords or not 1 <= len(node.args) <= 3:
        return node
    parts = [None if _is_none(a) else a for a in node.args]
    lower, upper, step = ([None, *parts, None] if len(parts) == 1 else [*parts, None])[:3]
    return ast.copy_location(ast.Slice(lower, upper, step), node)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_LONG = torch._C._script_number(torch.int64)
_END = 1 << 20  # the dimension behind the last one, where an ellipsis leaves nothing to count


def _next(dim: int) -> int:
    return _END if dim == -1 else dim + 1


class Indexing:
    """The part of the compiler for subscripts."""

    def on_Subscript(self, node: ast.Subscript) -> Value | Sugar:
        index = plain_index(node.slice)
        if isinstance(index, ast.Name) and isinstance(found := self.frame.find(index.id), Slice):
            index = found.node
        node = ast.copy_location(ast.Subscript(node.value, index, node.ctx), node)
        thing = self.expression(node.value)
        if isinstance(thing, Tuple | Module):
            found = self.static_item(thing, node.slice)
            if found is not None:
                return found
        if (
            isinstance(thing, Sugar)
            and hasattr(thing, "type")
            and not isinstance(thing.type, T.Type)
        ):
            self.fail("a type cannot be used as a value", node)
        value = self.as_value(thing)
        kind = value.type()
        if kind is T.Tensor:
            return self.tensor_item(value, node.slice)
        if isinstance(kind, T.TupleType):
            return self.tuple_subscript(value, node.slice)
        if isinstance(node.slice, ast.Slice):
            return self.sliced(value, node.slice)
        if isinstance(kind, T.ClassType) and kind.is_module and "__getitem__" not in kind.methods:
            return self.module_item(value, self.expression(node.slice))
        return self.subscript(value, self.rvalue(node.slice))

    def subscript(self, value: Value, index: Value | int) -> Value:
        if isinstance(index, int):
            index = self.const(index)
        kind = value.type()
        if isinstance(kind, T.ClassType) and "__getitem__" in kind.methods:
            return self.call_method(value, "__getitem__", [index], {})
        if isinstance(kind, T.ListType | T.DictType) or kind is T.String:
            return self.op("aten::__getitem__", [value, index])
        self.fail(f"'{kind.annotation_str}' object is not subscriptable")

    def static_item(self, thing: Tuple | Module, node: ast.expr) -> Value | Sugar | None:
        if isinstance(thing, Module):
            if isinstance(node, ast.Slice):
                return Tuple(self.module_items(thing.receiver)[self.static_slice(node)])
            return thing.item(self, self.expression(node))
        if isinstance(node, ast.Slice):
            return Tuple(thing.items[self.static_slice(node)])
        try:
            index = constant_of(self.expression(node))
        except LookupError:
            return None
        if not isinstance(index, int):
            self.fail("tuple index must be an integer")
        if not -len(thing.items) <= index < len(thing.items):
            self.fail("Tuple index out of range")
        return thing.items[index]

    def static_slice(self, node: ast.Slice) -> slice:
        parts = []
        for part in (node.lower, node.upper, node.step):
            try:
                parts.append(None if part is None else constant_of(self.expression(part)))
            except LookupError:
                self.fail("a tuple can only be sliced with constants")
        return slice(*parts)

    def tuple_subscript(self, value: Value, node: ast.expr) -> Value | Sugar:
        if isinstance(node, ast.Slice):
            return Tuple(self.unpack(value)[self.static_slice(node)])
        index_value = self.rvalue(node)
        try:
            index = constant_of(index_value)
        except LookupError:
            kinds = set(value.type().contained)
            if len(kinds) == 1:
                listed = self.make_list(self.unpack(value))
                return self.op("aten::__getitem__", [listed, index_value])
            self.fail(
                "Cannot index into a tuple with a non-integer literal because we cannot resolve "
                "the output type"
            )
        size = len(value.type().contained)
        if not isinstance(index, int):
            self.fail("tuple index must be an integer")
        if not -size <= index < size:
            self.fail("Tuple index out of range")
        return self.tuple_item(value, index % size)

    def bounds(self, node: ast.Slice) -> list[Value]:
        lower = self.rvalue(node.lower) if node.lower else self.none()
        upper = self.rvalue(node.upper) if node.upper else self.none()
        step = self.rvalue(node.step) if node.step else self.const(1)
        return [lower, upper, step]

    def sliced(self, value: Value, node: ast.Slice) -> Value:
        if not (isinstance(value.type(), T.ListType) or value.type() is T.String):
            self.fail(f"'{value.type().annotation_str}' object cannot be sliced")
        return self.op("aten::slice", [value, *self.bounds(node)])

    # ---- tensors

    def tensor_item(self, value: Value, node: ast.expr) -> Value:
        """Numbers, slices and None make views; what is left are tensors for one index call."""
        view, tensors = self.tensor_view(value, node)
        if not any(t is not None for t in tensors):
            return view
        return self.op("aten::index", [view, self.index_list(tensors)])

    def index_list(self, tensors: list[Value | None]) -> Value:
        items = [self.none() if t is None else t for t in tensors]
        while items and items[-1].type() is T.NoneT:
            items.pop()
        return self.value("prim::ListConstruct", items, T.ListType.of(T.OptionalType.of(T.Tensor)))

    def tensor_view(self, value: Value, node: ast.expr) -> tuple[Value, list[Value | None]]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        items: list[object] = []
        for part in parts:
            if isinstance(part, ast.Slice) or (
                isinstance(part, ast.Constant) and part.value is Ellipsis
            ):
                items.append(part)
            else:
                found = self.expression(part)
                if isinstance(found, Tuple) and not isinstance(node, ast.Tuple):
                    items.extend(self.as_value(v) for v in found.items)
                else:
                    items.append(self.as_value(found))
        dim, tensors = 0, []
        for i, item in enumerate(items):
            value, dim = self.index_step(value, item, dim, tensors, items[i + 1 :])
        return value, tensors

    def index_step(self, value, item, dim, tensors, rest) -> tuple[Value, int]:
        if isinstance(item, ast.Slice):
            if item.lower or item.upper or item.step:
                value = self.op("aten::slice", [value, self.const(dim), *self.bounds(item)])
            tensors.append(None)
            return value, _next(dim)
        if isinstance(item, ast.Constant):  # an ellipsis: count from the end
            taken = sum(1 for r in rest if not (isinstance(r, Value) and r.type() is T.NoneT))
            if taken == 0:
                return value, _END
            if not all(
                isinstance(r, ast.Slice) or (isinstance(r, Value) and r.type() in (T.Int, T.NoneT))
                for r in rest
            ):
                self.fail("an index tensor behind '...' isn't supported")
            return value, -taken
        kind = item.type()
        if kind is T.Int:
            # Numbers remove a dimension, so that the place of the next one stays.
            value = self.op("aten::select", [value, self.const(dim), item])
            return value, dim if dim >= 0 else _next(dim)
        if kind is T.NoneT:
            if dim == _END or dim < 0:  # behind an ellipsis: before what is still counted
                place = -1 if dim == _END else dim - 1
                tensors.append(None)
                return self.op("aten::unsqueeze", [value, self.const(place)]), dim
            value = self.op("aten::unsqueeze", [value, self.const(dim)])
            tensors.append(None)
            return value, dim + 1
        if isinstance(kind, T.ListType):
            wanted = {"dtype": self.const(_LONG)} if kind.element is T.Float else {}
            item = self.op("aten::tensor", [item], wanted)
        elif kind is T.Bool:
            item = self.op("aten::tensor", [item])
            value = self.op("aten::unsqueeze", [value, self.const(dim)])
        elif isinstance(kind, T.OptionalType) and kind.element is T.Tensor:
            item = self.value("prim::unchecked_cast", (item,), T.Tensor)
        elif kind is not T.Tensor:
            self.fail(
                f"Unsupported operation: indexing tensor with unsupported index type "
                f"'{kind.annotation_str}'. Only ints, slices, lists and tensors are supported"
            )
        tensors.append(item)
        return value, dim + 1

    # ---- assignment to items

    def store_item(self, target: ast.Subscript, value: Value) -> None:
        target = ast.copy_location(
            ast.Subscript(target.value, plain_index(target.slice), target.ctx), target
        )
        owner = self.rvalue(target.value)
        kind = owner.type()
        if kind is T.Tensor:
            view, tensors = self.tensor_view(owner, target.slice)
            if value.type() in (T.Int, T.Float) and all(t is None for t in tensors):
                self.op("aten::fill_", [view, value])
                return
            value = self.as_tensor_like(value, owner)
            if any(t is not None for t in tensors):
                self.op(
                    "aten::index_put_", [view, self.index_list(tensors), value, self.const(False)]
                )
            else:
                self.op("aten::copy_", [view, value, self.const(False)])
            return
        if isinstance(kind, T.ClassType) and "__setitem__" in kind.methods:
            self.call_method(owner, "__setitem__", [self.rvalue(target.slice), value], {})
            return
        if isinstance(target.slice, ast.Slice):
            self.fail("Sliced expression not yet supported for subscripted assignment.")
        index = self.rvalue(target.slice)
        wanted = (
            kind.element if isinstance(kind, T.ListType) else getattr(kind, "value", value.type())
        )
        value = self.try_fit(self.fit_assigned(value, wanted), wanted) or value
        self.op("aten::_set_item", [owner, index, value])

    def as_tensor_like(self, value: Value, owner: Value) -> Value:
        if value.type() is T.Tensor:
            return value
        options = {
            "dtype": self.op("prim::dtype", [owner]),
            "device": self.op("prim::device", [owner]),
        }
        return self.op("aten::tensor", [value], options)

    def augmented_item(self, step: ast.AugAssign, inplace: str | None) -> None:
        owner = self.rvalue(step.target.value)
        if owner.type() is T.Tensor and inplace:
            view, tensors = self.tensor_view(owner, step.target.slice)
            right = self.rvalue(step.value)
            if not any(t is not None for t in tensors):
                self.op("aten::" + inplace, [view, right])
                return
            indices = self.index_list(tensors)
            item = self.op("aten::index", [view, indices])
            made = self.augmented_value(step, item, right)
            self.op("aten::index_put_", [view, indices, made, self.const(False)])
            return
        if isinstance(owner.type(), T.ClassType):
            index = self.rvalue(step.target.slice)
            item = self.as_value(self.call_method(owner, "__getitem__", [index], {}))
            made = self.augmented_value(step, item, self.rvalue(step.value))
            self.call_method(owner, "__setitem__", [index, made], {})
            return
        index = self.rvalue(step.target.slice)
        item = self.op("aten::__getitem__", [owner, index])
        made = self.augmented_value(step, item, self.rvalue(step.value))
        self.op("aten::_set_item", [owner, index, made])
