"""A call of a graph that stays a call: equal parts of a program (the blocks of a network) are
traced once and named, so that compilers see each of them once."""

from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["invoke_subgraph"]


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

    def backward(values, grads, wanted) -> Any:
        name = None if identifier is None else f"{identifier}_backward"
        return invoke_subgraph(utils.vjp_of(subgraph, wanted), name, *values, *grads)

    return utils.differentiated(
        lambda *values: invoke_subgraph(subgraph, identifier, *values), backward, operands
    )


@invoke_subgraph.py_impl(FakeTensorMode)
def _without_data(mode, subgraph, identifier, *operands) -> Any:
    with mode:
        return subgraph(*operands)


@invoke_subgraph.py_impl(ProxyTorchDispatchMode)
def _trace(mode, subgraph, identifier, *operands) -> Any:
    known = _traced_before(mode, identifier)
    graph = known or utils.reenter_make_fx(subgraph)(*operands)
    graphs = {} if known else {"repeated_subgraph": graph}
    if identifier is not None:
        _graphs_of(mode)[identifier] = graph
    result = invoke_subgraph(graph, identifier, *operands)
    return utils.record(mode, invoke_subgraph, graphs, (graph, identifier, *operands), result)


def _graphs_of(mode: Any) -> dict[str, Any]:
    return mode.tracer.__dict__.setdefault("_named_subgraphs", {})


def _traced_before(mode: Any, identifier: str | None) -> Any:
    return None if identifier is None else _graphs_of(mode).get(identifier)


@invoke_subgraph.py_functionalize_impl
def _functional(ctx, subgraph, identifier, *operands) -> Any:
    inner = ctx.unwrap_tensors(operands)
    with ctx.redispatch_to_next():
        found = invoke_subgraph(ctx.functionalize(subgraph), identifier, *inner)
    return ctx.wrap_tensors(found)
