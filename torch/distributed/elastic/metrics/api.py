"""Streams of numbers by group, and a decorator that counts and times calls."""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]


class MetricData(NamedTuple):
    """One number."""

    timestamp: int
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Settings for a launcher's metrics."""

    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(ABC):
    """Takes numbers and does something with them."""

    @abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Called with each number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints them."""

    def emit(self, metric_data: MetricData) -> None:
        """Prints one line."""
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}="
              f"{metric_data.value}")  # fmt: skip


class NullMetricHandler(MetricHandler):
    """Drops them."""

    def emit(self, metric_data: MetricData) -> None:
        """Does nothing."""


class MetricStream:
    """The numbers of one group."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Publishes one number with the present time."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_by_group: dict[str | None, MetricHandler] = {None: NullMetricHandler()}


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Sends a group's numbers, or those of all groups without their own handler, to handler."""
    _by_group[group] = handler


def getStream(group: str) -> MetricStream:
    """The stream of a group."""
    return MetricStream(group, _by_group.get(group, _by_group[None]))


def _get_metric_name(fn: Callable) -> str:
    """Class.method for methods, module.function for functions."""
    if "." in fn.__qualname__:
        return fn.__qualname__
    return f"{fn.__module__}.{fn.__name__}" if fn.__module__ else fn.__qualname__


def prof(fn: Callable | None = None, group: str = "torchelastic") -> Callable:
    """Publishes of each call whether it succeeded and how long it took: name.success or
    name.failure, and name.duration.ms."""
    if fn is None:
        return functools.partial(prof, group=group)

    @functools.wraps(fn)
    def counted(*args: Any, **kwargs: Any) -> Any:
        name, start, outcome = _get_metric_name(fn), time.time(), "failure"
        try:
            result = fn(*args, **kwargs)
            outcome = "success"
            return result
        finally:
            put_metric(f"{name}.{outcome}", 1, group)
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)

    return counted


def profile(group: str | None = None) -> Callable:
    """The older spelling of `prof(group=...)`."""
    return functools.partial(prof, group=group or "torchelastic")


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Publishes one number."""
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """The older spelling of `put_metric`."""
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Milliseconds since then."""
    return int((time.time() - start_time_in_seconds) * 1000)
