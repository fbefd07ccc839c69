"""torch.jit.trace: runs a function once and writes every operator that it calls into a graph. Sizes
that Python asks for are followed as long as they stay integers; other numbers that Python computed
are constants of the trace."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
import typing
import warnings
from collections.abc import Iterator

import torch
from torch.jit import _trace_state
from torch.jit import _types as T
from torch.jit._annotations import qualified_name
from torch.jit._classes import unique_name
from torch.jit._function import Parameter, ScriptFunction
from torch.jit._ir import Graph, Node, Value
from torch.jit._modules import RecursiveScriptModule
from torch.jit._schema import NO_DEFAULT, bind, schemas
from torch.jit._trace_calls import CallRecorder
from torch.jit._trace_numbers import TracedInt
from torch.jit._trace_python import autograd_functions
from torch.jit._trace_structure import Segments, structured
from torch.utils._python_dispatch import TorchDispatchMode


class TracingCheckError(Exception):
    """A traced function does not repeat what the Python function does."""

    def __init__(self, message: str) -> None:
        self.message = "Tracing failed sanity checks!\n" + message
        super().__init__(self.message)


class TopLevelTracedModule(RecursiveScriptModule):
    """A traced module."""


TracedModule = TopLevelTracedModule
_RANDOM = ("rand", "normal", "bernoulli", "dropout", "uniform", "multinomial", "exponential")


class Recorder(TorchDispatchMode):
    """Writes the operators of a run into a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.values: dict[int, Value] = {}
        self.kept: list[torch.Tensor] = []
        self.owners: dict[int, tuple[str, ...]] = {}
        self.receiver: Value | None = None
        self.modules: dict[tuple[str, ...], Value] = {}
        self.random = False
        self.paused = False
        self.module_paths: dict[int, tuple[str, ...]] = {}

    # ---- values

    def node(self, kind: str, inputs: list[Value], types: list[T.Type], **attrs) -> Node:
        made = Node(kind, self.graph.block, inputs)
        made.attrs.update(attrs)
        for t in types:
            made.add_output(t)
        self.graph.block.nodes_list.append(made)
        return made

    def const(self, value: object, kind: T.Type) -> Value:
        return self.node("prim::Constant", [], [kind], value=value).output()

    def know(self, tensor: torch.Tensor, value: Value) -> None:
        self.values[id(tensor)] = value
        self.kept.append(tensor)

    def tensor(self, tensor: torch.Tensor) -> Value:
        found = self.values.get(id(tensor))
        if found is not None:
            return found
        path = self.owners.get(id(tensor))
        if path is not None:
            value = self.attribute(path)
        else:
            if tensor.requires_grad:
                raise RuntimeError(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                    "parameter or input, or detaching the gradient"
                )
            value = self.const(tensor.detach(), T.Tensor)
        self.know(tensor, value)
        return value

    def attribute(self, path: tuple[str, ...]) -> Value:
        owner = self.receiver
        for i, name in enumerate(path):
            key = path[: i + 1]
            if key not in self.modules:
                kind = owner.type().attributes[name]
                made = self.node("prim::GetAttr", [owner], [kind], name=name).output()
                self.modules[key] = made.setDebugName(name)
            owner = self.modules[key]
        return owner

    def value(self, thing: object, wanted: T.Type) -> Value:
        """A Python value as one of the graph."""
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if isinstance(thing, torch.Tensor):
            return self.tensor(thing)
        if isinstance(thing, TracedInt) and thing.recorder is self:
            return self.number_value(thing, plain)
        if isinstance(thing, torch.ScriptObject):
            return self.held_object(thing)
        if isinstance(thing, list | tuple) and isinstance(plain, T.ListType):
            items = [self.value(v, plain.element) for v in thing]
            return self.node("prim::ListConstruct", items, [plain]).output()
        if thing is None:
            return self.const(None, T.NoneT)
        if isinstance(thing, torch.dtype | torch.layout | torch.memory_format):
            return self.const(torch._C._script_number(thing), T.Int)
        if plain in (T.Number, T.Any):
            return self.const(thing, T.infer(thing))
        if plain is T.Float:
            thing = float(thing)
        if plain is T.Tensor:  # a number where a tensor was wanted
            return self.const(torch.tensor(thing), T.Tensor)
        if plain is T.Device and isinstance(thing, str):
            thing = torch.device(thing)
        return self.const(thing, plain)

    def held_object(self, thing: torch.ScriptObject) -> Value:
        """An object of a C++ class, which a module must hold: graphs have no such constants."""
        path = self.owners.get(thing._identity())
        if path is None:
            raise RuntimeError(
                f"Tried to trace an object of {thing._type().qualified_name()} that is no "
                "attribute of a traced module"
            )
        return self.attribute(path)

    def number_value(self, number: TracedInt, wanted: T.Type) -> Value:
        """A number that the graph computes, as the type that an operator wants."""
        if wanted is T.Tensor:
            return self.builtin("prim::NumToTensor", [number.value])
        if wanted is T.Float:
            return self.builtin("aten::Float", [number.value])
        return number.value

    def builtin(self, name: str, inputs: list[Value]) -> Value:
        """A call of a builtin of the interpreter."""
        for schema in schemas(name):
            bound: dict[str, T.Type] = {}
            if schema.builtin is None or len(schema.arguments) != len(inputs):
                continue
            if all(bind(a.type, v.type(), bound) for a, v in
                   zip(schema.arguments, inputs, strict=True)):  # fmt: skip
                node = self.node(name, inputs, [r.type for r in schema.returns])
                node.schema_of = schema
                return node.output()
        raise RuntimeError(f"{name} cannot be recorded in a trace")

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Records nothing of what runs inside."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    # ---- scripted functions

    @contextlib.contextmanager
    def scripted_calls(self) -> Iterator[None]:
        """Records calls of scripted functions as calls, with their control flow."""
        torch._C._script_set_tracer(self.call_scripted)
        try:
            yield
        finally:
            torch._C._script_set_tracer(None)

    def call_scripted(self, callee, args, kwargs):
        torch._C._script_set_tracer(None)
        try:
            with self.pause():
                out = callee(*args, **(kwargs or {}))
            if not self.paused:
                self.record_scripted(callee, args, kwargs or {}, out)
            return out
        finally:
            torch._C._script_set_tracer(self.call_scripted)

    def record_scripted(self, callee, args, kwargs, out) -> None:
        function = getattr(callee, "_function", callee)
        function.ensure_compiled()
        formals, given, inputs = function.arguments, list(args), []
        if function is not callee:
            given.insert(0, callee._self)
        for i, formal in enumerate(formals):
            if i < len(given):
                thing = given[i]
            elif formal.name in kwargs:
                thing = kwargs[formal.name]
            else:
                thing = formal.default
            inputs.append(self.any_value(thing, formal.type))
        if function is callee:
            kind, attrs = "prim::CallFunction", {"function": function}
        else:
            kind, attrs = "prim::CallMethod", {"function": function, "name": function.name}
        node = self.node(kind, inputs, [function.returns], **attrs)
        self.take_input(out, node.output())

    def any_value(self, thing: object, wanted: T.Type) -> Value:
        """A Python value of any type that scripted code can hold."""
        if isinstance(thing, RecursiveScriptModule):
            path = self.module_paths.get(id(thing))
            if path is None:
                raise RuntimeError(
                    f"the scripted module {thing.original_name} is called in a trace but is no "
                    "submodule of what is traced"
                )
            return self.attribute(path) if path else self.receiver
        if isinstance(thing, tuple) and isinstance(wanted, T.TupleType):
            parts = [self.any_value(v, t) for v, t in zip(thing, wanted.contained, strict=True)]
            return self.node("prim::TupleConstruct", parts, [wanted]).output()
        if isinstance(thing, dict) and isinstance(wanted, T.DictType):
            flat = []
            for key, item in thing.items():
                flat += [self.any_value(key, wanted.key), self.any_value(item, wanted.value)]
            return self.node("prim::DictConstruct", flat, [wanted]).output()
        return self.value(thing, wanted)

    # ---- operators

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if self.paused:
            return out
        name = func.name().partition(".")[0]
        if name == "aten::_local_scalar_dense":
            _warn_number()
            return out
        if name in ("aten::detach", "aten::lift_fresh", "aten::alias") and isinstance(
            args[0], torch.Tensor
        ):
            if id(args[0]) not in self.values and id(args[0]) not in self.owners:
                return out
        self.record(func, args, kwargs or {}, out)
        return out

    def record(self, func, args, kwargs, out) -> None:
        name, _, overload = func.name().partition(".")
        known = [s for s in schemas(name) if s.builtin is None and s.overload_name == overload]
        if not known:
            raise RuntimeError(f"{func.name()} cannot be recorded in a trace")
        self.record_call(known[0], args, kwargs, out)

    def record_call(self, schema, args, kwargs, out) -> None:
        name = schema.name
        self.random = self.random or name.removeprefix("aten::").startswith(_RANDOM)
        inputs = []
        for i, formal in enumerate(schema.arguments):
            if i < len(args):
                thing = args[i]
            elif formal.name in kwargs:
                thing = kwargs[formal.name]
            else:
                thing = None if formal.default is NO_DEFAULT else formal.default
            plain = formal.type
            plain = plain.element if isinstance(plain, T.OptionalType) else plain
            if isinstance(plain, T.ListType) and isinstance(thing, int | float):
                thing = [thing] * (formal.size or 1)
            inputs.append(self.value(thing, formal.type))
        node = self.node(name, inputs, [r.type for r in schema.returns])
        node.schema_of = schema
        results = out if len(schema.returns) > 1 else [out]
        for value, result in zip(node.outputs_list, results or [], strict=False):
            self.know_result(value, result)

    def know_result(self, value: Value, result: object) -> None:
        if isinstance(result, torch.Tensor):
            self.know(result, value)
        elif isinstance(result, list | tuple):
            unpacked = self.node("prim::ListUnpack", [value], [T.Tensor] * len(result))
            for part, tensor in zip(unpacked.outputs_list, result, strict=True):
                self.know(tensor, part)

    # ---- inputs and outputs

    def take_input(self, thing: object, value: Value) -> None:
        """Makes the tensors inside of an input known."""
        if isinstance(thing, torch.Tensor):
            self.know(thing, value)
        elif isinstance(thing, tuple):
            unpacked = self.node("prim::TupleUnpack", [value], list(value.type().contained))
            for part, item in zip(unpacked.outputs_list, thing, strict=True):
                self.take_input(item, part)
        elif isinstance(thing, list) and thing:
            unpacked = self.node("prim::ListUnpack", [value], [value.type().element] * len(thing))
            for part, item in zip(unpacked.outputs_list, thing, strict=True):
                self.take_input(item, part)
        elif isinstance(thing, dict):
            schema = next(s for s in schemas("aten::__getitem__") if s.overload_name == "Dict")
            for key, item in thing.items():
                inputs = [value, self.const(key, value.type().key)]
                node = self.node("aten::__getitem__", inputs, [value.type().value])
                node.schema_of = schema
                self.take_input(item, node.output())

    def give_output(self, thing: object, strict: bool) -> Value:
        if isinstance(thing, torch.Tensor):
            return self.tensor(thing)
        if isinstance(thing, dict):
            if strict:
                raise RuntimeError(
                    "Encountering a dict at the output of the tracer might cause the trace to be "
                    "incorrect, this is only valid if the container structure does not change "
                    "based "
                    "on the module's inputs. Consider using a constant container instead (e.g. for "
                    "`list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If "
                    "you "
                    "absolutely need this and know the side effects, pass strict=False to trace() "
                    "to "
                    "allow this behavior."
                )
            flat = []
            for key, item in thing.items():
                flat += [self.const(key, T.infer(key)), self.give_output(item, strict)]
            kind = T.DictType.of(flat[0].type(), flat[1].type())
            return self.node("prim::DictConstruct", flat, [kind]).output()
        if isinstance(thing, list):
            if strict:
                _warn_list()
            items = [self.give_output(v, strict) for v in thing]
            kind = T.ListType.of(items[0].type() if items else T.Tensor)
            return self.node("prim::ListConstruct", items, [kind]).output()
        if isinstance(thing, tuple):
            items = [self.give_output(v, strict) for v in thing]
            kind = T.tuple_of(*(v.type() for v in items))
            if hasattr(thing, "_fields"):
                kind = T.infer(thing) or kind
            return self.node("prim::TupleConstruct", items, [kind]).output()
        if isinstance(thing, TracedInt):
            return self.number_value(thing, T.Tensor)
        if thing is None or isinstance(thing, bool | int | float | str):
            raise RuntimeError(
                "Type 'Tuple[...]' cannot be traced. Only Tensors and (possibly nested) Lists, "
                "Dicts, "
                f"and Tuples of Tensors can be traced: a {type(thing).__name__} was returned"
            )
        raise RuntimeError(f"Only tensors and containers of tensors can be output from traced "
                           f"functions, not {type(thing).__name__}")  # fmt: skip


def _warn_list() -> None:
    warnings.warn(
        "Encountering a list at the output of the tracer might cause the trace to be incorrect, "
        "this is only valid if the container structure does not change based on the module's "
        "inputs. Pass strict=False to trace() to allow this behavior, or return a tuple.",
        torch.jit.TracerWarning,
        stacklevel=5,
    )


def _warn_number() -> None:
    if not _trace_state.warns:
        return
    warnings.warn(
        "Converting a tensor to a Python number might cause the trace to be incorrect. We can't "
        "record "
        "the data flow of Python values, so this value will be treated as a constant in the "
        "future. "
        "This means that the trace might not generalize to other inputs!",
        torch.jit.TracerWarning,
        stacklevel=4,
    )


class TraceSource:
    """A recorded graph as the origin of a function."""

    def __init__(self, graph: Graph, parameters: list[Parameter]) -> None:
        self.graph, self.parameters = graph, parameters

    def signature(self, function: ScriptFunction):
        return self.parameters, self.graph.block.results[0].type()

    def compile(self, function: ScriptFunction) -> Graph:
        return self.graph


def _input_type(thing: object, name: str) -> T.Type:
    kind = T.infer(thing)
    ok = isinstance(thing, torch.Tensor | tuple | list | dict)
    if kind is None or (not ok and not isinstance(thing, torch.Tensor)):
        consistent = " (items of a list must have one consistent type)" * isinstance(thing, list)
        shown = kind.annotation_str if kind is not None else type(thing).__name__
        raise RuntimeError(
            f"Type 'Tuple[{shown}]' cannot be traced: the input '{name}'{consistent}. Only Tensors "
            "and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
        )
    return kind


def _bind(fn, args: tuple, kwargs: dict[str, object] | None) -> dict[str, object]:
    """Inputs by name, in the order of the signature; what is missing keeps its default."""
    try:
        signature = inspect.signature(fn)
        bound = signature.bind(*args, **(kwargs or {}))
    except (TypeError, ValueError):
        return {f"argument_{i + 1}": v for i, v in enumerate(args)} | dict(kwargs or {})
    out: dict[str, object] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            out.update({f"{name}_{i}" if i else name: v for i, v in enumerate(value)})
        elif signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            out.update(value)
        else:
            out[name] = value
    return out


def _record(run, named: dict[str, object], strict: bool, receiver=None, owners=None, paths=None):
    recorder = Recorder()
    parameters = []
    if receiver is not None:
        recorder.receiver = recorder.graph.block.add_param(receiver, "self")
        recorder.owners, recorder.module_paths = owners, paths
        parameters.append(Parameter("self", receiver))
    inputs = []
    for name, thing in named.items():
        kind = _input_type(thing, name)
        parameters.append(Parameter(name, kind))
        inputs.append((thing, recorder.graph.block.add_param(kind, name)))
    for thing, value in inputs:
        recorder.take_input(thing, value)
    _trace_state.set_recorder(recorder)
    segments = Segments(recorder, paths or {})
    try:
        with (
            recorder,
            CallRecorder(recorder),
            recorder.scripted_calls(),
            segments.watched(),
            autograd_functions(),
        ):
            out = run()
        recorder.graph.block.results.append(recorder.give_output(out, strict))
    finally:
        _trace_state.set_recorder(None)
    recorder.graph = structured(recorder.graph, segments.top)
    return recorder, parameters


def trace(func, example_inputs, example_kwarg_inputs, check_trace, check_inputs, tolerance, strict):
    """Records a function or the forward of a module."""
    if isinstance(func, RecursiveScriptModule | ScriptFunction):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the "
            "object "
            "as is.",
            stacklevel=3,
        )
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if example_kwarg_inputs is not None and not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    args = example_inputs if example_inputs is not None else ()
    args = (args,) if isinstance(args, torch.Tensor | dict) else tuple(args)
    if isinstance(func, torch.nn.Module):
        inputs = {"forward": args if example_kwarg_inputs is None else example_kwarg_inputs}
        return trace_module(func, inputs, check_trace, check_inputs, tolerance, strict)
    if inspect.ismethod(func) and isinstance(func.__self__, torch.nn.Module):
        if func.__name__ == "forward":
            return trace(func.__self__, args, example_kwarg_inputs, check_trace, check_inputs,
                         tolerance, strict)  # fmt: skip
        raise AttributeError(
            "trace doesn't support compiling individual module's functions.\nPlease use "
            "trace_module"
        )
    kwargs = example_kwarg_inputs or {}
    args = _apart(args)
    named = _bind(func, args, kwargs)
    recorder, parameters = _record(lambda: func(*args, **kwargs), named, strict)
    name = getattr(func, "__name__", type(func).__name__)
    made = ScriptFunction(name if name.isidentifier() else "forward", qualified_name(func, name)
                          if hasattr(func, "__module__") else f"__torch__.{name}",
                          TraceSource(recorder.graph, parameters))  # fmt: skip
    made.ensure_compiled()
    if check_inputs is not None:
        for given in check_inputs:
            again = _as_args(given)
            repeated, _ = _record(lambda a=again: func(*a), _bind(func, again, {}), strict)
            _compare_graphs(recorder.graph, repeated.graph)
    if check_trace and not recorder.random:
        _check(func, made, [(args, kwargs)] if check_inputs is None else
               [(_as_args(i), {}) for i in check_inputs], tolerance)  # fmt: skip
    return made


def _apart(args: tuple) -> tuple:
    """The inputs with every tensor once: one that is given twice is two inputs of the graph."""
    from torch.utils import _pytree as pytree

    seen: set[int] = set()

    def own(thing: object) -> object:
        if isinstance(thing, torch.Tensor):
            if id(thing) in seen:
                return _copy(thing)
            seen.add(id(thing))
        return thing

    return pytree.tree_map(own, args)


def _as_args(inputs: object) -> tuple:
    return (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)


def trace_module(mod, inputs, check_trace, check_inputs, tolerance, strict):
    """Records methods of a module."""
    if not isinstance(mod, torch.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    made, owners, paths = _traced_object(mod)
    for name, given in inputs.items():
        kwargs = given if isinstance(given, dict) else {}
        args = () if isinstance(given, dict) else _apart(_as_args(given))
        method = mod if name == "forward" else getattr(mod, name)
        named = _bind(getattr(mod, name), args, kwargs)
        recorder, parameters = _record(lambda m=method, a=args, k=kwargs: m(*a, **k), named, strict,
                                       made._script_type, owners, paths)  # fmt: skip
        kind = made._script_type
        origin = TraceSource(recorder.graph, parameters)
        function = ScriptFunction(name, f"{kind.qualified_name}.{name}", origin)
        kind.add_method(name, function)
        function.ensure_compiled()
        if check_trace and not recorder.random and not mod.training:
            _check(method, getattr(made, name), [(args, kwargs)], tolerance)
    return made


def _traced_object(module: torch.nn.Module):
    """A module with the same parameters, buffers and submodules, and where each tensor and each
    scripted submodule is."""
    owners: dict[int, tuple[str, ...]] = {}
    paths: dict[int, tuple[str, ...]] = {}
    memo: dict[int, RecursiveScriptModule] = {}

    def build(sub: torch.nn.Module, path: tuple[str, ...], cls: type) -> RecursiveScriptModule:
        if id(sub) in memo:
            return memo[id(sub)]
        if isinstance(sub, RecursiveScriptModule):
            paths[id(sub)] = path
            for table in (sub._parameters, sub._buffers):
                for name, value in table.items():
                    if value is not None:
                        owners.setdefault(id(value), (*path, name))
            memo[id(sub)] = sub
            return sub
        paths[id(sub)] = path
        kind = T.ClassType(unique_name(qualified_name(type(sub))), True)
        kind.container = ""
        kind.python = type(sub)
        values: dict[str, object] = {}
        for role, table in (("parameter", sub._parameters), ("buffer", sub._buffers)):
            for name, value in table.items():
                kind.add_attribute(name, T.NoneT if value is None else T.Tensor, role)
                values[name] = value
                if value is not None:
                    owners.setdefault(id(value), (*path, name))
        kind.add_attribute("training", T.Bool)
        values["training"] = sub.training
        for name, value in vars(sub).items():
            if isinstance(value, torch.ScriptObject):
                kind.add_attribute(name, T.infer(value))
                values[name] = value
                owners.setdefault(value._identity(), (*path, name))
        subs = {}
        for name, child in sub._modules.items():
            if child is not None:
                subs[name] = build(child, (*path, name), RecursiveScriptModule)
                kind.add_attribute(name, subs[name]._script_type, "module")
                values[name] = subs[name]
        handle = torch._C._script_object(kind.info)
        for name, slot in kind.slots.items():
            handle.set(slot, values[name], kind.attributes[name].handle())
        made = cls.__new__(cls)
        RecursiveScriptModule.__init__(made, handle, kind, subs)
        memo[id(sub)] = made
        return made

    return build(module, (), TopLevelTracedModule), owners, paths


def _compare_graphs(first: Graph, second: Graph) -> None:
    """TracingCheckError unless two runs recorded the same, constants included."""
    texts = [_without_numbers(str(g)) for g in (first, second)]
    if texts[0] != texts[1]:
        shown = difflib.ndiff(str(first).splitlines(), str(second).splitlines())
        raise TracingCheckError(
            "Graphs differed across invocations!\nGraph diff:\n" + "\n".join(shown)
        )
    pairs = zip(first.findAllNodes("prim::Constant"), second.findAllNodes("prim::Constant"),
                strict=True)  # fmt: skip
    for a, b in pairs:
        x, y = a.attrs["value"], b.attrs["value"]
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            if x.shape != y.shape or not torch.equal(x, y):
                raise TracingCheckError(
                    "Tensor-valued Constant nodes differed in value across invocations. This "
                    f"often indicates that the tracer has encountered untraceable code.\n{a}"
                )


def _without_numbers(text: str) -> str:
    """The text of a graph without the values of its tensors."""
    return re.sub(r"value=\{[^}]*\}", "value={}", text)


def _check(python, traced, calls, tolerance: float) -> None:
    """Runs both again and compares."""
    from torch.utils import _pytree as pytree

    for args, kwargs in calls:
        copies = pytree.tree_map(_copy, (args, kwargs))
        again = pytree.tree_map(_copy, (args, kwargs))
        with torch.random.fork_rng():
            want = python(*copies[0], **copies[1])
        with torch.random.fork_rng():
            got = traced(*again[0], **again[1])
        pairs = zip(pytree.tree_leaves(want), pytree.tree_leaves(got), strict=False)
        for i, (a, b) in enumerate(pairs):
            if not isinstance(a, torch.Tensor) or a.device.type == "meta":
                continue
            try:
                torch.testing.assert_close(
                    _wide(b), _wide(a), rtol=tolerance, atol=tolerance, equal_nan=True
                )
            except AssertionError as e:
                warnings.warn(
                    f"Output nr {i + 1}. of the traced function does not match the corresponding "
                    f"output of the Python function. Detailed error:\n{e}",
                    torch.jit.TracerWarning,
                    stacklevel=4,
                )


def _wide(t: torch.Tensor) -> torch.Tensor:
    return t.double() if t.is_floating_point() else t


def _copy(thing: object) -> object:
    if not isinstance(thing, torch.Tensor):
        return thing
    made = thing.detach().clone()
    return made.requires_grad_(thing.requires_grad) if made.is_floating_point() else made


def is_traced(module: object) -> bool:
    return isinstance(module, TopLevelTracedModule)


def _get_trace_graph(f, args=(), kwargs=None, strict=True, _force_outplace=False,
                     return_inputs=False, _return_inputs_states=False):  # fmt: skip
    """The graph of one run, and its outputs."""
    args = _as_args(args)
    named = _bind(f.forward if isinstance(f, torch.nn.Module) else f, args, kwargs)
    kept: list[typing.Any] = []

    def run():
        kept.append(f(*args, **(kwargs or {})))
        return kept[-1]

    recorder, _ = _record(run, named, strict)
    return (recorder.graph, kept[-1], list(named.values())) if return_inputs else (
        recorder.graph, kept[-1])  # fmt: skip
