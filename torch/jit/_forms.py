"""Builtin functions of Python and torch.jit inside scripted code, each by its own rule. A method
`syntax_NAME` gets the call as it is written, `form_NAME` its arguments."""

from __future__ import annotations

import ast

from torch.jit import _types as T
from torch.jit._indexing import constant_of, plain_index
from torch.jit._ir import Value
from torch.jit._sugar import (
    Closure,
    Enumerate,
    Function,
    Module,
    Range,
    Slice,
    Sugar,
    Tuple,
    Zip,
    iterable_of,
)

_CASTS = {
    "int": "aten::Int",
    "float": "aten::Float",
    "bool": "aten::Bool",
    "complex": "aten::Complex",
}


class Forms:
    """The part of the compiler for builtin functions."""

    # ---- types

    def syntax_annotate(self, node: ast.Call, hint) -> Value:
        wanted = self.types.of_ast(node.args[0], self)
        value = self.rvalue(node.args[1], wanted)
        fitted = self.try_fit(value, wanted)
        if fitted is None and value.type() is T.Tensor:
            fitted = self.convert(value, wanted)
        if fitted is None:
            self.fail(
                f"expected an expression of type {wanted.annotation_str} but found "
                f"{value.type().annotation_str}",
                node,
            )
        if fitted.type() is not wanted:
            return self.value("prim::annotate", (fitted,), wanted)
        return fitted

    def syntax_unchecked_cast(self, node: ast.Call, hint) -> Value:
        wanted = self.types.of_ast(node.args[0], self)
        return self.value("prim::unchecked_cast", (self.rvalue(node.args[1]),), wanted)

    def syntax_uninitialized(self, node: ast.Call, hint) -> Value:
        return self.uninitialized(self.types.of_ast(node.args[0], self))

    def syntax_isinstance(self, node: ast.Call, hint) -> Value:
        return self.condition_value(node)

    syntax_hasattr = syntax_is_scripting = syntax_is_tracing = syntax_never = syntax_isinstance

    def syntax_cast(self, node: ast.Call, hint) -> Value:
        return self.syntax_unchecked_cast(node, hint)

    def syntax_getattr(self, node: ast.Call, hint) -> Value | Sugar:
        thing = self.expression(node.args[0])
        try:
            name = constant_of(self.expression(node.args[1]))
        except LookupError:
            self.fail("getattr's second argument must be a string literal", node)
        if len(node.args) == 3:
            test = ast.copy_location(
                ast.Call(node.func, [node.args[0], ast.Constant(name)], []), node
            )
            if not self.has_attribute(test):
                return self.expression(node.args[2])
        return self.attribute(thing, name)

    def syntax_super(self, node: ast.Call, hint) -> Sugar:
        receiver = self.frame.find("self")
        compiler = self

        class Super(Sugar):
            def attr(self, c, name):
                maker = getattr(receiver.type(), "make_super_method", None)
                found = maker(name, compiler.function) if maker else None
                if found is None:
                    c.fail(f"super() has no method '{name}'")

                class Bound(Sugar):
                    def call(self, c, args, kwargs):
                        return c.call_function(found, [receiver, *args], kwargs)

                return Bound()

        return Super()

    def syntax_sorted(self, node: ast.Call, hint) -> Value:
        value = self.op("aten::sorted", [self.sequence_value(self.expression(node.args[0]))])
        for keyword in node.keywords:
            if keyword.arg == "reverse":
                self.op("aten::sort", [value, self.rvalue(keyword.value)])
        return value

    # ---- numbers and text

    def form_cast_to(self, name: str, args) -> Value:
        if not args:
            return self.const({"int": 0, "float": 0.0, "bool": False, "complex": 0j}[name])
        value = self.as_value(args[0])
        kind = value.type()
        wanted = {"int": T.Int, "float": T.Float, "bool": T.Bool, "complex": T.Complex}[name]
        if kind is wanted:
            return value
        if name == "bool":
            return self.truth(value)
        magic = f"__{name}__"
        if isinstance(kind, T.ClassType) and magic in kind.methods:
            return self.as_value(self.call_method(value, magic, [], {}))
        if isinstance(kind, T.ClassType | T.ListType | T.DictType | T.TupleType) or kind is T.NoneT:
            self.fail(f"Cannot cast type {kind.annotation_str} to {name}")
        return self.op(_CASTS[name], [value, *args[1:]])

    def form_int(self, args, kwargs) -> Value:
        return self.form_cast_to("int", args)

    def form_float(self, args, kwargs) -> Value:
        return self.form_cast_to("float", args)

    def form_bool(self, args, kwargs) -> Value:
        return self.form_cast_to("bool", args)

    def form_complex(self, args, kwargs) -> Value:
        if len(args) == 2:
            parts = [self.form_float([a], {}) for a in args]
            return self.op("aten::Complex", parts)
        return self.form_cast_to("complex", args)

    def form_str(self, args, kwargs) -> Value:
        if not args:
            return self.const("")
        value = self.as_value(args[0])
        if isinstance(value.type(), T.ClassType) and "__str__" in value.type().methods:
            return self.as_value(self.call_method(value, "__str__", [], {}))
        return self.op("aten::str", [value])

    def form_print(self, args, kwargs) -> Value:
        self.op("prim::Print", [self.as_value(a) for a in args])
        return self.none()

    def form_len(self, args, kwargs) -> Value:
        thing = args[0]
        if isinstance(thing, Tuple):
            return self.const(len(thing.items))
        if isinstance(thing, Range):
            return thing.length(self)
        value = self.as_value(thing)
        kind = value.type()
        if isinstance(kind, T.TupleType):
            return self.const(len(kind.contained))
        if isinstance(kind, T.ClassType):
            if "__len__" in kind.methods:
                return self.as_value(self.call_method(value, "__len__", [], {}))
            if kind.is_module:
                return self.const(len(self.module_keys(value)))
        return self.op("aten::len", [value])

    def form_abs(self, args, kwargs) -> Value:
        value = self.as_value(args[0])
        return self.op("aten::abs" if value.type() is T.Tensor else "prim::abs", [value])

    def form_round(self, args, kwargs) -> Value:
        return self.op("aten::round", args, kwargs)

    def form_divmod(self, args, kwargs) -> Value | Sugar:
        return self.op("aten::divmod", args)

    def form_pow(self, args, kwargs) -> Value:
        return self.op("aten::pow", args)

    def form_hash(self, args, kwargs) -> Value:
        value = self.as_value(args[0])
        if isinstance(value.type(), T.ClassType) and "__hash__" in value.type().methods:
            return self.as_value(self.call_method(value, "__hash__", [], {}))
        return self.op("aten::hash", [value])

    def form_id(self, args, kwargs) -> Value:
        return self.op("prim::id", args)

    def form_operator(self, name: str, args, kwargs) -> Value | Sugar:
        return self.op(name, args, kwargs)

    def form_ord(self, args, kwargs) -> Value:
        return self.op("aten::ord", args)

    def form_chr(self, args, kwargs) -> Value:
        return self.op("aten::chr", args)

    def form_bin(self, args, kwargs) -> Value:
        return self.op("aten::bin", args)

    def form_hex(self, args, kwargs) -> Value:
        return self.op("aten::hex", args)

    def form_oct(self, args, kwargs) -> Value:
        return self.op("aten::oct", args)

    def form_min(self, args, kwargs) -> Value | Sugar:
        return self.extreme("min", args)

    def form_max(self, args, kwargs) -> Value | Sugar:
        return self.extreme("max", args)

    def extreme(self, name: str, args) -> Value | Sugar:
        values = [self.as_value(a) for a in args]
        if len(values) == 1:
            if values[0].type() is T.Tensor:
                return self.op("aten::" + name, values)
            return self.op("prim::" + name, [self.sequence_value(values[0])])
        out = values[0]
        for value in values[1:]:
            # A tensor beside a number counts as a number.
            kind = "aten::" if out.type() is T.Tensor and value.type() is T.Tensor else "prim::"
            out = self.op(kind + name, [out, value])
        return out

    def form_sum(self, args, kwargs) -> Value:
        value = self.sequence_value(args[0])
        total = self.op("aten::sum", [value])
        return total if len(args) == 1 else self.op("aten::add", [total, args[1]])

    def form_all(self, args, kwargs) -> Value:
        return self.op("aten::all", [self.sequence_value(args[0])])

    def form_any(self, args, kwargs) -> Value:
        return self.op("aten::any", [self.sequence_value(args[0])])

    # ---- containers and iterables

    def sequence_value(self, thing: Value | Sugar) -> Value:
        """A list (or tensor) of what a loop over the thing would see."""
        if isinstance(thing, Value) and (
            thing.type() is T.Tensor or isinstance(thing.type(), T.ListType)
        ):
            return thing
        return self.form_list([thing], {})

    def form_range(self, args, kwargs) -> Sugar:
        values = []
        for arg in args:
            value = self.as_value(arg)
            if value.type() is T.Tensor:
                value = self.value("aten::IntImplicit", (value,), T.Int)
            if value.type() is not T.Int:
                self.fail(
                    f"all inputs of range must be ints, found {value.type().annotation_str} in "
                    f"argument {len(values)}"
                )
            values.append(value)
        if not 1 <= len(values) <= 3:
            self.fail(f"range expected at most 3 arguments, got {len(values)}")
        if len(values) == 1:
            return Range(None, values[0], None)
        return Range(values[0], values[1], values[2] if len(values) == 3 else self.const(1))

    def form_enumerate(self, args, kwargs) -> Sugar:
        start = args[1] if len(args) > 1 else kwargs.get("start")
        return Enumerate(
            iterable_of(self, args[0]), self.as_value(start) if start is not None else None
        )

    def form_zip(self, args, kwargs) -> Sugar:
        return Zip([iterable_of(self, a) for a in args])

    def form_reversed(self, args, kwargs) -> Value | Sugar:
        if isinstance(args[0], Tuple):
            return Tuple(reversed(args[0].items))
        if isinstance(args[0], Module):
            return Tuple(reversed(self.module_items(args[0].receiver)))
        made = self.op("aten::list", [self.sequence_value(args[0])])
        self.op("aten::reverse", [made])
        return made

    def form_list(self, args, kwargs) -> Value | Sugar:
        if not args:
            return self.value("prim::ListConstruct", (), T.ListType.of(T.Tensor), untyped=True)
        thing = args[0]
        if isinstance(thing, Value) and isinstance(thing.type(), T.ListType):
            return self.op("aten::list", [thing])
        if isinstance(thing, Value) and thing.type() is T.String:
            return self.op("aten::list", [thing])
        items = iterable_of(self, thing)
        known = items.static(self)
        if known is not None:
            if any(isinstance(k, Module) for k in known):
                return Tuple(known)
            if not known:
                return self.value("prim::ListConstruct", (), T.ListType.of(T.Tensor), untyped=True)
            return self.make_list([self.as_value(k) for k in known])
        out = self.value("prim::ListConstruct", (), T.ListType.of(T.Tensor))

        def bind(index: Value) -> None:
            value = self.as_value(items.item(self, index))
            out.setType(T.ListType.of(value.type()))
            self.op("aten::append", [out, value])

        self.loop([], (items.length(self), bind), None, ast.Pass())
        return out

    def syntax_slice(self, node: ast.Call, hint) -> Sugar:
        """slice(...): its bounds are computed here and read where it is used."""
        index = plain_index(node)
        for part in ("lower", "upper", "step"):
            bound = getattr(index, part, None)
            if bound is not None:
                name = f"$slice{id(index)}{part}"
                self.define(name, self.rvalue(bound))
                setattr(index, part, ast.copy_location(ast.Name(name, ast.Load()), node))
        return Slice(index)

    def form_unwrap_optional(self, args, kwargs) -> Value:
        if self.as_value(args[0]).type() is T.NoneT:
            self.fail("the type of _unwrap_optional could not be inferred from actual type None")
        return self.op("aten::_unwrap_optional", args)

    def form_tuple(self, args, kwargs) -> Sugar:
        if not args:
            return Tuple([])
        items = iterable_of(self, args[0]).static(self)
        if items is None:
            self.fail("cannot turn a list of unknown length into a tuple")
        return Tuple(items)

    def syntax_dict(self, node: ast.Call, hint) -> Value:
        known = hint if isinstance(hint, T.DictType) else None
        if node.args:
            made = self.op("aten::dict", [self.sequence_or_dict(self.expression(node.args[0]))])
        elif not node.keywords:
            return self.value(
                "prim::DictConstruct",
                (),
                known or T.DictType.of(T.String, T.Tensor),
                untyped=known is None,
            )
        else:
            keys = [ast.Constant(k.arg) for k in node.keywords]
            pairs = ast.copy_location(ast.Dict(keys, [k.value for k in node.keywords]), node)
            return self.on_Dict(pairs, hint)
        for keyword in node.keywords:
            self.op("aten::_set_item", [made, self.const(keyword.arg), self.rvalue(keyword.value)])
        return made

    def sequence_or_dict(self, thing: Value | Sugar) -> Value:
        if isinstance(thing, Value) and isinstance(thing.type(), T.DictType):
            return thing
        return self.sequence_value(thing)

    # ---- futures

    def form_fork(self, args, kwargs) -> Value:
        function, inputs = self.later_call("fork", args, kwargs)
        return self.value("prim::fork", inputs, T.FutureType.of(function.returns),
                          function=function)  # fmt: skip

    def form_awaitable(self, args, kwargs) -> Value:
        function, inputs = self.later_call("awaitable", args, kwargs)
        return self.value("prim::awaitable", inputs, T.AwaitType.of(function.returns),
                          function=function)  # fmt: skip

    def form_awaitable_nowait(self, args, kwargs) -> Value:
        value = self.as_value(args[0])
        return self.value("prim::awaitable_nowait", (value,), T.AwaitType.of(value.type()))

    def form_awaitable_wait(self, args, kwargs) -> Value:
        value = self.as_value(args[0])
        if not isinstance(value.type(), T.AwaitType):
            self.fail(f"expected an Await but found {value.type().annotation_str}")
        return self.value("prim::awaitable_wait", (value,), value.type().element)

    def later_call(self, what: str, args, kwargs):
        """The function and the inputs of a call that is made later."""
        target, rest = args[0], list(args[1:])
        if isinstance(target, Closure):
            function, captured = self.lift(target)
            rest = [*captured, *rest]
        elif isinstance(target, Function):
            function = target.function
        elif hasattr(target, "receiver"):
            name = getattr(target, "name", "forward")
            kind = target.receiver.type()
            function = kind.methods.get(name) or self.lazy_method(kind, name)
            rest = [target.receiver, *rest]
        else:
            self.fail(f"{what} takes a scripted function or method")
        inputs = self.match_arguments(function, rest, kwargs)
        self.compile_callee(function)
        return function, inputs

    def form_wait(self, args, kwargs) -> Value:
        return self.op("aten::wait", args)

    def form_warn(self, args, kwargs) -> Value:
        level = kwargs.get("stacklevel", args[2] if len(args) > 2 else self.const(2))
        self.op("aten::warn", [args[0], level])
        return self.none()

    def form_type(self, args, kwargs) -> Sugar:
        """type(x), of which only the name can be asked."""
        kind = self.as_value(args[0]).type()
        label = kind.name() if isinstance(kind, T.ClassType) else kind.annotation_str

        class Kind(Sugar):
            def attr(self, c, name):
                if name not in ("__name__", "__qualname__"):
                    c.fail(f"type() of a value has no attribute '{name}' in scripted code")
                return c.const(label)

        return Kind()

    def form_check(self, args, kwargs) -> Value:
        """torch._assert(condition, message)."""
        message = self.as_value(kwargs.get("message", args[1] if len(args) > 1 else None))

        def failed() -> None:
            text = self.op(
                "aten::add", [self.const("AssertionError: "), self.op("aten::str", [message])]
            )
            self.node("prim::RaiseException", (text, self.none()))
            self.left = "raise"

        self.branch(self.truth(self.as_value(args[0])), lambda: None, failed)
        return self.none()

    def form_nothing(self, args, kwargs) -> Value:
        return self.none()

    # ---- methods of tensors that are no operators

    def tensor_tolist(self, value: Value, args, kwargs) -> Value:
        self.fail("Expected type hint for result of tolist()")

    def tensor_to(self, value: Value, args, kwargs) -> Value:
        first = self.as_value(args[0]) if args else None
        kind = first.type() if first is not None else None
        if kind is T.String:
            args = [self.op("aten::device", [first]), *args[1:]]
            kind = T.Device
        if "device" in kwargs:
            place = self.as_value(kwargs["device"])
            if place.type() is T.String:
                kwargs = {**kwargs, "device": self.op("aten::device", [place])}
        known = kind.element if isinstance(kind, T.OptionalType) else kind
        if known is T.Device or (first is None and "dtype" not in kwargs):
            second = self.as_value(args[1]).type() if len(args) > 1 else None
            if second is T.Int or ("memory_format" not in kwargs and second is not T.Bool):
                order = ("device", "dtype", "non_blocking", "copy")
                named = dict(zip(order, args, strict=False)) | kwargs
                if set(named) <= set(order):
                    plain = [
                        named.get("device", self.none()),
                        named.get("dtype", self.none()),
                        named.get("non_blocking", self.const(False)),
                        named.get("copy", self.const(False)),
                    ]
                    return self.op("aten::to", [value, *plain], overload="prim_Device")
        if known is T.Device or "device" in kwargs:
            order = ("device", "non_blocking", "copy")
            if len(args) > 1 and self.as_value(args[1]).type() is T.Int:
                order = ("device", "dtype", "non_blocking", "copy")
            named = dict(zip(order, args, strict=False)) | kwargs
            return self.op("aten::to", [value], named, overload="dtype_layout")
        return self.op("aten::to", [value, *args], kwargs)

    def tensor_backward(self, value: Value, args, kwargs) -> Value:
        from torch.jit._autograd import backward
        from torch.jit._resolve import sugar

        return sugar(backward, self).call(self, [value, *args], kwargs)

    def tensor_type(self, value: Value, args, kwargs) -> Value:
        return self.op("aten::to", [value, *args], kwargs)

    def on_tolist(self, node: ast.Call, wanted: T.Type) -> Value:
        """x.tolist(), of which the annotation says what comes out."""
        value = self.rvalue(node.func.value)
        if value.type() is not T.Tensor:
            self.fail("tolist() is a method of tensors", node)
        return self.op("prim::tolist", [value]).setType(wanted)
