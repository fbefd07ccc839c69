"""Events and statistics that a program gives out for whoever watches it: counters of long runs, one
line per occurrence. Handlers get every event of the process, in the thread that logs it."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "STAT_EVENT",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | float | int | bool


@dataclass
class Event:
    """Something that happened: a name, when, and values by name."""

    name: str
    timestamp: datetime
    data: dict[str, data_value_t] = field(default_factory=dict)


class EventHandlerHandle:
    """What register_event_handler returns, to be given to unregister_event_handler."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_lock = threading.Lock()
_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Calls callback(event) for every event from now on."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Ends the calls of a handler."""
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Gives an event to all handlers."""
    with _lock:
        handlers = list(_handlers)
    for handler in handlers:
        handler._callback(event)


class Aggregation(enum.Enum):
    """What a Stat computes of the values of a window."""

    VALUE = 0  # the last one
    MEAN = 1
    COUNT = 2
    SUM = 3
    MAX = 4
    MIN = 5

    @property
    def _word(self) -> str:
        return self.name.lower()


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN


class Stat:
    """Values collected over windows of time. A window ends when an add() comes after
    `window_size`, or, with `max_samples`, when it has that many values; it is then logged as an
    event STAT_EVENT with data "name.sum" and so on."""

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: timedelta,
        max_samples: int | None = None,
    ) -> None:
        if max_samples is not None and max_samples <= 0:
            raise ValueError(f"Stat: max_samples must be positive, got {max_samples}")
        self.name = name
        self._aggregations = tuple(aggregations)
        self._window = window_size.total_seconds()
        self._most = max_samples
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._finished: dict[Aggregation, float] = {}
        self._begun = time.monotonic()

    @property
    def count(self) -> int:
        """How many values the window has that is open."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Adds a value."""
        with self._lock:
            events = self._end_if_over()
            self._values.append(v)
            if self._most is not None and len(self._values) >= self._most:
                events += self._end()
        for event in events:
            log_event(event)

    def get(self) -> dict[Aggregation, float]:
        """The aggregations of the last window that has ended."""
        with self._lock:
            events = self._end_if_over()
            result = dict(self._finished)
        for event in events:
            log_event(event)
        return result

    def _end_if_over(self) -> list[Event]:
        return self._end() if time.monotonic() - self._begun >= self._window else []

    def _end(self) -> list[Event]:
        values, self._values = self._values, []
        self._begun = time.monotonic()
        if not values:
            return []
        computed = {
            Aggregation.VALUE: values[-1],
            Aggregation.MEAN: sum(values) / len(values),
            Aggregation.COUNT: len(values),
            Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values),
            Aggregation.MIN: min(values),
        }
        self._finished = {kind: computed[kind] for kind in self._aggregations}
        data = {f"{self.name}.{kind._word}": value for kind, value in self._finished.items()}
        return [Event(STAT_EVENT, datetime.now(), data)]


class _WaitCounter:
    """Counts how often and how long the program waited for something of this name."""

    _lock = threading.Lock()
    totals: dict[str, tuple[int, float]] = {}

    def __init__(self, key: str) -> None:
        self.key = key

    @contextmanager
    def guard(self) -> Iterator[_WaitCounter]:
        """The time of a with block is a wait."""
        begun = time.monotonic()
        try:
            yield self
        finally:
            spent = time.monotonic() - begun
            with _WaitCounter._lock:
                count, total = _WaitCounter.totals.get(self.key, (0, 0.0))
                _WaitCounter.totals[self.key] = count + 1, total + spent


class _Writer(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, walltime: float) -> None: ...


class TensorboardEventHandler:
    """A handler that writes the events of Stats as scalars to a SummaryWriter."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name != STAT_EVENT:
            return
        seconds = event.timestamp.timestamp()
        for scalar in event.data.items():
            self._writer.add_scalar(*scalar, walltime=seconds)
