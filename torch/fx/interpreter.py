"""Interpreter runs a graph node by node, Transformer makes a new graph by running one on
proxies. Both are written to be derived from: a method per kind of node."""

import inspect
import operator
from typing import Any

import torch
from torch.fx import traceback as fx_traceback
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Argument, Node, Target, map_aggregate, map_arg
from torch.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Runs the nodes of a graph in order; `env` holds the values that later nodes need."""

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        module: torch.nn.Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        # node -> values that nobody needs behind it.
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            self.user_to_last_uses = _last_uses(self.graph)

    @compatibility(is_backward_compatible=True)
    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Runs the graph. Nodes in initial_env have their value already."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _explain(error, node, self.module)
                raise
            for dead in self.user_to_last_uses.get(node, ()):
                self.env.pop(dead, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    @compatibility(is_backward_compatible=True)
    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph on a list that is emptied, so that inputs are freed at their last use."""
        values = list(args_list)
        args_list.clear()
        inputs = self.graph.find_nodes(op="placeholder")
        env = dict(zip(inputs, values, strict=True))
        values.clear()
        return self.run(initial_env=env)

    @compatibility(is_backward_compatible=True)
    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        with self._set_current_node(n):
            run = getattr(self, n.op)
            return run(n.target, *self.fetch_args_kwargs_from_env(n))

    def _set_current_node(self, node: Node) -> Any:
        return fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}")

    # ---- one method for each kind of node
    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """The next argument of run, or the default."""
        if target.startswith("*"):
            # What is left; it is read without being taken, because nothing comes after it.
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """The result of a function."""
        if isinstance(target, str):
            raise AssertionError("the target of call_function is a function")
        return target(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """The result of a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, target)(*rest, **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """What run returns."""
        return args[0]

    # ---- values
    @compatibility(is_backward_compatible=True)
    def fetch_attr(self, target: str) -> Any:
        """What a dotted path leads to, from the module."""
        try:
            return operator.attrgetter(target)(self.module)
        except AttributeError as error:
            raise RuntimeError(f"Node referenced nonexistent target {target}: {error}") from None

    @compatibility(is_backward_compatible=True)
    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The arguments of a node with values in place of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    @compatibility(is_backward_compatible=True)
    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """An argument with values in place of nodes."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    seen: set[Node] = set()
    out: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                out.setdefault(node, []).append(used)
    return out


def _explain(error: Exception, node: Node, module: torch.nn.Module) -> None:
    """Adds to an error which node was running and where the user's program made it."""
    text = f"While executing {node.format_node()}"
    if error.args:
        text = f"{error.args[0]}\n\n{text}"
    text += f"\nOriginal traceback:\n{node.stack_trace}"
    if isinstance(module, GraphModule) and module.graph is not None:
        text += "\nUse tlparse to see full graph. (https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)"
    if isinstance(error, KeyError):
        raise RuntimeError(*((text,) + error.args[1:])) from error
    error.args = (text,) + error.args[1:]


class _TransformerTracer(TracerBase):
    """Records what a Transformer runs; modules stay calls."""

    def __init__(self, graph: Graph) -> None:
        from collections import OrderedDict

        from torch.fx.proxy import Scope

        super().__init__()
        self.graph = graph
        self.tensor_attrs: dict[torch.Tensor, str] = {}
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}

    def is_leaf_module(self, _: torch.nn.Module, __: str) -> bool:
        return True


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """An interpreter whose values are proxies: `transform` returns a module with the new graph."""

    @compatibility(is_backward_compatible=True)
    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Proxy:
        """A placeholder of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        given = () if default is inspect.Signature.empty else (default,)
        return Proxy(self.new_graph.create_node("placeholder", target, given), self.tracer)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Proxy:
        """An attribute, read by the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """A call of the submodule in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict) -> Any:
        """A call of the function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def transform(self) -> GraphModule:
        """Runs the graph on proxies and returns the module that results."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            out = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            made = self.new_graph.output(out)
            old = next((n for n in reversed(self.graph.nodes) if n.op == "output"), None)
            if old is not None:
                made.meta = dict(old.meta)
                made.type = old.type
        from torch.fx._lazy_graph_module import _make_graph_module

        return _make_graph_module(self.module, self.new_graph)
