"""Random Python functions (function_texts.py), plain and compiled. Result, exception and every
change of arguments and globals must be those of plain Python: compiled as they are, with graph
breaks between their statements, and with a break forced at instructions of the function.

    python tools/fuzz/functions.py --count 1000 --seed 0 [--points 2 | --every] [--show]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator

from function_texts import Maker

import torch
from torch._dynamo import translate
from torch._dynamo.exc import GraphBreak


def arguments(seed: int, module: types.ModuleType) -> list[object]:
    """Fresh arguments, the same for each seed."""
    torch.manual_seed(seed)
    x, y = torch.randn(3), torch.randn(3)
    box = (module.Box, module.Big)[seed % 2](y * 1, 2)
    return [x, y, seed % 4, [1, x * 1, 3], {1: 2, 3: 4}, box, {1, 2}, module.Point(1), "abca"]


def plain(value: object, seen: dict[int, int] | None = None) -> object:
    """A value as something that == compares; objects that occur twice are told apart."""
    seen = {} if seen is None else seen
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.shape), value.requires_grad, repr(value.tolist()))
    if isinstance(value, int | float | str | bool | type(None)):
        return (kind, repr(value))
    if isinstance(value, tuple):
        return (kind, [plain(item, seen) for item in value])
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, list | collections.deque):
        return (kind, [plain(item, seen) for item in value])
    if isinstance(value, set | frozenset):
        return (kind, sorted(repr(plain(item, seen)) for item in value))
    if isinstance(value, dict):
        return (kind, [(plain(k, seen), plain(v, seen)) for k, v in value.items()])
    if isinstance(value, type | types.FunctionType):
        return (kind, value.__name__)
    if hasattr(value, "__dict__"):
        return (kind, plain(vars(value), seen))
    return kind


def outcome(fn: Callable, module: types.ModuleType, seed: int) -> object:
    """What a call does: result or exception, arguments and globals afterwards."""
    args = arguments(seed, module)
    module.total, module.log = 0, []
    torch._C._set_grad_enabled(True)
    try:
        result = ("returned", plain(fn(*args)))
    except Exception as error:
        origins = (type(error.__cause__).__name__, type(error.__context__).__name__)
        result = ("raised", type(error).__name__, repr(error.args), origins)
    state = (plain([*args, module.log, module.total]), torch.is_grad_enabled())
    return result, state


def loaded(source: str, seed: int) -> types.ModuleType:
    """The module of a text."""
    module = types.ModuleType(f"fuzzed_{seed}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(source, f"<fuzzed {seed}>", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


@contextlib.contextmanager
def counted_steps(code: types.CodeType, counts: list[int]) -> Iterator[None]:
    """Notes how many instructions each trace of the code ran."""
    run = translate.RootFrame.run

    def noted(frame: translate.RootFrame) -> object:
        try:
            return run(frame)
        finally:
            if frame.code is code:
                counts.append(frame.count)

    translate.RootFrame.run = noted
    try:
        yield
    finally:
        translate.RootFrame.run = run


@contextlib.contextmanager
def broken_at(code: types.CodeType, step: int) -> Iterator[None]:
    """Traces of the code break before an instruction."""
    attempt = translate._attempt
    reason = GraphBreak("forced", "", "a break forced by the fuzzer", ())

    def broken(traced: types.CodeType, *rest: object) -> object:
        *given, restart = rest
        if traced is code and restart is None:
            restart = translate.RestartWithBreak(step, reason)
        return attempt(traced, *given, restart)

    translate._attempt = broken
    try:
        yield
    finally:
        translate._attempt = attempt


def difference(module: types.ModuleType, seed: int, expected: list[object]) -> str | None:
    """What a compiled module does otherwise than expected, or None."""
    torch._dynamo.reset()
    compiled = torch.compile(module.f, backend="eager")
    for run, wanted in zip((seed, seed + 1, seed), expected, strict=True):
        try:
            got = outcome(compiled, module, run)
        except BaseException:
            return f"the compiler failed:\n{traceback.format_exc()}"
        if got != wanted:
            return f"run {run}\nexpected {wanted}\ngot      {got}"
    return None


def check(seed: int, points: int | None, show: bool) -> str | None:
    """What differs for one function, or None. `points` None: breaks at every instruction."""
    rng = random.Random(seed)
    maker = Maker(rng)
    maker.write_function()
    source = maker.source()
    if show:
        print(source)
    module = loaded(source, seed)
    expected = [outcome(module.f, module, run) for run in (seed, seed + 1, seed)]
    counts: list[int] = [0]
    code = module.f.__code__
    with counted_steps(code, counts):
        found = difference(module, seed, expected)
    if found is not None:
        return f"{source}\n{found}"
    broken = maker.source(1.0 if seed % 2 else 0.3)
    found = difference(loaded(broken, seed), seed, expected)
    if found is not None:
        return f"{broken}\nwith breaks between statements\n{found}"
    most = max(counts)
    steps = range(most) if points is None else [rng.randrange(most + 1) for _ in range(points)]
    for step in steps:
        with broken_at(code, step):
            found = difference(module, seed, expected)
        if found is not None:
            return f"{source}\nwith a break at instruction {step}\n{found}"
    return None


def main() -> int:
    """Runs the check on many functions; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=2, help="forced breaks for each function")
    parser.add_argument("--every", action="store_true", help="a break at every instruction")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    wrong, start = 0, time.monotonic()
    for done, seed in enumerate(range(given.seed, given.seed + given.count), 1):
        found = check(seed, None if given.every else given.points, given.show)
        if found is not None:
            wrong += 1
            print(f"--- seed {seed}\n{found}\n", flush=True)
        if done % 500 == 0:
            spent = time.monotonic() - start
            print(f"{done} functions, {wrong} wrong, {spent:.0f} s", flush=True)
    print(f"{given.count} functions from seed {given.seed}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
