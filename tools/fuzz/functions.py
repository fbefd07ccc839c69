"""Random Python functions (function_texts.py), plain and compiled. Result, exception with its chain
of contexts and causes, and every change of arguments and globals must be those of plain Python:
compiled as they are, with a graph break before each statement that runs, one at a time and all at
once, and with a break forced at instructions of the function.

    python tools/fuzz/functions.py --count 1000 --seed 0 [--points 1 | --every] [--show]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import itertools
import logging
import random
import resource
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator

from function_prelude import PRELUDE
from function_texts import Maker

import torch
from torch._dynamo import translate
from torch._dynamo.exc import Unsupported

Outcome = tuple[object, ...]
_FILE = "<fuzzed>"
_MOST_MEMORY = 6 << 30


def arguments(seed: int, module: types.ModuleType) -> list[object]:
    """Fresh arguments, the same for each seed. Some of them are the same object."""
    torch.manual_seed(seed)
    x, y = torch.randn(3), torch.randn(3)
    box = (module.Box, module.Big)[seed % 2](y * 1, 2)
    items = [1, x * 1, 3]
    point = module.Point(1)
    if seed % 5 == 1:
        y = x
    elif seed % 5 == 2:
        box.value, items[1] = x, x
    elif seed % 5 == 3:
        point.rest = items
    queue = collections.deque([1, 2], maxlen=None if seed % 3 else 3)
    both = module.Both(3, right=seed % 3)
    return [x, y, seed % 4, items, {1: 2, 3: 4}, box, {1, 2}, point, "abca", module.Vec(1, 2),
            queue, both]  # fmt: skip


def plain(value: object, seen: dict[int, int]) -> object:
    """A value as something that == compares; objects that occur twice are told apart."""
    kind = type(value).__name__
    if isinstance(value, int | float | str | bytes | bool | type(None)):
        return (kind, repr(value))
    if isinstance(value, tuple):
        return (kind, [plain(item, seen) for item in value])
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.shape), value.requires_grad, repr(value.tolist()))
    if isinstance(value, BaseException):
        return chain(value)
    if isinstance(value, type | types.FunctionType):
        return (kind, value.__name__)
    own = getattr(value, "__dict__", None)
    parts: list[object] = [kind, plain(own, seen) if own else None]
    for cls in type(value).__mro__:
        for name in cls.__dict__.get("__slots__", ()):
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                parts.append((name, plain(getattr(value, name), seen)))
    if isinstance(value, list | collections.deque):
        parts += [plain(item, seen) for item in tuple(value)]
    elif isinstance(value, set | frozenset):
        parts += sorted(repr(plain(item, seen)) for item in value)
    elif isinstance(value, dict):
        ordered = isinstance(value, collections.OrderedDict)
        pairs = (collections.OrderedDict if ordered else dict).items(value)
        parts += [(plain(k, seen), plain(v, seen)) for k, v in pairs]
    elif isinstance(value, types.GeneratorType):
        parts += [plain(item, seen) for item in itertools.islice(value, 4)]
    return parts


def chain(error: BaseException | None, depth: int = 0) -> object:
    """An exception with those that led to it."""
    if error is None or depth > 6:
        return None
    return (
        type(error).__name__,
        repr(error.args),
        error.__suppress_context__,
        chain(error.__cause__, depth + 1),
        chain(error.__context__, depth + 1),
    )


def outcome(fn: Callable, module: types.ModuleType, seed: int, collect: bool = False) -> Outcome:
    """What a call does: result or exception, arguments and globals afterwards."""
    module.restart()
    args = arguments(seed, module)
    module.restart()
    torch._C._set_grad_enabled(True)
    seen: dict[int, int] = {}
    try:
        result = ("returned", fn(*args))
    except MemoryError:
        raise
    except Exception as error:
        result = ("raised", chain(error))
        error.__traceback__ = None
    if collect:
        # Generators that exceptions refer to are freed by the collector alone.
        gc.collect()
    state = [*args, module.log, module.total, module.registry, module.remember.__defaults__]
    state += [cls.__dict__.get("made") for cls in (module.Base, module.Both)]
    state += [module.Box.shared, module.helper.__dict__, sorted(module.finals)]
    return plain(result, seen), plain(state, seen), torch.is_grad_enabled()


def apart(a: object, b: object, path: str = "") -> str:
    """The first place where two outcomes differ."""
    if type(a) is type(b) and isinstance(a, list | tuple) and len(a) == len(b):
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            if left != right:
                return apart(left, right, f"{path}.{i}")
    return f"at {path}\nexpected {a}\ngot      {b}"


def prelude() -> types.ModuleType:
    """The module in which the functions run."""
    module = types.ModuleType("fuzzed")
    sys.modules["fuzzed"] = module
    exec(compile(PRELUDE, "<prelude>", "exec"), module.__dict__)
    return module


def loaded(source: str, module: types.ModuleType) -> Callable:
    """The function of a text."""
    exec(compile(source, _FILE, "exec"), module.__dict__)
    return module.__dict__.pop("f")


@contextlib.contextmanager
def noted_lines(lines: set[int]) -> Iterator[None]:
    """Notes which lines of the function run."""

    def local(frame: types.FrameType, event: str, arg: object) -> Callable:
        if event == "line":
            lines.add(frame.f_lineno)
        return local

    def called(frame: types.FrameType, event: str, arg: object) -> Callable | None:
        return local if frame.f_code.co_filename == _FILE else None

    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(None)


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
    reason = Unsupported.of("forced", "", "a break forced by the fuzzer", ())

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


class Check:
    """Compares one function after the other in one module. `compiled` counts the variants."""

    def __init__(self, points: int | None, show: bool) -> None:
        self.module = prelude()
        self.points = points
        self.show = show
        self.compiled = 0
        self.collect = False

    def difference(self, fn: Callable, runs: list[int], expected: list[Outcome]) -> str | None:
        """What a compiled function does otherwise than expected, or None."""
        torch._dynamo.reset()
        self.compiled += 1
        compiled = torch.compile(fn, backend="eager")
        for run, wanted in zip(runs, expected, strict=True):
            try:
                got = outcome(compiled, self.module, run, self.collect)
            except BaseException:
                return f"run {run}: the compiler failed:\n{traceback.format_exc()}"
            if got != wanted:
                ends = "" if wanted[0] == got[0] else f"\n{wanted[0]}\n{got[0]}"
                return f"run {run} differs {apart(wanted, got)}{ends}"
        return None

    def check(self, seed: int) -> str | None:
        """What differs for the function of a seed, or None."""
        rng = random.Random(seed)
        maker = Maker(rng)
        maker.write_function()
        source = maker.source()
        if self.show:
            print(source)
        fn = loaded(source, self.module)
        self.collect = any(word in source for word in ("careful", "relay", "finals", "finally"))
        lines: set[int] = set()
        runs = [seed, seed + 1, seed]
        try:
            with noted_lines(lines):
                expected = [outcome(fn, self.module, run, self.collect) for run in runs[:2]]
        except MemoryError:
            return None  # a function that multiplies lists too often says nothing
        expected.append(expected[0])
        counts: list[int] = [0]
        code = fn.__code__
        with counted_steps(code, counts):
            found = self.difference(fn, runs, expected)
        if found is not None:
            return f"{source}\n{found}"
        places = [i for i in range(len(maker.starts)) if maker.line_of(i) in lines]
        singles = [{i} for i in places] if len(places) > 1 else []
        for breaks in (set(places), *singles):
            text = maker.source(breaks)
            # Code with a single break runs once: what was compiled is run again above.
            count = 1 if breaks in singles else 2
            found = self.difference(loaded(text, self.module), runs[:count], expected[:count])
            if found is not None:
                return f"{text}\nwith breaks between statements\n{found}"
        most = max(counts)
        steps = range(most) if self.points is None else rng.sample(range(most + 1), self.points)
        for step in steps:
            with broken_at(code, step):
                found = self.difference(fn, runs[:1], expected[:1])
            if found is not None:
                return f"{source}\nwith a break at instruction {step}\n{found}"
        return None


def main() -> int:
    """Runs the check on many functions; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=1, help="forced breaks for each function")
    parser.add_argument("--every", action="store_true", help="a break at every instruction")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    sys.set_int_max_str_digits(0)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    # A fault of the tracer is to be seen, not left to Python.
    translate.RootFrame._leave_to_python = lambda frame, error: None
    checker = Check(None if given.every else given.points, given.show)
    wrong, start = 0, time.monotonic()
    gc.freeze()
    for done, seed in enumerate(range(given.seed, given.seed + given.count), 1):
        found = checker.check(seed)
        if found is not None:
            wrong += 1
            print(f"--- seed {seed}\n{found}\n", flush=True)
        if done % 100 == 0 or done == given.count:
            spent, used = time.monotonic() - start, time.process_time()
            print(
                f"{done} functions from seed {given.seed}, {checker.compiled} compiled variants, "
                f"{wrong} wrong, {spent:.0f} s ({used:.0f} s of processor time)",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
