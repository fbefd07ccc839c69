"""A call of a function that must be captured as a whole: nothing in it may be left to Python. A
trace keeps it as a graph of its own."""

from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["strict_mode", "strict_mode_op"]


class StrictMode(HigherOrderOperator):
    """strict_mode(callable, operands): the function of a tuple of tensors."""

    def __init__(self) -> None:
        super().__init__("strict_mode")

    def __call__(self, callable: Callable[..., Any], operands: tuple) -> Any:
        return super().__call__(callable, tuple(operands))


strict_mode_op = StrictMode()


def strict_mode(callable: Callable[..., Any], operands: tuple) -> Any:
    """callable(*operands), after it was captured in one graph; what cannot be captured raises."""
    if torch.compiler.is_dynamo_compiling() or utils.being_traced():
        return strict_mode_op(callable, operands)
    return torch.compile(strict_mode_op, backend="eager", fullgraph=True)(callable, operands)


@strict_mode_op.py_impl(utils.COMPOSITE)
def _run(callable, operands) -> Any:
    return callable(*operands)


strict_mode_op.py_impl(DispatchKey.Autograd)(
    utils.autograd_not_implemented(strict_mode_op, deferred_error=True)
)


@strict_mode_op.py_impl(FakeTensorMode)
def _without_data(mode, callable, operands) -> Any:
    with mode:
        return callable(*operands)


@strict_mode_op.py_impl(ProxyTorchDispatchMode)
def _trace(mode, callable, operands) -> Any:
    graph = utils.reenter_make_fx(callable)(*operands)
    result = strict_mode_op(graph, operands)
    return utils.record(mode, strict_mode_op, {"strict_graph": graph}, (graph, operands), result)


strict_mode_op.py_functionalize_impl(utils.functionalized(strict_mode_op, (0,)))
