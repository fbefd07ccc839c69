"""Counters that programs may keep about scripted code."""

from __future__ import annotations

import enum
import time


class AggregationType(enum.Enum):
    """How the values of a counter are put together."""

    SUM = 0
    AVG = 1


class NoopLogger:
    """Keeps nothing."""

    def set_aggregation_type(self, name: str, kind: AggregationType) -> None:
        return None

    def add(self, name: str, value: int) -> None:
        return None

    def get_counter_val(self, name: str) -> int:
        return 0


class LockingLogger(NoopLogger):
    """Keeps counters."""

    def __init__(self) -> None:
        self._values: dict[str, list[int]] = {}
        self._kinds: dict[str, AggregationType] = {}

    def set_aggregation_type(self, name: str, kind: AggregationType) -> None:
        self._kinds[name] = kind

    def add(self, name: str, value: int) -> None:
        self._values.setdefault(name, []).append(int(value))

    def get_counter_val(self, name: str) -> int:
        values = self._values.get(name, [])
        total = sum(values)
        average = self._kinds.get(name) is AggregationType.AVG
        return total // max(len(values), 1) if average else total


_logger: NoopLogger = NoopLogger()


def set_logger(logger: NoopLogger) -> NoopLogger:
    """The logger before."""
    global _logger
    before, _logger = _logger, logger
    return before


def add_stat_value(name: str, value: int) -> None:
    """Adds to a counter."""
    _logger.add(name, value)


def time_point() -> int:
    """Nanoseconds of a clock that never goes back."""
    return time.perf_counter_ns()
