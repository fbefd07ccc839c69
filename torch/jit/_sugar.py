"""What a name of scripted code can stand for while it is compiled, beside values of the program:
modules, Python functions, operators, classes, iterables. Each knows how its attributes are read,
how it is called and how it becomes a value."""

from __future__ import annotations

import ast

from torch.jit import _types as T
from torch.jit._ir import Value


class Sugar:
    """Something that exists only while compiling."""

    what = "a Python object"

    def value(self, c) -> Value:
        c.fail(f"{self.what} cannot be used as a value")

    def attr(self, c, name: str) -> Value | Sugar:
        c.fail(f"attribute lookup is not defined on {self.what}")

    def call(self, c, args, kwargs) -> Value | Sugar:
        c.fail(f"Cannot call a value that is {self.what}")

    def item(self, c, index) -> Value | Sugar:
        c.fail(f"{self.what} is not subscriptable")


class Undefined(Sugar):
    """A name that not every path defines."""

    def __init__(self, why: str) -> None:
        self.why = why

    def value(self, c) -> Value:
        c.fail(self.why)

    def attr(self, c, name):
        c.fail(self.why)

    def call(self, c, args, kwargs):
        c.fail(self.why)


class Constant(Sugar):
    """A Python value that becomes a constant where it is used."""

    what = "a constant"

    def __init__(self, python: object, type: T.Type) -> None:
        self.python, self.type = python, type

    def value(self, c) -> Value:
        return c.const(self.python, self.type)

    def attr(self, c, name):
        return c.value_attr(self.value(c), name)

    def item(self, c, index):
        return c.subscript(self.value(c), index)


class Tuple(Sugar):
    """A tuple of which the parts are known: several results, modules, zipped things."""

    what = "a tuple"

    def __init__(self, items, names=()) -> None:
        self.items, self.names = list(items), list(names)

    def value(self, c) -> Value:
        items = [c.as_value(i) for i in self.items]
        return c.value("prim::TupleConstruct", items, T.tuple_of(*(i.type() for i in items)))

    def attr(self, c, name):
        if name in self.names:
            return self.items[self.names.index(name)]
        kind = self.value(c).type().annotation_str
        c.fail(f"'{kind}' object has no attribute or method '{name}'")

    def item(self, c, index):
        if isinstance(index, int):
            return self.items[index]
        if isinstance(index, slice):
            return Tuple(self.items[index])
        return c.subscript(self.value(c), index)


class PythonObject(Sugar):
    """A Python object: a module, or something only its attributes are asked of."""

    def __init__(self, python: object) -> None:
        self.python = python
        self.what = f"a Python value of type '{type(python).__name__}'"

    def value(self, c) -> Value:
        known = T.infer(self.python)
        if known is not None:
            return c.const(self.python, known)
        c.fail(
            f"python value of type '{type(self.python).__name__}' cannot be used as a value. "
            f"Perhaps "
            "it is a closed over global variable? If so, please consider passing it in as an "
            "argument "
            "or use a local variable instead."
        )

    def attr(self, c, name):
        from torch.jit._resolve import sugar

        try:
            found = getattr(self.python, name)
        except AttributeError:
            label = getattr(self.python, "__name__", type(self.python).__name__)
            c.fail(f"'{label}' object has no attribute {name}")
        return sugar(found, c)

    def call(self, c, args, kwargs):
        if hasattr(self.python, "_script_handle"):
            c.fail("Cannot call a ScriptModule that is not a submodule of the caller")
        c.fail(f"Python builtin {self.python!r} is currently not supported in Torchscript")


class Operator(Sugar):
    """An operator by name, of any overload; with `receiver`, a method."""

    def __init__(
        self, name: str, receiver: Value | None = None, overload: str | None = None
    ) -> None:
        self.name, self.receiver, self.overload = name, receiver, overload
        self.what = f"the operator {name}"

    def call(self, c, args, kwargs):
        first = [] if self.receiver is None else [self.receiver]
        return c.op(self.name, [*first, *args], kwargs, overload=self.overload)

    def attr(self, c, name):
        return Operator(self.name, self.receiver, "" if name == "default" else name)

    def value(self, c):
        c.fail(f"{self.name} cannot be used as a value")


class Form(Sugar):
    """A part of the language with rules of its own; a method of the compiler compiles it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.what = f"the function '{name}'"

    def call(self, c, args, kwargs):
        return getattr(c, "form_" + self.name)(args, kwargs)


class Function(Sugar):
    """A scripted function."""

    def __init__(self, function) -> None:
        self.function = function
        self.what = f"the function '{function.name}'"

    def call(self, c, args, kwargs):
        return c.call_function(self.function, args, kwargs)

    def value(self, c):
        c.fail(f"the function '{self.function.name}' cannot be used as a value")


class Overloaded(Sugar):
    """Scripted functions of one name; a call takes the first that fits."""

    def __init__(self, functions, receiver: Value | None = None) -> None:
        self.functions, self.receiver = functions, receiver

    def bound(self, receiver: Value) -> Overloaded:
        """The same as methods of an object."""
        return Overloaded(self.functions, receiver)

    def call(self, c, args, kwargs):
        reasons = []
        args = args if self.receiver is None else [self.receiver, *args]
        # One that takes the arguments as they are goes before one that converts them.
        for c.converting in (False, True):
            for function in self.functions:
                before = len(c.frame.block.nodes_list)
                try:
                    inputs = c.match_arguments(function, args, kwargs)
                except RuntimeError as e:
                    del c.frame.block.nodes_list[before:]
                    reasons.append(str(e))
                    continue
                c.converting = True
                return c.call_matched(function, inputs)
        c.fail("Arguments for call are not valid.\n" + "\n".join(reasons))


class Ignored(Sugar):
    """A Python function that stays Python."""

    def __init__(self, python, function, receiver: Value | None = None) -> None:
        self.python, self.function, self.receiver = python, function, receiver

    def call(self, c, args, kwargs):
        first = [] if self.receiver is None else [self.receiver]
        values = c.match_arguments(self.function, [*first, *args], kwargs)
        returns = self.function.returns or T.Tensor
        return c.value("prim::PythonOp", values, returns, function=self.python)


class Unused(Sugar):
    """A function that compiled code must not reach."""

    def __init__(self, name: str, returns: T.Type | None) -> None:
        self.name, self.returns = name, returns or T.Tensor

    def call(self, c, args, kwargs):
        c.node(
            "prim::RaiseException",
            (
                c.const(
                    f"This Python function is annotated to be ignored and cannot be run: "
                    f"{self.name}"
                ),
                c.none(),
            ),
        )
        return c.uninitialized(self.returns)


class GenericMethod(Sugar):
    """A method of a library's module with parameters of no declared type: compiled for each call's
    types. `make(types)` gives the function."""

    def __init__(self, fn, make, receiver: Value | None = None) -> None:
        self.fn, self.make, self.receiver = fn, make, receiver

    def bound(self, receiver: Value) -> GenericMethod:
        return GenericMethod(self.fn, self.make, receiver)

    def call(self, c, args, kwargs):
        if self.receiver is not None:
            args = [self.receiver, *args]
        names = self.fn.__code__.co_varnames[: self.fn.__code__.co_argcount]
        given = dict(zip(names, args, strict=False)) | kwargs
        annotated = self.fn.__annotations__
        types = {
            n: c.as_value(v).type()
            for n, v in given.items()
            if n not in annotated and n != names[0]
        }
        return c.call_function(self.make(types), args, kwargs)


class Closure(Sugar):
    """A function defined inside another; fork runs it."""

    what = "a nested function"

    def __init__(self, node: ast.FunctionDef, owner) -> None:
        self.node, self.owner = node, owner

    def call(self, c, args, kwargs):
        function, captured = c.lift(self)
        return c.call_function(function, [*captured, *args], kwargs)


class Class(Sugar):
    """The constructor of a scripted class, a C++ class, NamedTuple or enumeration."""

    def __init__(self, type: T.Type) -> None:
        self.type = type
        self.what = f"the class '{type.annotation_str}'"

    def call(self, c, args, kwargs):
        return c.construct(self.type, args, kwargs)

    def value(self, c) -> Value:
        """An enumeration as the list of its members: what a loop goes through."""
        if not isinstance(self.type, T.EnumType):
            return super().value(c)
        members = [c.as_value(c.enum_member(self.type, *m)) for m in self.type.members]
        return c.value("prim::ListConstruct", members, T.ListType.of(self.type))

    def attr(self, c, name):
        if isinstance(self.type, T.EnumType):
            for member, value in self.type.members:
                if member == name:
                    return c.enum_member(self.type, member, value)
            c.fail(f"'{self.type.name}' has no member '{name}'")
        if isinstance(self.type, T.ClassType):
            if name == "__new__":
                return Blank(self.type)
            if name in self.type.statics:
                return self.type.statics[name]
            if name in self.type.methods:
                return Function(self.type.methods[name])
            for hook in (*self.type.pre_hooks, *self.type.hooks):
                if hook.name == name:
                    return Function(hook)
            if name in self.type.constants:
                return Constant(*self.type.constants[name])
        if isinstance(self.type, T.CustomClassType) and name == "__new__":
            return Blank(self.type)
        c.fail(f"{self.what} has no attribute '{name}'")


class Slice(Sugar):
    """slice(...), for an index; `node` is its syntax with bounds that are already computed."""

    what = "a slice"

    def __init__(self, node: ast.Slice) -> None:
        self.node = node


class Blank(Sugar):
    """Class.__new__, as archives make objects."""

    def __init__(self, type: T.ClassType) -> None:
        self.type = type

    def call(self, c, args, kwargs):
        return c.value("prim::CreateObject", (), self.type)


class Method(Sugar):
    """A method of a value that is an object."""

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver, self.name = receiver, name
        self.what = f"the method '{name}'"

    def call(self, c, args, kwargs):
        return c.call_method(self.receiver, self.name, args, kwargs)


class Module(Sugar):
    """A submodule that is used for its attributes or called; `value` is the object."""

    def __init__(self, receiver: Value, concrete) -> None:
        self.receiver, self.concrete = receiver, concrete
        self.what = f"the module '{receiver.type()}'"

    def value(self, c) -> Value:
        return self.receiver

    def attr(self, c, name):
        return c.module_attr(self.receiver, name)

    def call(self, c, args, kwargs):
        return c.call_module(self.receiver, args, kwargs)

    def item(self, c, index):
        return c.module_item(self.receiver, index)


# ---- iterables


class Iterable:
    """A source of a for loop: its length and the item at an index, both in the program."""

    def length(self, c) -> Value:
        raise NotImplementedError

    def item(self, c, index: Value) -> Value | Sugar:
        raise NotImplementedError

    def static(self, c) -> list[Value | Sugar] | None:
        """The items, where the compiler knows how many there are."""
        return None


class Range(Sugar, Iterable):
    """range(...)."""

    what = "a range"

    def __init__(self, start: Value | None, stop: Value, step: Value | None) -> None:
        self.start, self.stop, self.step = start, stop, step

    def length(self, c) -> Value:
        if self.start is None:
            return self.stop
        return c.op("aten::__range_length", [self.start, self.stop, self.step])

    def item(self, c, index):
        if self.start is None:
            return index
        return c.op("aten::__derive_index", [index, self.start, self.step])


class Enumerate(Sugar, Iterable):
    """enumerate(...)."""

    what = "an enumeration"

    def __init__(self, inner: Iterable, start: Value | None) -> None:
        self.inner, self.start = inner, start

    def number(self, c, index: Value) -> Value:
        return index if self.start is None else c.op("aten::add", [index, self.start])

    def length(self, c) -> Value:
        return self.inner.length(c)

    def item(self, c, index):
        return Tuple([self.number(c, index), self.inner.item(c, index)])

    def static(self, c):
        items = self.inner.static(c)
        if items is None:
            return None
        return [Tuple([self.number(c, c.const(i)), item]) for i, item in enumerate(items)]


class Zip(Sugar, Iterable):
    """zip(...)."""

    what = "a zip"

    def __init__(self, parts: list[Iterable]) -> None:
        self.parts = parts

    def length(self, c) -> Value:
        lengths = [p.length(c) for p in self.parts]
        out = lengths[0]
        for other in lengths[1:]:
            out = c.op("prim::min", [out, other])
        return out

    def item(self, c, index):
        return Tuple([p.item(c, index) for p in self.parts])

    def static(self, c):
        known = [p.static(c) for p in self.parts]
        if all(k is None for k in known):
            return None
        n = min(len(k) for k in known if k is not None)
        rows = []
        for i in range(n):
            row = [
                k[i] if k is not None else p.item(c, c.const(i))
                for k, p in zip(known, self.parts, strict=True)
            ]
            rows.append(Tuple(row))
        return rows


class Sequence(Iterable):
    """A value that can be indexed: a list, tensor, string, or the keys of a dictionary."""

    def __init__(self, value: Value) -> None:
        self.source = value

    def length(self, c) -> Value:
        return c.op("aten::len", [self.source])

    def item(self, c, index):
        if self.source.type() is T.Tensor:
            return c.op("aten::select", [self.source, c.const(0), index])
        return c.op("aten::__getitem__", [self.source, index])


class Items(Iterable):
    """A fixed row of things."""

    def __init__(self, items) -> None:
        self.items = list(items)

    def length(self, c) -> Value:
        return c.const(len(self.items))

    def item(self, c, index):
        c.fail("a tuple can only be indexed with a constant")

    def static(self, c):
        return self.items


def iterable_of(c, thing: Value | Sugar) -> Iterable:
    """How a for loop goes through a thing."""
    if isinstance(thing, Iterable):
        return thing
    if isinstance(thing, Tuple):
        return Items(thing.items)
    if isinstance(thing, Module):
        return Items(c.module_items(thing.receiver))
    value = c.as_value(thing)
    kind = value.type()
    if isinstance(kind, T.TupleType):
        return Items(c.unpack(value))
    if isinstance(kind, T.DictType):
        return Sequence(c.op("aten::keys", [value]))
    if isinstance(kind, T.ListType) or kind in (T.Tensor, T.String):
        return Sequence(value)
    if isinstance(kind, T.ClassType) and kind.is_module:
        return Items(c.module_items(value))
    c.fail(f"'{kind.annotation_str}' object is not iterable")
