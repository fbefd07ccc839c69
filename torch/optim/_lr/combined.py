"""Schedules made of schedules: one after another (SequentialLR) and all at once."""

from __future__ import annotations

from bisect import bisect_right

from torch.optim._lr.base import LRScheduler, set_value
from torch.optim._lr.plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "SequentialLR"]


def _refuse_unfit(owner, schedulers, optimizer) -> None:
    """Every part must belong to the optimizer and step without arguments."""
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{owner} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{owner} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                f"kwargs to be specified when calling `step`, but got one at index {i} in the "
                "given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{owner} expects all schedulers to belong to the same optimizer, but got "
                f"scheduler {type(scheduler).__name__} at index {i} has {scheduler.optimizer}, "
                f"which is different from {type(optimizer).__name__}."
            )


def _single(schedule):
    """The schedules that are not made of others, at any depth of a schedule."""
    if not hasattr(schedule, "_schedulers"):
        yield schedule
        return
    for part in schedule._schedulers:
        yield from _single(part)


class _Composite(LRScheduler):
    """Saving and loading of a schedule that holds others in `_schedulers`."""

    def state_dict(self) -> dict:
        """The state of this schedule and, in `_schedulers`, of its parts."""
        hidden = ("optimizer", "_schedulers")
        state = {key: value for key, value in self.__dict__.items() if key not in hidden}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict) -> None:
        """Takes over the state of this schedule and of its parts."""
        rest = {key: value for key, value in state_dict.items() if key != "_schedulers"}
        self.__dict__.update(rest)
        for scheduler, kept in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(kept)


class SequentialLR(_Composite):
    """Follows one schedule until a milestone, then the next from its beginning."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _refuse_unfit("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._schedulers, self._milestones = schedulers, milestones
        # Making the parts has already moved the rates: back to the start, then only the first.
        self.recursive_undo()
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        first = schedulers[0]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None) -> None:
        """Takes back the step that each part made when it was built."""
        for schedule in _single(self if sched is None else sched):
            if hasattr(schedule, "last_epoch"):
                schedule.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """One step of the schedule whose turn it is."""
        self.last_epoch += 1
        current = self._schedulers[bisect_right(self._milestones, self.last_epoch)]
        if self.last_epoch in self._milestones:
            current._update_lr(0)  # its first epoch
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Composite):
    """Steps several schedules, whose factors multiply."""

    def __init__(self, schedulers, optimizer=None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        _refuse_unfit("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = schedulers
        self._note_rates()

    def _note_rates(self) -> None:
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:  # type: ignore[override]
        """One step of every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._note_rates()
