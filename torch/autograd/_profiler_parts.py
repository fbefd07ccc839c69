"""Small parts around the profiler that programs use by themselves: how many steps a program has
made, records by time, and keys that may come once."""

from __future__ import annotations

import bisect

__all__ = ["EnforceUnique", "KinetoStepTracker", "MemRecordsAcc"]


class EnforceUnique:
    """Raises an error for a key that comes a second time."""

    def __init__(self) -> None:
        self.seen = set()

    def see(self, *key) -> None:
        """Takes a key in."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class MemRecordsAcc:
    """Records, given as tuples whose first item has start_ns(), found by time."""

    def __init__(self, mem_records) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns, end_ns):
        """Those that began within the two times, both included, in order."""
        first = bisect.bisect_left(self._starts, start_ns)
        yield from self._records[first : bisect.bisect_right(self._starts, end_ns)]


class KinetoStepTracker:
    """The number of steps a program has made, where several parts count them: each counts for
    itself under a name, and the one that is furthest says the number."""

    _counts: dict[str, int] = {}
    _furthest = 0

    @classmethod
    def init_step_count(cls, requester) -> None:
        """A part begins to count, at the number that the program has come to."""
        cls._counts[requester] = cls._furthest

    @classmethod
    def erase_step_count(cls, requester) -> bool:
        """A part counts no more; whether it did."""
        return cls._counts.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester) -> int:
        """A part made a step; the program's number."""
        if requester not in cls._counts:
            cls.init_step_count(requester)
        cls._counts[requester] += 1
        cls._furthest = max(cls._furthest, cls._counts[requester])
        return cls._furthest

    @classmethod
    def current_step(cls) -> int:
        """The program's number."""
        return cls._furthest
