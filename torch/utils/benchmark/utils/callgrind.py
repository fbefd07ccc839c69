"""Counts of instructions instead of times: a statement runs in a process of its own under
Valgrind's Callgrind, once with and once without its repetitions; the difference is what they cost.
The numbers hardly differ from run to run, however busy the machine is."""

from __future__ import annotations

import collections
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

import torch

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "collect"]

FunctionCount = collections.namedtuple("FunctionCount", ["count", "function"])


class FunctionCounts:
    """Functions with their counts, the largest first; can be added, subtracted and filtered."""

    def __init__(self, _data, inclusive, truncate_rows=True) -> None:
        self._data = tuple(_data)
        self.inclusive = inclusive
        self.truncate_rows = truncate_rows

    def __iter__(self):
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item) -> FunctionCounts:
        found = self._data[item]
        return self._like(found) if isinstance(item, slice) else found

    def _like(self, rows) -> FunctionCounts:
        return FunctionCounts(rows, self.inclusive, self.truncate_rows)

    def _merged(self, other, sign) -> FunctionCounts:
        if self.inclusive != other.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts")
        counts = collections.Counter()
        for rows, factor in ((self, 1), (other, sign)):
            for count, function in rows:
                counts[function] += factor * count
        return self._like(_sorted(counts))

    def __add__(self, other) -> FunctionCounts:
        return self._merged(other, 1)

    def __sub__(self, other) -> FunctionCounts:
        return self._merged(other, -1)

    def __mul__(self, other) -> FunctionCounts:
        rows = (FunctionCount(int(count * other), function) for count, function in self)
        return self._like(rows)

    def transform(self, map_fn) -> FunctionCounts:
        """The counts under other names; what gets the same name is added up."""
        counts = collections.Counter()
        for count, function in self:
            counts[map_fn(function)] += count
        return self._like(_sorted(counts))

    def filter(self, filter_fn) -> FunctionCounts:
        """The rows whose function passes a test."""
        return self._like(row for row in self if filter_fn(row.function))

    def sum(self) -> int:
        """All counts together."""
        return sum(row.count for row in self)

    def denoise(self) -> FunctionCounts:
        """Without the interpreter's dictionaries, whose cost depends on addresses."""
        return self.filter(lambda function: "dictobject.c" not in function)

    def __repr__(self) -> str:
        rows = list(self)
        if self.truncate_rows and len(rows) > 18:
            rows = [*rows[:9], None, *rows[-9:]]
        width = max((len(str(row.count)) for row in rows if row), default=0) + 2
        lines = [f"{row.count:>{width}}  {row.function}" if row else "..." for row in rows]
        return "\n".join([f"{type(self).__name__}:", *lines, "", f"Total: {self.sum()}"])


def _sorted(counts):
    rows = [FunctionCount(count, function) for function, count in counts.items() if count]
    return sorted(rows, key=lambda row: (-abs(row.count), row.function))


class CallgrindStats:
    """What a statement cost, by function, and what an empty one costs."""

    def __init__(
        self,
        task_spec,
        number_per_run,
        built_with_debug_symbols,
        baseline_inclusive_stats,
        baseline_exclusive_stats,
        stmt_inclusive_stats,
        stmt_exclusive_stats,
        stmt_callgrind_out,
    ) -> None:
        self.task_spec = task_spec
        self.number_per_run = number_per_run
        self.built_with_debug_symbols = built_with_debug_symbols
        self.baseline_inclusive_stats = baseline_inclusive_stats
        self.baseline_exclusive_stats = baseline_exclusive_stats
        self.stmt_inclusive_stats = stmt_inclusive_stats
        self.stmt_exclusive_stats = stmt_exclusive_stats
        self.stmt_callgrind_out = stmt_callgrind_out

    def stats(self, inclusive=False):
        """Counts by function, with or without what each function called."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise=False):
        """Instructions of all runs together."""
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other, inclusive=False):
        """What this cost more than another."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self):
        """With names that do not depend on where things are installed."""

        def plain(function):
            return re.sub(r"/\S*/(?=[^/\s]+)", "", function)

        parts = (
            self.baseline_inclusive_stats,
            self.baseline_exclusive_stats,
            self.stmt_inclusive_stats,
            self.stmt_exclusive_stats,
        )
        return CallgrindStats(
            self.task_spec,
            self.number_per_run,
            self.built_with_debug_symbols,
            *(part.transform(plain) for part in parts),
            self.stmt_callgrind_out,
        )

    def __repr__(self) -> str:
        base = self.baseline_exclusive_stats
        return (
            f"{type(self).__name__}\n{self.task_spec.summarize()}\n"
            f"  Instructions: {self.counts()}\n  Baseline:     {base.sum()}\n"
            f"  {self.number_per_run} runs per measurement, "
            f"{self.task_spec.num_threads} thread(s)"
        )


class CopyIfCallgrind:
    """A value of the timer's globals that the counting process gets a copy of."""

    def __init__(self, value, *, setup=None) -> None:
        self._value = value
        self._setup = setup

    @property
    def value(self):
        """The value."""
        return self._value

    @property
    def setup(self):
        """Code that must run before the copy is made."""
        return self._setup

    @property
    def serialization(self) -> str:
        """How the copy is made."""
        return "pickle"

    @staticmethod
    def unwrap_all(globals):
        """The globals with the values themselves."""
        return {
            name: value.value if isinstance(value, CopyIfCallgrind) else value
            for name, value in globals.items()
        }


_PROGRAM = """\
import pickle, sys
sys.path[:] = {path!r}
import torch
torch.set_num_threads({threads})
{setups}
with open({values!r}, "rb") as file:
    globals().update(pickle.load(file))
{setup}
def measured(number):
    for _ in range(number):
{body}
measured({number})
"""


def _read_profile(path):
    """(exclusive, inclusive) counts by function of a file that Callgrind wrote."""
    names = {}
    exclusive, inclusive = collections.Counter(), collections.Counter()
    function, called = None, False

    def resolve(text) -> str:
        # Names are written once, as (number) name, and then by their number alone.
        number, _, name = text.partition(" ")
        if name:
            names[number] = name
        return names.get(number, text)

    with open(path) as file:
        for line in file:
            if line.startswith("fn="):
                function = resolve(line[3:].rstrip("\n"))
            elif line.startswith("cfn="):
                resolve(line[4:].rstrip("\n"))
            elif line.startswith("calls="):
                called = True
            elif function is not None and line[:1] in "+-*0123456789":
                count = int(line.split()[1])
                inclusive[function] += count
                if not called:
                    exclusive[function] += count
                called = False
    return exclusive, inclusive


def _profile(task, number, stmt, values, setups, folder):
    body = "\n".join("        " + line for line in stmt.splitlines())
    script, out = os.path.join(folder, "program.py"), os.path.join(folder, f"out.{number}")
    with open(script, "w") as file:
        file.write(
            _PROGRAM.format(
                path=sys.path,
                threads=task.num_threads,
                setups="\n".join(setups),
                values=values,
                setup=task.setup,
                body=body,
                number=number,
            )
        )
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable]
    # Strings hash alike in all runs: the cost of looking names up must not differ by chance.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    result = subprocess.run(
        [*command, script], capture_output=True, text=True, check=False, env=environment
    )
    if result.returncode:
        raise OSError(f"Failed to collect callgrind profile:\n{result.stderr[-4000:]}")
    return out


def _difference(task, number, stmt, values, setups, folder):
    """Counts of `number` runs without those of starting up, and the file."""
    idle = _read_profile(_profile(task, 0, stmt, values, setups, folder))
    path = _profile(task, number, stmt, values, setups, folder)
    counts = []
    for busy, still in zip(_read_profile(path), idle, strict=True):
        busy.subtract(still)
        counts.append(busy)
    with open(path) as file:
        return counts, file.read()


def _prepared(globals, folder):
    """A file with the values that the process needs, and the code to run before it is read."""
    values, setups = {}, []
    for name, value in globals.items():
        if name == "torch" or name.startswith("__"):
            continue
        if isinstance(value, CopyIfCallgrind):
            setups += [value.setup] if value.setup else []
            value = value.value
        elif not isinstance(value, (bool, int, float, complex, str, bytes, torch.Tensor)):
            raise ValueError(
                f"`{name}` ({type(value)}) cannot be given to the counting process: wrap it in "
                "CopyIfCallgrind, or make it in `setup`"
            )
        values[name] = value
    path = os.path.join(folder, "values.pickle")
    with open(path, "wb") as file:
        pickle.dump(values, file)
    return path, setups


def collect(task, globals, number, collect_baseline, retain_out_file):
    """CallgrindStats of a task."""
    if shutil.which("valgrind") is None:
        raise OSError("Could not find `valgrind`: counting instructions needs it")
    with tempfile.TemporaryDirectory() as folder:
        values, setups = _prepared(globals, folder)
        (exclusive, inclusive), text = _difference(task, number, task.stmt, values, setups, folder)
        base = (collections.Counter(), collections.Counter())
        if collect_baseline:
            base, _ = _difference(task, number, "pass", values, setups, folder)
    return CallgrindStats(
        task,
        number,
        True,
        FunctionCounts(_sorted(base[1]), True),
        FunctionCounts(_sorted(base[0]), False),
        FunctionCounts(_sorted(inclusive), True),
        FunctionCounts(_sorted(exclusive), False),
        text if retain_out_file else None,
    )
