"""Timer: runs a statement many times and says how long one run takes."""

from __future__ import annotations

import enum
import textwrap
import timeit

import torch
from torch.utils.benchmark.utils import common
from torch.utils.benchmark.utils.callgrind import CopyIfCallgrind

__all__ = ["Language", "Timer", "timer"]


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds on a clock, after what a GPU was given is done."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return timeit.default_timer()


class Timer:
    """Times stmt, after setup, with num_threads threads and the given globals."""

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer: only statements in Python are implemented")
        if global_setup:
            raise AssertionError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        stmt = textwrap.dedent(stmt).strip("\n").rstrip()
        setup = textwrap.dedent(setup).strip("\n").rstrip()
        self._globals = {"torch": torch, **(globals or {})}
        plain = CopyIfCallgrind.unwrap_all(self._globals)
        self._timer = self._timer_cls(stmt, setup, timer=timer, globals=plain)
        names = {"label": label, "sub_label": sub_label, "description": description}
        measured = {"stmt": stmt, "setup": setup, "global_setup": global_setup}
        machine = {"env": env, "num_threads": num_threads}
        self._task_spec = common.TaskSpec(**measured, **names, **machine)

    def _time(self, number) -> float:
        # The clock has a resolution: less than that is not measured.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """One measurement of `number` runs, after a few to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return common.Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        """Not offered: use timeit, blocked_autorange or adaptive_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Not offered: use blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time):
        """How many runs make one measurement: so many that the clock's own time is small."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = min(self._time(0) for _ in range(5))
            number = 1
            while True:
                taken = self._time(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time:
                    return number
                number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements of equally many runs until min_run_time seconds are over."""
        number = self._estimate_block_size(min_run_time)
        times = []
        total = 0.0
        with common.set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not times:
                taken = self._time(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
        return common.Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None
    ):
        """Measurements until they are close together (their quartiles within `threshold` of the
        median), or max_run_time seconds are over."""
        number = self._estimate_block_size(min_run_time=0.05)
        times = []
        total = 0.0
        with common.set_torch_threads(self._task_spec.num_threads):
            while True:
                taken = self._time(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
                measurement = common.Measurement(number, times, self._task_spec)
                settled = len(times) > 3 and measurement.meets_confidence(threshold)
                if (settled and total >= min_run_time) or total >= max_run_time:
                    return measurement

    def collect_callgrind(
        self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False
    ):
        """Instructions that `number` runs take, counted by Valgrind in a process of its own; with
        `repeats`, a tuple of several counts."""
        from torch.utils.benchmark.utils import callgrind

        counted = tuple(
            callgrind.collect(
                self._task_spec, self._globals, number, collect_baseline, retain_out_file
            )
            for _ in range(1 if repeats is None else repeats)
        )
        return counted[0] if repeats is None else counted
