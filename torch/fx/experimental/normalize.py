"""Graphs in which equal things are written alike: arguments by keyword, operators as functions of
`operator`."""

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx import Proxy, Transformer
from torch.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from torch.fx.node import Argument, Node, Target, map_aggregate
from torch.fx.operator_schemas import create_type_hint, normalize_function, normalize_module

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Gives every call of torch functions and modules its arguments by keyword, defaults included.
    Where overloads differ, the types noted by ShapeProp decide."""

    def __init__(
        self, module: torch.fx.GraphModule, normalize_to_only_use_kwargs: bool = True
    ) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Runs a node; calls of functions are given the types of their arguments."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def kind(arg: Any) -> Any:
            if isinstance(arg, Node):
                return n_type(arg)
            return type(arg)

        def n_type(node: Node) -> Any:
            return node.meta.get("type")

        if n.op == "call_function":
            arg_types = tuple(create_type_hint(map_aggregate(a, kind)) for a in n.args)
            kwarg_types = {k: create_type_hint(map_aggregate(v, kind)) for k, v in n.kwargs.items()}
            out = self.call_function(n.target, args, kwargs, arg_types, kwarg_types)
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta = dict(n.meta)
            out.node.type = n.type
        return out

    def call_function(
        self,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Any],
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
    ) -> Any:
        """A call with sorted arguments where the function's signature is known."""
        if not callable(target):
            raise AssertionError(f"not callable: {target!r}")
        found = normalize_function(
            target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs
        )
        args, kwargs = found if found else (args, kwargs)
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call with sorted arguments where the module is one of torch.nn."""
        found = normalize_module(
            self.module, target, args, kwargs, self.normalize_to_only_use_kwargs
        )
        args, kwargs = found if found else (args, kwargs)
        return super().call_module(target, args, kwargs)


class NormalizeOperators(AnnotateTypesWithSchema):
    """Writes calls such as torch.add(x, y) as `x + y`, where they mean the same."""

    binary_magic_method_remap: dict[Callable, Callable] = {
        getattr(torch, function): getattr(operator, sign)
        for function, sign in [
            *((name, name) for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")),
            *(("div", "truediv"), ("floor_divide", "floordiv"), ("remainder", "mod")),
        ]
    }

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call; of an operator where the arguments are two and nothing else is asked for."""
        if not callable(target):
            raise AssertionError(f"not callable: {target!r}")
        plain = self.binary_magic_method_remap.get(target)
        if plain is not None and len(args) == 2 and not kwargs:
            return super().call_function(plain, args, {})
        return super().call_function(target, args, kwargs)
