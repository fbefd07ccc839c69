"""Random operators with their generator's state made visible: one that returns the state it began
with, and one that begins with a given state. A recomputed part of a graph draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator

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
        super().__init__("run_and_save_rng_state")

    def __call__(self, op: Callable, *args, **kwargs) -> tuple[Tensor, object]:
        state = _state(_device_of(args, kwargs))
        return state, op(*args, **kwargs)


class RunWithRngState(HigherOrderOperator):
    """Calls an operator from a state of the generator, which afterwards is where it was."""

    def __init__(self) -> None:
        super().__init__("run_with_rng_state")

    def __call__(self, rng_state: Tensor, op: Callable, *args, **kwargs) -> object:
        device = _device_of(args, kwargs)
        kept = _state(device)
        _set_state(device, rng_state)
        try:
            return op(*args, **kwargs)
        finally:
            _set_state(device, kept)


class GraphSafeRunWithRngState(HigherOrderOperator):
    """Calls an operator on the state of a generator object."""

    def __init__(self) -> None:
        super().__init__("graphsafe_run_with_rng_state")

    def __call__(
        self, op: Callable, *args, rng_state: torch.Generator | None = None, **kwargs
    ) -> object:
        device = _device_of(args, kwargs)
        own = torch.cuda.default_generators[0] if device == "cuda" else torch.default_generator
        if rng_state is None:
            return op(*args, **kwargs)
        kept = own.get_state()
        own.set_state(rng_state.get_state())
        try:
            found = op(*args, **kwargs)
            rng_state.set_state(own.get_state())
            return found
        finally:
            own.set_state(kept)


run_and_save_rng_state = RunAndSaveRngState()
run_with_rng_state = RunWithRngState()
graphsafe_run_with_rng_state = GraphSafeRunWithRngState()
