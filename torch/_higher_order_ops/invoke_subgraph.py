"""A call of a graph that stays a call: equal parts of a program (the blocks of a network) are
traced once and named, so that compilers see each of them once."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["invoke_subgraph", "mark_compile_region"]


class InvokeSubgraphHOP(HigherOrderOperator):
    """invoke_subgraph(subgraph, identifier, *operands)"""

    def __init__(self) -> None:
        super().__init__("invoke_subgraph", cacheable=True)

    def __call__(self, subgraph: Callable[..., Any], identifier: str | None, *operands: Any) -> Any:
        if identifier is not None and not isinstance(identifier, str):
            raise TypeError(f"the identifier must be a str or None, got {type(identifier)}")
        # As older programs call it: invoke_subgraph(subgraph, identifier, (operands...)).
        if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
            operands = tuple(operands[0])
        return super().__call__(subgraph, identifier, *operands)


invoke_subgraph = InvokeSubgraphHOP()


@invoke_subgraph.py_impl(utils.COMPOSITE)
def _run(subgraph, identifier, *operands) -> Any:
    return subgraph(*operands)


@invoke_subgraph.py_impl(DispatchKey.Autograd)
def _differentiate(subgraph, identifier, *operands) -> Any:
    if not utils.being_traced():
        return subgraph(*operands)
    if not torch.is_grad_enabled():
        return NotImplemented

    wanted = utils.differentiable(operands)
    asked = "".join("1" if want else "0" for want in wanted)
    name = None if identifier is None else f"{identifier}_backward_{asked}"
    graph = utils.traced_now(subgraph, operands, operands)
    grads = utils.results_of(graph, operands)
    vjp = utils.vjp_of(subgraph, wanted)
    derivative = utils.traced_now(vjp, (*operands, *grads), operands)
    return utils.differentiated(
        lambda *values: invoke_subgraph(graph, identifier, *values),
        lambda values, grads, wanted: invoke_subgraph(derivative, name, *values, *grads),
        operands,
    )


@invoke_subgraph.py_impl(FakeTensorMode)
def _without_data(mode, subgraph, identifier, *operands) -> Any:
    with mode:
        return subgraph(*operands)


@invoke_subgraph.py_impl(ProxyTorchDispatchMode)
def _trace(mode, subgraph, identifier, *operands) -> Any:
    known = _graphs_of(mode).get(identifier)
    graph = known or utils.reenter_make_fx(subgraph)(*operands)
    if known is None and identifier is not None:
        # Blocks of a network are different functions that do the same.
        known = _graphs_of(mode).setdefault(_contents(graph), graph)
        known = None if known is graph else known
        graph = known or graph
        _graphs_of(mode)[identifier] = graph
    graphs = {} if known else {"repeated_subgraph": graph}
    result = invoke_subgraph(graph, identifier, *operands)
    return utils.record(mode, invoke_subgraph, graphs, (graph, identifier, *operands), result)


def _graphs_of(mode: Any) -> dict[Any, torch.fx.GraphModule]:
    return mode.tracer.__dict__.setdefault("_named_subgraphs", {})


def _contents(graph: torch.fx.GraphModule) -> tuple:
    """What tells whether two graphs do the same: text, and what inputs are like. A graph with
    constants of its own equals itself only."""
    own = [id(graph)] if any(n.op == "get_attr" for n in graph.graph.nodes) else []
    inputs = [_likeness(n.meta.get("val")) for n in graph.graph.find_nodes(op="placeholder")]
    return (graph.code, *inputs, *own)


def _likeness(value: Any) -> tuple:
    if isinstance(value, Tensor):
        return (str(tuple(value.shape)), str(value.stride()), value.dtype, value.device)
    return (type(value), str(value))


class _Region:
    """A function whose calls stay calls in traces."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.names: dict[tuple, str] = {}  # by what arguments are like

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not utils.being_traced():
            return self.fn(*args, **kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        is_operand = [isinstance(x, (Tensor, torch.SymInt)) for x in leaves]
        operands = [x for x, is_one in zip(leaves, is_operand, strict=True) if is_one]
        out_spec: list = []

        def flat(*values: Any) -> tuple:
            rest = iter(values)
            given = [next(rest) if o else x for x, o in zip(leaves, is_operand, strict=True)]
            inner_args, inner_kwargs = pytree.tree_unflatten(given, spec)
            found, structure = pytree.tree_flatten(self.fn(*inner_args, **inner_kwargs))
            out_spec[:] = [structure]
            return tuple(found)

        (fn,), captured = utils.lifted([flat], operands)
        constants = [id(x) for x, o in zip(leaves, is_operand, strict=True) if not o]
        key = (spec, *map(_likeness, (*operands, *captured)), *constants)
        name = getattr(self.fn, "__qualname__", type(self.fn).__name__)
        name = self.names.setdefault(key, f"{name}_{id(self):x}_{len(self.names)}")
        return pytree.tree_unflatten(invoke_subgraph(fn, name, *operands, *captured), out_spec[0])


def mark_compile_region(fn: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A decorator for a function that a program calls often: compilers see its graph once."""
    if fn is None:
        return mark_compile_region
    region = _Region(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return region(*args, **kwargs)

    return call


@invoke_subgraph.py_functionalize_impl
def _functional(ctx, subgraph, identifier, *operands) -> Any:
    inner = ctx.unwrap_tensors(operands)
    with ctx.redispatch_to_next():
        found = invoke_subgraph(ctx.functionalize(subgraph), identifier, *inner)
    return ctx.wrap_tensors(found)
