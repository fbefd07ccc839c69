"""What a timing is of (TaskSpec) and what it gave (Measurement)."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import statistics
from collections.abc import Iterator

import torch

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The code that is timed, and how it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label and sub-label, or the code."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{_indent(self.stmt)}"

    def setup_str(self) -> str:
        """The code that runs before."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{_indent(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


def _indent(text) -> str:
    return "\n".join("  " + line for line in text.splitlines())


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of a piece of code: raw_times are for number_per_run runs each."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    @property
    def times(self) -> list[float]:
        """Seconds per run, one for each repetition."""
        return [t / self.number_per_run for t in self.raw_times]

    def _sorted(self) -> list[float]:
        times = sorted(self.times)
        if not times:
            raise ValueError("Measurement has no times")
        return times

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self._sorted())

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self._sorted())

    def _quantile(self, q) -> float:
        times = self._sorted()
        place = q * (len(times) - 1)
        low = math.floor(place)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (place - low)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self):
        """How many digits of the median mean something, by the spread of the times."""
        # The standard error of the median of a normal distribution, from the quartiles.
        interval = max(1.645 * self.iqr / 1.349 * 1.2533 / math.sqrt(len(self.times)), 1e-9)
        interval = max(interval, _MIN_CONFIDENCE_INTERVAL)
        figures = math.log10(self.median / interval) if self.median > 0 else 1
        return min(max(int(figures), 1), _MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self):
        """Whether the times differ too much to be relied on."""
        return self.iqr / self.median > _IQR_WARN_THRESHOLD

    def meets_confidence(self, threshold=_IQR_WARN_THRESHOLD):
        """Whether the times are close together."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The title of what was timed."""
        return self.task_spec.title

    @property
    def env(self):
        """The environment of what was timed."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name):
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    def __repr__(self) -> str:
        lines = [object.__repr__(self), self.task_spec.summarize()]
        unit, scale = select_unit(self.median)
        values = [f"{self.median / scale:.2f} {unit}"]
        count = len(self.raw_times)
        if count > 1:
            values[0] = "Median: " + values[0]
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            values.append(f"IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = self.task_spec.num_threads
        runs = f"{self.number_per_run} runs " + ("per measurement" if count > 1 else "")
        values.append(
            f"{count} measurement{'s' if count > 1 else ''}, {runs}, "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        share = self.iqr / self.median if self.median else 0
        if count >= 4 and share > _IQR_WARN_THRESHOLD:
            grade = "severe" if share > _IQR_GROSS_WARN_THRESHOLD else "possible"
            values.append(f"WARNING: Interquartile range is {share * 100:.1f}% of the median")
            values.append(f"         measurement. This suggests {grade} environmental influence.")
        return "\n".join(lines) + "\n" + "\n".join("  " + value for value in values)

    @staticmethod
    def merge(measurements) -> list[Measurement]:
        """Measurements of the same task joined into one each."""
        groups = collections.defaultdict(list)
        for measurement in measurements:
            groups[measurement.task_spec].append(measurement)
        return [
            Measurement(1, [t for m in group for t in m.times], spec)
            for spec, group in groups.items()
        ]


def select_unit(t) -> tuple[str, float]:
    """The unit that suits a time in seconds, and its length in seconds."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= scale:
            return unit, scale
    return "ns", 1e-9


def unit_to_english(u) -> str:
    """The name of a unit."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x, n):
    """x with n digits."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0:
        return 0.0
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return round(x / scale) * scale


def ordered_unique(elements) -> list[str | tuple[int, None, str]]:
    """Each element once, in order of first appearance."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n) -> Iterator[None]:
    """Computes with n threads inside."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)
