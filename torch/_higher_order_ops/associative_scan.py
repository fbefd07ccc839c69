"""Running combinations of slices by an associative function, as an operator. Slices are combined in
pairs over distances that double, so that the function runs about log2(n) times on many slices."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._higher_order_ops.map import mode_paused
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["associative_scan", "associative_scan_op"]


class AssociativeScanOp(HigherOrderOperator):
    """associative_scan_op(combine_fn, xs, additional_inputs), flat and along dimension 0:
    combine_fn takes two sets of slices, then the additional inputs, and returns one set.
    """

    def __init__(self) -> None:
        super().__init__("associative_scan", cacheable=True)

    def __call__(
        self, combine_fn: Callable[..., Any], xs: tuple, additional_inputs: tuple = ()
    ) -> tuple:
        return super().__call__(combine_fn, xs, additional_inputs)


associative_scan_op = AssociativeScanOp()


def associative_scan(
    combine_fn: Callable[..., Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Running combinations of xs along dim."""
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    length = leaves[0].shape[dim]
    if any(x.shape[dim] != length for x in leaves):
        raise ValueError("All xs leaves must have the same size along the scanned dimension")
    along = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        along = [x.flip(0) for x in along]

    def step(*values: Any) -> tuple:
        a = pytree.tree_unflatten(values[: len(leaves)], spec)
        b = pytree.tree_unflatten(values[len(leaves) :], spec)
        return tuple(pytree.tree_leaves(combine_fn(a, b)))

    step.__name__ = "Combine_fn"  # as errors name it
    captured: list[Tensor] = []
    if utils.being_traced():
        with mode_paused():
            example = [x[0] for x in (*along, *along)]
        (step,), captured = utils.lifted([step], example)
    found = associative_scan_op(step, tuple(along), tuple(captured))
    if reverse:
        found = [x.flip(0) for x in found]
    return pytree.tree_unflatten([x.movedim(0, dim) for x in found], spec)


def _fake_associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False
) -> Any:
    """associative_scan by a plain loop, to compare with."""
    leaves, spec = pytree.tree_flatten(xs)
    order = range(leaves[0].shape[dim])
    found: list = []
    for i in reversed(order) if reverse else order:
        one = pytree.tree_unflatten([x.select(dim, i) for x in leaves], spec)
        found.append(combine_fn(found[-1], one) if found else one)
    return utils.stack_trees(found[::-1] if reverse else found, dim)


@associative_scan_op.py_impl(utils.COMPOSITE)
def _run(combine_fn, xs, additional_inputs) -> tuple:
    """Each element is combined with the one `step` before it, for steps of 1, 2, 4, ..."""
    length = xs[0].shape[0]
    # combine_fn is written for one slice of each.
    many = torch.vmap(combine_fn, in_dims=(0,) * (2 * len(xs)) + (None,) * len(additional_inputs))
    values, step = list(xs), 1
    while step < length:
        before = [x[: length - step] for x in values]
        after = [x[step:] for x in values]
        joined = many(*before, *after, *additional_inputs)
        values = [torch.cat([x[:step], y]) for x, y in zip(values, joined, strict=True)]
        step *= 2
    return tuple(values)


@associative_scan_op.py_impl(DispatchKey.Autograd)
def _differentiate(combine_fn, xs, additional_inputs) -> tuple:
    """Where gradients are taken, a trace sees the combinations one by one: their gradients are
    those of slices and of combine_fn, and there are about log2(n) of them."""
    if utils.being_traced() and not torch.is_grad_enabled():
        return NotImplemented
    return _run(combine_fn, xs, additional_inputs)


@associative_scan_op.py_impl(FakeTensorMode)
def _without_data(mode, combine_fn, xs, additional_inputs) -> tuple:
    with mode:
        slices = [x[0] for x in xs]
        utils.check_same_outputs(
            "associative_scan",
            tuple(slices),
            tuple(combine_fn(*slices, *slices, *additional_inputs)),
        )
        return tuple(torch.empty_like(x) for x in xs)


@associative_scan_op.py_impl(ProxyTorchDispatchMode)
def _trace(mode, combine_fn, xs, additional_inputs) -> tuple:
    with mode_paused():  # tensors of their own: a trace knows arguments by identity
        first, second = [x[0] for x in xs], [x[0] for x in xs]
    graph = utils.reenter_make_fx(combine_fn)(*first, *second, *additional_inputs)
    args = (graph, tuple(xs), tuple(additional_inputs))
    result = associative_scan_op(*args)
    name = "associative_scan_combine_graph"
    return utils.record(mode, associative_scan_op, {name: graph}, args, result)


associative_scan_op.py_functionalize_impl(utils.functionalized(associative_scan_op, (0,)))
