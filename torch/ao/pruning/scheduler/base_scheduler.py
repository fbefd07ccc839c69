"""What schedulers share: the step count, and the levels before and after each step."""

from __future__ import annotations

import warnings
import weakref
from functools import wraps
from typing import Any

from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """Sets the sparsity level of a sparsifier's groups at each step."""

    def __init__(
        self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(
                f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier"
            )
        self.sparsifier, self.last_epoch, self.verbose = sparsifier, last_epoch, verbose
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self._step_count = 0
        self._get_sl_called_within_step = False
        _count_steps(sparsifier)
        self.sparsifier._step_count = 0
        self._last_sl: list[float] = list(self.base_sl)
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state back."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The levels of the last step."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The levels of this step, one for each group."""
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use "
                "`get_last_sl()`.",
                stacklevel=2,
            )
        raise NotImplementedError(f"{type(self).__name__}.get_sl")

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Prints the level of a group."""
        if is_verbose:
            head = "" if epoch is None else f"Epoch {epoch:5d}: "
            print(f"{head}adjusting sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"
        )

    def step(self, epoch: int | None = None) -> None:
        """Goes on by one step and sets the levels."""
        if self._step_count == 1 and getattr(self.sparsifier, "_step_count", 0) < 1:
            warnings.warn(
                "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make "
                "sure you run the sparsifier.step() BEFORE any calls to the scheduler.step().",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        self._get_sl_called_within_step = True
        try:
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for number, (group, level) in enumerate(zip(self.sparsifier.groups, values, strict=True)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, number, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True


def _count_steps(sparsifier: BaseSparsifier) -> None:
    """Lets a sparsifier count its steps, once, without keeping it alive."""
    if getattr(sparsifier.step, "_counts", False):
        return
    owner = weakref.ref(sparsifier)
    plain = type(sparsifier).step

    @wraps(plain)
    def counted(*args: Any, **kwargs: Any) -> None:
        instance = owner()
        instance._step_count = getattr(instance, "_step_count", 0) + 1
        return plain(instance, *args, **kwargs)

    counted._counts = True
    sparsifier.step = counted
