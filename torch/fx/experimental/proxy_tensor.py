"""make_fx: runs a function on tensors and keeps the operators it reaches, below autograd and below
everything that takes operators apart, as an FX graph.

ProxyTorchDispatchMode sees every operator. It runs the operator and asks the tracer's native
recorder for the node (`_proxy_tracers.py`, torch/csrc/fx/recorder.cpp); what is decided here is
which operators are recorded as they are, which are decomposed first, and what the values are that
the function runs on: the arguments themselves ("real"), tensors without data ("fake"), or tensors
without data whose sizes are symbols ("symbolic")."""

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch._C import _TorchDispatchModeKey
from torch._dispatch import pre_dispatch as pre_dispatch_modes
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _make_graph_module
from torch.fx._symbolic_trace import PH, Tracer
from torch.fx.experimental._proxy_tracers import (  # noqa: F401 - this is where users find them
    CONSTANT_NUMEL_LIMIT,
    PythonKeyTracer,
    _drop_trackers,
    _GraphAppendingTracerEx,
    _ProxyTensor,
    drop_unused_numbers,
    extract_val,
    fetch_object_proxy,
    fetch_sym_proxy,
    flat_outputs,
    get_proxy_slot,
    has_proxy_slot,
    no_default,
    py_sym_types,
    set_meta,
    set_proxy_slot,
    snapshot_fake,
    thunkify,
    track_tensor,
    track_tensor_tree,
)
from torch.fx.interpreter import Interpreter
from torch.fx.proxy import Proxy, TracerBase
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "PythonKeyTracer",
    "dispatch_trace",
    "make_fx",
    "DecompositionInterpreter",
    "selective_decompose",
    "py_sym_types",
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "handle_sym_dispatch",
    "maybe_enable_thunkify",
    "maybe_disable_thunkify",
]

_PROXY = _TorchDispatchModeKey.PROXY


# ---- decompositions in force
class _Decompositions(threading.local):
    table: Mapping[OpOverload, Callable[..., Any]] = {}


_decompositions = _Decompositions()


@contextlib.contextmanager
def decompose(
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None,
) -> Iterator[Mapping[OpOverload, Callable[..., Any]]]:
    """Operators of the table are traced as what their functions do."""
    before = _decompositions.table
    _decompositions.table = decomposition_table or {}
    try:
        yield _decompositions.table
    finally:
        _decompositions.table = before


def maybe_handle_decomp(
    proxy_mode: "ProxyTorchDispatchMode", op: OpOverload, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The operator by its function of the table, traced; NotImplemented when it has none."""
    function = proxy_mode.decompositions().get(op)
    if function is None:
        return NotImplemented
    with proxy_mode:
        proxy_mode.decomp_layers += 1
        try:
            return function(*args, **kwargs)
        finally:
            proxy_mode.decomp_layers -= 1


# ---- the mode
_RECORDED_CLASSES = {Tensor, torch.nn.Parameter, torch.nn.Buffer}


def _is_recorded_class(cls: type) -> bool:
    """Whether tensors of a class are traced as they are. Others handle the operator first."""
    if cls in _RECORDED_CLASSES:
        return True
    from torch._subclasses.fake_tensor import FakeTensor

    return issubclass(cls, FakeTensor)


def proxy_call(
    proxy_mode: "ProxyTorchDispatchMode",
    func: OpOverload,
    pre_dispatch: bool,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """Runs an operator and records it, or what it is decomposed into."""
    if proxy_mode.decompositions():
        out = maybe_handle_decomp(proxy_mode, func, args, kwargs)
        if out is not NotImplemented:
            return out
    return proxy_mode.tracer.recorder.call(func, args, kwargs)


@contextlib.contextmanager
def _below_autograd(mode: "ProxyTorchDispatchMode | None") -> Iterator[None]:
    """A block in which a mode records, None: nothing does."""
    before = torch._C._unset_dispatch_mode(_PROXY)
    if mode is not None:
        torch._C._set_dispatch_mode(mode)
    try:
        yield
    finally:
        torch._C._unset_dispatch_mode(_PROXY)
        if before is not None:
            torch._C._set_dispatch_mode(before)


def _above_autograd(
    mode: "ProxyTorchDispatchMode | None",
) -> contextlib.AbstractContextManager[None]:
    return pre_dispatch_modes.with_mode(_PROXY, mode)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Records every operator that runs inside."""

    _mode_key = _PROXY

    def __init__(
        self,
        tracer: TracerBase,
        tracing_mode: str,
        pre_dispatch: bool = False,
        _allow_fake_constant: bool = False,
        _error_on_data_dependent_ops: bool = True,
        decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.pre_dispatch = pre_dispatch
        self._allow_fake_constant = _allow_fake_constant
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.decomposition_table = decomposition_table
        self.enable_tracing = True
        self.decomp_layers = 0
        self._entered: list[contextlib.AbstractContextManager[None]] = []
        self._grad_mode = torch.is_grad_enabled()  # as the graph's last node left it
        tracer.recorder.refuses_data = _error_on_data_dependent_ops
        tracer.tracing_mode = tracing_mode

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def decompositions(self) -> Mapping[OpOverload, Callable[..., Any]]:
        """What operators are traced as other ones now."""
        return self.decomposition_table or _decompositions.table

    def __enter__(self) -> "ProxyTorchDispatchMode":
        place = _above_autograd(self) if self.pre_dispatch else _below_autograd(self)
        place.__enter__()
        self._entered.append(place)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._entered.pop().__exit__(None, None, None)

    def __torch_dispatch__(
        self, func: OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if types and not all(map(_is_recorded_class, types)):
            return NotImplemented
        if self.pre_dispatch:
            self.record_grad_mode(torch.is_grad_enabled())
        return proxy_call(self, func, self.pre_dispatch, args, kwargs or {})

    def record_grad_mode(self, enabled: bool) -> None:
        """A graph of operators above autograd says itself where history is recorded: a node
        switches it in front of the first operator behind the switch."""
        if enabled != self._grad_mode:
            self._grad_mode = enabled
            switch = torch._C._set_grad_enabled
            self.tracer.create_node("call_function", switch, (enabled,), {}, "_set_grad_enabled")

    def __sym_dispatch__(
        self, func: Callable[..., Any], types: tuple, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        if not self.enable_tracing:
            return func(*args, **kwargs)
        return _record_symbolic(self.tracer, func, args, kwargs)


def _record_symbolic(
    tracer: TracerBase, func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Arithmetic on symbolic numbers: the result, known as a node that is made when it is used."""
    out = func(*args, **kwargs)
    if not isinstance(out, py_sym_types):
        return out
    fetch = fetch_sym_proxy(tracer)

    def node() -> Proxy:
        operands = [fetch(a) if isinstance(a, py_sym_types) else a for a in args]
        made = tracer.create_proxy("call_function", func, tuple(operands), kwargs)
        made.node.meta["val"] = out
        return made

    if not has_proxy_slot(out, tracer):
        set_proxy_slot(out, tracer, thunkify(tracer, node))
    return out


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that traces right now, or None."""
    return torch._C._get_dispatch_mode(_PROXY) or pre_dispatch_modes.get_mode(_PROXY)


get_innermost_proxy_mode = get_proxy_mode


def handle_sym_dispatch(func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Arithmetic on symbolic numbers while a trace runs."""
    mode = get_proxy_mode()
    if mode is None:
        raise RuntimeError("handle_sym_dispatch() is for traces; none is running")
    with disable_proxy_modes_tracing():
        return mode.__sym_dispatch__(func, (), args, kwargs)


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[ProxyTorchDispatchMode | None]:
    """Nothing inside is recorded."""
    before = get_proxy_mode()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_below_autograd(None))
        if pre_dispatch_modes.get_mode(_PROXY) is not None:
            stack.enter_context(_above_autograd(None))
        yield before


@contextlib.contextmanager
def maybe_disable_fake_tensor_mode() -> Iterator[None]:
    """A block outside of the mode in which tensors have no data."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        yield


@contextlib.contextmanager
def _thunks(tracer: TracerBase | None, allowed: bool) -> Iterator[None]:
    if tracer is None:
        yield
        return
    before, tracer.enable_thunkify = tracer.enable_thunkify, allowed
    try:
        yield
    finally:
        tracer.enable_thunkify = before


def _enable_thunkify(
    tracer: TracerBase, *, enable: bool = True
) -> contextlib.AbstractContextManager:
    return _thunks(tracer, enable)


def _tracer_in_force() -> TracerBase | None:
    mode = get_proxy_mode()
    return None if mode is None else mode.tracer


def maybe_enable_thunkify() -> contextlib.AbstractContextManager:
    """Inside, arithmetic on symbolic numbers becomes nodes only where a result is used."""
    return _thunks(_tracer_in_force(), True)


def maybe_disable_thunkify() -> contextlib.AbstractContextManager:
    """Inside, arithmetic on symbolic numbers becomes nodes at once."""
    return _thunks(_tracer_in_force(), False)


@contextlib.contextmanager
def disable_autocast_cache() -> Iterator[None]:
    """Casts are made anew: one that was cached before is in no graph."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def is_sym_node(node: Node) -> bool:
    """Whether a node stands for a symbolic number."""
    if "val" not in node.meta:
        raise AssertionError(f"{node} has no meta['val']")
    return isinstance(node.meta["val"], py_sym_types)


# ---- functions as traces want them
def fake_signature(fn: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    """The function with parameters arg0, arg1, ... in place of its own."""

    def positional(*args: Any) -> Any:
        return fn(*args)

    parameters = [
        inspect.Parameter(f"arg{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(nargs)
    ]
    positional.__signature__ = inspect.Signature(parameters)
    positional.__annotations__ = {}  # the graph takes its types from here
    positional.__name__ = positional.__qualname__ = "<lambda>"
    return positional


def _traceable(f: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    code = getattr(inspect.unwrap(f), "__code__", None)
    if isinstance(f, torch.nn.Module) or code is None or code.co_flags & inspect.CO_VARARGS:
        return fake_signature(f, nargs)
    return f


def wrap_key(
    f: Callable[..., Any], tensors: tuple, tracer: TracerBase, pre_dispatch: bool
) -> Callable[..., Any]:
    """What a tracer calls with proxies: runs f on the tensors that these stand for and returns
    the proxies of what f returns."""
    values, _ = pytree.tree_flatten(tensors)

    @functools.wraps(f)
    def traced(*proxies: Any) -> Any:
        leaves, _ = pytree.tree_flatten(proxies)
        if len(leaves) != len(values):
            raise AssertionError(f"{len(leaves)} placeholders for {len(values)} inputs")
        # Inputs are no constants of the program; a number stands for itself.
        with disable_proxy_modes_tracing():
            for value, proxy in zip(values, leaves, strict=True):
                _track_input(value, proxy, tracer)
        return flat_outputs(tracer, f(*tensors))

    return traced


def _leaving_grad_mode(f: Callable[..., Any], mode: ProxyTorchDispatchMode) -> Callable[..., Any]:
    """f, with what its last switch of autograd's recording was as the graph's last node."""

    @functools.wraps(f)
    def traced(*proxies: Any) -> Any:
        out = f(*proxies)
        mode.record_grad_mode(torch.is_grad_enabled())
        return out

    return traced


def _track_input(value: Any, proxy: Proxy, tracer: TracerBase) -> None:
    if isinstance(value, (Tensor, *py_sym_types)):
        track_tensor_tree(value, proxy, constant=None, tracer=tracer)
    elif isinstance(value, torch._C.ScriptObject):
        set_proxy_slot(value, tracer, proxy)


def wrapper_and_args_for_make_fx(
    func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> tuple[Callable[[list[Any]], Any], list[Any]]:
    """A function of one flat list that does func(*args, **kwargs), and that list."""
    flat, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(flat_args: list[Any]) -> Any:
        given, named = pytree.tree_unflatten(flat_args, spec)
        return func(*given, **named)

    return wrapped, flat


def dispatch_trace(
    root: torch.nn.Module | Callable[..., Any],
    tracer: Tracer,
    concrete_args: tuple | None = None,
) -> GraphModule:
    """Runs a tracer on what wrap_key made, and makes a module of the graph."""
    graph = tracer.trace(root, concrete_args)
    drop_unused_numbers(graph)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


# ---- make_fx
_MODES = ("real", "fake", "symbolic")


class _MakefxTracer:
    """One configuration of make_fx. A trace inside a trace has one of its own."""

    def __init__(
        self,
        decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None,
        tracing_mode: str,
        _allow_non_fake_inputs: bool,
        pre_dispatch: bool,
        record_module_stack: bool,
        _allow_fake_constant: bool,
        _error_on_data_dependent_ops: bool,
        record_stack_traces: bool = False,
        parent_tracer: "_MakefxTracer | None" = None,
    ) -> None:
        if tracing_mode not in _MODES:
            raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
        self.decomposition_table = dict(decomposition_table or {})
        self.tracing_mode = tracing_mode
        self._allow_non_fake_inputs = _allow_non_fake_inputs
        self.pre_dispatch = pre_dispatch
        self.record_module_stack = record_module_stack
        self._allow_fake_constant = _allow_fake_constant
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.record_stack_traces = record_stack_traces
        self.parent_tracer = parent_tracer
        self.fake_tensor_mode: Any = None
        self.fx_tracer: PythonKeyTracer | None = None

    # ---- what the function runs on
    def _fake_mode(self, args: tuple) -> Any:
        from torch._guards import detect_fake_mode
        from torch._subclasses.fake_tensor import FakeTensorMode

        if self.tracing_mode == "real":
            return None
        found = detect_fake_mode(args)
        if found is not None:
            return found
        symbolic = self.tracing_mode == "symbolic"
        shape_env = None
        if symbolic:
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            shape_env = ShapeEnv()
        return FakeTensorMode(
            allow_fallback_kernels=not symbolic,
            allow_non_fake_inputs=self._allow_non_fake_inputs,
            shape_env=shape_env,
            static_shapes=not symbolic,
        )

    def _without_data(self, args: tuple) -> tuple:
        """The arguments as the function sees them."""
        if self.fake_tensor_mode is None:
            return args
        leaves, spec = pytree.tree_flatten(args)
        made = [self._input(value, i) for i, value in enumerate(leaves)]
        return pytree.tree_unflatten(made, spec)

    def _input(self, value: Any, number: int) -> Any:
        mode = self.fake_tensor_mode
        if self.tracing_mode != "symbolic":
            return mode.from_tensor(value) if isinstance(value, Tensor) else value
        from torch._dynamo.source import ConstantSource

        source = ConstantSource(f"input{number}")
        if isinstance(value, Tensor):
            return mode.from_tensor(value, source=source)
        if type(value) is int:
            from torch.fx.experimental.symbolic_shapes import DimDynamic

            env = mode.shape_env
            symbol = env.create_symbol(value, source, dynamic_dim=DimDynamic.DYNAMIC)
            return env.create_symintnode(symbol, hint=value, source=source)
        return value

    # ---- the trace
    def trace(self, f: Callable[..., Any], *args: Any) -> GraphModule:
        """The graph of f on args."""
        self.fake_tensor_mode = self._fake_mode(args)
        self.fx_tracer = tracer = self._new_tracer(f)
        tracer.record_stack_traces = self.record_stack_traces
        with disable_proxy_modes_tracing(), contextlib.ExitStack() as stack:
            values = self._without_data(args)
            mode = ProxyTorchDispatchMode(
                tracer,
                self.tracing_mode,
                pre_dispatch=self.pre_dispatch,
                _allow_fake_constant=self._allow_fake_constant,
                _error_on_data_dependent_ops=self._error_on_data_dependent_ops,
            )
            stack.enter_context(decompose(self.decomposition_table))
            stack.enter_context(disable_autocast_cache())
            stack.enter_context(_set_make_fx_tracer(self))
            if self.fake_tensor_mode is not None:
                stack.enter_context(self.fake_tensor_mode)
            if self.tracing_mode == "symbolic" or self.pre_dispatch:
                stack.enter_context(enable_python_dispatcher())
            stack.enter_context(mode)
            module = self._run(f, values, args, mode)
        module.shape_env = getattr(self.fake_tensor_mode, "shape_env", None)
        return module

    def _new_tracer(self, f: Callable[..., Any]) -> PythonKeyTracer:
        if self._keeps_modules(f):
            return _ModuleStackTracer(getattr(f, "_orig_mod", f))
        return PythonKeyTracer()

    def _keeps_modules(self, f: Callable[..., Any]) -> bool:
        return self.record_module_stack and isinstance(getattr(f, "_orig_mod", f), torch.nn.Module)

    def _run(
        self,
        f: Callable[..., Any],
        values: tuple,
        args: tuple,
        mode: "ProxyTorchDispatchMode",
    ) -> GraphModule:
        tracer = self.fx_tracer
        placeholders = tuple(pytree.tree_map(lambda _: PH, args))
        fn = wrap_key(_traceable(f, len(args)), values, tracer, self.pre_dispatch)
        if self.pre_dispatch:
            fn = _leaving_grad_mode(fn, mode)
        try:
            return dispatch_trace(fn, tracer, placeholders)
        except BaseException:
            # A graph that is kept by someone (a traceback) must not keep the program's values.
            for node in getattr(tracer, "graph", Graph()).nodes:
                node.meta.clear()
            raise
        finally:
            _drop_trackers(tracer)

    def trace_subgraph(self, f: Callable[..., Any], *args: Any) -> GraphModule:
        """The graph of a function that an operator of this trace takes, on values of the trace."""
        return self.trace_subgraph_custom_decomp(f, self.decomposition_table, *args)

    def trace_subgraph_custom_decomp(
        self,
        f: Callable[..., Any],
        decomposition_table: Mapping[OpOverload, Callable[..., Any]],
        *args: Any,
    ) -> GraphModule:
        """As trace_subgraph, with decompositions of its own."""
        inner = _MakefxTracer(
            decomposition_table,
            "real",
            self._allow_non_fake_inputs,
            self.pre_dispatch,
            False,
            self._allow_fake_constant,
            self._error_on_data_dependent_ops,
            self.record_stack_traces,
            parent_tracer=self,
        )
        return inner.trace(f, *args)

    def is_hop_subgraph_tracer(self) -> bool:
        """Whether what is traced is an argument of an operator."""
        return self.parent_tracer is not None


_CURRENT_MAKE_FX_TRACER: _MakefxTracer | None = None


@contextlib.contextmanager
def _set_make_fx_tracer(tracer: _MakefxTracer) -> Iterator[None]:
    global _CURRENT_MAKE_FX_TRACER
    before, _CURRENT_MAKE_FX_TRACER = _CURRENT_MAKE_FX_TRACER, tracer
    try:
        yield
    finally:
        _CURRENT_MAKE_FX_TRACER = before


def subgraphs_traced(
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None,
) -> contextlib.AbstractContextManager:
    """A block in which operators that take functions trace these, for traces other than make_fx."""
    return _set_make_fx_tracer(
        _MakefxTracer(decomposition_table, "real", False, False, False, False, True)
    )


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
) -> Callable[..., GraphModule]:
    """A function that takes f's arguments and returns the graph of the operators f runs on them.

    tracing_mode says what f sees: the arguments ("real"), tensors without data ("fake"), or such
    tensors with symbols for sizes ("symbolic"). decomposition_table gives functions that operators
    are traced as. With pre_dispatch the operators are those above autograd."""
    tracer = _MakefxTracer(
        decomposition_table,
        tracing_mode,
        _allow_non_fake_inputs,
        pre_dispatch,
        record_module_stack,
        _allow_fake_constant,
        _error_on_data_dependent_ops,
        record_stack_traces,
    )

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        return tracer.trace(f, *args)

    return wrapped


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The graph of func(*args, **kwargs), made in a trace or outside of one, without being part of
    it."""
    wrapped, flat = wrapper_and_args_for_make_fx(func, args, kwargs)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table, tracing_mode)(flat)


# ---- module stacks
class _ModuleStackTracer(PythonKeyTracer):
    """Notes on each node the modules whose forward ran: {path: (path, class)}."""

    def __init__(self, scope_root: torch.nn.Module) -> None:
        super().__init__()
        self.scope_root = scope_root
        self.paths = {id(m): path for path, m in scope_root.named_modules()}

    def _recording(self, namespace: dict[str, Any]) -> Any:
        return Tracer._recording(self, namespace)

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple, kwargs: dict
    ) -> Any:
        path = self.paths.get(id(m))
        if path is None:
            return forward(*args, **kwargs)
        count = self.num_calls.get(path, 0)
        self.num_calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        kind = type(m)
        self.module_stack[key] = (path, f"{kind.__module__}.{kind.__qualname__}")
        try:
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(key)


# ---- graphs that are run again
class DecompositionInterpreter(Interpreter):
    """Runs a graph and writes what runs to another one, with operators decomposed."""

    def __init__(
        self,
        module: GraphModule,
        new_graph: Graph,
        decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = _GraphAppendingTracerEx(new_graph)
        self.decomposition_table = decomposition_table or {}
        self.mode = ProxyTorchDispatchMode(self.tracer, tracing_mode="real")

    def _known_as(self, value: Any, made: Node) -> Any:
        track_tensor_tree(value, Proxy(made, self.tracer), constant=None, tracer=self.tracer)
        return value

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._known_as(
            super().placeholder(target, args, kwargs), self.new_graph.placeholder(target)
        )

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._known_as(
            super().get_attr(target, args, kwargs), self.new_graph.get_attr(target)
        )

    def output(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        out = super().output(target, args, kwargs)
        proxies = flat_outputs(self.tracer, out)
        self.new_graph.output(
            pytree.tree_map(lambda p: p.node if isinstance(p, Proxy) else p, proxies)
        )
        return out

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with decompose(self.decomposition_table), self.mode:
            return super().run(*args, **kwargs)


class _SelectiveDecomposeInterpreter(Interpreter):
    """Runs a graph, with the decompositions in force at chosen nodes only."""

    def __init__(
        self,
        module: GraphModule,
        should_decompose: Callable[[Node], bool],
        decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.should_decompose = should_decompose
        self.decomposition_table = decomposition_table or {}

    def run_node(self, n: Node) -> Any:
        with decompose(self.decomposition_table if self.should_decompose(n) else {}):
            return super().run_node(n)


def selective_decompose(
    joint_gm: GraphModule,
    *args: Any,
    decomposition: Mapping[OpOverload, Callable[..., Any]] | None,
    should_decompose: Callable[[Node], bool],
    trace_joint_graph: bool,
) -> GraphModule:
    """The graph traced again with the operators of the chosen nodes decomposed."""
    runner = _SelectiveDecomposeInterpreter(joint_gm, should_decompose, decomposition)

    def joint(primals: Any, tangents: Any) -> Any:
        return runner.run(primals, tangents)

    def flat(*inputs: Any) -> Any:
        return runner.run(*inputs)

    return make_fx(joint if trace_joint_graph else flat)(*args)
