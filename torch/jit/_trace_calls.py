"""The recording of calls as programs write them. An operator that is made of others is one node,
and integers that are sizes of tensors stay connected with the tensors they come from: what is
recorded works for other sizes. Calls that fit no schema are recorded by the operators they run."""

from __future__ import annotations

import functools
import types
import typing

import torch
from torch.jit import _types as T
from torch.jit._schema import NO_DEFAULT, Schema, schemas
from torch.jit._trace_numbers import TracedInt, TracedSize, known
from torch.overrides import TorchFunctionMode

if typing.TYPE_CHECKING:
    from torch.jit._trace import Recorder

_CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16,
    "bfloat16": torch.bfloat16, "int": torch.int32, "long": torch.int64, "short": torch.int16,
    "char": torch.int8, "byte": torch.uint8, "bool": torch.bool,
}  # fmt: skip
_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
_TENSORS = (T.Tensor, T.ListType.of(T.Tensor))


def _never(*_args: object) -> bool:
    return False


@functools.cache
def _body_of(function: types.FunctionType) -> types.FunctionType:
    """A function of the library that does not ask whether calls are intercepted: the calls of its
    body are."""
    scope = {**function.__globals__, **dict.fromkeys(_CHECKS, _never)}
    made = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class CallRecorder(TorchFunctionMode):
    """Records the functions and methods that a program calls."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.inside: list[types.FunctionType] = []

    def __torch_function__(self, func, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.recorder.paused:
            return func(*args, **kwargs)
        if isinstance(func, types.FunctionType) and (func.__module__ or "").startswith("torch."):
            return self.enter(func, args, kwargs)
        if _is_foreign(func):
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = func.__self__.__name__
        special = getattr(self, "on_" + name.strip("_"), None)
        if special is not None:
            return special(func, args, kwargs)
        schema, positional = _fitting_schema(f"aten::{name}", args, kwargs)
        if schema is None:
            return func(*args, **kwargs)
        return self.run(func, args, kwargs, schema, positional)

    def enter(self, func, args, kwargs) -> object:
        """Runs a function of the library whose own calls are recorded. One that comes back here
        asks in another way whether calls are intercepted: it is left to its operators."""
        if func in self.inside:
            return func(*args, **kwargs)
        self.inside.append(func)
        try:
            with self:
                return _body_of(func)(*args, **kwargs)
        finally:
            self.inside.pop()

    def run(self, func, args, kwargs, schema: Schema, positional) -> object:
        with self.recorder.pause():
            out = func(*args, **kwargs)
        self.recorder.record_call(schema, positional, kwargs, out)
        return out

    # ---- sizes

    def size(self, tensor: torch.Tensor, dim: int, number: int) -> TracedInt:
        inputs = [self.recorder.tensor(tensor), self.recorder.const(dim, T.Int)]
        schema = next(s for s in schemas("aten::size") if s.overload_name == "int")
        node = self.recorder.node("aten::size", inputs, [T.Int])
        node.schema_of = schema
        return known(self.recorder, number, node.output())

    def on_shape(self, func, args, kwargs) -> object:
        sizes = func(*args, **kwargs)
        tensor = args[0]
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_nested:
            return sizes
        return TracedSize(self.size(tensor, i, n) for i, n in enumerate(sizes))

    def on_size(self, func, args, kwargs) -> object:
        found = func(*args, **kwargs)
        if isinstance(found, int):
            dim = args[1] if len(args) > 1 else kwargs["dim"]
            return self.size(args[0], int(dim), found)
        return self.on_shape(func, args, kwargs)

    def on_numel(self, func, args, kwargs) -> object:
        number = func(*args, **kwargs)
        schema = schemas("aten::numel")[0]
        node = self.recorder.node("aten::numel", [self.recorder.tensor(args[0])], [T.Int])
        node.schema_of = schema
        return known(self.recorder, number, node.output())

    on_nelement = on_numel

    def on_tensor(self, func, args, kwargs) -> object:
        out = func(*args, **kwargs)
        if args and isinstance(args[0], TracedInt) and out.dtype is torch.int64:
            self.recorder.know(out, self.recorder.number_value(args[0], T.Tensor))
        return out

    # ---- casts

    def on_to(self, func, args, kwargs) -> object:
        schema, positional = _fitting_schema("aten::to", args, kwargs)
        if schema is None:
            return func(*args, **kwargs)
        return self.run(func, args, kwargs, schema, positional)

    def cast(self, func, args, kwargs) -> object:
        dtype = _CASTS.get(func.__name__)
        if dtype is None or len(args) != 1 or kwargs:
            return func(*args, **kwargs)
        schema = next(s for s in schemas("aten::to") if s.overload_name == "dtype")
        with self.recorder.pause():
            out = func(*args)
        self.recorder.record_call(schema, (args[0], dtype), {}, out)
        return out

    def on_cpu(self, func, args, kwargs) -> object:
        schema = next(s for s in schemas("aten::to") if s.overload_name == "device")
        with self.recorder.pause():
            out = func(*args, **kwargs)
        place = torch.device("cpu")
        self.recorder.record_call(schema, (args[0], place, args[0].dtype), {}, out)
        return out

    on_float = on_double = on_half = on_bfloat16 = on_int = on_long = cast
    on_short = on_char = on_byte = on_bool = cast

    # ---- indices

    def on_getitem(self, func, args, kwargs) -> object:
        tensor, index = args
        with self:
            view, tensors = self.view_of(tensor, index)
        if view is None:
            return self.plain(func, args)
        if not any(t is not None for t in tensors):
            return view
        return self.call_operator("aten::index", "Tensor", (view, tensors))

    def on_setitem(self, func, args, kwargs) -> object:
        tensor, index, value = args
        with self:
            view, tensors = self.view_of(tensor, index)
        if view is None:
            return self.plain(func, args)
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=tensor.dtype, device=tensor.device)
        if any(t is not None for t in tensors):
            self.call_operator("aten::index_put_", "", (view, tensors, value, False))
        else:
            with self:
                view.copy_(value.expand(view.shape) if value.dim() > view.dim() else value)
        return None

    def plain(self, func, args) -> object:
        """A call that is recorded by the operators it runs."""
        return func(*args)

    def call_operator(self, name: str, overload: str, args) -> torch.Tensor:
        schema = next(s for s in schemas(name) if s.overload_name == overload)
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        with self.recorder.pause():
            out = getattr(packet, overload or "default")(*args)
        self.recorder.record_call(schema, args, {}, out)
        return out

    def view_of(self, tensor: torch.Tensor, index: object):
        """The view that numbers, slices and None take of a tensor, and the index tensors that are
        left; (None, []) for indices that are recorded as they run."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if not all(p is None or p is Ellipsis or _is_simple(p) for p in parts):
            return None, []
        taken = sum(1 for p in parts if p is not None and p is not Ellipsis)
        if sum(1 for p in parts if p is Ellipsis) > 1 or taken > tensor.dim():
            return None, []
        view, dim, tensors = tensor, 0, []
        for part in parts:
            if part is Ellipsis:
                skipped = tensor.dim() - taken
                dim += skipped
                tensors += [None] * skipped
            elif part is None:
                view, dim = view.unsqueeze(dim), dim + 1
                tensors.append(None)
            elif isinstance(part, slice):
                if part != slice(None):
                    view = self.slice_of(view, dim, part)
                dim += 1
                tensors.append(None)
            elif isinstance(part, torch.Tensor):
                dim += 1
                tensors.append(part)
            else:
                view = view.select(dim, part)
        while tensors and tensors[-1] is None:
            tensors.pop()
        return view, tensors

    def slice_of(self, view: torch.Tensor, dim: int, part: slice) -> torch.Tensor:
        step = 1 if part.step is None else part.step
        schema = next(s for s in schemas("aten::slice") if s.overload_name == "Tensor")
        with self.recorder.pause():
            out = torch.ops.aten.slice.Tensor(view, dim, part.start, part.stop, step)
        self.recorder.record_call(schema, (view, dim, part.start, part.stop, step), {}, out)
        return out


def _is_foreign(func: object) -> bool:
    """Operators of other libraries and functions of programs may be named like one of ours; they
    are recorded by the operators they run."""
    if isinstance(func, torch._ops.OpOverload):
        return func.namespace != "aten"
    if isinstance(func, torch._ops.OpOverloadPacket):
        return not func._qualified_op_name.startswith("aten::")
    return isinstance(func, types.FunctionType)


def _is_simple(part: object) -> bool:
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        whole = all(b is None or (isinstance(b, int) and not isinstance(b, bool)) for b in bounds)
        return whole and (part.step is None or part.step > 0)
    if isinstance(part, torch.Tensor):
        return part.dtype is torch.int64
    return isinstance(part, int) and not isinstance(part, bool)


def _fitting_schema(
    name: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Schema | None, tuple[object, ...]]:
    """The overload that takes a call, with its positional arguments as the overload has them."""
    if "out" in kwargs:
        return None, args
    for schema in schemas(name):
        if schema.builtin is not None or (schema.mutates and not name.endswith("_")):
            continue
        if not schema.returns or not all(r.type in _TENSORS for r in schema.returns):
            continue
        packed = _packed(schema, args)
        formal = {a.name: a for a in schema.arguments}
        if len(packed) > sum(not a.kwarg_only for a in schema.arguments):
            continue
        named = dict(zip(formal, packed, strict=False))
        if not set(kwargs) <= set(formal) or set(kwargs) & set(named):
            continue
        named |= kwargs
        if all(n in named or a.default is not NO_DEFAULT for n, a in formal.items()) and all(
            _fits(v, formal[n].type, formal[n].size) for n, v in named.items()
        ):
            return schema, packed
    return None, args


def _packed(schema: Schema, args: tuple[object, ...]) -> tuple[object, ...]:
    """Positional integers that are the items of a list: x.view(2, 3)."""
    for i, formal in enumerate(schema.arguments[: len(args)]):
        if formal.type is T.ListType.of(T.Int) and not formal.size:
            rest = args[i:]
            if all(isinstance(v, int) and not isinstance(v, bool) for v in rest):
                return (*args[:i], list(rest))
    return args


def _fits(thing: object, wanted: T.Type, size: int | None = None) -> bool:
    plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
    if thing is None:
        return isinstance(wanted, T.OptionalType)
    if isinstance(plain, T.ListType):
        if isinstance(thing, list | tuple):
            return all(_fits(v, plain.element) for v in thing)
        return size is not None and _fits(thing, plain.element)
    if plain is T.Device and isinstance(thing, str):
        return True
    if isinstance(thing, torch.dtype | torch.layout | torch.memory_format):
        return plain is T.Int
    if isinstance(thing, bool):
        return plain is T.Bool or plain is T.Number
    kind = T.infer(thing)
    if kind is None:
        return False
    return T.is_subtype(kind, wanted) or (plain is T.Float and kind is T.Int)
