"""LRScheduler: what all schedules share.

A schedule sets the learning rate of every group when it is made and after each `step`. Most compute
the new rate from the present one, so that several schedules on one optimizer multiply; where a rate
follows from the epoch alone, `_get_closed_form_lr` gives it for `step(epoch)`.
"""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
import weakref

import torch
from torch.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "check_optimizer", "per_group", "set_value"]

_HOW_TO = (
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def check_optimizer(optimizer) -> Optimizer:
    """Refuses what is not an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def per_group(name, optimizer, value) -> list[object]:
    """One value for each parameter group, from one number or a sequence of the right length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return list(value)


def copied(value) -> float | torch.Tensor:
    """The value itself, or a copy of a tensor that the optimizer would otherwise share."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def set_value(group, key, value) -> None:
    """Stores a setting; a tensor keeps its identity, since a compiled step may hold on to it."""
    if isinstance(group[key], torch.Tensor):
        group[key].fill_(value if not isinstance(value, torch.Tensor) else value.item())
    else:
        group[key] = value


def callable_state(function) -> dict[str, object] | None:
    """What a saved schedule keeps of a callable: an object's attributes, nothing of a function."""
    return None if isinstance(function, types.FunctionType) else dict(function.__dict__)


def _watch_step(optimizer) -> None:
    """Lets schedules see whether the optimizer has stepped since they were made."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    # A weak reference: the wrapper lives in the optimizer's own __dict__.
    owner, function = weakref.ref(optimizer), step.__func__

    @functools.wraps(function)
    def watched(*args, **kwargs):
        optimizer = owner()
        optimizer._opt_called = True
        return function(optimizer, *args, **kwargs)

    watched._wrapped_by_lr_sched = True
    optimizer.step = watched


@contextlib.contextmanager
def _enable_get_lr_call(schedule):
    """In it get_lr may be called without a warning; schedules of other packages use it too."""
    schedule._get_lr_called_within_step = True
    try:
        yield schedule
    finally:
        schedule._get_lr_called_within_step = False


class LRScheduler:
    """Base of schedules: subclasses define `get_lr`, one rate per parameter group."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1) -> None:
        self.optimizer = check_optimizer(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copied(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                        "scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                        "1. You're trying to resume training from a checkpoint but haven't "
                        "properly loaded the optimizer state\n2. You're using last_epoch >= 0 for "
                        "a fresh training run (not recommended)"
                    )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_step(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Sets the first learning rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict) -> None:
        """Takes over a state that `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[float | torch.Tensor]:
        """The rates of this epoch, one per group; subclasses define it."""
        raise NotImplementedError

    def _warn_unless_stepping(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                stacklevel=3,
            )

    def _scaled(self, factor) -> list[float | torch.Tensor]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_about_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                "`lr_scheduler.step()`. " + _HOW_TO,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch "
                "skipping the first value of the learning rate schedule. " + _HOW_TO,
                stacklevel=3,
            )

    def step(self, epoch=None) -> None:
        """Moves to the next epoch, or to a given one, and sets the learning rates."""
        if self._step_count == 1:
            self._warn_about_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed()
        self._store(rates)

    def _store(self, rates) -> None:
        groups = self.optimizer.param_groups
        for group, rate in zip(groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = [copied(group["lr"]) for group in groups]
