"""A function of each slice as an operator: one after the other, or one graph of the function."""

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

__all__ = ["map", "map_impl"]


class MapImpl(HigherOrderOperator):
    """map_impl(f, xs, pos_args): f(*slices of xs, *pos_args) for each index of dimension 0."""

    def __init__(self) -> None:
        super().__init__("map_impl", cacheable=True)

    def __call__(self, f: Callable[..., Any], xs: tuple, pos_args: tuple = ()) -> Any:
        return super().__call__(f, xs, pos_args)


map_impl = MapImpl()


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """f of each slice of xs along dimension 0, stacked."""
    leaves = pytree.tree_leaves(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    length = leaves[0].shape[0] if leaves[0].dim() else 0
    if length == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(x.shape[0] != length for x in leaves):
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes "
            f"{[x.shape for x in leaves]}."
        )
    both, both_spec = pytree.tree_flatten((xs, *args))
    flat = utils.flattened(f, both_spec)
    fn: Callable[..., Any] = flat
    rest = both[len(leaves) :]
    if utils.being_traced():
        with mode_paused():
            example = [*(x[0] for x in leaves), *rest]
        (fn,), captured = utils.lifted([flat], example)
        rest = [*rest, *captured]
    result = map_impl(fn, tuple(leaves), tuple(rest))
    return pytree.tree_unflatten(result, flat.structure)


def _unstack_pytree(xs: Any) -> list:
    """The slices of equal trees of tensors."""
    leaves, spec = pytree.tree_flatten(xs)
    return [pytree.tree_unflatten(list(parts), spec) for parts in zip(*leaves, strict=True)]


_stack_pytree = utils.stack_trees


@map_impl.py_impl(utils.COMPOSITE)
def _run(f, xs, pos_args) -> Any:
    return _stack_pytree([f(*slices, *pos_args) for slices in _unstack_pytree(tuple(xs))])


@map_impl.py_impl(DispatchKey.Autograd)
def _differentiate(f, xs, pos_args) -> Any:
    if not utils.being_traced():
        return _run(f, xs, pos_args)
    if not torch.is_grad_enabled():
        return NotImplemented
    count = len(xs)

    wanted = utils.differentiable((*xs, *pos_args))
    vjp = utils.vjp_of(f, wanted)
    with mode_paused():
        slices = [utils.plain(x)[0] for x in xs]
    rest = [utils.plain(x) for x in pos_args]
    graph = utils.traced_now(f, (*slices, *rest), (*xs, *pos_args))
    grads = utils.results_of(graph, (*slices, *rest))
    results = len(grads)

    def step(*parts: Any) -> tuple:
        ends = count + results
        return vjp(*parts[:count], *parts[ends:], *parts[count:ends])

    derivative = utils.traced_now(step, (*slices, *grads, *rest), (*xs, *pos_args))

    def backward(values, grads, wanted) -> list:
        found = map_impl(derivative, (*values[:count], *grads), tuple(values[count:]))
        mapped = sum(wanted[:count])
        # An argument that every slice uses has the sum of what they give it.
        return [g if i < mapped else g.sum(0) for i, g in enumerate(found)]

    def run(*values: Any) -> Any:
        return map_impl(graph, values[:count], values[count:])

    return utils.differentiated(run, backward, (*xs, *pos_args))


@map_impl.py_impl(FakeTensorMode)
def _without_data(mode, f, xs, pos_args) -> Any:
    with mode:
        length = xs[0].shape[0]
        with utils.symbols_of_no_result(mode):
            one = f(*(x[0] for x in xs), *pos_args)
        return pytree.tree_map_only(Tensor, lambda t: t.new_empty((length, *t.shape)), one)


@map_impl.py_impl(ProxyTorchDispatchMode)
def _trace(mode, f, xs, pos_args) -> Any:
    with mode_paused():
        slices = [x[0] for x in xs]
    graph = utils.reenter_make_fx(f)(*slices, *pos_args)
    args = (graph, tuple(xs), tuple(pos_args))
    return utils.record(mode, map_impl, {"body_graph": graph}, args, map_impl(*args))


def mode_paused() -> Any:
    """A block of which a trace sees nothing."""
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    return disable_proxy_modes_tracing()


map_impl.py_functionalize_impl(utils.functionalized(map_impl, (0,)))
