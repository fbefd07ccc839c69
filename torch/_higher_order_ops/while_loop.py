"""A loop as an operator: eagerly Python's, in a trace a condition and a body as graphs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["while_loop", "while_loop_op"]


class WhileLoopOp(HigherOrderOperator):
    """while_loop_op(cond_fn, body_fn, carried_inputs, additional_inputs)"""

    def __init__(self) -> None:
        super().__init__("while_loop", cacheable=True)

    def __call__(
        self,
        cond_fn: Callable[..., Any],
        body_fn: Callable[..., Any],
        carried_inputs: tuple,
        additional_inputs: tuple = (),
    ) -> tuple:
        if not isinstance(carried_inputs, (tuple, list)):
            raise RuntimeError(
                f"carried_inputs must be a tuple or list, got {type(carried_inputs)}"
            )
        return super().__call__(cond_fn, body_fn, carried_inputs, additional_inputs)


while_loop_op = WhileLoopOp()


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple:
    """Repeats carried = body_fn(*carried) while cond_fn(*carried) holds."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {carried_inputs}."
        )
    leaves, spec = pytree.tree_flatten(tuple(carried_inputs))

    def condition(*values: Any) -> Any:
        return cond_fn(*pytree.tree_unflatten(values, spec))

    def body(*values: Any) -> tuple:
        return tuple(pytree.tree_leaves(body_fn(*pytree.tree_unflatten(values, spec))))

    if not utils.being_traced():
        carried = while_loop_op(condition, body, tuple(leaves), ())
    else:
        functions, captured = utils.lifted([condition, body], leaves)
        carried = while_loop_op(*functions, tuple(leaves), tuple(captured))
    return pytree.tree_unflatten(carried, spec)


def _carried(result: Any, count: int) -> tuple:
    values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(values) != count:
        raise RuntimeError(f"body_fn should return {count} values, but got {len(values)}")
    return values


@while_loop_op.py_impl(utils.COMPOSITE)
def _run(cond_fn, body_fn, carried_inputs, additional_inputs) -> tuple:
    carried = tuple(carried_inputs)
    while True:
        goes_on = cond_fn(*carried, *additional_inputs)
        if isinstance(goes_on, Tensor) and goes_on.numel() != 1:
            raise RuntimeError(
                f"cond_fn must return a boolean scalar tensor or a boolean, but got {goes_on}"
            )
        if not goes_on:
            return carried
        carried = _carried(body_fn(*carried, *additional_inputs), len(carried))


@while_loop_op.py_impl(DispatchKey.Autograd)
def _differentiate(cond_fn, body_fn, carried_inputs, additional_inputs) -> tuple:
    args = (cond_fn, body_fn, carried_inputs, additional_inputs)
    return (_undifferentiated if utils.being_traced() else _run)(*args)


_undifferentiated = utils.autograd_not_implemented(while_loop_op)


@while_loop_op.py_impl(FakeTensorMode)
def _without_data(mode, cond_fn, body_fn, carried_inputs, additional_inputs) -> tuple:
    with mode, utils.symbols_of_no_result(mode):
        carried = _carried(body_fn(*carried_inputs, *additional_inputs), len(carried_inputs))
        utils.check_same_outputs("torch.while_loop", tuple(carried_inputs), carried)
        return pytree.tree_map_only(Tensor, torch.empty_like, carried)


@while_loop_op.py_impl(ProxyTorchDispatchMode)
def _trace(mode, cond_fn, body_fn, carried_inputs, additional_inputs) -> tuple:
    inputs = (*carried_inputs, *additional_inputs)
    cond_graph = utils.reenter_make_fx(cond_fn)(*inputs)
    body_graph = utils.reenter_make_fx(body_fn)(*inputs)
    args = (cond_graph, body_graph, tuple(carried_inputs), tuple(additional_inputs))
    result = while_loop_op(*args)
    graphs = {"while_loop_cond_graph": cond_graph, "while_loop_body_graph": body_graph}
    return utils.record(mode, while_loop_op, graphs, args, result)


while_loop_op.py_functionalize_impl(utils.functionalized(while_loop_op, (0, 1)))
