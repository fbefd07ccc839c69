"""Functions that are compiled before they are called and kept in a file.

`torch.compile(fn, fullgraph=True).aot_compile((args, kwargs))` traces fn once for these arguments;
`save_compiled_function` writes a ZIP archive with the graph, the conditions on the arguments and
the shape of the result as JSON (stored_graph.py), and the tensors that fn found outside of its
arguments. `load_compiled_function` reads it where fn and its program are not: the archive holds no
code and no pickled objects. The backend is named, and makes its program on the first call."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._dynamo import config
from torch._dynamo.backends.registry import is_known, lookup_backend
from torch._dynamo.stored_graph import JSON, read_graph, read_value, write_graph, write_value
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import CompiledFunction
    from torch._dynamo.exporting import ExportGuard

FORMAT = 1


# ---- conditions


def tensor_condition(example: torch.Tensor, fake: torch.Tensor) -> JSON:
    """What the graph takes for granted of a tensor; None for a size that may vary."""

    def fixed(numbers: tuple) -> list[int | None]:
        return [int(n) if isinstance(n, int) else None for n in numbers]

    return {
        "dtype": write_value(example.dtype),
        "device": write_value(example.device),
        "requires_grad": example.requires_grad,
        "sizes": fixed(tuple(fake.shape)),
        "strides": fixed(fake.stride()),
    }


def _tensor_failure(wanted: JSON, value: object) -> str | None:
    if not isinstance(value, torch.Tensor):
        return f"expected a tensor, got {type(value).__name__}"
    found = {
        "dtype": write_value(value.dtype),
        "device": write_value(value.device),
        "requires_grad": value.requires_grad,
    }
    for key, got in found.items():
        if wanted[key] != got:
            return f"{key}: expected {wanted[key]}, got {got}"
    for key, got in (("sizes", tuple(value.shape)), ("strides", value.stride())):
        known = wanted[key]
        if len(known) != len(got):
            return f"expected {len(known)} dimensions, got {len(got)}"
        if any(a is not None and a != b for a, b in zip(known, got, strict=True)):
            return f"{key}: expected {known}, got {list(got)}"
    return None


_BINARY = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mult": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "Div": lambda a, b: a / b,
    "Pow": lambda a, b: a**b,
    "Eq": lambda a, b: a == b,
    "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "LtE": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b,
}
_GEOMETRY = ("size", "stride", "storage_offset")


def shape_condition(node: ast.expr) -> JSON:
    """A relation between sizes, as lists."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BoolOp):
        return [type(node.op).__name__, *[shape_condition(v) for v in node.values]]
    if isinstance(node, ast.UnaryOp):
        return [type(node.op).__name__, shape_condition(node.operand)]
    if isinstance(node, ast.BinOp):
        name = type(node.op).__name__
        return [name, shape_condition(node.left), shape_condition(node.right)]
    if isinstance(node, ast.Compare):
        values = [shape_condition(v) for v in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return ["And", *[[type(op).__name__, a, b] for op, a, b in pairs]]
    if isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Name) and node.value.id == "L":
            return ["L", ast.literal_eval(node.slice)]
        return ["item", shape_condition(node.value), ast.literal_eval(node.slice)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _GEOMETRY:
            return [node.func.attr, shape_condition(node.func.value)]
    raise NotImplementedError(f"a compiled function cannot be kept: it needs {ast.unparse(node)}")


def _holds(condition: JSON, arguments: dict[str, object]) -> object:
    if not isinstance(condition, list):
        return condition
    name, *rest = condition
    if name == "L":
        return arguments[rest[0]]
    if name == "item":
        return _holds(rest[0], arguments)[rest[1]]
    values = [_holds(part, arguments) for part in rest]
    if name in _GEOMETRY:
        return getattr(values[0], name)()
    if name == "And":
        return all(values)
    if name == "Or":
        return any(values)
    if name == "Not":
        return not values[0]
    if name == "USub":
        return -values[0]
    return _BINARY[name](*values)


# ---- the function


@dataclasses.dataclass
class Stored:
    """All that a file holds of a function, but its tensors."""

    name: str
    parameters: list[JSON]
    in_spec: str
    out_spec: str
    leaves: list[JSON]
    shapes: list[JSON]
    globals: dict[str, JSON]
    state: list[str]
    graph: JSON
    backend: str | None


class AOTCompiledFunction:
    """A function that was compiled for certain arguments. It runs for others that meet the same
    conditions and raises for those that do not."""

    def __init__(
        self, stored: Stored, state: list[torch.Tensor], backend: Callable, gm: fx.GraphModule
    ) -> None:
        self._stored = stored
        self._state = state
        self._backend = backend
        self._gm = gm
        self._compiled: Callable | None = None
        self._checks = True
        self._signature = _read_signature(stored.parameters)
        self._in_spec = pytree.treespec_loads(stored.in_spec)
        self._out_spec = pytree.treespec_loads(stored.out_spec)
        self.__name__ = self.__qualname__ = stored.name

    def __call__(self, *args: object, **kwargs: object) -> object:
        bound, flat, failure = self._bind(args, kwargs)
        if failure is None and self._checks:
            failure = self._failure(bound, flat)
        if failure is not None:
            raise RuntimeError(
                f"GuardManager check failed, reason: {self.__name__} was compiled for other "
                f"arguments: {failure}"
            )
        inputs = [value for value in flat if isinstance(value, torch.Tensor)] + self._state
        if self._compiled is None:
            self._compiled = self._compile(inputs)
        return pytree.tree_unflatten(list(self._compiled(*inputs)), self._out_spec)

    def _bind(
        self, args: tuple, kwargs: dict[str, object]
    ) -> tuple[inspect.BoundArguments, list[object], str | None]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        flat, spec = pytree.tree_flatten((bound.args, bound.kwargs))
        wrong = None if spec == self._in_spec else f"expected {self._in_spec}, got {spec}"
        return bound, flat, wrong

    def _failure(self, bound: inspect.BoundArguments, flat: list[object]) -> str | None:
        for place, (wanted, value) in enumerate(zip(self._stored.leaves, flat, strict=True)):
            if "tensor" in wanted:
                found = _tensor_failure(wanted["tensor"], value)
            else:
                known = read_value(wanted["constant"], {})
                same = type(known) is type(value) and known == value
                found = None if same else f"expected {known!r}, got {value!r}"
            if found is not None:
                return f"argument {place}: {found}"
        for condition in self._stored.shapes:
            if not _holds(condition, bound.arguments):
                return f"sizes do not meet {condition}"
        return None

    def guard_check(self, *args: object, **kwargs: object) -> bool:
        """Whether the function runs for these arguments."""
        bound, flat, failure = self._bind(args, kwargs)
        return failure is None and self._failure(bound, flat) is None

    def disable_guard_check(self) -> None:
        """Arguments are not looked at any more."""
        self._checks = False

    def _compile(self, inputs: list[torch.Tensor]) -> Callable:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        tensors = [leaf["tensor"]["sizes"] for leaf in self._stored.leaves if "tensor" in leaf]
        places = self._gm.graph.find_nodes(op="placeholder")
        for i, (node, value) in enumerate(zip(places, inputs, strict=True)):
            sizes = tensors[i] if i < len(tensors) else list(value.shape)
            node.meta["example_value"] = mode.from_tensor(value, symbolic_context=_context(sizes))
        with tracing(TracingContext(mode)):
            return self._backend(self._gm, inputs)

    def save_compiled_function(self, path: str | os.PathLike[str]) -> None:
        """Writes the function into a file."""
        if self._stored.backend is None:
            raise RuntimeError(
                f"{self.__name__} was compiled by a backend without a name; "
                "torch._dynamo.register_backend gives it one"
            )
        tensors = io.BytesIO()
        torch.save(self._state, tensors)
        content = {"format": FORMAT, **dataclasses.asdict(self._stored)}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("function.json", json.dumps(content))
            archive.writestr("tensors.pt", tensors.getvalue())


def _context(sizes: list[int | None]) -> object | None:
    from torch._dynamo.variables.builder import dynamic_context

    if None not in sizes:
        return None
    dims = [DimDynamic.DYNAMIC if size is None else DimDynamic.STATIC for size in sizes]
    return dynamic_context(dims, set(), {})


def _write_signature(signature: inspect.Signature) -> list[JSON]:
    rows = []
    for parameter in signature.parameters.values():
        given = parameter.default is not parameter.empty
        default = write_value(parameter.default) if given else None
        rows.append([parameter.name, parameter.kind.name, given, default])
    return rows


def _read_signature(rows: list[JSON]) -> inspect.Signature:
    parameters = []
    for name, kind, given, default in rows:
        value = read_value(default, {}) if given else inspect.Parameter.empty
        place = getattr(inspect.Parameter, kind)
        parameters.append(inspect.Parameter(name, place, default=value))
    return inspect.Signature(parameters)


def _name_of(backend: Callable) -> str | None:
    from torch._dynamo.backends import registry

    return next((n for n, f in registry._COMPILER_FNS.items() if f is backend), None)


def _state_as_inputs(gm: fx.GraphModule) -> tuple[list[str], list[torch.Tensor]]:
    """Tensors of the module become inputs after the others, as the graphs of Dynamo have them, and
    inputs that are constants go."""
    names: list[str] = []
    tensors: list[torch.Tensor] = []
    places = gm.graph.find_nodes(op="placeholder")
    last = places[-1] if places else gm.graph._root
    for node in gm.graph.find_nodes(op="get_attr"):
        value = getattr(gm, node.target, None)
        if not isinstance(value, torch.Tensor):
            continue
        with gm.graph.inserting_after(last):
            last = gm.graph.placeholder(f"state_{len(names)}")
        node.replace_all_uses_with(last)
        gm.graph.erase_node(node)
        names.append(node.target)
        tensors.append(value)
    return names, tensors


def aot_compile(
    fn: Callable, example_inputs: tuple[tuple, dict[str, object]], backend: Callable
) -> AOTCompiledFunction:
    """fn compiled for the arguments (args, kwargs)."""
    from torch._dynamo import exporting

    args, kwargs = example_inputs
    call = exporting._call_of(fn)
    signature = inspect.signature(call.function, follow_wrapped=False)
    own = list(signature.parameters.values())[len(call.bound) :]
    signature = signature.replace(parameters=own)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    with config.patch(automatic_dynamic_shapes=False):
        gm, guards, examples, _ = exporting._capture(call, bound.args, bound.kwargs, None, True)
    flat, in_spec = pytree.tree_flatten((bound.args, bound.kwargs))
    leaves: list[JSON] = []
    for node, value, fake in zip(
        gm.graph.find_nodes(op="placeholder"), flat, examples, strict=True
    ):
        if isinstance(value, torch.Tensor):
            leaves.append({"tensor": tensor_condition(value, fake)})
        else:
            leaves.append({"constant": write_value(value)})
            gm.graph.erase_node(node)
    out_spec = gm.graph._codegen.pytree_info.out_spec
    gm.graph._codegen = fx.graph.CodeGen()
    names, state = _state_as_inputs(gm)
    gm = fx.GraphModule(gm, gm.graph)
    conditions = [
        shape_condition(ast.parse(text, mode="eval").body)
        for guard in guards
        if guard.guard_types == ["SHAPE_ENV"]
        for text in guard.code_list
    ]
    stored = Stored(
        name=call.function.__name__,
        parameters=_write_signature(signature),
        in_spec=pytree.treespec_dumps(in_spec),
        out_spec=pytree.treespec_dumps(out_spec),
        leaves=leaves,
        shapes=conditions,
        globals=_constants(guards),
        state=names,
        graph=write_graph(gm),
        backend=_name_of(backend),
    )
    return AOTCompiledFunction(stored, state, backend, gm)


def _constants(guards: list[ExportGuard]) -> dict[str, JSON]:
    """Global constants that the graph was made with."""
    return {
        ast.literal_eval(guard.name[2:-1]): write_value(guard.value)
        for guard in guards
        if guard.guard_types == ["CONSTANT_MATCH"] and re.fullmatch(r"G\['\w+'\]", guard.name)
    }


def aot_compile_wrapped(
    compiled: CompiledFunction, example_inputs: tuple[tuple, dict[str, object]]
) -> AOTCompiledFunction:
    """What aot_compile of a function that torch.compile returned does."""
    callback = compiled.callback
    if callback is None or not callback.fullgraph:
        raise RuntimeError(
            "Graph breaks are not supported with aot compile. Please use "
            "torch.compile(fullgraph=True)."
        )
    return aot_compile(compiled.__wrapped__, example_inputs, callback.backend)


def load_compiled_function(
    file: IO[bytes],
    *,
    f_globals: dict[str, object] | None = None,
    external_data: dict[str, torch.Tensor] | None = None,
) -> AOTCompiledFunction:
    """The function in a file that save_compiled_function() wrote. `external_data` gives tensors to
    be used in place of those in the file, under the names that the graph has for them. `f_globals`
    are the globals of the program that calls it: those that are constants of the graph must have
    their values."""
    with zipfile.ZipFile(file) as archive:
        content = json.loads(archive.read("function.json"))
        state = torch.load(io.BytesIO(archive.read("tensors.pt")), weights_only=True)
    if content.pop("format", None) != FORMAT:
        raise ValueError("load_compiled_function: the file is of another version")
    stored = Stored(**content)
    for name, written in stored.globals.items() if f_globals is not None else ():
        known = read_value(written, {})
        if f_globals.get(name, known) != known:
            raise RuntimeError(
                f"load_compiled_function: {stored.name} was compiled with {name} = {known!r}, "
                f"which is {f_globals[name]!r} now"
            )
    for name, value in (external_data or {}).items():
        if name not in stored.state:
            raise ValueError(
                f"load_compiled_function: external_data names {name!r}; the function has "
                f"{stored.state}"
            )
        state[stored.state.index(name)] = value
    if not is_known(stored.backend):
        raise ValueError(f"load_compiled_function: no backend is called {stored.backend!r}")
    return AOTCompiledFunction(
        stored, state, lookup_backend(stored.backend), read_graph(stored.graph)
    )
