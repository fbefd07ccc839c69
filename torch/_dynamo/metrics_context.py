"""Metrics of one compilation, collected by whoever knows them and handed over when the outermost
context is left."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Iterator

OnExit = Callable[
    [int, int, dict[str, object], type[BaseException] | None, BaseException | None], None
]


class MetricsContext:
    """with MetricsContext(on_exit) as context: context.set("name", value). Contexts may be nested;
    on_exit(start_ns, end_ns, metrics, exception type, exception) is called by the outermost."""

    def __init__(self, on_exit: OnExit) -> None:
        self._on_exit = on_exit
        self._metrics: dict[str, object] = {}
        self._start = 0
        self._level = 0

    def __enter__(self) -> MetricsContext:
        if self._level == 0:
            self._metrics = {}
            self._start = time.time_ns()
        self._level += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._level -= 1
        if self._level == 0:
            self._on_exit(self._start, time.time_ns(), self._metrics, kind, value)

    def in_progress(self) -> bool:
        """Whether a context is open."""
        return self._level > 0

    def _require(self, action: str, name: object) -> None:
        if self._level == 0:
            raise RuntimeError(f"Cannot {action} {name} outside of a MetricsContext")

    def increment(self, metric: str, value: int) -> None:
        """Adds to a number, which begins at 0."""
        self._require("increment", metric)
        self._metrics[metric] = self._metrics.get(metric, 0) + value

    def set(self, metric: str, value: object, overwrite: bool = False) -> None:
        """Sets a metric, once unless `overwrite`."""
        self._require("set", metric)
        if metric in self._metrics and not overwrite:
            raise RuntimeError(f"Metric '{metric}' has already been set in the current context")
        self._metrics[metric] = value

    def set_key_value(self, metric: str, key: str, value: object) -> None:
        """Sets an item of a metric that is a dictionary."""
        self._require("set", metric)
        self._metrics.setdefault(metric, {})[key] = value

    def update(self, values: dict[str, object], overwrite: bool = False) -> None:
        """Sets several, all of them or none."""
        self._require("update", values)
        known = self._metrics.keys() & values.keys()
        if known and not overwrite:
            raise RuntimeError(f"Metric(s) {known} have already been set in the current context")
        self._metrics.update(values)

    def update_outer(self, values: dict[str, object]) -> None:
        """update, in the outermost context alone."""
        self._require("update", values)
        if self._level == 1:
            self.update(values)

    def add_to_set(self, metric: str, value: object) -> None:
        """Adds to a metric that is a set."""
        self._require("add", metric)
        self._metrics.setdefault(metric, set()).add(value)

    def add_top_n(self, metric: str, key: object, value: int, limit: int = 25) -> None:
        """Keeps the largest values of a metric, by key."""
        self._require("add", metric)
        found = self._metrics.setdefault(metric, TopN(limit))
        found.add(key, value)


class RuntimeMetricsContext:
    """Metrics of what runs after compilation: one level, left when `finish` is called."""

    def __init__(self, on_exit: OnExit) -> None:
        self._on_exit = on_exit
        self._metrics: dict[str, object] = {}
        self._start = 0

    def increment(self, metric: str, value: int, extra: dict[str, object] | None = None) -> None:
        """Adds to a number, which begins at 0."""
        if not self._metrics:
            self._start = time.time_ns()
        self._metrics[metric] = self._metrics.get(metric, 0) + value
        for name, item in (extra or {}).items():
            if self._metrics.setdefault(name, item) is None:
                self._metrics[name] = item

    def finish(self) -> None:
        """Hands over what was collected."""
        if self._metrics:
            taken, self._metrics = self._metrics, {}
            self._on_exit(self._start, time.time_ns(), taken, None, None)


class TopN:
    """The largest values that were added, by key."""

    def __init__(self, at_most: int = 25) -> None:
        self.at_most = at_most
        self._values: dict[object, int] = {}

    def add(self, key: object, val: int) -> None:
        """Adds a value; a key that is known keeps its larger one."""
        self._values[key] = max(val, self._values.get(key, val))
        if len(self._values) > self.at_most:
            del self._values[min(self._values, key=self._values.__getitem__)]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[object, int]]:
        return iter(sorted(self._values.items(), key=lambda item: item[1], reverse=True))
