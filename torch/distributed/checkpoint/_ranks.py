"""Steps of a checkpoint that all ranks take together. A rank that fails says so to all others,
which then raise the same CheckpointException: nobody waits for one that will not come."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException, described


class Ranks:
    """The processes that save or load together; this one alone without a group."""

    def __init__(self, group: Any, no_dist: bool, coordinator: int = 0) -> None:
        self._alone = no_dist or not dist.is_initialized()
        self._group = group
        self.rank = 0 if self._alone else dist.get_rank(group)
        self.size = 1 if self._alone else dist.get_world_size(group)
        self.is_coordinator = self.rank == coordinator
        self._coordinator = coordinator

    def _gathered(self, value: Any) -> list[Any]:
        if self._alone:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self._group)
        return found

    def _told(self, value: Any) -> Any:
        if self._alone:
            return value
        held = [value]
        dist.broadcast_object_list(held, group=self._group, group_src=self._coordinator)
        return held[0]

    @staticmethod
    def _attempt(function: Callable[[], Any]) -> tuple[bool, Any]:
        try:
            return True, function()
        except Exception as error:
            return False, described(error)

    def everywhere(self, step: str, function: Callable[[], Any]) -> list[Any]:
        """What the function returns on each rank."""
        results = self._gathered(self._attempt(function))
        failures = {rank: value for rank, (ok, value) in enumerate(results) if not ok}
        if failures:
            raise CheckpointException(step, failures)
        return [value for _, value in results]

    def at_coordinator(self, step: str, function: Callable[[], Any]) -> Any:
        """What the function returns on the coordinator, on every rank."""
        ok, value = self._told(self._attempt(function) if self.is_coordinator else None)
        if not ok:
            raise CheckpointException(step, {self._coordinator: value})
        return value


def takes_old_order(storage: str) -> Callable[[Callable], Callable]:
    """A function whose arguments after the state were once given by position: the storage, the
    group, the coordinator's rank, no_dist and the planner."""
    order = (storage, "process_group", "coordinator_rank", "no_dist", "planner")

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(state_dict: Any, *old: Any, **named: Any) -> Any:
            if old:
                warnings.warn(
                    f"The argument order of {function.__name__} has been changed: all but the "
                    "state_dict are given by name.",
                    FutureWarning,
                    stacklevel=2,
                )
                named |= {k: v for k, v in zip(order, old, strict=False) if k != "coordinator_rank"}
            return function(state_dict, **named)

        return call

    return decorate
