"""Compile, reset and compile again, many times: resident memory must stay flat, and nothing of the
program may be kept by what was compiled.

    python tools/compile_leaks.py --rounds 200 [--backend inductor]
"""

from __future__ import annotations

import argparse
import collections
import gc
import resource
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterator

import torch


class Block(torch.nn.Module):
    """A layer with a branch, a buffer and a table."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.line = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)
        self.register_buffer("mean", torch.ones(width))
        self.table = {"scale": 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        y = self.norm(self.line(x)) * self.table["scale"] + self.mean
        return torch.relu(y) if self.training else y


def resident() -> float:
    """Megabytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


class Held:
    """An object of the program that functions use."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value
        self.parts = [value, {"more": value}]


def broken(x: torch.Tensor, model: torch.nn.Module) -> torch.Tensor:
    """A function with a graph break and a closure."""
    kept = [x + 1]
    torch._dynamo.graph_break()
    return model(kept[0]) + (lambda y: y * x)(kept[0])


def of_module(backend: str) -> list[weakref.ref]:
    """A model and a function that calls it after a break."""
    model = torch.nn.Sequential(Block(8), Block(8))
    compiled = torch.compile(model, backend=backend)
    function = torch.compile(broken, backend=backend)
    refs = [weakref.ref(model), weakref.ref(model[0].line.weight)]
    for rows in (2, 3, 5):
        x = torch.randn(rows, 8)
        compiled(x).sum().backward()
        function(x, model)
        refs.append(weakref.ref(x))
    return refs


def of_generators(backend: str) -> list[weakref.ref]:
    """Generators that are used up, dropped and handed over at a break."""
    held = Held(torch.ones(4))

    def numbers(count: int) -> Iterator[torch.Tensor]:
        try:
            for i in range(count):
                yield held.value * i
        finally:
            held.parts.append(count)

    def run(x: torch.Tensor) -> torch.Tensor:
        first = numbers(3)
        x = x + next(first)
        torch._dynamo.graph_break()
        for value in numbers(2):
            x = x + value
        return x + sum(first)

    compiled = torch.compile(run, backend=backend)
    for _ in range(2):
        compiled(torch.ones(4))
    return [weakref.ref(held), weakref.ref(held.value), weakref.ref(run), weakref.ref(numbers)]


def of_closures(backend: str) -> list[weakref.ref]:
    """Functions that functions make, whose variables change."""
    held = Held(torch.ones(4))
    total = held.value

    def add(x: torch.Tensor) -> Callable[[], torch.Tensor]:
        nonlocal total
        total = total + x

        def again() -> torch.Tensor:
            return again.__defaults__ or total * 2

        torch._dynamo.graph_break()
        return again

    compiled = torch.compile(add, backend=backend)
    made = [compiled(torch.ones(4)) for _ in range(3)]
    return [weakref.ref(o) for o in (held, total, add, *made)]


def of_exceptions(backend: str) -> list[weakref.ref]:
    """Exceptions that are caught, kept, and that leave compiled code."""
    held = Held(torch.ones(4))
    errors = []

    def run(x: torch.Tensor, kind: int) -> torch.Tensor:
        try:
            if kind == 0:
                raise ValueError("inside", held)
            if kind == 1:
                return x @ torch.ones(3)
            return x + {}[held]
        except ValueError as error:
            errors.append(error)
            return x + 1

    compiled = torch.compile(run, backend=backend)
    for kind in (0, 1, 2, 0):
        try:
            compiled(held.value, kind)
        except Exception as error:
            errors.append(error)
    return [weakref.ref(o) for o in (held, held.value, run)]


def of_objects(backend: str) -> list[weakref.ref]:
    """Objects that are read, changed and made, with a number that varies."""
    held = Held(torch.ones(4))

    def run(x: torch.Tensor, obj: Held, n: int) -> Held:
        obj.value = x * n
        obj.parts.append(Held(obj.value + n))
        torch._dynamo.graph_break()
        return obj.parts[-1]

    compiled = torch.compile(run, backend=backend)
    made = [compiled(torch.ones(4), held, n) for n in (2, 3, 5)]
    return [weakref.ref(o) for o in (held, held.value, run, *made)]


PROGRAMS = (of_module, of_generators, of_closures, of_exceptions, of_objects)


def one_round(backend: str) -> list[weakref.ref]:
    """Compiles, calls and drops programs of each kind; weak references to what they used."""
    refs = []
    for program in PROGRAMS:
        refs += program(backend)
        torch._dynamo.reset()
    return refs


def dead_frames() -> int:
    """How many frames of functions that have ended are still there."""
    running = set()
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        running.add(id(frame))
        frame = frame.f_back
    objects = gc.get_objects()
    # Up to 3.10 a generator that waits has a frame object; asking for it would make one later.
    if sys.version_info < (3, 11):
        running.update(id(o.gi_frame) for o in objects if isinstance(o, types.GeneratorType))
    return sum(type(o) is types.FrameType and id(o) not in running for o in objects)


def main() -> int:
    """Prints growth, and what stayed alive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--collect", type=int, default=1, help="rounds between collections")
    options = parser.parse_args()
    alive = frames = 0
    start = 0.0
    counts: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for i in range(options.rounds):
        refs = one_round(options.backend)
        if i % options.collect == 0 or i == options.rounds - 1:
            gc.collect()
            alive += sum(ref() is not None for ref in refs)
            frames += dead_frames()
        if i == options.rounds // 4:
            gc.collect()
            start = resident()
            counts.update(type(o).__name__ for o in gc.get_objects())
    gc.collect()
    grown = resident() - start
    now = collections.Counter(type(o).__name__ for o in gc.get_objects())
    more = {name: n - counts[name] for name, n in now.items() if n > counts[name] + 5}
    print(
        f"{options.rounds} rounds, {time.monotonic() - began:.0f} s: {grown:.1f} MB more over the "
        f"last three quarters, {alive} objects alive, {frames} dead frames, more objects: {more}"
    )
    return 1 if alive or frames or grown > 8 else 0


if __name__ == "__main__":
    sys.exit(main())
