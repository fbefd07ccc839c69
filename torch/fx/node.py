"""Node: one step of a graph. Fields, links, inputs and users are a C type (torch/csrc/fx/node.cpp);
here is what names, prints and judges a node."""

import builtins
import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import torch
from torch._C import _fx
from torch.fx import _reserved
from torch.fx._compatibility import (
    _BACK_COMPAT_OBJECTS,
    _MARKED_WITH_COMPATIBILITY,
    compatibility,
)
from torch.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from torch.fx.operator_schemas import ArgsKwargsPair

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = Union[  # noqa: UP007
    str,
    int,
    float,
    bool,
    complex,
    torch.dtype,
    torch.Tensor,
    torch.device,
    torch.memory_format,
    torch.layout,
    torch._ops.OpOverload,
    torch.SymInt,
    torch.SymBool,
    torch.SymFloat,
]
base_types = typing.get_args(BaseArgumentTypes)

Target = Union[Callable[..., Any], str]  # noqa: UP007
Argument = Optional[  # noqa: UP045
    Union[
        tuple["Argument", ...],
        Sequence["Argument"],
        Mapping[str, "Argument"],
        slice,
        range,
        "Node",
        BaseArgumentTypes,
    ]
]

_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)

# Functions whose call must stay in a graph although nobody uses the result. Operators that write
# to an argument or draw random numbers say so in their schema and tags.
_side_effectful_need_to_be_preserved_pre_dispatch: list[Callable] = [torch._C._set_grad_enabled]
_side_effectful_functions: set[Callable] = {
    torch._assert,
    torch._assert_async,
    operator.setitem,
    *_side_effectful_need_to_be_preserved_pre_dispatch,
}
_SIDE_EFFECT_OPS = (
    "aten._assert_async.msg aten._assert_scalar.default aten._assert_tensor_metadata.default "
    "aten.sym_constrain_range.default aten.sym_constrain_range_for_size.default"
).split()


def _has_known_side_effect(target: Target) -> bool:
    if target in _side_effectful_functions:
        return True
    return isinstance(target, torch._ops.OpOverload) and str(target) in _SIDE_EFFECT_OPS


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: Callable) -> Callable:
    """Marks a function whose call must stay in a graph, used or not. Returns the function."""
    _side_effectful_functions.add(fn)
    return fn


map_aggregate = _fx.map_aggregate
map_arg = _fx.map_arg
_MARKED_WITH_COMPATIBILITY.update(dict.fromkeys([map_aggregate, map_arg]))
_BACK_COMPAT_OBJECTS[map_arg] = None


# ---- names
def _find_module_of_builtin(func: Callable, module: str | None) -> str:
    """The module that shows a builtin function by its name; operators that torch.nn.functional
    wraps are found in torch._C."""
    name = func.__name__
    if module is not None and not module.startswith("torch"):
        return module
    places = [torch, torch.nn.functional, torch._C._nn, torch._C]
    if module is not None and module in sys.modules:
        places.insert(0, sys.modules[module])
    for place in places:
        if getattr(place, name, None) is func:
            return place.__name__
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    return module


def _lambda_name(func: types.FunctionType) -> str:
    """The name a lambda is assigned to in its line, where it is one; "<lambda>" otherwise."""
    try:
        line = inspect.getsource(func).split("=", 1)[0].strip()
    except (OSError, TypeError):
        return func.__name__
    return line if line.isidentifier() else func.__name__


def _get_qualified_name(func: Callable) -> str:
    """The dotted name under which generated code finds a function."""
    name = getattr(func, "__name__", None)
    if name is not None and getattr(builtins, name, None) is func:
        return name
    if isinstance(func, types.MethodDescriptorType | types.WrapperDescriptorType):
        owner = func.__objclass__
        if getattr(torch.Tensor, name, None) is func:
            return f"torch.Tensor.{name}"
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    if isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{func}"
    if name is None:
        raise RuntimeError(f"{func!r} has no __name__, so generated code cannot name it")
    if name == "<lambda>":
        name = _lambda_name(func)
    module = getattr(func, "__module__", None)
    if module is None or isinstance(func, types.BuiltinFunctionType):
        module = _find_module_of_builtin(func, module)
    if module.startswith("torch._ops"):
        module = "torch.ops" + module[len("torch._ops") :]
    if module == "torch._tensor" and getattr(torch.Tensor, name, None) is func:
        module = "torch.Tensor"
    if module == "torch" and not hasattr(torch, name):
        raise RuntimeError(f"torch has no {name}: generated code cannot name {func!r}")
    return f"{module}.{name}"


def _type_repr(obj: object) -> str:
    """A type as annotations in printed graphs show it."""
    if obj is ...:
        return "..."
    name = getattr(obj, "__qualname__", None)
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    if name is None or typing.get_args(obj) or not isinstance(obj, type):
        return repr(obj)
    home = obj.__module__
    return name if home == "builtins" else f"{home}.{name}"


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """An argument as a printed graph shows it: nodes with a %, texts without quotes."""
    custom = getattr(arg, "_custom_fx_repr_fn", None)
    if custom is not None:
        return custom()
    if isinstance(arg, Node):
        return f"%{arg}"
    if isinstance(arg, list | tuple):
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        if len(arg) > len(shown):
            shown.append(f"...[total_len={len(arg)}]")
        text = ", ".join(shown)
        if isinstance(arg, list):
            return f"[{text}]"
        return f"({text},)" if len(arg) == 1 else f"({text})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return str(arg)


def _value_text(value: object) -> str:
    """dtype and shape of the value noted for a node, for printed graphs."""
    if isinstance(value, torch.Tensor) or hasattr(value, "dtype"):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return type(value).__name__


@compatibility(is_backward_compatible=True)
class Node(_fx._NodeBase):
    """One step of a graph: a placeholder, the read of an attribute, a call, or the output.
    `args` and `kwargs` hold other nodes where values flow in; assigning them keeps `users`
    right."""

    def __init__(
        self,
        graph: "torch.fx.Graph",
        name: str,
        op: str,
        target: Target,
        args: tuple,
        kwargs: dict,
        return_type: Any = None,
    ) -> None:
        super().__init__(graph, name, op, target, args, kwargs, return_type)

    # ---- editing
    @compatibility(is_backward_compatible=True)
    def update_arg(self, idx: int, arg: Argument) -> None:
        """Makes `arg` the positional argument number idx."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    @compatibility(is_backward_compatible=True)
    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts `arg` before the positional argument number idx."""
        count = len(self.args)
        if not 0 <= idx <= count:
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    @compatibility(is_backward_compatible=True)
    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Makes `arg` the keyword argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def _tell_replaced(self, replacement: "Node", user: "Node") -> None:
        module = getattr(self.graph, "owning_module", None)
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=self, new=replacement.name, user=user)

    @compatibility(is_backward_compatible=True)
    def replace_all_uses_with(
        self,
        replace_with: "Node",
        delete_user_cb: Callable[["Node"], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list["Node"]:
        """Makes every user of this node use another one; returns the users changed. Users for which
        delete_user_cb is false stay."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        users = list(self.users)
        if delete_user_cb is not None:
            users = [user for user in users if delete_user_cb(user)]
        for user in users:
            self._tell_replaced(replace_with, user)
        self._replace_uses(replace_with, users)
        return users

    @compatibility(is_backward_compatible=False)
    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Makes this node use new_input wherever it used old_input."""
        old_input._tell_replaced(new_input, self)
        self._replace_input_with(old_input, new_input)

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    # ---- judging
    @compatibility(is_backward_compatible=False)
    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something besides giving its value, so that it must stay."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if _has_known_side_effect(self.target):
                return True
            schema = getattr(self.target, "_schema", None)
            if schema is not None and schema.is_mutable:
                return True
            return impure_random and _is_random(self.target)
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            called = module.get_submodule(self.target)
            return getattr(called, "_is_impure", False)
        return False

    @compatibility(is_backward_compatible=False)
    def normalized_arguments(
        self,
        root: torch.nn.Module,
        arg_types: tuple | None = None,
        kwarg_types: dict | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Optional["ArgsKwargsPair"]:
        """The arguments by the parameters of what is called, or None where it has no one
        signature."""
        from torch.fx import operator_schemas

        only = normalize_to_only_use_kwargs
        match self.op:
            case "call_function":
                types_ = (arg_types, kwarg_types)
                call = (self.target, self.args, self.kwargs, *types_, only)
                return operator_schemas.normalize_function(*call)
            case "call_module":
                call = (root, self.target, self.args, self.kwargs, only)
                return operator_schemas.normalize_module(*call)
        return None

    # ---- printing
    @property
    def stack_trace(self) -> str | None:
        """Where the user's program made the value, as text."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _pretty_print_target(self, target: Target) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module == "builtins":
            return f"builtins.{target.__name__}"
        if module == "_operator":
            return f"operator.{target.__name__}"
        return _get_qualified_name(target)

    @compatibility(is_backward_compatible=True)
    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The line of a printed graph. The two lists, when given, are filled with the name of a
        placeholder and the type of the output, for which None is returned."""
        kind = f"{_type_repr(self.type)} " if self.type else ""
        if include_tensor_metadata and "val" in self.meta:
            kind += _value_text(self.meta["val"])
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                text = f"{self.target} : {_type_repr(self.type)}" if self.type else str(self.target)
                placeholder_names.append(text)
                return None
            default = f"(default={_format_arg(self.args[0])})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        args, kwargs = _format_arg(self.args), _format_arg(self.kwargs)
        return f"{head}[target={target}](args = {args}, kwargs = {kwargs})"

    # ---- pickling
    def __getstate__(self) -> dict[str, Any]:
        names = ("graph", "name", "op", "target", "type", "args", "kwargs", "meta")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Node.__init__(
            self,
            state["graph"],
            state["name"],
            state["op"],
            state["target"],
            state["args"],
            state["kwargs"],
            state["type"],
        )
        self.meta = dict(state["meta"])

    def __reduce__(self) -> tuple:
        return _node_of_graph, (self.graph, self.name)


def _node_of_graph(graph: "torch.fx.Graph", name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


_RANDOM_NAMES = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal "
    "poisson".split()
)


def _is_random(target: Target) -> bool:
    tags = getattr(target, "tags", None)
    if tags is not None and not isinstance(target, str):
        return torch.Tag.nondeterministic_seeded in tags
    return getattr(target, "__name__", None) in _RANDOM_NAMES and (
        getattr(target, "__module__", None) in ("torch", None)
    )


_fx._set_types(Node, immutable_list, immutable_dict, _reserved.WORDS)
