"""Calls of scripted code: matching arguments with schemas and signatures, objects and their
attributes, and the parts of the language that look like functions."""

from __future__ import annotations

import ast
import typing
from collections.abc import Sequence

import torch
from torch.jit import _types as T
from torch.jit._forms import Forms
from torch.jit._indexing import constant_of
from torch.jit._ir import Node, Value
from torch.jit._module_library import PACKED_FORWARD
from torch.jit._schema import (
    NO_DEFAULT,
    Argument,
    Mismatch,
    Schema,
    bind,
    first_name,
    parse,
    schemas,
    substitute,
)
from torch.jit._sugar import (
    Constant,
    Form,
    Function,
    GenericMethod,
    Ignored,
    Method,
    Module,
    Overloaded,
    Sugar,
    Tuple,
    Unused,
)


class Calls(Forms):
    """The part of the compiler for calls."""

    converting = True  # whether calls convert tensors to numbers on their own

    def on_Call(self, node: ast.Call, hint: T.Type | None = None) -> Value | Sugar:
        if hint is not None and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
            return self.on_tolist(node, hint)
        function = self.expression(node.func)
        if isinstance(function, Form):
            lazy = getattr(self, "syntax_" + function.name, None)
            if lazy is not None:
                return lazy(node, hint)
        args: list[Value | Sugar] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                args.extend(self.spread(self.expression(arg.value)))
            else:
                args.append(self.expression(arg))
        kwargs: dict[str, Value | Sugar] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                from torch.jit.frontend import NotSupportedError

                raise NotSupportedError(self.place(), "keyword-arg expansion is not supported")
            kwargs[keyword.arg] = self.expression(keyword.value)
        self.place_node = node
        if isinstance(function, Sugar):
            return function.call(self, args, kwargs)
        return self.call_value(function, args, kwargs)

    def call_value(self, value: Value, args, kwargs) -> Value | Sugar:
        kind = value.type()
        if isinstance(kind, T.ClassType | T.InterfaceType):
            name = "forward" if kind.is_module else "__call__"
            if kind.is_module:
                return self.call_module(value, args, kwargs)
            return self.call_method(value, name, args, kwargs)
        self.fail(f"cannot call a value: '{kind.annotation_str}' object is not callable")

    # ---- fitting values to types

    def try_fit(self, value: Value, wanted: T.Type) -> Value | None:
        """The value as one of the wanted type, or None; nothing is computed to make it fit, but
        tuples become lists and empty containers take the type."""
        kind = value.type()
        if T.is_subtype(kind, wanted):
            return value
        origin = value.origin
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if isinstance(origin, Node) and origin.attrs.get("untyped") and not origin.inputs_list:
            if (isinstance(plain, T.ListType) and isinstance(kind, T.ListType)) or (
                isinstance(plain, T.DictType) and isinstance(kind, T.DictType)
            ):
                return self.value(origin.kind_name, (), plain)
        if isinstance(plain, T.ListType) and isinstance(kind, T.TupleType):
            parts = [self.try_fit(p, plain.element) for p in self.unpack(value)]
            if all(p is not None for p in parts):
                return self.value("prim::ListConstruct", parts, plain)
            return None
        if isinstance(plain, T.TupleType) and isinstance(kind, T.TupleType):
            if len(plain.contained) != len(kind.contained) or plain.names:
                return None
            pairs = zip(self.unpack(value), plain.contained, strict=True)
            parts = [self.try_fit(p, t) for p, t in pairs]
            if all(p is not None for p in parts):
                return self.value("prim::TupleConstruct", parts, plain)
            return None
        if isinstance(plain, T.ListType) and isinstance(kind, T.ListType):
            # A list that no variable holds yet is made anew; another would lose its identity.
            fresh = isinstance(origin, Node) and not value.hint()
            if fresh and origin.kind_name == "prim::ListConstruct":
                parts = [self.try_fit(p, plain.element) for p in origin.inputs_list]
                if parts and all(p is not None for p in parts):
                    return self.value("prim::ListConstruct", parts, plain)
        return None

    def convert(self, value: Value, wanted: T.Type) -> Value | None:
        """The conversions that a call makes on its own."""
        kind = value.type()
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if kind is T.Tensor and plain in (T.Int, T.Float, T.Number):
            name = {T.Int: "IntImplicit", T.Float: "FloatImplicit", T.Number: "ScalarImplicit"}[
                plain
            ]
            return self.value("aten::" + name, (value,), plain)
        if kind is T.String and plain is T.Device:
            return self.op("aten::device", [value])
        if kind is T.Bool and plain is T.Number:
            return value
        if kind is T.Number and plain in (T.Float, T.Int):
            return self.op("aten::Float" if plain is T.Float else "aten::Int", [value])
        if kind is T.Int and plain is T.Float:
            try:
                return self.const(float(constant_of(value)))
            except LookupError:
                return None
        return None

    # ---- operators

    def op(
        self, name: str, args: Sequence[Value | Sugar], kwargs=None, overload=None
    ) -> Value | Sugar:
        """A call of the overload of an operator that fits."""
        name = first_name(name)
        known = schemas(name)
        if overload is not None:
            known = [s for s in known if s.overload_name == overload]
        if not known:
            self.fail(
                f"Unknown builtin op: {name}.\nCould not find any similar ops to {name}. This op "
                "may not exist or may not be currently supported in TorchScript"
            )
        kwargs = kwargs or {}
        reasons: list[str] = []
        for conversions in (False, True):
            for schema in known:
                before = len(self.frame.block.nodes_list)
                try:
                    return self.emit(schema, *self.match(schema, args, kwargs, conversions))
                except Mismatch as why:
                    del self.frame.block.nodes_list[before:]
                    if conversions:
                        reasons.append(f"{schema.text}:\n{why}")
        shown = "\n".join(reasons[:12])
        self.fail(
            "Arguments for call are not valid.\nThe following variants are available:\n\n"
            f"{shown}\n\nThe original call is"
        )

    def emit(self, schema: Schema, inputs: list[Value], bound: dict[str, T.Type]) -> Value | Sugar:
        types = [substitute(r.type, bound) for r in schema.returns]
        node = self.node(schema.name, inputs, types)
        node.schema_of = schema
        if len(types) == 1:
            return node.output()
        if not types:
            return self.none()
        return Tuple(node.outputs_list, [r.name for r in schema.returns])

    def match(self, schema: Schema, args, kwargs, conversions: bool):
        """The inputs of a call in the order of the schema; Mismatch says why not."""
        inputs: list[Value] = []
        bound: dict[str, T.Type] = {}
        used: set[str] = set()
        rest = list(args)
        for formal in schema.arguments:
            if rest and not formal.kwarg_only:
                # Trailing positional numbers may be the items of the last list: x.view(2, 3).
                if self.takes_rest(schema, formal, rest, conversions):
                    items = [self.as_value(v) for v in rest]
                    items = [self.convert(v, T.Int) or v for v in items]
                    thing: Value | Sugar = self.value(
                        "prim::ListConstruct", items, T.ListType.of(T.Int)
                    )
                    rest = []
                else:
                    thing = rest.pop(0)
                if formal.name in kwargs:
                    raise Mismatch(f"argument {formal.name} specified twice")
            elif formal.name in kwargs:
                thing = kwargs[formal.name]
                used.add(formal.name)
            elif formal.name == "self" and "input" in kwargs:  # as functions of torch name it
                thing = kwargs["input"]
                used.add("input")
            elif formal.default is not NO_DEFAULT:
                inputs.append(self.default_value(formal))
                continue
            else:
                raise Mismatch(f"Argument {formal.name} not provided")
            inputs.append(self.fit(thing, formal, bound, conversions))
        if rest:
            if not schema.vararg:
                raise Mismatch(
                    f"Expected at most {len(schema.arguments)} arguments but found "
                    f"{len(args)} positional arguments"
                )
            inputs += [self.as_value(v) for v in rest]
        unknown = set(kwargs) - used
        if unknown:
            raise Mismatch(f"Keyword argument {sorted(unknown)[0]} unknown")
        return inputs, bound

    def takes_rest(
        self, schema: Schema, formal: Argument, rest: list[Value | Sugar], conversions: bool
    ) -> bool:
        if formal.type is not T.ListType.of(T.Int):
            return False
        behind = schema.arguments[schema.arguments.index(formal) + 1 :]
        if (
            any(not a.kwarg_only for a in behind)
            and len(rest) > 1
            and formal.name not in ("size", "shape", "dims", "repeats")
        ):
            return False
        fitting = (T.Int, T.Tensor) if conversions and len(rest) > 1 else (T.Int,)
        ok = all(
            getattr(v, "type", None) is T.Int or (isinstance(v, Value) and v.type() in fitting)
            for v in rest
        )
        return ok and (len(rest) > 1 or formal.size is None)

    def default_value(self, formal: Argument) -> Value:
        default, kind = formal.default, formal.type
        plain = kind.element if isinstance(kind, T.OptionalType) else kind
        if default is None:
            return self.none()
        if isinstance(plain, T.ListType) and not isinstance(default, list):
            default = [default] * (formal.size or 1)
        if isinstance(plain, T.ListType):
            return self.value(
                "prim::ListConstruct", [self.const(v, plain.element) for v in default], plain
            )
        if plain is T.Number:
            return self.const(default)
        return self.const(default, plain)

    def fit(self, thing: Value | Sugar, formal: Argument, bound, conversions: bool) -> Value:
        wanted = formal.type
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        value = self.as_value(thing)
        kind = value.type()
        if (
            isinstance(plain, T.ListType)
            and formal.size
            and kind is plain.element
            and kind in (T.Int, T.Float)
        ):
            return self.value("prim::ListConstruct", [value] * formal.size, plain)
        if bind(wanted, kind, bound):
            return value
        if not _has_var(wanted):
            fitted = self.try_fit(value, wanted)
            if fitted is not None:
                return fitted
        elif isinstance(plain, T.ListType) and isinstance(kind, T.TupleType) and kind.contained:
            listed = self.make_list(self.unpack(value))
            if bind(wanted, listed.type(), bound):
                return listed
        elif isinstance(value.origin, Node) and value.origin.attrs.get("untyped"):
            made = self.try_fit(value, substitute(wanted, bound))
            if made is not None:
                return made
        if conversions:
            made = self.convert(value, wanted)
            if made is None and isinstance(plain, T.ListType) and isinstance(kind, T.TupleType):
                parts = [
                    p if T.is_subtype(p.type(), plain.element) else self.convert(p, plain.element)
                    for p in self.unpack(value)
                ]
                if all(p is not None for p in parts):
                    made = self.value("prim::ListConstruct", parts, plain)
            if (
                made is None
                and isinstance(plain, T.ListType)
                and isinstance(value.origin, Node)
                and (value.origin.kind_name == "prim::ListConstruct")
            ):
                parts = [
                    p if T.is_subtype(p.type(), plain.element) else self.convert(p, plain.element)
                    for p in value.origin.inputs_list
                ]
                if parts and all(p is not None for p in parts):
                    made = self.value("prim::ListConstruct", parts, plain)
            if made is not None:
                return made
        raise Mismatch(
            f"Expected a value of type '{wanted.annotation_str}' for argument "
            f"'{formal.name}' but instead found type '{kind.annotation_str}'."
            f"{self.why_tensor(value, formal.name)}"
        )

    def why_tensor(self, value: Value, name: str) -> str:
        """A parameter without annotation is a tensor: what a mismatch says of it."""
        params, arguments = self.graph.block.params, self.function.arguments
        at = params.index(value) if value in params else len(arguments)
        if at >= len(arguments) or not arguments[at].inferred:
            return ""
        return (
            f"\nInferred the value for argument '{name}' to be of type 'Tensor' because it was "
            "not annotated with an explicit type."
        )

    # ---- functions and methods

    def match_arguments(self, function, args, kwargs) -> list[Value]:
        """The inputs of a call of a scripted function."""
        function.declare()
        inputs: list[Value] = []
        rest, used = list(args), set()
        for formal in function.arguments:
            if rest and not formal.kwarg_only:
                thing = rest.pop(0)
                if formal.name in kwargs:
                    self.fail(f"argument {formal.name} specified twice in schema")
            elif formal.name in kwargs:
                thing = kwargs[formal.name]
                used.add(formal.name)
            elif formal.default is not NO_DEFAULT:
                inputs.append(self.constant_default(formal))
                continue
            else:
                self.fail(
                    f"{function.name}() is missing value for argument '{formal.name}'.\n"
                    f"Declaration: {function.schema}\n\nArguments for call are not valid. The "
                    f"original call is"
                )
            inputs.append(self.fit_formal(function, formal, thing))
        if rest and getattr(function, "vararg", False):
            inputs += [self.as_value(thing) for thing in rest]
        elif rest:
            self.fail(
                f"{function.name}() expected at most {len(function.arguments)} argument(s) but "
                f"received {len(args)} argument(s). Declaration: {function.schema}"
            )
        unknown = set(kwargs) - used
        if unknown:
            self.fail(
                f"Unknown keyword argument '{sorted(unknown)[0]}' for operator "
                f"'{function.name}'. Schema: {function.schema}"
            )
        return inputs

    def constant_default(self, formal) -> Value:
        wanted, default = formal.type, formal.default
        return self.python_constant(default, wanted)

    def python_constant(self, default: object, wanted: T.Type) -> Value:
        """A Python value in the program; containers are made anew where they are used."""
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if isinstance(default, list | tuple) and isinstance(plain, T.ListType):
            items = [self.python_constant(v, plain.element) for v in default]
            return self.value("prim::ListConstruct", items, plain)
        if isinstance(default, tuple) and isinstance(plain, T.TupleType) and not plain.names:
            items = [
                self.python_constant(v, t) for v, t in zip(default, plain.contained, strict=True)
            ]
            return self.value("prim::TupleConstruct", items, plain)
        if isinstance(default, dict) and isinstance(plain, T.DictType):
            flat = [
                self.python_constant(x, t)
                for k, v in default.items()
                for x, t in ((k, plain.key), (v, plain.value))
            ]
            return self.value("prim::DictConstruct", flat, plain)
        if default is None:
            return self.none()
        if plain is T.Float and isinstance(default, int):
            default = float(default)
        if plain in (T.Any, T.Number) or isinstance(plain, T.UnionType):
            return self.const(default)
        return self.const(default, plain)

    def fit_formal(self, function, formal, thing: Value | Sugar) -> Value:
        wanted = formal.type
        value = self.as_value(thing)
        size = getattr(formal, "size", None)
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if size and isinstance(plain, T.ListType) and T.is_subtype(value.type(), plain.element):
            return self.value("prim::ListConstruct", [value] * size, plain)
        fitted = self.try_fit(value, wanted)
        if fitted is None and self.converting and value.type() is not T.Int:
            fitted = self.convert(value, wanted)
        if fitted is not None:
            return fitted
        inferred = " (inferred)" if formal.inferred else ""
        more = (
            (
                f"\nInferred '{formal.name}' to be of type 'Tensor' because it was not annotated "
                f"with "
                "an explicit type."
            )
            if formal.inferred
            else ""
        )
        self.fail(
            f"{function.name}({function.schema.partition('(')[2]}:\nExpected a value of type "
            f"'{wanted.annotation_str}{inferred}' for argument '{formal.name}' but instead found "
            f"type '{value.type().annotation_str}'.{more}{T.why_no_interface(value.type(), wanted)}"
        )

    def call_function(self, function, args, kwargs) -> Value:
        return self.call_matched(function, self.match_arguments(function, args, kwargs))

    def call_matched(self, function, inputs: list[Value]) -> Value:
        """A call with values that fit the parameters."""
        self.compile_callee(function)
        return self.value("prim::CallFunction", inputs, function.returns, function=function)

    def compile_callee(self, function) -> None:
        """Compiles what is called; an error inside of it says from where it was called."""
        from torch.jit._errors import ErrorReport
        from torch.jit.frontend import FrontendError

        if function.is_done():
            return
        if function.is_compiling():
            self.fail(
                f"function '{function.name}' is called recursively. Recursive calls are not "
                "supported"
            )
        ErrorReport._calls.append((self, function))
        try:
            function.ensure_compiled()
        except FrontendError as e:
            e.called_from(self.called_text(function))
            raise
        except RuntimeError as e:
            if type(e) is not RuntimeError:
                raise
            raise RuntimeError(f"{e}{self.called_text(function)}") from None
        finally:
            ErrorReport._calls.pop()

    def called_text(self, function) -> str:
        place = self.place()
        return (
            f"\n'{function.name}' is being compiled since it was called from "
            f"'{self.function.name}'\n{place.text() if place else ''}"
        )

    def call_method(self, receiver: Value, name: str, args, kwargs) -> Value | Sugar:
        kind = receiver.type()
        if isinstance(kind, T.InterfaceType):
            function = kind.schemas[name]
            inputs = self.match_arguments(function, [receiver, *args], kwargs)
            return self.value("prim::CallMethod", inputs, function.returns, name=name)
        function = kind.methods.get(name) or self.lazy_method(kind, name)
        if function is None:
            self.fail(f"'{kind}' object has no method '{name}'")
        if isinstance(function, Sugar):
            return function.call(self, [receiver, *args], kwargs)
        inputs = self.match_arguments(function, [receiver, *args], kwargs)
        self.compile_callee(function)
        return self.value(
            "prim::CallMethod", inputs, function.returns, name=name, function=function
        )

    def custom_method(self, receiver: Value, name: str) -> Sugar:
        """A method of an object of a C++ class."""
        kind = receiver.type()
        text = torch._C._custom_method_schema(kind.qualified_name, name)
        if text is None:
            self.fail(f"'{kind}' object has no attribute or method '{name}'")
        schema = parse(text)
        constructs = name == "__init__"  # its schema has no receiver and returns the object

        def run(args, kwargs) -> Value:
            given = args if constructs else [receiver, *args]
            try:
                inputs, _ = self.match(schema, given, kwargs, True)
            except Mismatch as why:
                self.fail(f"{text}:\n{why}")
            if constructs:
                return self.value("prim::CallMethod", [receiver, *inputs], T.NoneT, name=name)
            returns = schema.returns[0].type if schema.returns else T.NoneT
            if len(schema.returns) > 1:
                returns = T.tuple_of(*(r.type for r in schema.returns))
            return self.value("prim::CallMethod", inputs, returns, name=name)

        return self.bound_call(run)

    def lazy_method(self, kind: T.ClassType, name: str):
        """A method of a module that is compiled when it is first used."""
        maker = getattr(kind, "make_method", None)
        return maker(name) if maker is not None else None

    # ---- attributes of objects

    def module_attr(self, receiver: Value, name: str) -> Value | Sugar:
        kind = receiver.type()
        if isinstance(kind, T.InterfaceType):
            if name in kind.schemas:
                return Method(receiver, name)
            self.fail(f"'{kind}' object has no attribute or method '{name}'")
        if name in kind.attributes:
            made = self.value("prim::GetAttr", (receiver,), kind.attributes[name], name=name)
            if isinstance(made.type(), T.ClassType) and made.type().is_module:
                return Module(made, None)
            return made
        if name in kind.constants:
            return Constant(*kind.constants[name])
        if name in kind.properties:
            return self.call_function(kind.properties[name][0], [receiver], {})
        if name in kind.ignored:
            found = kind.ignored[name]
            return (
                Ignored(found.python, found.function, receiver)
                if isinstance(found, Ignored)
                else found
            )
        if name in kind.statics:
            return kind.statics[name]
        if name in kind.methods:
            return Method(receiver, name)
        found = self.lazy_method(kind, name)
        if found is not None:
            if isinstance(found, Ignored):
                return Ignored(found.python, found.function, receiver)
            if isinstance(found, GenericMethod | Overloaded):
                return found.bound(receiver)
            return (
                found
                if isinstance(found, Unused | Function | Constant | Sugar)
                else Method(receiver, name)
            )
        special = self.container_method(receiver, name)
        if special is not None:
            return special
        why = getattr(kind, "why_missing", lambda _n: "")(name)
        self.fail(
            f"Module '{kind.name()}' has no attribute '{name}' {why}"
            if kind.is_module
            else f"'{kind.qualified_name}' object has no attribute or method '{name}'. Did you "
            f"forget to initialize an attribute in __init__()?"
            + (f" '{name}' is defined as a class attribute" * (name in kind.class_attributes))
        )

    def container_method(self, receiver: Value, name: str) -> Sugar | None:
        if name == "_modules":
            return Module(receiver, None)
        if name not in (
            "values",
            "keys",
            "items",
            "modules",
            "named_modules",
            "children",
            "named_children",
            "parameters",
            "named_parameters",
            "buffers",
            "named_buffers",
        ):
            return None
        compiler = self

        class Listing(Sugar):
            def call(self, c, args, kwargs):
                return compiler.listing(receiver, name)

        return Listing()

    def listing(self, receiver: Value, name: str) -> Tuple:
        """The parts of a module that a method lists, known while compiling."""
        kind = receiver.type()
        if name in ("values", "keys", "items", "children", "named_children"):
            keys = self.module_keys(receiver)
            items = self.module_items(receiver, values=True)
            if name == "keys":
                return Tuple([self.const(k) for k in keys])
            if name in ("values", "children"):
                return Tuple(items)
            return Tuple([Tuple([self.const(k), v]) for k, v in zip(keys, items, strict=True)])
        found: list[tuple[str, Value | Sugar]] = []
        role = "parameter" if "parameters" in name else "buffer" if "buffers" in name else "module"
        self.walk_module(receiver, kind, "", role, found)
        if name.startswith("named_"):
            return Tuple([Tuple([self.const(k), v]) for k, v in found])
        return Tuple([v for _, v in found])

    def walk_module(
        self, receiver: Value, kind: T.ClassType, prefix: str, role: str, found
    ) -> None:
        if role == "module":
            found.append((prefix.rstrip("."), Module(receiver, None)))
        for name, type in kind.attributes.items():
            if kind.roles.get(name) == role and type is T.Tensor:
                found.append(
                    (prefix + name, self.value("prim::GetAttr", (receiver,), type, name=name))
                )
        for name, type in kind.attributes.items():
            if isinstance(type, T.ClassType) and type.is_module:
                inner = self.value("prim::GetAttr", (receiver,), type, name=name)
                self.walk_module(inner, type, f"{prefix}{name}.", role, found)

    def module_keys(self, receiver: Value) -> list[str]:
        kind = receiver.type()
        python = getattr(kind, "python", None)
        if isinstance(python, type) and issubclass(
            python, torch.nn.ParameterList | torch.nn.ParameterDict
        ):
            return [n for n, role in kind.roles.items() if role == "parameter"]
        return [
            n
            for n, t in kind.attributes.items()
            if (isinstance(t, T.InterfaceType) and t.is_module)
            or (isinstance(t, T.ClassType) and t.is_module)
        ]

    def module_items(self, receiver: Value, values: bool = False) -> list[Value | Sugar]:
        kind = receiver.type()
        keys = self.module_keys(receiver)
        if not values and getattr(kind, "container", "") == "dict":
            return [self.const(k) for k in keys]
        return [self.module_attr(receiver, k) for k in keys]

    def module_item(self, receiver: Value, index: Value | Sugar) -> Value | Sugar:
        kind = receiver.type()
        if "__getitem__" in kind.methods or getattr(kind, "container", "") == "":
            return self.call_method(receiver, "__getitem__", [index], {})
        keys = self.module_keys(receiver)
        try:
            key = constant_of(index)
        except LookupError:
            return self.dynamic_module_item(receiver, keys, self.as_value(index))
        if isinstance(key, int):
            if not -len(keys) <= key < len(keys):
                self.fail(f"Index {key} out of range of length {len(keys)}")
            key = keys[key]
        if key not in keys:
            self.fail(f"Key Error, {key}")
        return self.module_attr(receiver, key)

    def dynamic_module_item(self, receiver: Value, keys: list[str], index: Value) -> Value:
        """An item of a container by a number that is not known: all items have one interface."""
        self.fail(
            "Unable to extract string literal index. ModuleDict indexing is only supported with "
            "string literals. For example, 'i = \"a\"; self.layers[i](x)' will fail because i is "
            "not a literal."
        )

    def set_attr(self, owner: Value, name: str, thing: Value | Sugar) -> None:
        kind = owner.type()
        if not isinstance(kind, T.ClassType):
            if kind is T.Tensor:
                self.fail(f"cannot assign to the attribute '{name}' of a tensor")
            self.fail(f"Tried to set an attribute: {name} on a non-class: {kind.annotation_str}")
        if name in kind.properties and kind.properties[name][1] is not None:
            self.call_function(kind.properties[name][1], [owner, thing], {})
            return
        value = self.as_value(thing)
        if name not in kind.attributes:
            if kind.complete or kind.is_module:
                self.fail(
                    f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it "
                    "in __init__()?"
                )
            if self.loops or self.frame.parent is not None:
                self.fail(
                    "First assignment cannot be in a control-flow block. Initialize the field at "
                    "the top level first"
                )
            kind.add_attribute(name, value.type())
        wanted = kind.attributes[name]
        fitted = self.try_fit(self.fit_assigned(value, wanted), wanted)
        if fitted is None:
            self.fail(
                f"Wrong type for attribute assignment. Expected {wanted.annotation_str} but got "
                f"{value.type().annotation_str}"
            )
        self.node("prim::SetAttr", (owner, fitted), name=name)

    def call_module(self, receiver: Value, args, kwargs) -> Value | Sugar:
        """A call of a submodule, with its hooks."""
        kind = receiver.type()
        for hook in getattr(kind, "pre_hooks", ()):
            inputs = Tuple(args)
            made = self.call_function(hook, [receiver, inputs], {})
            if made.type() is not T.NoneT:
                args = self.unpack(made) if isinstance(made.type(), T.TupleType) else [made]
        packed = _takes_packed(kind, [*args, kwargs.get("input")])
        out = self.call_method(receiver, PACKED_FORWARD if packed else "forward", args, kwargs)
        for hook in getattr(kind, "hooks", ()):
            made = self.call_function(hook, [receiver, Tuple(args), out], {})
            if made.type() is not T.NoneT:
                out = made
        return out

    # ---- classes

    def construct(self, kind: T.Type, args, kwargs) -> Value | Sugar:
        if isinstance(kind, T.TupleType):
            return self.named_tuple(kind, args, kwargs)
        if isinstance(kind, T.ClassType):
            made = self.value("prim::CreateObject", (), kind)
            if "__init__" in kind.methods:
                self.call_method(made, "__init__", args, kwargs)
            elif args or kwargs:
                self.fail(f"{kind.name()}() takes no arguments")
            return made
        if isinstance(kind, T.CustomClassType):
            made = self.value("prim::CreateObject", (), kind)
            self.custom_method(made, "__init__").call(self, args, kwargs)
            return made
        self.fail(f"cannot make a value of type {kind.annotation_str}")

    def named_tuple(self, kind: T.TupleType, args, kwargs) -> Value:
        values = list(args)
        if len(values) > len(kind.names):
            self.fail(f"{kind.annotation_str} takes {len(kind.names)} values, not {len(values)}")
        for name in kind.names[len(values) :]:
            if name in kwargs:
                values.append(kwargs[name])
            elif name in kind.defaults:
                index = kind.names.index(name)
                values.append(self.python_constant(kind.defaults[name], kind.contained[index]))
            else:
                self.fail(f"{kind.annotation_str} is missing value for argument '{name}'")
        inputs = []
        for value, wanted, name in zip(values, kind.contained, kind.names, strict=True):
            fitted = self.try_fit(self.as_value(value), wanted)
            if fitted is None:
                inferred = " (inferred)" if name in kind.open_fields else ""
                found = self.as_value(value).type().annotation_str
                self.fail(
                    f"Expected a value of type '{wanted.annotation_str}{inferred}' for argument "
                    f"'{name}' but instead found type '{found}'."
                )
            inputs.append(fitted)
        return self.value("prim::TupleConstruct", inputs, kind)

    def enum_member(self, kind: T.EnumType, name: str, value: object) -> Value:
        return self.value(
            "prim::Constant",
            (),
            kind,
            value=kind.python[name] if kind.python else value,
            member=name,
        )

    def lift(self, closure) -> tuple[typing.Any, list[Value]]:
        """A nested function as a function of its own, with what it captures as first arguments."""
        from torch.jit._function import lift_closure

        return lift_closure(self, closure)


def _has_var(t: T.Type) -> bool:
    from torch.jit._schema import VarType

    return isinstance(t, VarType) or any(map(_has_var, t.contained))


def _takes_packed(kind: T.Type, args: Sequence[Value | Sugar | None]) -> bool:
    """Whether a module is a recurrent layer that is called with a packed sequence."""
    given = args[0].type() if isinstance(args[0], Value) else None
    python = getattr(kind, "python", None)
    return (
        isinstance(given, T.TupleType)
        and given.python is torch.nn.utils.rnn.PackedSequence
        and isinstance(python, type)
        and issubclass(python, torch.nn.RNNBase)
    )
