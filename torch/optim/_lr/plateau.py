"""ReduceLROnPlateau: a smaller rate when a measured value stops improving."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from torch.optim._lr.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    check_optimizer,
    copied,
    set_value,
)

__all__ = ["ReduceLROnPlateau"]


class _Counts(NamedTuple):
    bad: int  # epochs since the last improvement
    cooling: int  # epochs of cooldown that are left


def _next_counts(
    counts: _Counts, improved: bool, patience: int, cooldown: int
) -> tuple[_Counts, bool]:
    """The counts after one more epoch, and whether the rates are to shrink. Epochs of cooldown are
    never bad ones."""
    bad = 0 if improved or counts.cooling > 0 else counts.bad + 1
    if bad > patience:
        return _Counts(0, cooldown), True
    return _Counts(bad, max(counts.cooling - 1, 0)), False


class ReduceLROnPlateau(LRScheduler):
    """Times factor after more than `patience` epochs without improvement."""

    def __init__(
        self,
        optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience=10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown=0,
        min_lr=0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        self.optimizer = check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [copied(group["lr"]) for group in optimizer.param_groups]
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = float("inf") if mode == "min" else -float("inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forgets what was measured."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """Whether the epochs after a reduction are still running."""
        return self.cooldown_counter > 0

    def _is_better(self, value, best) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def step(self, metrics, epoch=None) -> None:  # type: ignore[override]
        """Notes the value of this epoch and reduces the rates if it has stalled."""
        value = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        improved = self._is_better(value, self.best)
        counts = _Counts(self.num_bad_epochs, self.cooldown_counter)
        counts, stalled = _next_counts(counts, improved, self.patience, self.cooldown)
        if improved:
            self.best = value
        if stalled:
            self._reduce_lr(self.last_epoch)
        self.num_bad_epochs, self.cooldown_counter = counts
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}), usually due to a new param group being added to the "
                    "optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_value(group, "lr", new)
