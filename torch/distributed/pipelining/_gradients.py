"""Gradients of a stage whose module is also replicated or sharded. Microbatches add their gradients
up where they are computed; the backward pass of the step's last one exchanges the sum. Otherwise
DistributedDataParallel would exchange after some of them only, as it prepares one backward pass for
each forward pass while schedules run several forward passes first; and parameters that fully_shard
cuts would be gone when the second part of a backward pass asks for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

Tensor = torch.Tensor


class GradientExchange:
    """What a stage does around its forward and backward passes."""

    def __init__(self, module: nn.Module) -> None:
        from torch.distributed.fsdp import FSDPModule
        from torch.nn.parallel import DistributedDataParallel

        self._module = module
        modules = list(module.modules())
        self._replicated = [m for m in modules if isinstance(m, DistributedDataParallel)]
        self._sharded = [m._fsdp_state for m in modules if isinstance(m, FSDPModule)]
        self._left = 0
        self._settings: list[tuple[bool, bool, bool]] = []

    def begin(self, microbatches: int) -> None:
        """A step begins, with so many backward passes."""
        self.end()  # of a step that an exception ended
        self._left = microbatches
        self._settings = [self._hold(state) for state in self._sharded]

    @staticmethod
    def _hold(state: Any) -> tuple[bool, bool, bool]:
        """Keeps gradients and whole parameters on this process; what the program had set."""
        unit = state.unit
        reduces = (unit.reduce_grads, unit.all_reduce_grads) if unit is not None else (True, True)
        settings = (state.reshard_after_backward, *reduces)
        state.reshard_after_backward = False
        if unit is not None:
            unit.reduce_grads = unit.all_reduce_grads = False
        return settings

    def end(self) -> None:
        """Gives the settings of the program back."""
        states = self._sharded if self._settings else []
        for state, settings in zip(states, self._settings, strict=True):
            state.reshard_after_backward = settings[0]
            if state.unit is not None:
                state.unit.reduce_grads, state.unit.all_reduce_grads = settings[1:]
        self._settings = []

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Around the forward pass of a microbatch."""
        with contextlib.ExitStack() as stack:
            for module in self._replicated:
                stack.enter_context(module.no_sync())
            yield

    def whole_parameters(self) -> list[nn.Parameter]:
        """The parameters that a backward pass in two parts sees; whole, where they were cut."""
        for state in self._sharded:
            if state.unit is not None:
                state.unit.gather()
        return list(self._module.parameters())

    def before_backward(self, outputs: list[Tensor]) -> None:
        """Before a whole backward pass from `outputs`; the last one exchanges as it goes."""
        for module in self._exchanging() if self._is_last() else ():
            module.reducer.prepare_for_backward(outputs)

    def after_weights(self) -> None:
        """After the second part of a backward pass; the last one exchanges what all added up."""
        if not self._is_last():
            return
        for module in self._exchanging():
            _exchange_now(module)
        for state in self._sharded:
            state.end_backward()

    def _is_last(self) -> bool:
        """Counts a backward pass; for the last one the settings of the program come back."""
        self._left -= 1
        if self._left == 0:
            self.end()
        return self._left == 0

    def _exchanging(self) -> list[Any]:
        found = self._replicated
        return [m for m in found if m.reducer is not None and m.require_backward_grad_sync]


def _exchange_now(module: nn.Module) -> None:
    """A backward pass that adds nothing to the gradients, so that they are exchanged."""
    found = [p for p in module.parameters() if p.grad is not None]
    if not found:
        return
    module.reducer.prepare_for_backward(found)
    torch.autograd.backward(found, [p.new_zeros(()).expand_as(p) for p in found])
