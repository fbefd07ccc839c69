"""A branch as an operator. Eagerly the condition is looked at and one branch runs; a trace keeps
both as graphs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._C._functorch import TransformType
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["cond", "cond_op"]


class CondOp(HigherOrderOperator):
    """cond_op(pred, true_fn, false_fn, operands)"""

    def __init__(self) -> None:
        super().__init__("cond", cacheable=True)

    def __call__(
        self,
        pred: bool | Tensor,
        true_fn: Callable[..., Any],
        false_fn: Callable[..., Any],
        operands: Sequence[Any] = (),
    ) -> Any:
        return super().__call__(pred, true_fn, false_fn, operands)


cond_op = CondOp()


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """true_fn(*operands) where pred holds, else false_fn(*operands)."""
    if not isinstance(pred, (bool, Tensor, torch.SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or pytree.tree_any(
        lambda x: not isinstance(x, (Tensor, int, torch.SymInt)), operands
    ):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    leaves, spec = pytree.tree_flatten(tuple(operands))
    true_flat, false_flat = (utils.flattened(fn, spec) for fn in (true_fn, false_fn))
    branches: list[Callable[..., Any]] = [true_flat, false_flat]
    if utils.being_traced():
        branches, captured = utils.lifted(branches, leaves)
        leaves = [*leaves, *captured]
    result = cond_op(pred, *branches, tuple(leaves))
    structures = [fn.structure for fn in (true_flat, false_flat) if fn.structure is not None]
    if structures[0] != structures[-1]:
        raise RuntimeError(
            "torch.cond: expected true_fn and false_fn to return the same structure, but got "
            f"{structures[0]} and {structures[1]}"
        )
    return pytree.tree_unflatten(result, structures[0])


@cond_op.py_impl(utils.COMPOSITE)
def _run_branch(pred, true_fn, false_fn, operands) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


@cond_op.py_impl(DispatchKey.Autograd)
def _differentiate(pred, true_fn, false_fn, operands) -> Any:
    if not utils.being_traced():
        return _run_branch(pred, true_fn, false_fn, operands)
    if not torch.is_grad_enabled():
        return NotImplemented

    graphs = [utils.traced_now(fn, operands, operands) for fn in (true_fn, false_fn)]
    wanted = utils.differentiable(operands)
    grads = utils.results_of(graphs[0], operands)
    derivatives = [
        utils.traced_now(utils.vjp_of(fn, wanted), (*operands, *grads), operands)
        for fn in (true_fn, false_fn)
    ]
    return utils.differentiated(
        lambda *values: cond_op(pred, *graphs, values),
        lambda values, grads, wanted: cond_op(pred, *derivatives, (*values, *grads)),
        operands,
    )


@cond_op.py_impl(FakeTensorMode)
def _without_data(mode, pred, true_fn, false_fn, operands) -> Any:
    if isinstance(pred, bool):
        return _run_branch(pred, true_fn, false_fn, operands)
    with mode:
        with utils.symbols_of_no_result(mode):
            other = false_fn(*operands)
        result = true_fn(*operands)
        utils.check_same_outputs("torch.cond", result, other)
    return result


@cond_op.py_impl(ProxyTorchDispatchMode)
def _trace(mode, pred, true_fn, false_fn, operands) -> Any:
    true_graph = utils.reenter_make_fx(true_fn)(*operands)
    false_graph = utils.reenter_make_fx(false_fn)(*operands)
    result = cond_op(pred, true_graph, false_graph, operands)
    graphs = {"true_graph": true_graph, "false_graph": false_graph}
    args = (pred, true_graph, false_graph, tuple(operands))
    return utils.record(mode, cond_op, graphs, args, result)


@cond_op.py_impl(TransformType.Vmap)
def _batch(interpreter, pred, true_fn, false_fn, operands) -> Any:
    batched = isinstance(pred, Tensor) and torch._C._functorch.is_batchedtensor(pred)
    if not batched:
        return _run_branch(pred, true_fn, false_fn, operands)
    yes, no = true_fn(*operands), false_fn(*operands)
    return pytree.tree_map(lambda a, b: torch.where(pred, a, b), yes, no)


cond_op.py_functionalize_impl(utils.functionalized(cond_op, (1, 2)))
