"""Tracers of make_fx and what they know: which value of the running program is which proxy. Tensors
are known by identity in a native table (torch._C._fx._Recorder, torch/csrc/fx/recorder.cpp), which
also records the operators; symbolic numbers and script objects in tables here.

Names that users meet are re-exported by torch.fx.experimental.proxy_tensor."""

import collections
import contextlib
import dataclasses
import functools
import operator
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import SymBool, SymFloat, SymInt, Tensor
from torch._C import _fx
from torch._dispatch import pre_dispatch
from torch._ops import OpOverload
from torch.fx._symbolic_trace import Tracer
from torch.fx.graph import Graph
from torch.fx.node import Argument, Node
from torch.fx.passes.shape_prop import TensorMetadata, _extract_tensor_metadata
from torch.fx.proxy import GraphAppendingTracer, Proxy, TracerBase
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._thunk import Thunk

py_sym_types = (SymInt, SymFloat, SymBool)

# Tensors with at most so many elements are carried along as constants.
CONSTANT_NUMEL_LIMIT = 1


class _NoDefault:
    """Stands for a default that was not given."""


no_default = _NoDefault()


@dataclasses.dataclass
class _ProxyTensor:
    """What a traced tensor is known as, and its value where that is known as numbers."""

    proxy: Proxy
    constant: Tensor | None


# ---- values noted on nodes
def snapshot_fake(val: Tensor, include_real: bool = False) -> Tensor:
    """A tensor without data as it is now, unmoved by later changes of its shape."""
    with _disable_current_modes(), torch.no_grad():
        return val.detach()


@functools.cache
def _mode_of_snapshots() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_fallback_kernels=True)


@functools.cache
def _snapshot_example() -> Tensor:
    with _disable_current_modes(), _mode_of_snapshots():
        return torch.empty(0)


def _without_data(val: Tensor) -> Tensor | None:
    """A tensor of the same geometry and device that has no data; None where a layout has no such
    form."""
    from torch._subclasses.fake_tensor import is_fake

    if is_fake(val):
        return snapshot_fake(val)
    if val.layout is not torch.strided:
        return None
    with _disable_current_modes(), pre_dispatch.no_modes(), _mode_of_snapshots():
        return torch.empty_strided(val.shape, val.stride(), dtype=val.dtype, device=val.device)


def extract_val(val: Any, include_real: bool = False) -> Any:
    """A value as node.meta["val"] keeps it: tensors without their data, containers of such."""
    if isinstance(val, Tensor):
        return _without_data(val)
    if isinstance(val, (list, tuple)):
        return type(val)([extract_val(item) for item in val])
    if isinstance(val, dict):
        return {key: extract_val(item) for key, item in val.items()}
    return val


def _note(tracer: "TracerBase | None", node: Node, value: Any, symbols: bool | None) -> None:
    """Sets the meta of a new node; symbols that come with the value are known from here on.
    symbols: whether a tensor has symbolic sizes, None for a value that is no tensor."""
    node.meta["val"] = extract_val(value)
    if symbols is not False:
        _note_new_symbols(node, value)
    if symbols is None:
        if tracer is not None and isinstance(value, py_sym_types):
            set_proxy_slot(value, tracer, thunkify(tracer, tracer.proxy, node))
        return
    node.meta["tensor_meta"] = _extract_tensor_metadata(value)
    if symbols and tracer is not None:
        _track_sizes(value, tracer.proxy(node), tracer)


def _note_new_symbols(node: Node, value: Any) -> None:
    """Says on the node of an operator which symbols it brought, and where in its result."""
    first = next(iter(value), None) if isinstance(value, (list, tuple)) and value else value
    env = None
    if isinstance(first, py_sym_types):
        env = first.node.shape_env
    elif isinstance(first, Tensor):
        env = getattr(getattr(first, "fake_mode", None), "shape_env", None)
    if env is not None and env.pending_fresh_unbacked_symbols:
        from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings

        bindings = compute_unbacked_bindings(env, value)
        if bindings:
            node.meta["unbacked_bindings"] = bindings


def drop_unused_numbers(graph: Graph) -> None:
    """Erases arithmetic on symbolic numbers whose results no node takes: conditions that were
    decided while tracing, sizes of intermediate steps. Operators that read data stay."""
    accessors = {
        torch.ops.aten.sym_size.int,
        torch.ops.aten.sym_stride.int,
        torch.ops.aten.sym_numel.default,
        torch.ops.aten.sym_storage_offset.default,
    }
    for node in reversed(graph.nodes):
        if node.users or node.op != "call_function":
            continue
        if isinstance(node.target, OpOverload) and node.target not in accessors:
            continue
        if isinstance(node.meta.get("val"), (*py_sym_types, int, float, bool)):
            graph.erase_node(node)


def set_meta(proxy: Proxy, val: Any) -> Proxy:
    """Notes on a proxy's node what value it stands for."""
    _note(None, proxy.node, val, False if isinstance(val, Tensor) else None)
    return proxy


# ---- what the recorder asks
_DATA_DEPENDENT, _SEEDED, _LIFTS, _MUTATES = 1, 2, 4, 8


def _operator_facts(func: OpOverload) -> tuple[int, str, Callable]:
    tags = func.tags
    facts = 0
    if torch.Tag.data_dependent_output in tags:
        facts |= _DATA_DEPENDENT
    if torch.Tag.nondeterministic_seeded in tags:
        facts |= _SEEDED
    if func._schema.is_mutable:
        facts |= _MUTATES
    target = func
    if func is torch.ops.aten.lift_fresh.default:
        # The graph must not hand out its constant for others to write to.
        facts |= _LIFTS
        target = torch.ops.aten.lift_fresh_copy.default
    elif func is torch.ops.aten.lift_fresh_copy.default:
        facts |= _LIFTS
    return facts, _fx._name_of_target(target.overloadpacket.__name__), target


def _on_numbers(func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    with _disable_current_modes():
        return func(*args, **kwargs)


def _lifted(tracer: TracerBase, tensor: Tensor) -> Tensor | None:
    """A copy of a constant, whose value may be asked for. The program may write to the constant
    from here on: the graph's module keeps what it is now."""
    from torch._subclasses.fake_tensor import is_fake

    if is_fake(tensor):
        return None
    with _disable_current_modes():
        path = getattr(tracer, "tensor_attrs", {}).get(tensor)
        if path is not None:
            setattr(tracer.root, path, tensor.clone())
        return tensor.clone()


def _reads_as_symbol(args: tuple) -> bool:
    """Whether the value of a tensor is a new symbol of its ShapeEnv."""
    from torch._subclasses.fake_tensor import maybe_get_fake_mode

    mode = maybe_get_fake_mode(args[0])
    env = None if mode is None else mode.shape_env
    return env is not None and (mode.allow_scalar_outputs or env.allow_scalar_outputs)


def _refuse_data(tracer: "TracerBase", func: OpOverload, args: tuple) -> None:
    """Raises for an operator that reads data. On tensors without data all but item() raise by
    themselves, and say more."""
    if func is not torch.ops.aten._local_scalar_dense.default:
        if tracer.tracing_mode != "real":
            return
    elif _reads_as_symbol(args):
        return
    raise RuntimeError(
        f"It appears that you're trying to get value out of a tracing tensor with {func} - "
        "erroring out! It's likely that this is caused by data-dependent control flow or similar.  "
        "It may be possible to trace this with dynamic shapes; try setting "
        "tracing_mode='symbolic' in your make_fx call."
    )


class _TensorTracker(collections.abc.MutableMapping):
    """The recorder's table as a mapping from tensors to _ProxyTensor."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    def __getitem__(self, tensor: Tensor) -> _ProxyTensor:
        known = self._recorder.get(tensor)
        if known is None:
            raise KeyError(tensor)
        return _ProxyTensor(*known)

    def __setitem__(self, tensor: Tensor, value: _ProxyTensor) -> None:
        self._recorder.set(tensor, value.proxy, value.constant)

    def __delitem__(self, tensor: Tensor) -> None:
        if not self._recorder.forget(tensor):
            raise KeyError(tensor)

    def __iter__(self) -> Any:
        return iter(self._recorder.tensors())

    def __len__(self) -> int:
        return len(self._recorder)

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and self._recorder.node(tensor) is not None


class _SymNodeDict:
    """Symbolic numbers by their nodes, of which an expression has one: two objects that stand for
    one expression are one value."""

    def __init__(self) -> None:
        self.sym_node_dict: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        self.sym_node_dict[id(key.node)] = (value, key.node)

    def __getitem__(self, key: Any) -> Any:
        return self.sym_node_dict[id(key.node)][0]

    def __contains__(self, key: Any) -> bool:
        return id(key.node) in self.sym_node_dict

    def get(self, key: Any, default: Any = None) -> Any:
        """The value, or default."""
        return self.sym_node_dict.get(id(key.node), (default,))[0]

    def __len__(self) -> int:
        return len(self.sym_node_dict)

    def clear(self) -> None:
        """Forgets all."""
        self.sym_node_dict.clear()


def _init_proxy_trackers(tracer: TracerBase) -> None:
    """Gives a tracer the tables that proxies are found in."""
    tracer.recorder = _fx._Recorder(
        tracer,
        _operator_facts,
        _on_numbers,
        functools.partial(_refuse_data, tracer),
        functools.partial(_note, tracer),
        functools.partial(_lifted, tracer),
        constant_limit=CONSTANT_NUMEL_LIMIT,
    )
    tracer.recorder.note_natively(_snapshot_example(), TensorMetadata)
    tracer.tensor_tracker = _TensorTracker(tracer.recorder)
    tracer.symnode_tracker = _SymNodeDict()
    tracer.script_object_tracker = weakref.WeakKeyDictionary()
    tracer.sympy_expr_tracker = {}
    tracer.tracing_mode = "real"
    tracer.torch_fn_metadata = None
    tracer.torch_fn_counts = {}
    tracer.enable_thunkify = False


def _drop_trackers(tracer: TracerBase) -> None:
    """Forgets every value of the program, which a graph must not keep alive."""
    tracer.recorder.clear()
    tracer.symnode_tracker.clear()
    tracer.script_object_tracker.clear()
    tracer.sympy_expr_tracker.clear()


class PythonKeyTracer(Tracer):
    """The tracer of make_fx: modules are gone through, parameters are constants of the graph."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        _init_proxy_trackers(self)

    def _recording(self, namespace: dict[str, Any]) -> Any:
        # Values are tensors, not proxies: no function and no module needs to be replaced.
        return contextlib.nullcontext()

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple, kwargs: dict
    ) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        if isinstance(a, Tensor):
            node = self._constant_node(a)
            node.meta.setdefault("val", extract_val(a))
            return node
        if isinstance(a, py_sym_types):
            known = proxy_of_number(a, self)
            return known.node if isinstance(known, Proxy) else known
        return super().create_arg(a)

    def _constant_node(self, a: Tensor) -> Node:
        """A tensor that the program closed over, as an attribute of the graph's module."""
        if not isinstance(a, torch.nn.Parameter):
            return super().create_arg(a)
        path = next((p for p, value in self.root.named_parameters() if value is a), None)
        if path is None:
            path = self.get_fresh_qualname("_param_constant")
            setattr(self.root, path, a)
        return self.create_node("get_attr", path, (), {})

    def unwrap_proxy(self, e: Any) -> Any:
        """The proxy of a value, or the value if it has none."""
        if isinstance(e, Tensor):
            return get_proxy_slot(e, self, e, lambda known: known.proxy)
        return proxy_of_number(e, self) if isinstance(e, py_sym_types) else e


class _GraphAppendingTracerEx(GraphAppendingTracer):
    """Adds what is traced to a graph that exists."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        _init_proxy_trackers(self)

    def unwrap_proxy(self, e: Any) -> Any:
        """The proxy of a value, or the value if it has none."""
        return PythonKeyTracer.unwrap_proxy(self, e)


# ---- slots
def _tracker_for(obj: Any, tracer: TracerBase) -> Any:
    if isinstance(obj, Tensor):
        return tracer.tensor_tracker
    if isinstance(obj, py_sym_types):
        return tracer.symnode_tracker
    return tracer.script_object_tracker


def set_proxy_slot(obj: Any, tracer: TracerBase, proxy: Any) -> None:
    """Makes obj known to a tracer: a tensor as a _ProxyTensor, a symbolic number as a thunk."""
    tracker = _tracker_for(obj, tracer)
    if isinstance(obj, py_sym_types) and obj in tracker:
        return  # the first proxy of an expression stays
    tracker[obj] = proxy


def has_proxy_slot(obj: Tensor, tracer: TracerBase) -> bool:
    """Whether the tracer knows obj."""
    return obj in _tracker_for(obj, tracer)


def get_proxy_slot(
    obj: Any,
    tracer: TracerBase,
    default: Any = no_default,
    transform: Callable[[Any], Any] = lambda known: known,
) -> Any:
    """What obj is known as to a tracer, through transform; default, or an error, when unknown."""
    try:
        known = _tracker_for(obj, tracer)[obj]
    except (KeyError, TypeError):
        if default is no_default:
            raise RuntimeError(f"{obj} is not tracked with proxy for {tracer}") from None
        return default
    return transform(known)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": torch.sym_min,
    "max": torch.sym_max,
    "pow": operator.pow,
    "truediv": operator.truediv,
    "to_float": torch.sym_float,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "and": operator.and_,
    "or": operator.or_,
    "not": torch.sym_not,
}


def proxy_of_number(sym: Any, tracer: TracerBase) -> Any:
    """The proxy of a symbolic number, or its value where it is one number for all sizes. A number
    that operators computed by themselves, such as a length of a gradient, is computed by nodes from
    the sizes it is made of. An error for a symbol from elsewhere."""
    known = get_proxy_slot(sym, tracer, None)
    if known is not None:
        return known.force()
    for ask in ("maybe_as_int", "maybe_as_bool", "maybe_as_float"):
        number = getattr(sym.node, ask, lambda: None)()
        if number is not None:
            return number
    made = _computed(sym.node, tracer) if hasattr(sym.node, "_tree") else None
    if made is None:
        raise RuntimeError(
            f"{sym} ({type(sym).__name__}) is not tracked with proxy: it comes from outside"
        )
    set_proxy_slot(sym, tracer, Thunk(lambda: made))
    return made


def _as_number(node: Any) -> Any:
    return {int: SymInt, float: SymFloat, bool: SymBool}[node.pytype](node)


def _computed(node: Any, tracer: TracerBase) -> Proxy | None:
    """Nodes for an expression, from the proxies of its parts."""
    kind, payload, parts = node._tree()
    if kind == "symbol" or not parts:
        return None
    proxies = [proxy_of_number(_as_number(part), tracer) for part in parts]

    def call(func: Callable[..., Any], result: Any, *args: Any) -> Proxy:
        made = tracer.create_proxy("call_function", func, args, {})
        made.node.meta["val"] = _as_number(result)
        return made

    if kind in _OPERATIONS:
        return call(_OPERATIONS[kind], node, *proxies)
    if kind == "product":
        result, whole = proxies[0], parts[0]
        for proxy, part in zip(proxies[1:], parts[1:], strict=True):
            whole = whole.mul(part)
            result = call(operator.mul, whole, result, proxy)
        return result
    if kind != "sum":
        return None
    constant, *factors = payload
    result = whole = None
    for proxy, part, factor in zip(proxies, parts, factors, strict=True):
        term, value = proxy, part
        if factor != 1:
            value = part.mul(node.shape_env._constant(factor))
            term = call(operator.mul, value, proxy, factor)
        whole = value if whole is None else whole.add(value)
        result = term if result is None else call(operator.add, whole, result, term)
    if constant != 0:
        result = call(operator.add, node, result, constant)
    return result


def thunkify(tracer: TracerBase, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Thunk:
    """f's value: computed when asked for where the tracer allows that, else now."""
    thunk = Thunk(lambda: f(*args, **kwargs))
    if not tracer.enable_thunkify:
        thunk.force()
    return thunk


def track_tensor(
    tensor: Tensor, proxy: Proxy, *, constant: Tensor | None, tracer: TracerBase
) -> None:
    """Makes a tensor, and the symbolic numbers of its shape, known as a proxy."""
    _track_sizes(tensor, proxy, tracer)
    set_proxy_slot(tensor, tracer, _ProxyTensor(proxy, constant))


def _track_sizes(tensor: Tensor, proxy: Proxy, tracer: TracerBase) -> None:
    """Symbolic sizes, strides and offset become questions to the tensor, asked by the first node
    that needs the number."""

    def track(sym: Any, func: OpOverload, *args: int) -> None:
        if not isinstance(sym, py_sym_types) or has_proxy_slot(sym, tracer):
            return

        def ask() -> Proxy:
            made = tracer.create_proxy(
                "call_function", func, (proxy, *args), {}, name=func.__name__.replace(".", "_")
            )
            made.node.meta["val"] = sym
            return made

        set_proxy_slot(sym, tracer, Thunk(ask))

    for i, size in enumerate(tensor.shape):
        if isinstance(size, SymInt):
            track(size, torch.ops.aten.sym_size.int, i)
    if tensor.layout is not torch.strided:
        return
    for i, stride in enumerate(tensor.stride()):
        if isinstance(stride, SymInt):
            track(stride, torch.ops.aten.sym_stride.int, i)
    numel, offset = tensor.numel(), tensor.storage_offset()
    if isinstance(numel, SymInt):
        track(numel, torch.ops.aten.sym_numel.default)
    if isinstance(offset, SymInt):
        track(offset, torch.ops.aten.sym_storage_offset.default)


def track_tensor_tree(inner_res: Any, proxy_res: Any, *, constant: Any, tracer: TracerBase) -> Any:
    """Makes the tensors of a result known as a proxy, or as items of it. Returns the result."""

    def visit(value: Any, proxy: Any, known: Any) -> None:
        if isinstance(value, Tensor):
            if isinstance(proxy, Proxy):
                set_meta(proxy, value)
                track_tensor(value, proxy, constant=known, tracer=tracer)
        elif isinstance(value, py_sym_types):
            if isinstance(proxy, Proxy):
                proxy.node.meta["val"] = value
                set_proxy_slot(value, tracer, thunkify(tracer, lambda: proxy))
        elif isinstance(value, (tuple, list)):
            if isinstance(proxy, Proxy):
                set_meta(proxy, value)
            for i, item in enumerate(value):
                if item is not None:
                    visit(item, proxy[i], None if known is None else known[i])
        elif isinstance(value, dict):
            for key, item in value.items():
                visit(item, proxy[key], None if known is None else known[key])
        elif isinstance(proxy, Proxy):
            proxy.node.meta["val"] = value

    visit(inner_res, proxy_res, constant)
    return inner_res


def fetch_object_proxy(tracer: TracerBase, t: Any) -> Any:
    """The _ProxyTensor or thunk of a value, or the value itself."""
    return get_proxy_slot(t, tracer, t)


def fetch_sym_proxy(tracer: TracerBase) -> Callable[[Any], Any]:
    """A function from symbolic numbers to their proxies, and from constant ones to numbers."""

    return functools.partial(_proxy_of_number_in, tracer)


def _proxy_of_number_in(tracer: TracerBase, e: Any) -> Any:
    return proxy_of_number(e, tracer)


def flat_outputs(tracer: TracerBase, out: Any) -> Any:
    """A program's result with proxies in place of traced values."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor):
            return get_proxy_slot(value, tracer, value, lambda known: known.proxy)
        return proxy_of_number(value, tracer) if isinstance(value, py_sym_types) else value

    return pytree.tree_map(leaf, out)
