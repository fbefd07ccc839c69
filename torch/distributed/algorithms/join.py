"""Join: training when some ranks have fewer inputs. A rank that has no input left runs shadows of
the collectives that the others still run."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a joined rank does: main_hook in every iteration that others run, post_hook at the
    end."""

    def main_hook(self) -> None:
        """Runs shadows of the collectives of one iteration."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Runs when all have joined; `is_last_joiner` says whether this rank was among the last."""


class Joinable(ABC):
    """A thing with collectives in each iteration that can be shadowed."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for this object."""

    @property
    @abstractmethod
    def join_device(self) -> torch.device:
        """The device of the collectives that count ranks."""

    @property
    @abstractmethod
    def join_process_group(self) -> dist.ProcessGroup:
        """The group of the collectives that count ranks."""


class _Config:
    """Whether an object is in a Join block, and whether it is the one that counts."""

    def __init__(
        self, enable: bool = False, throw_on_early_termination: bool = False, is_first: bool = False
    ) -> None:
        self.enable, self.throw_on_early_termination = enable, throw_on_early_termination
        self.is_first_joinable = is_first


class Join:
    """The block around a training loop. Each iteration begins with a count of the ranks that still
    have inputs (notify_join_context); a rank whose loop has ended takes part until none has."""

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = joinables, enable
        self._throw = throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for n, joinable in enumerate(joinables):
            joinable._join_config = _Config(enable, throw_on_early_termination, n == 0)
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group, self._device = joinables[0].join_process_group, joinables[0].join_device

    def __enter__(self) -> Join:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        is_last, warned, rounds = True, False, 0
        while self._still_running():
            is_last = False
            if self._throw:
                self._tell_end()
                raise RuntimeError(f"Rank {dist.get_rank(self._group)} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            rounds += 1
            if rounds > 1000 and not warned:
                warned = True
                warnings.warn(
                    "Detected uneven input skew of greater than 1000: rank "
                    f"{dist.get_rank(self._group)} has at least that many fewer inputs than others",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _still_running(self) -> bool:
        """Whether a rank has inputs left: those that have add one to this sum."""
        inputs = torch.zeros(1, device=self._device)
        dist.all_reduce(inputs, group=self._group)
        return inputs.item() > 0

    def _tell_end(self) -> None:
        ended = torch.ones(1, device=self._device)
        dist.all_reduce(ended, group=self._group)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> dist.Work | None:
        """Says that this rank still has an input; the first thing that an iteration's forward does.
        Returns the work of the count, or None outside of a block."""
        config = getattr(joinable, "_join_config", None)
        if config is None or not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        here = torch.ones(1, device=device)
        work = dist.all_reduce(here, group=group, async_op=True)
        if config.throw_on_early_termination:
            work.wait()
            if int(here.item()) < dist.get_world_size(group):
                ended = torch.zeros(1, device=device)
                dist.all_reduce(ended, group=group)
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work


# A model knows nothing of this module until it is joined.
Joinable.register(torch.nn.parallel.DistributedDataParallel)
