"""Levels that grow along a cubic curve: fast first, slowly at the end (arXiv:1710.01878)."""

from __future__ import annotations

import warnings

from torch.ao.pruning.scheduler.base_scheduler import BaseScheduler
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["CubicSL"]

Values = float | list[float]


class CubicSL(BaseScheduler):
    """From `init_sl` at step `init_t` to the sparsifier's level at `total_t`, every `delta_t`."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        init_sl: Values = 0.0,
        init_t: int | list[int] = 0,
        delta_t: int | list[int] = 10,
        total_t: int | list[int] = 100,
        initially_zero: bool | list[bool] = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.sparsifier = sparsifier  # tells how many values there are
        settings = {
            "init_sl": init_sl,
            "init_t": init_t,
            "delta_t": delta_t,
            "total_t": total_t,
            "initially_zero": initially_zero,
        }
        for name, given in settings.items():
            setattr(self, name, self._make_sure_a_list(given))
        super().__init__(sparsifier, last_epoch, verbose)

    def _make_sure_a_list(self, value: Values | int) -> list:
        """One value for each group of the sparsifier."""
        count = len(self.sparsifier.groups)
        if not isinstance(value, list | tuple):
            return [value] * count
        if len(value) != count:
            raise ValueError(f"Expected {count} values, but got {len(value)}")
        return list(value)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float,
        s_f: float,
        t: int,
        t_0: int,
        dt: int,
        n: int,
        initially_zero: bool = False,
    ) -> float:
        """The level at step t, for n steps of dt from t_0."""
        if initially_zero and t < t_0:
            return 0.0
        done = max(0.0, min(1.0, (t - t_0) / (dt * n)))
        level = s_f + (s_0 - s_f) * (1.0 - done) ** 3
        low, high = sorted((s_0, s_f))
        return max(low, min(high, level))

    def get_sl(self) -> list[float]:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use "
                "`get_last_sl()`.",
                stacklevel=2,
            )
        rows = zip(
            self.init_sl,
            self.base_sl,
            self.init_t,
            self.delta_t,
            self.total_t,
            self.initially_zero,
            strict=True,
        )
        step = self.last_epoch
        return [
            self.sparsity_compute_fn(start, end, step, first, every, total, zero)
            for start, end, first, every, total, zero in rows
        ]
