"""torch._dynamo.export: the whole of a function as one graph with the function's own signature.

The function is translated as for torch.compile, with a backend of its own. Then the translated code
runs once more with proxies in place of the tensors: where it calls its graph, the graph's nodes are
copied into a new one, and what it makes of the results (containers, reordered or repeated values,
constants) is recorded around them. So the exported graph takes what the function takes and returns
what it returns."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._dynamo import config, eval_frame
from torch._dynamo.exc import UserError, UserErrorType
from torch._dynamo.optimized_module import HOOKS
from torch._dynamo.variables.constant import is_constant_type
from torch._guards import GuardSource
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

if TYPE_CHECKING:
    from torch._dynamo.output_graph import OutputGraph

_LEAVES = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, fx.Proxy, torch.nn.Module)


def _check_leaves(leaves: list[object], what: str, kind: str) -> None:
    """A graph is given and returns tensors and constants, in containers that pytree knows."""
    for leaf in leaves:
        if isinstance(leaf, _LEAVES) or is_constant_type(type(leaf)) or callable(leaf):
            continue
        raise UserError(
            kind,
            f"It looks like one of the {what} with type `{type(leaf)}` is not supported or "
            "pytree-flattenable. Exported graphs take and return only the following: tensors, "
            "numbers, texts and containers of those; torch.utils._pytree.register_dataclass and "
            "register_pytree_node make other classes containers.",
        )


class ExportGuard(NamedTuple):
    """A condition under which an exported graph is valid."""

    name: str
    source: GuardSource
    code_list: list[str]
    guard_types: list[str]
    value: object = None

    def create_fn_name(self) -> str:
        """The name of the check."""
        return self.guard_types[0]


class ExportResult(NamedTuple):
    """An exported graph and its guards."""

    graph_module: fx.GraphModule
    guards: list[ExportGuard]


# ---- the call


class _Call(NamedTuple):
    """A call of a function with bytecode: `bound` are arguments that come before the user's."""

    function: types.FunctionType
    bound: tuple[object, ...]

    def parameters(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """What the frame begins with."""
        signature = inspect.signature(self.function, follow_wrapped=False)
        given = signature.bind(*self.bound, *args, **kwargs)
        given.apply_defaults()
        code = self.function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS)
        count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return {name: given.arguments[name] for name in code.co_varnames[:count]}

    def names(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[str]:
        """Names for the user's arguments."""
        signature = inspect.signature(self.function, follow_wrapped=False)
        plain = []
        for parameter in list(signature.parameters.values())[len(self.bound) :]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                plain += [f"{parameter.name}_{i}" for i in range(len(args) - len(plain))]
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                plain.append(parameter.name)
        plain += [f"arg_{i}" for i in range(len(plain), len(args))]
        return [*plain[: len(args)], *kwargs]


def _call_of(f: Callable) -> _Call:
    from torch.export._guards import is_input_check

    if isinstance(f, torch.nn.Module):
        mod = eval_frame.innermost_module(f)
        forward = eval_frame.innermost_fn(type(mod).forward)
        hooks = [hook for name in HOOKS for hook in mod.__dict__[name].values()]
        hooked = not all(map(is_input_check, hooks)) or "forward" in vars(mod)
        if isinstance(forward, types.FunctionType) and not hooked:
            return _Call(forward, (mod,))
        return _Call(eval_frame.caller_of(mod), ())
    f = eval_frame.innermost_fn(f)
    if isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
        return _Call(f.__func__, (f.__self__,))
    if isinstance(f, types.FunctionType):
        return _Call(f, ())
    return _Call(eval_frame.caller_of(f), ())


# ---- the graph around the graph


class _Recorder(fx.Tracer):
    """Records what the translated code does with proxies. Tensors that belong to the program become
    attributes of `root`."""

    def __init__(self) -> None:
        super().__init__()
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        self.tensor_attrs = {}
        self._kept: dict[int, fx.Node] = {}
        self.names: dict[int, str] = {}  # suggested for tensors, by identity

    def keep(self, tensor: torch.Tensor) -> fx.Node:
        """The node that reads a tensor of the program."""
        if id(tensor) not in self._kept:
            name = re.sub(r"\W+", "_", self.names.get(id(tensor), "_tensor_constant")).strip("_")
            if name[:1].isdigit() or not name:
                name = f"_{name}"
            base, count = name, 0
            while hasattr(self.root, name):
                count += 1
                name = f"{base}_{count}"
            if isinstance(tensor, torch.nn.Parameter):
                self.root.register_parameter(name, tensor)
            else:
                self.root.register_buffer(name, tensor)
            self._kept[id(tensor)] = self.graph.get_attr(name)
        return self._kept[id(tensor)]

    def value(self, given: object) -> object:
        """A value as an argument of a node."""
        if isinstance(given, fx.Proxy):
            return given.node
        if isinstance(given, torch.Tensor):
            return self.keep(given)
        return given

    def inline(self, gm: fx.GraphModule, args: tuple[object, ...]) -> object:
        """Copies the nodes of a graph, called with these values."""
        given = iter(args)
        env: dict[fx.Node, object] = {}
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                env[node] = self.value(next(given))
                if isinstance(env[node], fx.Node):
                    if env[node].op == "placeholder":
                        env[node]._rename(node.name)
                    for key, value in node.meta.items():
                        env[node].meta.setdefault(key, value)
            elif node.op == "output":
                found = fx.node.map_arg(node.args[0], env.__getitem__)
                return pytree.tree_map_only(fx.Node, lambda n: fx.Proxy(n, self), tuple(found))
            else:
                if node.op == "get_attr" and not hasattr(self.root, node.target.split(".")[0]):
                    first = node.target.split(".")[0]
                    setattr(self.root, first, getattr(gm, first))
                env[node] = self.graph.node_copy(node, env.__getitem__)
        raise AssertionError("a graph without an output")


def _wrap_signature(
    call: _Call, code: types.CodeType, recorder: _Recorder, args: tuple, kwargs: dict, fakes: dict
) -> fx.GraphModule:
    """Runs translated code on proxies; the graph it stands for."""
    flat, in_spec = pytree.tree_flatten((args, kwargs))
    names = call.names(args, kwargs)
    owners = [
        name
        for name, value in zip(names, (*args, *kwargs.values()), strict=True)
        for _ in pytree.tree_leaves(value)
    ]
    proxies = []
    for i, leaf in enumerate(flat):
        node = recorder.graph.placeholder(f"arg{i}")
        if not isinstance(leaf, torch.Tensor | torch.SymInt | torch.SymFloat):
            proxies.append(leaf)  # a constant of the graph
            continue
        node._rename(owners[i])
        if isinstance(leaf, torch.Tensor):
            node.meta["tensor_dict"] = dict(leaf.__dict__)
            if id(leaf) in fakes:
                node.meta["val"] = fakes[id(leaf)]
        proxies.append(fx.Proxy(node, recorder))
    new_args, new_kwargs = pytree.tree_unflatten(proxies, in_spec)
    function = types.FunctionType(
        code, call.function.__globals__, code.co_name, None, call.function.__closure__
    )
    result = function(*call.parameters(new_args, new_kwargs).values())
    outputs, out_spec = pytree.tree_flatten(result)
    _check_leaves(outputs, "outputs", UserErrorType.INVALID_OUTPUT)
    recorder.graph.output([recorder.value(leaf) for leaf in outputs])
    recorder.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec))
    made = fx.GraphModule(recorder.root, recorder.graph)
    made.recompile()
    return made


# ---- the public function


@contextlib.contextmanager
def _marked(dynamic_shapes: object, values: dict[str, object], bound: int) -> Iterator[None]:
    """Sizes that `dynamic_shapes` names are marked inside; the first `bound` values are not the
    user's. The tensors are the user's: they are afterwards as they were."""
    tensors = [x for x in pytree.tree_leaves(values) if isinstance(x, torch.Tensor)]
    before = [(x, {k: copy.copy(v) for k, v in vars(x).items()}) for x in tensors]
    if isinstance(dynamic_shapes, (tuple, list)):
        dynamic_shapes = dict(zip([*values][bound:], dynamic_shapes, strict=False))
    try:
        for name, wanted in (dynamic_shapes or {}).items():
            _mark_value(values.get(name), wanted)
        yield
    finally:
        for x, held in before:
            vars(x).clear()
            vars(x).update(held)


def _mark_value(value: object, wanted: object) -> None:
    from torch.export.dynamic_shapes import _DimHint

    if isinstance(value, torch.Tensor):
        rows = wanted.items() if isinstance(wanted, dict) else enumerate(wanted or ())
        for dim, size in rows:
            hint = size.type.name if isinstance(size, _DimHint) else ""
            if hint == "AUTO":
                torch._dynamo.maybe_mark_dynamic(value, dim)
            elif hint != "STATIC" and size is not None and not isinstance(size, int):
                torch._dynamo.mark_dynamic(
                    value, dim, min=getattr(size, "min", None), max=getattr(size, "max", None)
                )
    elif isinstance(value, dict) and isinstance(wanted, dict):
        for key, part in wanted.items():
            _mark_value(value.get(key), part)
    elif isinstance(value, (tuple, list)) and isinstance(wanted, (tuple, list)):
        for part, part_wanted in zip(value, wanted, strict=False):
            _mark_value(part, part_wanted)


def export(
    f: Callable,
    *extra_args: object,
    aten_graph: bool = False,
    pre_dispatch: bool = False,
    decomposition_table: dict | None = None,
    tracing_mode: str = "symbolic",
    dynamic_shapes: object = None,
    specialize_float: bool = True,
    assume_static_by_default: bool = False,
    same_signature: bool = True,
    disable_constraint_solver: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    allow_complex_guards_as_runtime_asserts: bool = False,
    _log_export_usage: bool = True,
    constraints: object = None,
    **extra_kwargs: object,
) -> object:
    """export(f)(*args) -> ExportResult(graph_module, guards). With aten_graph=True the graph
    consists of ATen operators."""
    if decomposition_table is not None and not aten_graph:
        raise AssertionError(
            "Specifying a decomposition_table table or tracing mode is illegal without setting "
            "aten_graph=True"
        )
    if pre_dispatch and not aten_graph:
        raise AssertionError("pre_dispatch=True can only be used when aten_graph=True")
    if not callable(f):
        raise AssertionError(f"A callable function is expected, but {type(f)} is provided.")

    def inner(*args: object, **kwargs: object) -> ExportResult:
        # Where sizes that vary are named, the others do not.
        static = assume_static_by_default or tracing_mode == "real" or dynamic_shapes is not None
        with config.patch(
            assume_static_by_default=static,
            automatic_dynamic_shapes=False,
            specialize_float=specialize_float,
            capture_dynamic_output_shape_ops=True,
            capture_scalar_outputs=True,
        ):
            captured = _capture(_call_of(f), args, kwargs, dynamic_shapes, same_signature)
        made, guards, example_inputs, fake_mode = captured
        if aten_graph:
            made = _to_aten(made, example_inputs, fake_mode, decomposition_table, pre_dispatch)
        return ExportResult(made, guards)

    if extra_args or extra_kwargs:
        warnings.warn(
            "export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs) instead.  If "
            "you don't migrate, we may break your export call in the future if your user defined "
            "kwargs conflict with future kwargs added to export(f).",
            FutureWarning,
            stacklevel=2,
        )
        return inner(*extra_args, **extra_kwargs)
    return inner


def _capture(
    call: _Call, args: tuple, kwargs: dict, dynamic_shapes: object, same_signature: bool
) -> tuple[fx.GraphModule, list[ExportGuard], list[object], object]:
    from torch._dynamo import guards, translate

    recorder = _Recorder()
    captured: list[fx.GraphModule] = []

    def backend(gm: fx.GraphModule, inputs: list[object]) -> Callable:
        captured.append(gm)
        return lambda *flat: recorder.inline(gm, flat)

    if same_signature:
        _check_leaves(pytree.tree_leaves((args, kwargs)), "inputs", UserErrorType.INVALID_INPUT)
    values = call.parameters(args, kwargs)
    function = call.function
    options = translate.Options(backend=backend, fullgraph=True, export=True)
    with _marked(dynamic_shapes, values, len(call.bound)):
        found = translate.translate(
            function.__code__, function.__globals__, function.__closure__, values, options
        )
        guards.build(function.__code__, function.__globals__, found.out)
        noted = _guard_records(found)
    if not captured and not same_signature:
        raise AssertionError(
            "Failed to produce a graph during tracing as no tensor operations were found and "
            "same_signature is False."
        )
    fakes = {id(i.example): i.node.meta["example_value"] for i in found.inputs}
    recorder.names = {id(i.example): i.source.name() for i in found.inputs}
    fake_mode = next((x.fake_mode for x in fakes.values() if isinstance(x, FakeTensor)), None)
    if not same_signature:
        gm = captured[0]
        return (
            gm,
            noted,
            [n.meta["example_value"] for n in gm.graph.find_nodes(op="placeholder")],
            fake_mode,
        )
    made = _wrap_signature(call, found.code, recorder, args, kwargs, fakes)
    for node in made.graph.nodes:
        if "example_value" in node.meta:
            node.meta.setdefault("val", node.meta["example_value"])
    examples = [fakes.get(id(leaf), leaf) for leaf in pytree.tree_leaves((args, kwargs))]
    return made, noted, examples, fake_mode


def _shape_conditions(out: OutputGraph) -> list[str]:
    if not out.shape_sources:
        return []
    values, sources, contexts = zip(*out.shape_sources, strict=True)
    return out.shape_env.produce_guards(
        list(values), list(sources), input_contexts=list(contexts), ignore_static=False
    )


def _guard_records(found: object) -> list[ExportGuard]:
    out = [
        ExportGuard(
            record.source.name(),
            record.source.guard_source(),
            [record.source.name()],
            [record.kind],
            record.value,
        )
        for record in found.guards
        if record.source is not None
    ]
    shapes = _shape_conditions(found.out)
    if shapes:
        out.append(ExportGuard("", GuardSource.SHAPE_ENV, shapes, ["SHAPE_ENV"]))
    return out


def _to_aten(
    made: fx.GraphModule,
    inputs: list[object],
    fake_mode: object,
    decompositions: dict | None,
    pre_dispatch: bool,
) -> fx.GraphModule:
    """The graph traced again down to ATen operators, with the same signature."""
    from torch.fx.experimental.proxy_tensor import make_fx

    codegen, made.graph._codegen = made.graph._codegen, fx.graph.CodeGen()
    allowed = getattr(fake_mode, "allow_non_fake_inputs", True)
    if fake_mode is not None:
        fake_mode.allow_non_fake_inputs = True  # parameters are read from the module

    def interpreted(*flat: object) -> object:
        with fx.traceback.preserve_node_meta():
            return fx.Interpreter(made).run(*flat)

    try:
        traced = make_fx(
            interpreted,
            decomposition_table=decompositions,
            tracing_mode="real",
            _allow_non_fake_inputs=True,
            pre_dispatch=pre_dispatch,
        )(*inputs)
    finally:
        made.graph._codegen = codegen
        if fake_mode is not None:
            fake_mode.allow_non_fake_inputs = allowed
    traced.graph._codegen = codegen
    for i, node in enumerate(traced.graph.find_nodes(op="placeholder")):
        node.target = f"arg{i}"
        if not isinstance(inputs[i], torch.Tensor):
            node._rename(node.target)
    for node in traced.graph.nodes:
        if node.op == "call_function":
            node.meta.setdefault("original_aten", node.target)
    traced.recompile()
    return traced
