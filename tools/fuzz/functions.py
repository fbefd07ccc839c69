"""Random Python functions, plain and compiled. Each function mixes tensors with control flow,
containers, closures, objects, generators, exceptions and changes of its arguments and of
globals, with graph breaks at random places. Result, exception and every change must be those
of plain Python.

    python tools/fuzz/functions.py --count 1000 --seed 0 [--breaks 0.1] [--show]
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
import types

import torch

PRELUDE = """
import torch, collections, functools, itertools, contextlib, operator
total = 0
log = []
class Box:
    shared = 2
    def __init__(self, value, extra=1):
        self.value = value
        self.extra = extra
    @property
    def double(self):
        return self.value * 2
    @classmethod
    def make(cls, value):
        return cls(value, cls.shared)
    @staticmethod
    def plus(a, b):
        return a + b
    def bump(self, by=1):
        self.value = self.value + by
        self.extra += 1
        return self
    def __add__(self, other):
        return Box(self.value + (other.value if isinstance(other, Box) else other), self.extra)
    def __eq__(self, other):
        return isinstance(other, Box) and self.extra == other.extra
    __hash__ = None
    def __len__(self):
        return self.extra
    def __getitem__(self, key):
        if key > 3:
            raise IndexError("box")
        return self.extra + key
    def __enter__(self):
        self.extra += 10
        return self
    def __exit__(self, kind, value, tb):
        self.extra -= 9
        return kind is KeyError
class Big(Box):
    def bump(self, by=1):
        super().bump(by + 1)
        return self
def helper(a, b=2, *rest, scale=1, **named):
    return a * b + len(rest) * scale + len(named)
def numbers(n, stop=5):
    for i in range(n):
        if i == stop:
            return i
        got = yield i
        if got:
            yield got + 1
@contextlib.contextmanager
def noted(name):
    log.append("in " + name)
    try:
        yield name
    finally:
        log.append("out " + name)
"""


class Maker:
    """Writes one function. `ints`, `tensors`, `lists`, `dicts`, `boxes` are the names in scope."""

    def __init__(self, rng: random.Random, breaks: float) -> None:
        self.rng = rng
        self.breaks = breaks
        self.lines: list[str] = []
        self.counter = 0
        self.ints = ["n", "k"]
        self.tensors = ["x", "y"]
        self.lists = ["items"]
        self.dicts = ["table"]
        self.boxes = ["box"]
        self.in_loop = 0
        self.in_function = 0

    def name(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- expressions

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        choices = [
            lambda: str(rng.randint(-3, 6)),
            lambda: rng.choice(self.ints),
            lambda: f"len({rng.choice(self.lists)})",
            lambda: f"{rng.choice(self.boxes)}.extra",
            lambda: f"{rng.choice(self.dicts)}.get({rng.randint(0, 3)}, 7)",
        ]
        if depth < 2:
            more = lambda: self.number(depth + 1)
            choices += [
                lambda: f"({more()} + {more()})",
                lambda: f"({more()} * {more()})",
                lambda: f"({more()} // {more()})",
                lambda: f"({more()} % {more()})",
                lambda: f"max({more()}, {more()})",
                lambda: f"({more()} if {self.test(depth + 1)} else {more()})",
                lambda: f"sum(i for i in range({more()}))",
                lambda: f"(lambda a, b={more()}: a - b)({more()})",
                lambda: f"len([i for i in range(4) if i != {more()}])",
                lambda: f"sorted([{more()}, {more()}, {more()}], key=lambda v: -v)[0]",
                lambda: f"functools.reduce(operator.add, [{more()}, {more()}], {more()})",
                lambda: f"int(str({more()})[-1])",
                lambda: f"list(numbers({more()}))[-1]",
                lambda: f"{{1: {more()}, 2: {more()}}}[{rng.randint(1, 3)}]",
                lambda: f"[{more()}, {more()}][{more()}]",
                lambda: f"({more()}, {more()})[::-1][0]",
                lambda: f"next(itertools.islice(itertools.count({more()}), 2, None))",
                lambda: f"{rng.choice(self.boxes)}[{more()}]",
            ]
        return rng.choice(choices)()

    def test(self, depth: int = 0) -> str:
        rng = self.rng
        a, b = self.number(depth + 1), self.number(depth + 1)
        return rng.choice(
            [
                f"{a} {rng.choice(['<', '==', '!=', '>='])} {b}",
                f"{a} in {rng.choice(self.dicts)}",
                f"{a} < {b} < 5",
                f"not {a}",
                f"({a} and {b})",
                f"({a} or {b})",
                f"isinstance({rng.choice(self.boxes)}, Big)",
                f"{rng.choice(self.lists)}",
                f"hasattr({rng.choice(self.boxes)}, 'extra')",
                f"{rng.choice(self.boxes)} == {rng.choice(self.boxes)}",
                f"{rng.choice(self.boxes)} is {rng.choice(self.boxes)}",
            ]
        )

    def tensor(self, depth: int = 0) -> str:
        rng = self.rng
        choices = [lambda: rng.choice(self.tensors), lambda: rng.choice(self.tensors)]
        if depth < 2:
            more = lambda: self.tensor(depth + 1)
            choices += [
                lambda: f"({more()} + {more()})",
                lambda: f"({more()} * {self.number(1)})",
                lambda: f"torch.sin({more()})",
                lambda: f"{more()}.abs()",
                lambda: f"helper({more()}, {rng.randint(1, 3)})",
                lambda: f"helper({more()}, 2, 5, *[1, 2], scale={self.number(1)}, q=3)",
                lambda: f"{rng.choice(self.boxes)}.value",
                lambda: f"{rng.choice(self.boxes)}.double",
                lambda: f"torch.stack([{more()}, {more()}]).sum(0)",
                lambda: f"sum([{more()}, {more()}])",
                lambda: f"Box.plus({more()}, {more()})",
                lambda: f"Big.make({more()}).bump().value",
                lambda: f"torch.max({more()}, {more()})",
            ]
        return rng.choice(choices)()

    # ---- statements

    def block(self, depth: int, count: int) -> None:
        saved = [list(names) for names in self._scopes()]
        for _ in range(count):
            self.statement(depth)
        for names, before in zip(self._scopes(), saved, strict=True):
            names[:] = before

    def _scopes(self) -> list[list[str]]:
        return [self.ints, self.tensors, self.lists, self.dicts, self.boxes]

    def statement(self, depth: int) -> None:
        rng = self.rng
        if rng.random() < self.breaks:
            self.emit(depth, rng.choice(["torch._dynamo.graph_break()", "print(end='')"]))
        simple = [
            self._assign,
            self._assign,
            self._tensor,
            self._tensor,
            self._list,
            self._dict,
            self._box,
            self._global,
            self._text,
        ]
        nested = [
            self._if,
            self._for,
            self._while,
            self._try,
            self._with,
            self._function,
            self._generator,
            self._match,
        ]
        if depth < 4 and rng.random() < 0.45:
            rng.choice(nested)(depth)
        elif self.in_loop and rng.random() < 0.08:
            self.emit(depth, f"if {self.test()}: {rng.choice(['break', 'continue'])}")
        elif rng.random() < 0.04:
            self.emit(depth, f"if {self.test()}: return {self.tensor()}")
        else:
            rng.choice(simple)(depth)

    def _assign(self, depth: int) -> None:
        rng = self.rng
        if rng.random() < 0.3 and not self.in_function:
            self.emit(depth, f"{rng.choice(self.ints)} {rng.choice(['+=', '-='])} {self.number()}")
            return
        name = self.name("i")
        self.emit(depth, f"{name} = {self.number()}")
        self.ints.append(name)

    def _tensor(self, depth: int) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.15:
            a, b = self.name("t"), self.name("t")
            self.emit(depth, f"{a}, {b} = {self.tensor()}, {self.tensor()}")
            self.tensors += [a, b]
            return
        if roll < 0.25:
            name = self.name("t")
            self.emit(depth, f"{name} = ({self.tensor()}).clone()")
            self.emit(depth, f"{name}.add_({self.number()})")
            self.tensors.append(name)
            return
        name = self.name("t")
        self.emit(depth, f"{name} = {self.tensor()}")
        self.tensors.append(name)

    def _list(self, depth: int) -> None:
        rng = self.rng
        target = rng.choice(self.lists)
        if rng.random() < 0.3:
            name = self.name("l")
            text = rng.choice(
                [
                    f"[{self.number()}, {self.number()}]",
                    f"list({target})",
                    f"{target} + [{self.number()}]",
                    f"{target}[1:]",
                    target,
                ]
            )
            self.emit(depth, f"{name} = {text}")
            self.lists.append(name)
            return
        value = rng.choice([self.number(), self.tensor()])
        self.emit(depth, rng.choice([
            f"{target}.append({value})", f"{target}.insert(0, {value})", f"{target}.pop()",
            f"{target}[{rng.randint(-2, 2)}] = {value}", f"{target}.reverse()",
            f"{target}.extend([{value}])", f"del {target}[{rng.randint(0, 2)}]",
            f"{target} += [{value}]" if not self.in_function else f"{target}.clear()",
        ]))  # fmt: skip

    def _dict(self, depth: int) -> None:
        rng = self.rng
        target = rng.choice(self.dicts)
        if rng.random() < 0.25:
            name = self.name("d")
            self.emit(depth, rng.choice([
                f"{name} = {{i: i * 2 for i in range(3)}}", f"{name} = dict({target})",
                f"{name} = {{**{target}, 9: {self.number()}}}",
                f"{name} = collections.defaultdict(int); {name}[1] += {self.number()}",
            ]))  # fmt: skip
            self.dicts.append(name)
            return
        key, value = rng.randint(0, 3), self.number()
        self.emit(depth, rng.choice([
            f"{target}[{key}] = {value}", f"{target}.pop({key}, None)", f"del {target}[{key}]",
            f"{target}.setdefault({key}, {value})", f"{target}.update({{{key}: {value}}})",
        ]))  # fmt: skip

    def _box(self, depth: int) -> None:
        rng = self.rng
        target = rng.choice(self.boxes)
        if rng.random() < 0.35:
            name = self.name("b")
            self.emit(depth, rng.choice([
                f"{name} = Box({self.tensor()}, {self.number()})",
                f"{name} = Big.make({self.tensor()})", f"{name} = {target}",
                f"{name} = {target} + {self.tensor()}",
            ]))  # fmt: skip
            self.boxes.append(name)
            return
        self.emit(depth, rng.choice([
            f"{target}.bump({self.number()})", f"{target}.extra = {self.number()}",
            f"{target}.value = {self.tensor()}", f"{target}.extra -= 1",
            f"setattr({target}, 'later', {self.number()})",
        ]))  # fmt: skip

    def _global(self, depth: int) -> None:
        self.emit(depth, self.rng.choice([
            f"log.append({self.number()})", f"globals_total({self.number()})",
        ]))  # fmt: skip

    def _text(self, depth: int) -> None:
        self.emit(depth, f"shown = {self.number()}")
        self.emit(depth, "log.append(f'{shown}:{shown!r:>3}')")

    def _if(self, depth: int) -> None:
        test = self.test()
        if self.rng.random() < self.breaks * 2:
            test = f"({self.tensor()}).sum() > {self.number()}"
        self.emit(depth, f"if {test}:")
        self.block(depth + 1, self.rng.randint(1, 3))
        if self.rng.random() < 0.6:
            self.emit(depth, "else:")
            self.block(depth + 1, self.rng.randint(1, 2))

    def _for(self, depth: int) -> None:
        name = self.name("i")
        over = self.rng.choice([
            f"for {name} in range({self.rng.randint(0, 3)}):",
            f"for {name} in numbers({self.rng.randint(0, 4)}):",
            f"for {name}, _v in enumerate({self.rng.choice(self.lists)}[:3]):",
            f"for {name} in list({self.rng.choice(self.dicts)}):",
            f"for {name}, _w in zip(range(3), {self.rng.choice(self.lists)}):",
            f"for {name} in map(lambda v: v + 1, (1, 2)):",
        ])  # fmt: skip
        self.emit(depth, over)
        self.in_loop += 1
        before = list(self.ints)
        self.ints.append(name)
        self.block(depth + 1, self.rng.randint(1, 3))
        self.ints = before
        self.in_loop -= 1
        if self.rng.random() < 0.2:
            self.emit(depth, "else:")
            self.block(depth + 1, 1)

    def _while(self, depth: int) -> None:
        name = self.name("w")
        self.emit(depth, f"{name} = 0")
        self.emit(depth, f"while {name} < {self.rng.randint(1, 3)}:")
        self.emit(depth + 1, f"{name} += 1")
        self.in_loop += 1
        self.block(depth + 1, self.rng.randint(1, 2))
        self.in_loop -= 1

    def _try(self, depth: int) -> None:
        rng = self.rng
        self.emit(depth, "try:")
        self.block(depth + 1, rng.randint(1, 2))
        if rng.random() < 0.6:
            kind = rng.choice(
                [
                    "ValueError('v', 1)",
                    "KeyError(3)",
                    "IndexError",
                    "StopIteration(2)",
                    "ZeroDivisionError('z')",
                ]
            )
            self.emit(depth + 1, f"if {self.test()}: raise {kind}")
        kinds = rng.choice(["ValueError", "(KeyError, IndexError)", "Exception", "ArithmeticError"])
        self.emit(depth, f"except {kinds} as error:")
        self.emit(depth + 1, "log.append((type(error).__name__, len(error.args)))")
        self.block(depth + 1, 1)
        if rng.random() < 0.2:
            self.emit(depth + 1, "raise RuntimeError('again') from error")
        if rng.random() < 0.3:
            self.emit(depth, "else:")
            self.block(depth + 1, 1)
        if rng.random() < 0.4:
            self.emit(depth, "finally:")
            self.block(depth + 1, 1)

    def _with(self, depth: int) -> None:
        self.emit(depth, self.rng.choice([
            "with torch.no_grad():", f"with {self.rng.choice(self.boxes)} as held:",
            f"with noted('{self.name('c')}') as held:",
        ]))  # fmt: skip
        self.block(depth + 1, self.rng.randint(1, 2))

    def _function(self, depth: int) -> None:
        name, inner, shared = self.name("f"), self.name("a"), self.name("s")
        self.emit(depth, f"{shared} = {self.number()}")
        self.emit(depth, f"def {name}({inner}, extra={self.number()}):")
        self.emit(depth + 1, f"nonlocal {shared}")
        self.emit(depth + 1, f"{shared} += extra")
        loops, self.in_loop = self.in_loop, 0
        self.in_function += 1
        before = list(self.tensors)
        self.tensors.append(inner)
        self.block(depth + 1, self.rng.randint(1, 2))
        self.emit(depth + 1, f"return {self.tensor()} + {shared}")
        self.tensors = before
        self.in_function -= 1
        self.in_loop = loops
        result = self.name("t")
        self.emit(depth, f"{result} = {name}({self.tensor()}) + {name}({self.tensor()}, 2)")
        self.emit(depth, f"log.append({shared})")
        self.tensors.append(result)
        self.ints.append(shared)

    def _generator(self, depth: int) -> None:
        name, it = self.name("g"), self.name("i")
        self.emit(depth, f"{name} = numbers({self.rng.randint(1, 4)}, {self.number()})")
        self.emit(depth, f"{it} = next({name}, 0)")
        if self.rng.random() < 0.4:
            self.emit(depth, f"{it} += {name}.send({self.number()})")
        self.emit(depth, f"{it} += sum({name})")
        self.ints.append(it)

    def _match(self, depth: int) -> None:
        self.emit(depth, f"match ({self.number()}, [{self.number()}, 2]):")
        self.emit(depth + 1, f"case ({self.rng.randint(0, 3)}, _):")
        self.block(depth + 2, 1)
        self.emit(depth + 1, "case (first, [second, *rest]) if first > second:")
        self.block(depth + 2, 1)
        self.emit(depth + 1, "case _:")
        self.block(depth + 2, 1)

    def source(self) -> str:
        """The text of the module."""
        self.block(1, self.rng.randint(4, 9))
        body = "\n".join(self.lines)
        names = ", ".join([*self.tensors, *self.ints])
        head = "def globals_total(by):\n    global total\n    total += by\n"
        start = "def f(x, y, n, items, table, box, k=3):\n"
        return f"{PRELUDE}{head}{start}{body}\n    return [{names}], items, table, box\n"


def arguments(seed: int, module: types.ModuleType) -> list[object]:
    """Fresh arguments, the same for each seed."""
    torch.manual_seed(seed)
    x, y = torch.randn(3), torch.randn(3)
    return [x, y, seed % 4, [1, x * 1, 3], {1: 2, 3: 4}, module.Box(y * 1, 2)]


def plain(value: object, seen: dict[int, int] | None = None) -> object:
    """A value as something that == compares; objects that occur twice are told apart."""
    seen = {} if seen is None else seen
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.shape), value.requires_grad, repr(value.tolist()))
    if isinstance(value, int | float | str | bool | type(None)):
        return (type(value).__name__, repr(value))
    if isinstance(value, tuple):
        return ("tuple", [plain(item, seen) for item in value])
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, list):
        return ("list", [plain(item, seen) for item in value])
    if isinstance(value, dict):
        return (type(value).__name__, [(plain(k, seen), plain(v, seen)) for k, v in value.items()])
    if hasattr(value, "__dict__"):
        return (type(value).__name__, plain(vars(value), seen))
    return repr(type(value))


def outcome(fn: object, module: types.ModuleType, seed: int) -> object:
    """What a call does: result or exception, arguments and globals afterwards."""
    args = arguments(seed, module)
    module.total, module.log = 0, []
    torch._C._set_grad_enabled(True)
    try:
        result = ("returned", plain(fn(*args)))
    except Exception as error:
        cause = type(error.__cause__).__name__
        result = ("raised", type(error).__name__, repr(error.args), cause)
    state = (plain([*args, module.log, module.total]), torch.is_grad_enabled())
    return result, state


def check(seed: int, breaks: float, show: bool) -> str | None:
    """What differs for one function, or None."""
    source = Maker(random.Random(seed), breaks).source()
    module = types.ModuleType(f"fuzzed_{seed}")
    code = compile(source, f"<fuzzed {seed}>", "exec")
    exec(code, module.__dict__)
    if show:
        print(source)
    torch._dynamo.reset()
    compiled = torch.compile(module.f, backend="eager")
    for run in (seed, seed + 1, seed):
        expected = outcome(module.f, module, run)
        try:
            got = outcome(compiled, module, run)
        except BaseException:
            return f"{source}\nthe compiler failed:\n{traceback.format_exc()}"
        if got != expected:
            return f"{source}\nrun {run}\nexpected {expected}\ngot      {got}"
    return None


def main() -> int:
    """Runs the check on many functions; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--breaks", type=float, default=0.05)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        found = check(seed, given.breaks if seed % 2 else 0.0, given.show)
        if found is not None:
            wrong += 1
            print(f"--- seed {seed}\n{found}\n")
    print(f"{given.count} functions, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
