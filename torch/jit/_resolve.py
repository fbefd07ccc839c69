"""From Python objects to what they stand for in scripted code."""

from __future__ import annotations

import builtins
import cmath
import collections
import enum
import functools
import inspect
import math
import types
import typing
import warnings

import torch
from torch.jit import _types as T
from torch.jit._sugar import (
    Class,
    Constant,
    Form,
    Function,
    Ignored,
    Operator,
    Overloaded,
    PythonObject,
    Sugar,
    Tuple,
    Unused,
)

_PLAIN = (bool, int, float, complex, str, type(None), torch.device, torch.dtype, torch.layout,
          torch.memory_format)  # fmt: skip
_FORMS = (
    "int float bool complex str print len abs round divmod pow hash id ord chr bin hex oct min "
    "max sum "
    "all any range enumerate zip reversed list tuple dict sorted getattr hasattr isinstance super "
    "type"
).split()
_MATH = {"remainder": "aten::mathremainder", "pow": "aten::pow", "fabs": "aten::fabs",
         "phase": "aten::angle", "rect": "aten::polar"}  # fmt: skip


def number_of(value: object) -> int:
    """The number that stands for a dtype, layout or memory format in programs."""
    return torch._C._script_number(value)


@functools.cache
def _forms() -> dict[int, Form]:
    table = {id(getattr(builtins, name)): Form(name) for name in _FORMS}
    jit = torch.jit
    special = {
        "annotate": [jit.annotate],
        "fork": [jit.fork, jit._fork],
        "wait": [jit.wait, jit._wait],
        "awaitable": [jit._awaitable],
        "awaitable_nowait": [jit._awaitable_nowait],
        "awaitable_wait": [jit._awaitable_wait],
        "isinstance": [jit.isinstance],
        "is_scripting": [jit.is_scripting],
        "is_tracing": [jit.is_tracing, torch._C._get_tracing_state],
        "cast": [typing.cast],
        "nothing": [warnings.filterwarnings, warnings.simplefilter],
        "warn": [warnings.warn],
        "check": [torch._assert],
        "dict": [collections.OrderedDict],
        "slice": [slice],
        "unwrap_optional": [jit._unwrap_optional],
    }
    never = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"]
    for name in never:
        special.setdefault("never", []).append(getattr(torch.overrides, name))
    special["never"] += [
        torch.compiler.is_compiling,
        torch.compiler.is_dynamo_compiling,
        torch.compiler.is_exporting,
        torch.is_autocast_enabled,
    ]
    for name, objects in special.items():
        for thing in objects:
            table[id(thing)] = Form(name)
    return table


@functools.cache
def _operators() -> dict[int, str]:
    """Functions that are operators, by identity."""
    from torch.jit._schema import schemas

    table: dict[int, str] = {}
    spaces = [
        ("", torch),
        ("", torch._C._VariableFunctions),
        ("", torch._C._nn),
        ("linalg_", torch.linalg),
        ("fft_", torch.fft),
        ("special_", torch.special),
        ("", torch.nn.functional),
        ("sparse_", torch.sparse),
    ]
    for prefix, space in spaces:
        for name in dir(space):
            thing = getattr(space, name, None)
            if not callable(thing) or isinstance(thing, type) or id(thing) in table:
                continue
            if isinstance(thing, types.FunctionType) and space is torch.nn.functional:
                continue
            for full in (f"aten::{prefix}{name}", f"aten::{name}"):
                if schemas(full, composed=False):
                    table[id(thing)] = full
                    break
    for name, thing in (*vars(math).items(), *vars(cmath).items()):
        full = _MATH.get(name, "aten::" + name)
        known = schemas(full, composed=False)
        if callable(thing) and any(s.builtin is not None for s in known):
            table[id(thing)] = full
    import operator

    for name in (
        "add",
        "sub",
        "mul",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "floordiv",
        "neg",
        "matmul",
    ):
        table[id(getattr(operator, name))] = "aten::" + name
    table[id(operator.truediv)] = "aten::div"
    table[id(torch.Size)] = "aten::list"
    table[id(torch.device)] = "aten::device"
    table[id(torch.manual_seed)] = "aten::manual_seed"
    table[id(torch.is_grad_enabled)] = "aten::is_grad_enabled"
    table[id(torch.tensor)] = "aten::tensor"
    table[id(torch.as_tensor)] = "aten::as_tensor"
    for name in ("get_device", "is_tensor"):
        table.pop(id(getattr(torch, name, None)), None)
    return table


_PACKED = {
    "aten::einsum": 1,
    "aten::broadcast_tensors": 0,
    "aten::meshgrid": 0,
    "aten::block_diag": 0,
    "aten::cartesian_prod": 0,
    "aten::chain_matmul": 0,
}


class Packed(Operator):
    """An operator that Python calls with its tensors spread out."""

    def call(self, c, args, kwargs):
        first = _PACKED[self.name]
        rest = args[first:]
        if rest and all(not isinstance(a, Sugar) and a.type() is T.Tensor for a in rest):
            args = [*args[:first], c.make_list(list(rest))]
        return c.op(self.name, args, kwargs)


def sugar(thing: object, c=None) -> Sugar:
    """What a Python object stands for."""
    from torch.jit._function import ScriptFunction

    if isinstance(thing, ScriptFunction):
        return Function(thing)
    if isinstance(thing, enum.Enum):
        from torch.jit._annotations import type_of_class

        return Constant(thing, type_of_class(type(thing)))
    if type(thing) in _PLAIN:
        known = T.infer(thing)
        if isinstance(thing, torch.dtype | torch.layout | torch.memory_format):
            thing = number_of(thing)
        return Constant(thing, known)
    form = _forms().get(id(thing))
    if form is not None:
        return form
    replacement = getattr(thing, "__script_if_tracing__", None)
    if replacement is not None:
        thing = replacement
    if isinstance(thing, torch._ops.OpOverloadPacket | torch._ops.OpOverload):
        return _registered(thing)
    if thing is torch.unique or thing is torch.unique_consecutive:
        return Unique(thing is torch.unique_consecutive)
    if id(thing) in _repeated():
        return Repeated(_repeated()[id(thing)])
    if thing is math.prod:
        from torch.jit._function import script_python
        from torch.jit._functional import product

        return Function(script_python(product))
    own = library_function(thing)
    if own is not None:
        return own
    name = _operators().get(id(thing))
    if name is not None:
        return Packed(name) if name in _PACKED else Operator(name)
    if isinstance(thing, type):
        return _class(thing, c)
    if isinstance(thing, torch._C.ScriptClass):
        return Class(T.CustomClassType.of(thing.qualified_name()))
    from torch.jit import _autograd

    stays = {
        torch.autograd.grad: _autograd.grad,
        torch.autograd.backward: _autograd.backward_of,
        torch.save: _autograd.save,
    }
    if isinstance(thing, types.FunctionType) and thing in stays:
        return python_function(stays[thing])
    if isinstance(thing, types.MethodType) and isinstance(thing.__self__, type):
        return sugar(thing.__func__, c)
    if inspect.isfunction(inspect.unwrap(thing) if callable(thing) else thing):
        return python_function(thing)
    return PythonObject(thing)


def _registered(op) -> Operator:
    if isinstance(op, torch._ops.OpOverload):
        name, _, overload = op.name().partition(".")
        return Operator(name, overload=overload)
    return Operator(op._qualified_op_name)


def library_function(thing: object) -> Sugar | None:
    """The scriptable form of a function of the library whose own body is not written in the
    language."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__name__", None)
    if not isinstance(module, str) or not module.startswith("torch.") or not isinstance(name, str):
        return None
    from torch.jit import _functional, _functional_pooling

    known = _functional.REPLACED.get((module, name))
    if known is None:
        public = getattr(torch.nn.functional, name, None)
        if public is not thing:
            return None
        known = _functional.FUNCTIONS.get(name) or _functional_pooling.FUNCTIONS.get(name)
    if known is None:
        return None
    from torch.jit._function import script_python

    if isinstance(known, tuple):
        return BooleanDispatch(*known)
    if _is_generic(known):
        return Generic(known)

    return Function(script_python(known, f"__torch__.torch.nn.functional.{name}", name))


def python_function(thing) -> Sugar:
    """A Python function: compiled, or left to Python where it is marked so."""
    from torch.jit._function import Declared, script_python

    mark = getattr(thing, "__script_mark__", None)
    if mark in ("ignore", "unused"):
        declared = Declared(thing)
        if mark == "unused":
            return Unused(thing.__name__, declared.returns)
        return Ignored(thing, declared)
    pair = getattr(thing, "__script_dispatch__", None)
    if pair is not None:
        return BooleanDispatch(*pair)
    overloads = overloads_of(thing)
    if overloads:
        return Overloaded([script_python(thing, declaration=d) for d in overloads])
    plain = inspect.unwrap(thing) if hasattr(thing, "__wrapped__") else thing
    if plain.__module__.startswith("torch.") and _is_generic(plain):
        return Generic(plain)
    return Function(script_python(plain))


def _is_generic(fn) -> bool:
    """Whether a function of the library leaves the type of a parameter open."""
    names = [n for n in inspect.signature(fn).parameters if n != "self"]
    return any(n not in fn.__annotations__ for n in names)


class Generic(Sugar):
    """A function of the library with parameters of no declared type: compiled for the types of each
    call."""

    made: typing.ClassVar[dict[tuple[object, ...], typing.Any]] = {}

    def __init__(self, fn) -> None:
        self.fn = fn

    def call(self, c, args, kwargs):
        names = list(inspect.signature(self.fn).parameters)
        given = dict(zip(names, args, strict=False)) | kwargs
        types = {}
        for name, thing in given.items():
            if name not in self.fn.__annotations__:
                types[name] = c.as_value(thing).type()
        key = (self.fn, *sorted((n, id(t)) for n, t in types.items()))
        if key not in self.made:
            from torch.jit._annotations import qualified_name
            from torch.jit._function import GenericSource, ScriptFunction

            origin = GenericSource(self.fn, types)
            self.made[key] = ScriptFunction(self.fn.__name__, qualified_name(self.fn), origin)
        return c.call_function(self.made[key], args, kwargs)


_overloads: dict[str, list[typing.Any]] = {}


def overload_key(fn) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def overloads_of(fn) -> list[typing.Any]:
    return _overloads.get(overload_key(fn), []) if hasattr(fn, "__qualname__") else []


class BooleanDispatch(Sugar):
    """A function that is one of two others, by a constant flag."""

    def __init__(self, arg_name, arg_index, default, if_true, if_false) -> None:
        self.parts = arg_name, arg_index, default, if_true, if_false

    def call(self, c, args, kwargs):
        from torch.jit._indexing import constant_of

        name, index, flag, if_true, if_false = self.parts
        try:
            if name in kwargs:
                flag = constant_of(kwargs[name])
            elif index < len(args):
                flag = constant_of(args[index])
        except LookupError:
            c.fail(f"Arguments for call are not valid: '{name}' must be a constant")
        return sugar(if_true if flag else if_false, c).call(c, args, kwargs)


class Repeated(Sugar):
    """torch.nn.modules.utils._pair and its kind: one number becomes a list of several."""

    def __init__(self, count: int) -> None:
        self.count = count

    def call(self, c, args, kwargs):
        value = c.as_value(args[0])
        if value.type() in (T.Int, T.Float):
            return c.make_list([value] * self.count)
        return value


@functools.cache
def _repeated() -> dict[int, int]:
    from torch.nn.modules import utils

    names = ("_single", "_pair", "_triple", "_quadruple")
    return {id(getattr(utils, name)): n for n, name in enumerate(names, 1)}


class Unique(Sugar):
    """torch.unique and unique_consecutive: how many results there are depends on constant flags."""

    def __init__(self, consecutive: bool) -> None:
        self.consecutive = consecutive

    def call(self, c, args, kwargs):
        from torch.jit._indexing import constant_of

        flags = ["return_inverse", "return_counts", "dim"]
        names = ["input", *([] if self.consecutive else ["sorted"]), *flags]
        given = dict(zip(names, args, strict=False)) | kwargs
        try:
            inverse, counts = (constant_of(given[n]) if n in given else False for n in flags[:2])
        except LookupError:
            c.fail("return_inverse and return_counts of unique must be constants")
        order = given.get("sorted") or c.const(True)
        dim = c.as_value(given["dim"]) if "dim" in given else c.none()
        asked = [c.const(bool(inverse)), c.const(bool(counts))]
        if self.consecutive:
            made = c.op("aten::unique_consecutive", [given["input"], *asked, dim])
        elif dim.type() is T.NoneT:
            made = c.op("aten::_unique2", [given["input"], order, *asked])
        else:
            made = c.op("aten::unique_dim", [given["input"], dim, order, *asked])
        kept = [made.items[i] for i, want in enumerate((True, inverse, counts)) if want]
        return kept[0] if len(kept) == 1 else Tuple(kept)


def _class(cls: type, c) -> Sugar:
    from torch.jit._annotations import type_of_class

    if issubclass(cls, BaseException) or cls.__module__ in ("typing", "torch.autograd.grad_mode"):
        return PythonObject(cls)
    if cls in (torch.no_grad, torch.enable_grad, torch.inference_mode, torch.set_grad_enabled):
        return PythonObject(cls)
    if issubclass(cls, torch.autocast):
        return PythonObject(cls)
    if issubclass(cls, torch.autograd.Function):
        return PythonObject(cls)
    if issubclass(cls, torch.Tensor):
        return PythonObject(cls)
    try:
        return Class(type_of_class(cls))
    except (TypeError, OSError) as e:
        if c is None:
            raise
        return UnusableClass(cls, str(e))


class UnusableClass(PythonObject):
    """A class that scripted code cannot make objects of; says why when it is called."""

    def __init__(self, cls: type, why: str) -> None:
        super().__init__(cls)
        self.why = why

    def call(self, c, args, kwargs):
        c.fail(self.why)
