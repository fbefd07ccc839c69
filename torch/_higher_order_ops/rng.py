"""Random operators with their generator's state made visible: one that returns the state it began
with, and one that begins with a given state. A recomputed part of a graph draws the same numbers.
They can be traced, so that graphs that contain them can be compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["graphsafe_run_with_rng_state", "run_and_save_rng_state", "run_with_rng_state"]


def _device_of(args: tuple, kwargs: dict) -> str:
    """The type of the device that the call draws on."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"]).type
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            return value.device.type
    return "cpu"


def _state(device: str) -> Tensor:
    return torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state()


def _set_state(device: str, state: Tensor) -> None:
    if device == "cuda":
        torch.cuda.set_rng_state(state)
    else:
        torch.set_rng_state(state)


class RunAndSaveRngState(HigherOrderOperator):
    """Calls an operator; returns the state of the generator before the call, and the result."""

    def __init__(self) -> None:
        super().__init__("run_and_save_rng_state", cacheable=True)

    def __call__(self, op: Callable, *args: Any, **kwargs: Any) -> tuple[Tensor, object]:
        return super().__call__(op, *args, **kwargs)


class RunWithRngState(HigherOrderOperator):
    """Calls an operator from a state of the generator, which afterwards is where it was."""

    def __init__(self) -> None:
        super().__init__("run_with_rng_state", cacheable=True)

    def __call__(self, rng_state: Tensor, op: Callable, *args: Any, **kwargs: Any) -> object:
        return super().__call__(rng_state, op, *args, **kwargs)


class GraphSafeRunWithRngState(HigherOrderOperator):
    """Calls an operator on the state of a generator object."""

    def __init__(self) -> None:
        super().__init__("graphsafe_run_with_rng_state", cacheable=True)

    def __call__(
        self, op: Callable, *args: Any, rng_state: torch.Generator | None = None, **kwargs: Any
    ) -> object:
        return super().__call__(op, *args, rng_state=rng_state, **kwargs)


run_and_save_rng_state = RunAndSaveRngState()
run_with_rng_state = RunWithRngState()
graphsafe_run_with_rng_state = GraphSafeRunWithRngState()


# ---- kernels
@run_and_save_rng_state.py_impl(utils.COMPOSITE)
def _run_and_save(op, *args, **kwargs) -> tuple[Tensor, object]:
    state = _state(_device_of(args, kwargs))
    return state, op(*args, **kwargs)


@run_with_rng_state.py_impl(utils.COMPOSITE)
def _run_from(rng_state, op, *args, **kwargs) -> object:
    device = _device_of(args, kwargs)
    kept = _state(device)
    _set_state(device, rng_state)
    try:
        return op(*args, **kwargs)
    finally:
        _set_state(device, kept)


@graphsafe_run_with_rng_state.py_impl(utils.COMPOSITE)
def _run_on_generator(op, *args, rng_state=None, **kwargs) -> object:
    if rng_state is None:
        return op(*args, **kwargs)
    device = _device_of(args, kwargs)
    own = torch.cuda.default_generators[0] if device == "cuda" else torch.default_generator
    kept = own.get_state()
    own.set_state(rng_state.get_state())
    try:
        found = op(*args, **kwargs)
        rng_state.set_state(own.get_state())
        return found
    finally:
        own.set_state(kept)


@run_and_save_rng_state.py_impl(FakeTensorMode)
def _save_nothing(mode, op, *args, **kwargs) -> tuple[Tensor, object]:
    state = _state(_device_of(args, kwargs))
    with mode:
        return torch.empty(state.shape, dtype=state.dtype), op(*args, **kwargs)


@run_with_rng_state.py_impl(FakeTensorMode)
def _from_nothing(mode, rng_state, op, *args, **kwargs) -> object:
    with mode:
        return op(*args, **kwargs)


@graphsafe_run_with_rng_state.py_impl(FakeTensorMode)
def _on_no_generator(mode, op, *args, rng_state=None, **kwargs) -> object:
    with mode:
        return op(*args, **kwargs)


def _register_shared(hop: HigherOrderOperator) -> None:
    """Kernels that are alike: gradients pass, traces record the call, and writes do not occur."""

    def trace(mode: Any, *args: Any, **kwargs: Any) -> object:
        return utils.record(mode, hop, {}, args, hop(*args, **kwargs), kwargs)

    def functional(ctx: Any, *args: Any, **kwargs: Any) -> object:
        inner, named = ctx.unwrap_tensors((args, kwargs))
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(hop(*inner, **named))

    hop.py_impl(DispatchKey.Autograd)(utils.autograd_not_implemented(hop))
    hop.py_impl(ProxyTorchDispatchMode)(trace)
    hop.py_functionalize_impl(functional)


for _hop in (run_and_save_rng_state, run_with_rng_state, graphsafe_run_with_rng_state):
    _register_shared(_hop)
