"""Proxy stands for a value while a program is traced: every operation on it becomes a node. A
tracer makes the nodes; `TracerBase` is what all tracers share."""

import collections
import dataclasses
import dis
import enum
import operator
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import traceback as fx_traceback
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph, magic_methods, reflectable_magic_methods
from torch.fx.node import Argument, Node, Target, base_types, map_aggregate
from torch.fx.operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "MetaProxy",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


@compatibility(is_backward_compatible=False)
class Scope:
    """The module whose forward is being traced: its path and type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """Makes a scope the current one, in place, and puts the old one back."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = (scope.module_path, scope.module_type)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """The program did with a proxy what cannot be traced."""


# What a stack trace of the user's program leaves out.
_OWN_FILES = tuple(
    f"{torch.__path__[0]}/{part}"
    for part in ("fx/", "nn/modules/module.py", "_ops.py", "overrides.py")
)


def _user_frames() -> traceback.StackSummary:
    frames = traceback.extract_stack()
    kept = [f for f in frames if not f.filename.startswith(_OWN_FILES)]
    return traceback.StackSummary.from_list(kept)


@compatibility(is_backward_compatible=True)
class TracerBase:
    """Makes nodes and proxies. Derive from Tracer to change how modules are traced, from this class
    to trace by other means."""

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    # Whether operations that write to their arguments are refused; a check of every call.
    check_mutable_operations: bool = False
    # Whether `assert` on a proxy becomes torch._assert.
    trace_asserts: bool = False
    # Whether reading a buffer gives a proxy as reading a parameter does.
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: "collections.OrderedDict[str, tuple[str, Any]]"
    node_name_to_scope: dict[str, tuple[str, type]]

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Makes a node; every node of a trace comes through here."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scopes = getattr(self, "node_name_to_scope", None)
        if scopes is not None:
            scopes[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback._state.preserve:
            self._note_current_meta(node)
        elif getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def _note_current_meta(self, node: Node) -> None:
        meta = fx_traceback.get_current_meta()
        for key in (
            "nn_module_stack",
            "torch_fn",
            "source_fn_stack",
            "recompute",
            "ac_graph_id",
            "has_backward_hook",
            "from_node",
            "quantization_tag",
            "_numeric_debug_handle",
            "custom",
            "partitioner_tag",
            "stack_trace",
        ):
            if key in meta:
                node.meta[key] = meta[key]
        if "from_node" in meta:
            node.meta["from_node"] = list(meta["from_node"])
        numbers = meta.get("grad_fn_seq_nr")
        node.meta["seq_nr"] = (
            numbers[-1]
            if numbers
            else torch._C._get_sequence_nr()
            if hasattr(torch._C, "_get_sequence_nr")
            else -1
        )
        if getattr(self, "module_stack", None) and "nn_module_stack" not in node.meta:
            node.meta["nn_module_stack"] = dict(self.module_stack)

    @compatibility(is_backward_compatible=True)
    def proxy(self, node: Node) -> "Proxy":
        """The proxy of a node."""
        return Proxy(node, self)

    @compatibility(is_backward_compatible=True)
    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], "Proxy"] | None = None,
    ) -> "Proxy":
        """A node for the operation with arguments that may be proxies, and its proxy."""
        new_args = self.create_arg(args)
        new_kwargs = self.create_arg(kwargs)
        if not isinstance(new_args, tuple) or not isinstance(new_kwargs, dict):
            raise AssertionError("create_arg must keep tuples tuples and dicts dicts")
        node = self.create_node(kind, target, new_args, new_kwargs, name, type_expr)
        made = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        if self.record_stack_traces and not made.node.stack_trace:
            node.stack_trace = "".join(_user_frames().format()).strip()
        return made

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Argument:
        """A value of the program as the argument of a node."""
        rule = _ARG_RULES.get(type(a))
        if rule is not None:
            return rule(self, a)
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return _dict_arg(self, a)
        if isinstance(a, (base_types, enum.Enum)) or a is ... or a is None:
            return a
        if isinstance(a, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    @compatibility(is_backward_compatible=True)
    def to_bool(self, obj: "Proxy") -> bool:
        """What `if proxy:` gets."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    @compatibility(is_backward_compatible=True)
    def iter(self, obj: "Proxy") -> Iterator:
        """What `for x in proxy:` gets."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    @compatibility(is_backward_compatible=True)
    def keys(self, obj: "Proxy") -> Any:
        """What `**proxy` asks first; a tracer that knows the keys returns them."""
        return Attribute(obj, "keys")()


def _same(tracer: TracerBase, a: Any) -> Any:
    return a


def _dict_arg(tracer: TracerBase, a: dict) -> dict:
    out = {}
    for key, value in a.items():
        key = tracer.create_arg(key)
        map_aggregate((key,), _refuse_node)
        out[key] = tracer.create_arg(value)
    return out


def _refuse_node(leaf: Any) -> Any:
    if isinstance(leaf, Node):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {leaf}"
        )
    return leaf


# By exact type, because most arguments are of these.
_ARG_RULES: dict[type, Callable[[TracerBase, Any], Argument]] = {
    int: _same,
    str: _same,
    float: _same,
    bool: _same,
    type(None): _same,
    torch.dtype: _same,
    torch.device: _same,
    tuple: lambda tracer, a: tuple([tracer.create_arg(item) for item in a]),
    list: lambda tracer, a: [tracer.create_arg(item) for item in a],
    dict: _dict_arg,
    slice: lambda tracer, a: slice(*[tracer.create_arg(x) for x in (a.start, a.stop, a.step)]),
    range: lambda tracer, a: range(*[tracer.create_arg(x) for x in (a.start, a.stop, a.step)]),
}


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that exists; proxies made by hand get one."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


@compatibility(is_backward_compatible=True)
class Proxy:
    """A value that is not there yet. Operators, torch functions, methods and attributes work and
    are recorded; what needs the value itself (if, for, len, int) raises TraceError or
    RuntimeError."""

    def __init__(self, node: Node, tracer: "TracerBase | None" = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> "Attribute":
        # Copying and unpickling ask before __init__ ran.
        if k in ("__setstate__", "tracer", "node", "__deepcopy__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, d: dict) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict) -> "Proxy":
        import copy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(
            {key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()}
        )
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator["Proxy"]:
        count = _unpacked_count(sys._getframe(1))
        if count is not None:
            return (self[i] for i in range(count))
        return self.tracer.iter(self)

    def __abs__(self) -> "Proxy":
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", torch._assert, (self, ""), {})
            return True
        return self.tracer.to_bool(self)

    @compatibility(is_backward_compatible=True)
    def keys(self) -> Any:
        """What `**proxy` asks first."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple | None = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracer = _tracer_of(args, kwargs)
        if isinstance(orig_method, torch._ops.HigherOrderOperator):
            if orig_method in _HIGHER_ORDER_BY_NAME:
                return tracer.create_proxy("call_function", orig_method, args, kwargs)
            raise RuntimeError("Unable to symbolically trace HigherOrderOperators")
        if torch.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=_name_hint(tracer, orig_method)
        )


_HIGHER_ORDER_BY_NAME: set = set()


def _name_hint(tracer: TracerBase, function: Callable) -> str:
    return tracer.graph._target_to_str(function)


def _tracer_of(args: tuple, kwargs: dict) -> TracerBase:
    """The one tracer of the proxies among the arguments."""
    tracers: dict[TracerBase, None] = {}

    def note(leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            tracers[leaf.tracer] = None
        return leaf

    map_aggregate((args, kwargs), note)
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(tracers)} while trying to trace operations"
        )
    return next(iter(tracers))


def _instruction_at(frame: types.FrameType) -> list[dis.Instruction]:
    """The instructions of a frame from the current one on."""
    code = list(dis.get_instructions(frame.f_code))
    start = next(i for i, step in enumerate(code) if step.offset == frame.f_lasti)
    return code[start:]


def _unpacked_count(frame: types.FrameType) -> int | None:
    """Into how many names the calling frame unpacks the value, or None if it does something else.
    Read off the bytes, because a listing of the whole code would cost more than the trace."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] != _UNPACK_SEQUENCE:
        return None
    count, shift = code[at + 1], 8
    while at >= 2 and code[at - 2] == dis.EXTENDED_ARG:
        at -= 2
        count |= code[at + 1] << shift
        shift += 8
    return count


_UNPACK_SEQUENCE = dis.opmap["UNPACK_SEQUENCE"]


def _is_assert(frame: types.FrameType) -> bool:
    """Whether the truth that the frame asks for decides an `assert`: the branch not taken loads
    AssertionError."""
    steps = [s for s in _instruction_at(frame) if s.opname not in ("EXTENDED_ARG", "CACHE")]
    if steps[0].opname in ("UNARY_NOT", "TO_BOOL") and len(steps) > 1:
        steps = steps[1:]
    if not steps[0].opname.startswith(("POP_JUMP", "JUMP_IF")):
        return False
    return len(steps) > 1 and steps[1].opname == "LOAD_ASSERTION_ERROR"


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """`proxy.name`, before it is known whether it is read or called: a call becomes call_method, a
    read makes a getattr node when it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The getattr node, made when first asked for."""
        if self._node is None:
            read = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = read.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """The proxy of a parameter whose shape may be asked for while tracing: sizes are plain
    numbers."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: torch.Tensor) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param).__name__}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> torch.Size:
        """The sizes."""
        return self.param.shape

    def size(self) -> torch.Size:
        """The sizes."""
        return self.param.size()

    def dim(self) -> int:
        """The number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The number of elements."""
        return self.param.nelement()


@compatibility(is_backward_compatible=False)
class MetaProxy(Proxy):
    """A proxy that carries a fake value along; results carry the value the operation gives."""

    def __init__(
        self, node: Node, tracer: "TracerBase | None" = None, fake_mode: Any = None
    ) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple | None = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        carrier: list[MetaProxy] = []

        def value_of(leaf: Any) -> Any:
            if isinstance(leaf, MetaProxy):
                carrier.append(leaf)
                return leaf.node.meta["val"]
            return leaf

        values = map_aggregate((args, kwargs), value_of)
        if not carrier:
            raise AssertionError("no MetaProxy among the arguments")
        mode = carrier[0].fake_mode
        made = super().__torch_function__(orig_method, types, args, kwargs)
        out = MetaProxy(made.node, made.tracer, mode)
        with mode:
            out.node.meta["val"] = orig_method(*values[0], **values[1])
        return out


def _define_operator(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self, *args), kwargs)

    method.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


def _define_reflected(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


for _name in magic_methods:
    if hasattr(operator, _name):
        _define_operator(_name)
for _name in reflectable_magic_methods:
    if hasattr(operator, _name) and _name != "getitem":
        _define_reflected(_name)
# `==` is an operation like the others; proxies are keys by identity.
Proxy.__hash__ = object.__hash__
