"""A base for passes that write a graph anew. The graph is read node by node, each node by a method
that a pass may override; the methods write nodes into a new graph and compute their examples."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._export.pass_infra.node_metadata import NodeMetadata
from torch._export.pass_infra.proxy_value import ProxyValue
from torch._guards import detect_fake_mode
from torch.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["ExportPassBaseError", "_ExportPassBaseDeprecatedDoNotUse"]

_SYM = {
    torch.sym_not, torch.sym_max, torch.sym_min, torch.sym_float, torch.sym_int, torch.sym_ite,
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
    operator.ge, operator.and_, operator.or_,
}  # fmt: skip


class ExportPassBaseError(RuntimeError):
    """A graph that a pass cannot read."""


def _data(value: object) -> object:
    """Examples for values, in any containers."""
    return pytree.tree_map_only(ProxyValue, lambda v: v.data, value)


def _nodes(value: object) -> object:
    return pytree.tree_map_only(ProxyValue, lambda v: v.node, value)


class _Written:
    """The graph that is being written."""

    def __init__(self, old: fx.GraphModule) -> None:
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        self.old = old
        self.name: str | None = None  # of the node that is read
        self.graphs: dict[int, str] = {}  # names of the graphs that operators take

    def node(
        self, op: str, target: object, args: tuple, kwargs: dict, value: object, meta: NodeMetadata
    ) -> ProxyValue:
        name, self.name = self.name, None
        made = self.graph.create_node(op, target, _nodes(args), _nodes(kwargs), name)
        made.meta.update(meta.kept())
        made.meta["val"] = value
        return ProxyValue(value, made)

    def attribute(self, held: object, wanted: str) -> str:
        """Puts an object into the new module; the name it has there."""
        name, count = wanted.replace(".", "_"), 0
        while hasattr(self.root, name) and getattr(self.root, name) is not held:
            count += 1
            name = f"{wanted.replace('.', '_')}_{count}"
        setattr(self.root, name, held)
        return name


class _ExportPassBaseDeprecatedDoNotUse(PassBase):
    """A pass that changes nothing. A subclass overrides the methods of the nodes it changes, and
    calls those of this class to write nodes."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[_Written] = []
        self._mode: object = None

    # ---- what a subclass may change
    def placeholder(self, name: str, arg: object, meta: NodeMetadata) -> ProxyValue:
        """An input."""
        return self._top.node("placeholder", name, (), {}, arg, meta)

    def output(self, results: list[object], meta: NodeMetadata) -> ProxyValue:
        """The results."""
        return self._top.node("output", "output", (results,), {}, _data(results), meta)

    def call_operator(
        self, op: Callable, args: tuple, kwargs: dict[str, object], meta: NodeMetadata
    ) -> ProxyValue:
        """A call of an operator."""
        with self._mode or contextlib.nullcontext():
            value = op(*_data(args), **_data(kwargs))
        return self._top.node("call_function", op, args, kwargs, value, meta)

    def call_sym(self, target: Callable, args: tuple, meta: NodeMetadata) -> ProxyValue:
        """Arithmetic on sizes."""
        return self._top.node("call_function", target, args, {}, target(*_data(args)), meta)

    def call_getitem(self, value: ProxyValue, key: int, meta: NodeMetadata) -> ProxyValue:
        """An item of results."""
        item = _data(value)[key]
        return self._top.node("call_function", operator.getitem, (value, key), {}, item, meta)

    def call_cond(
        self,
        pred: ProxyValue,
        true_fn: fx.GraphModule,
        false_fn: fx.GraphModule,
        inputs: list[object],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """A branch."""
        graphs = [(f, self.call_submodule(f, tuple(inputs))) for f in (true_fn, false_fn)]
        return self._call_graphs(torch.ops.higher_order.cond, [pred], graphs, [inputs], meta)

    def call_map(
        self,
        f: fx.GraphModule,
        mapped_args: list[ProxyValue],
        operands: list[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """A function of every row."""
        first = [ProxyValue(_data(v)[0], v.node) for v in mapped_args]
        graphs = [(f, self.call_submodule(f, (*first, *operands)))]
        op = torch.ops.higher_order.map_impl
        return self._call_graphs(op, [], graphs, [mapped_args, operands], meta)

    def call_submodule(self, graph_module: fx.GraphModule, inputs: tuple) -> PassResult:
        """A graph that an operator takes, written anew."""
        return self._rewritten(graph_module, [_data(v) for v in inputs])

    # ---- the pass
    def call(self, graph_module: fx.GraphModule) -> PassResult:
        """Writes the graph anew."""
        inputs = [n.meta.get("val") for n in graph_module.graph.find_nodes(op="placeholder")]
        tensors = [v for v in pytree.tree_leaves(inputs) if isinstance(v, torch.Tensor)]
        self._mode = detect_fake_mode(tensors)
        env = getattr(self._mode, "shape_env", None)
        allowed = getattr(self._mode, "allow_non_fake_inputs", None)
        try:
            if self._mode is not None:
                self._mode.allow_non_fake_inputs = True
            with env.suppress_guards() if env is not None else contextlib.nullcontext():
                return self._rewritten(graph_module, inputs)
        finally:
            if self._mode is not None:
                self._mode.allow_non_fake_inputs = allowed
            self._mode = None

    @property
    def _top(self) -> _Written:
        return self._written[-1]

    def _call_graphs(
        self,
        op: Callable,
        before: list[object],
        graphs: list[tuple[fx.GraphModule, PassResult]],
        after: list[object],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """A call of an operator that takes graphs, each given as it was and as it is now; results
        look as they did."""
        held = []
        for old, made in graphs:
            wanted = self._top.graphs.get(id(old), "submodule")
            name = self._top.attribute(made.graph_module, wanted)
            held.append(self._top.graph.get_attr(name))
        value = meta.get("val")
        return self._top.node("call_function", op, (*before, *held, *after), {}, value, meta)

    def _rewritten(self, graph_module: fx.GraphModule, inputs: list[object]) -> PassResult:
        self._written.append(_Written(graph_module))
        try:
            env: dict[fx.Node, object] = {}
            given = iter(inputs)
            for node in graph_module.graph.nodes:
                self._top.name = node.name
                env[node] = self._read(node, env, given)
            top = self._top
        finally:
            self._written.pop()
        top.graph._codegen = graph_module.graph._codegen
        made = fx.GraphModule(top.root, top.graph)
        made.meta.update(graph_module.meta)
        return PassResult(made, True)

    def _read(self, node: fx.Node, env: dict[fx.Node, object], given: object) -> object:
        meta = NodeMetadata(node.meta)
        if node.op == "placeholder":
            return self.placeholder(node.target, next(given), meta)
        if node.op == "get_attr":
            return self._attribute(node, meta)
        args = fx.map_arg(node.args, env.__getitem__)
        kwargs = fx.map_arg(dict(node.kwargs), env.__getitem__)
        if node.op == "output":
            return self.output(args[0], meta)
        if node.op != "call_function":
            raise ExportPassBaseError(f"{node.op} {node.target} in an exported graph")
        return self._called(node.target, args, kwargs, meta)

    def _attribute(self, node: fx.Node, meta: NodeMetadata) -> object:
        held: object = self._top.old
        for part in node.target.split("."):
            held = getattr(held, part)
        if isinstance(held, fx.GraphModule):
            self._top.graphs[id(held)] = node.target
            return held
        name = self._top.attribute(held, node.target)
        return self._top.node("get_attr", name, (), {}, node.meta.get("val", held), meta)

    def _called(self, target: object, args: tuple, kwargs: dict, meta: NodeMetadata) -> object:
        if target is operator.getitem:
            return self.call_getitem(*args, meta)
        if target in _SYM:
            return self.call_sym(target, args, meta)
        if target is torch.ops.higher_order.cond:
            pred, true_fn, false_fn, inputs = args
            return self.call_cond(pred, true_fn, false_fn, list(inputs), meta)
        if isinstance(target, torch._ops.OpOverload):
            return self.call_operator(target, args, kwargs, meta)
        if isinstance(target, torch._ops.HigherOrderOperator):
            if target is torch.ops.higher_order.map_impl:
                return self.call_map(args[0], list(args[1]), list(args[2]), meta)
            return self._top.node("call_function", target, self._held(args), kwargs,
                                  meta.get("val"), meta)  # fmt: skip
        raise ExportPassBaseError(f"Unsupported target {target} in an exported graph")

    def _held(self, args: tuple) -> tuple:
        """Arguments with the graphs among them as attributes of the new module."""
        found = []
        for value in args:
            if isinstance(value, fx.GraphModule):
                name = self._top.attribute(value, self._top.graphs.get(id(value), "submodule"))
                value = self._top.graph.get_attr(name)
            found.append(value)
        return tuple(found)
