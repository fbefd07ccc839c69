"""A call of a function with hints for the compiler. The function runs as it is; a trace keeps it as
a graph of its own, with the hints beside it."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["HintsWrapper", "hints_wrapper"]

_VALUES = (Tensor, int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


class HintsWrapper(HigherOrderOperator):
    """hints_wrapper(body_fn, args, kwargs, hints={name: number or text})"""

    def __init__(self) -> None:
        super().__init__("hints_wrapper")

    def __call__(
        self,
        body_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        hints: dict[str, Any],
    ) -> Any:
        check(args, kwargs, hints)
        return super().__call__(body_fn, tuple(args), kwargs, hints)


hints_wrapper = HintsWrapper()


def check(args: Sequence[Any], kwargs: dict[str, Any], hints: dict[str, Any]) -> None:
    """Raises unless the arguments are flat and the hints plain."""
    if not isinstance(args, (tuple, list)) or not all(isinstance(a, _VALUES) for a in args):
        raise RuntimeError(
            f"args must be a tuple of tensors, ints, floats, or bools, got {type(args)} {args}"
        )
    if not isinstance(kwargs, dict) or not all(isinstance(v, _VALUES) for v in kwargs.values()):
        raise RuntimeError(
            f"kwargs must be a dict of tensors, ints, floats, or bools, got {type(kwargs)} {kwargs}"
        )
    plain = isinstance(hints, dict) and all(
        isinstance(value, (int, float, bool, str)) for value in hints.values()
    )
    if not plain:
        raise RuntimeError(
            f"hints must be a dict containing int, float, bool or str value, got {hints}"
        )


@hints_wrapper.py_impl(utils.COMPOSITE)
def _run(body_fn, args, kwargs, hints) -> Any:
    return body_fn(*args, **kwargs)


hints_wrapper.py_impl(DispatchKey.Autograd)(
    utils.autograd_not_implemented(hints_wrapper, deferred_error=True)
)


@hints_wrapper.py_impl(FakeTensorMode)
def _without_data(mode, body_fn, args, kwargs, hints) -> Any:
    with mode:
        return body_fn(*args, **kwargs)


@hints_wrapper.py_impl(ProxyTorchDispatchMode)
def _trace(mode, body_fn, args, kwargs, hints) -> Any:
    names = list(kwargs)

    def flat(*values: Any) -> Any:
        own = dict(zip(names, values[len(args) :], strict=True))
        return body_fn(*values[: len(args)], **own)

    graph = utils.reenter_make_fx(flat)(*args, *kwargs.values())
    values = (*args, *kwargs.values())
    result = hints_wrapper(graph, values, {}, hints)
    graphs = {"wrapped_body": graph}
    return utils.record(mode, hints_wrapper, graphs, (graph, values, {}), result, {"hints": hints})


hints_wrapper.py_functionalize_impl(utils.functionalized(hints_wrapper, (0,)))
