"""An optimizer that averages parameters over ranks after its steps."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.distributed.algorithms.model_averaging.averagers import ModelAverager

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(torch.optim.Optimizer):
    """Another optimizer, whose every step is followed by the averager's."""

    def __init__(self, optim: torch.optim.Optimizer, averager: ModelAverager) -> None:
        self.optim, self.averager, self.param_groups = optim, averager, optim.param_groups

    @property
    def state(self) -> dict:
        """The optimizer's."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, with the averager's count under "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes both over; without a count the averager begins at 0."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. "
                          "Setting step counter to 0.", stacklevel=2)  # fmt: skip
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:
        """A step of the optimizer, then of the averager."""
        self.optim.step()
        self.averager.average_parameters(self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """The optimizer's."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The optimizer's."""
        self.optim.add_param_group(param_group)
