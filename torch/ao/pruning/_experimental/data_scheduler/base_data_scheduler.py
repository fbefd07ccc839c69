"""A setting of a data sparsifier that changes from step to step."""

from __future__ import annotations

import abc
import functools
import warnings
from typing import Any

from torch.ao.pruning._experimental.data_sparsifier.base_data_sparsifier import BaseDataSparsifier

__all__ = ["BaseDataScheduler"]


class BaseDataScheduler(abc.ABC):
    """Changes the setting `schedule_param` of each piece of data. A subclass says to what in
    `get_schedule_param`, where `last_epoch` counts the steps and `base_param` has the values from
    the beginning."""

    def __init__(
        self,
        data_sparsifier: BaseDataSparsifier,
        schedule_param: str,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(data_sparsifier, BaseDataSparsifier):
            raise TypeError(
                f"{type(data_sparsifier).__name__} is not an instance of BaseDataSparsifier"
            )
        self.data_sparsifier = data_sparsifier
        self.schedule_param = schedule_param
        self.base_param = {
            name: config.get(schedule_param) for name, config in data_sparsifier.data_groups.items()
        }
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._step_count = 0
        self._sparsifier_steps = 0
        self._last_param: dict[str, Any] = dict(self.base_param)
        self._watch(data_sparsifier)
        self.step()

    def _watch(self, sparsifier: BaseDataSparsifier) -> None:
        """Counts the sparsifier's steps from here on."""
        plain = sparsifier.step

        @functools.wraps(plain)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._sparsifier_steps += 1
            return plain(*args, **kwargs)

        sparsifier.step = counted

    @abc.abstractmethod
    def get_schedule_param(self) -> dict[str, Any]:
        """The values of this step, by the names of the data."""

    def get_last_param(self) -> dict[str, Any]:
        """The values that the last step set."""
        return self._last_param

    def step(self) -> None:
        """Sets the values of the next step."""
        if self._step_count == 1 and self._sparsifier_steps == 0:
            warnings.warn(
                "`scheduler.step()` was called before the sparsifier's first `step()`: the first "
                "value of the schedule is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        values = self.get_schedule_param()
        for name, config in self.data_sparsifier.data_groups.items():
            config[self.schedule_param] = values[name]
            if self.verbose:
                print(f"Adjusting {self.schedule_param} of {name} to {values[name]}")
        self._last_param = {
            name: config.get(self.schedule_param)
            for name, config in self.data_sparsifier.data_groups.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "data_sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state back."""
        self.__dict__.update(state_dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__} ({self.schedule_param}: {self._last_param})"
