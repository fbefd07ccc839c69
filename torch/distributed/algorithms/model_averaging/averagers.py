"""When parameters are averaged."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import torch.distributed as dist
from torch.distributed.algorithms.model_averaging.utils import (
    Params,
    average_parameters_or_parameter_groups,
)

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over a group; `step` counts the calls."""

    def __init__(self, process_group: dist.ProcessGroup | None = None) -> None:
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Params) -> None:
        """Called after every step of an optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages at every period-th step after the first warmup_steps."""

    def __init__(
        self, period: int, warmup_steps: int = 0, process_group: dist.ProcessGroup | None = None
    ) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost "
                "of all-reducing parameters will be no less than the cost of all-reducing "
                "gradients by DistributedDataParallel in the backward pass.",
                stacklevel=2,
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Params) -> None:
        """Averages when it is time, and counts."""
        since = self.step - self.warmup_steps
        self.step += 1
        if since >= 0 and since % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
