"""Levels that a function of the step multiplies."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch.ao.pruning.scheduler.base_scheduler import BaseScheduler
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The first level times a function of the step; one function, or one for each group."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        count = len(sparsifier.groups)
        given = list(sl_lambda) if isinstance(sl_lambda, list | tuple) else [sl_lambda] * count
        if len(given) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
        self.sl_lambdas = given
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use "
                "`get_last_sl()`.",
                stacklevel=2,
            )
        pairs = zip(self.base_sl, self.sl_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]
