"""Bytecode in normal form: functions of the standard library survive decoding and encoding, and
re-encoded code does what the original does, exceptions, generators and line numbers included."""

from __future__ import annotations

import asyncio
import gc
import glob
import importlib.util
import os
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable, Iterator

import pytest

from torch._dynamo.opcodes import JUMPS, NORMAL_OPCODES, Instruction, decode, encode

STDLIB = sysconfig.get_path("stdlib")


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code and all code inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def recoded(code: types.CodeType) -> types.CodeType:
    """The code and all code inside, decoded and encoded."""
    instructions = decode(code)
    for instruction in instructions:
        if instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, types.CodeType):
            instruction.argval = recoded(instruction.argval)
    return encode(instructions, code)


def recoded_function(fn: types.FunctionType) -> types.FunctionType:
    """A function with the code of another, decoded and encoded."""
    made = types.FunctionType(
        recoded(fn.__code__), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def summary(code: types.CodeType) -> list[tuple[object, ...]]:
    """Everything the normal form says about a code object, without identities."""
    instructions = decode(code)
    places = {instruction: i for i, instruction in enumerate(instructions)}
    return [
        (
            i.opname,
            i.arg,
            type(i.argval),
            None if isinstance(i.argval, (types.CodeType, frozenset)) else repr(i.argval),
            places.get(i.target),
            places.get(i.handler),
            (i.depth, i.lasti) if i.handler is not None else None,
            i.positions,
        )
        for i in instructions
    ]


# ---- the whole library


def library_files() -> list[str]:
    """Modules and some packages."""
    packages = ("asyncio", "concurrent", "email", "importlib", "json", "unittest")
    files = glob.glob(f"{STDLIB}/*.py")
    for package in packages:
        files += glob.glob(os.path.join(STDLIB, package, "*.py"))
    return sorted(files)


@pytest.mark.parametrize("part", range(4))
def test_round_trip_over_the_standard_library_keeps_the_normal_form(part: int) -> None:
    checked = 0
    for path in library_files()[part::4]:
        with open(path, "rb") as file:
            try:
                module = compile(file.read(), path, "exec", dont_inherit=True)
            except SyntaxError:
                continue
        for code in code_objects(module):
            assert summary(encode(decode(code), code)) == summary(code), (path, code.co_name)
            checked += 1
    assert checked > 500


def load_recoded(name: str) -> types.ModuleType:
    """A module of the library, executed from re-encoded code under another name."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    with open(spec.origin, "rb") as file:
        code = compile(file.read(), spec.origin, "exec", dont_inherit=True)
    module = types.ModuleType(f"_recoded_{name}")
    sys.modules[module.__name__] = module
    try:
        exec(recoded(code), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


SAMPLES: dict[str, Callable[[types.ModuleType], object]] = {
    "textwrap": lambda m: m.fill("the quick brown fox " * 20, 30),
    "difflib": lambda m: list(m.unified_diff("a b c d".split(), "a c d e".split())),
    "statistics": lambda m: (m.median([3, 1, 2]), m.quantiles(range(50)), m.stdev([1, 2, 4])),
    "fractions": lambda m: str(m.Fraction("3/7") + m.Fraction(2, 5) ** 3),
    "heapq": lambda m: list(m.merge([1, 4, 9], [2, 3, 10])),
    "bisect": lambda m: m.bisect_left([1, 3, 5], 4),
    "shlex": lambda m: m.split("a 'b c' \"d\" # e", comments=True),
    "configparser": lambda m: m.ConfigParser().read_string("[a]\nb=1\n"),
    "argparse": lambda m: vars(
        m.ArgumentParser(exit_on_error=False).parse_known_args(["--x", "y"])[0]
    ),
    "pprint": lambda m: m.pformat({"a": [1, 2, {"b": (3,)}]}, width=10),
    "string": lambda m: m.Template("$a and ${b}").safe_substitute(a=1),
    "tokenize": lambda m: [
        tuple(t) for t in m.generate_tokens(iter(["def f(x):\n", "    return x\n"]).__next__)
    ],
    "csv": lambda m: m.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter,
    "calendar": lambda m: m.TextCalendar().formatmonth(2024, 2),
    "ipaddress": lambda m: [str(n) for n in m.ip_network("10.0.0.0/30").hosts()],
    "graphlib": lambda m: list(m.TopologicalSorter({1: [2], 2: [3]}).static_order()),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_recoded_modules_of_the_library_give_the_same_results(name: str) -> None:
    assert SAMPLES[name](load_recoded(name)) == SAMPLES[name](importlib.import_module(name))


# ---- functions that use every kind of instruction


def calls(log: list[object]) -> None:
    def f(*args: object, **kwargs: object) -> tuple[object, object]:
        return args, kwargs

    log += [f(), f(1), f(1, 2), f(a=1), f(1, b=2), f(*[1, 2]), f(*(1,), c=3, d=4)]
    log += ["x".join(["a", "b"]), "abc".upper(), sorted([3, 1], key=lambda v: -v, reverse=True)]
    log.append((lambda a, b=2, *c, d=4, **e: (a, b, c, d, e))(1, d=5, z=6))


def exceptions(log: list[object]) -> None:
    for value in (0, "a", None):
        try:
            try:
                log.append(1 / value)
            except ZeroDivisionError as error:
                log.append(type(error))
                raise KeyError("k") from error
            except TypeError:
                log.append("type")
            else:
                log.append("else")
            finally:
                log.append("finally")
        except KeyError as error:
            log.append((error.args, type(error.__cause__)))
    try:
        assert log == [], "message"
    except AssertionError as error:
        log.append(error.args)


class Manager:
    def __init__(self, log: list[object], swallow: bool) -> None:
        self.log, self.swallow = log, swallow

    def __enter__(self) -> Manager:
        self.log.append("enter")
        return self

    def __exit__(self, kind: object, *rest: object) -> bool:
        self.log.append(("exit", kind))
        return self.swallow


def contexts(log: list[object]) -> None:
    with Manager(log, False) as a, Manager(log, True):
        log.append(a.swallow)
        raise ValueError("inside")
    for i in range(3):
        with Manager(log, False):
            if i == 1:
                continue
            log.append(i)


def containers(log: list[object]) -> None:
    a, *b, c = range(6)
    d = {"x": a, "y": b}
    log += [a, b, c, d, [*b, c], {*b}, (*b, 1), d.get("y")[1:3], b[::2], f"{a!r:>4}{c}{b!s}"]
    b[0:1] = [7, 8]
    d["z"] = b
    del d["x"], b[0]
    e = x = [i * j for i in range(3) if i for j in range(2)]
    log += [e, x, {k: v + 1 for k, v in zip("ab", e[:2], strict=True)}, {i % 2 for i in e}]
    log += [tuple(i + 1 for i in e), 1 < a < 3, a is None, a is not None, 3 in b, 3 not in b]
    log += [not a, -c, +c, ~c, c if a else 0]


def closures(log: list[object]) -> None:
    count = 0

    def bump(by: int = 1) -> int:
        nonlocal count
        count += by
        return count

    class Inner:
        base = count

        def method(self) -> tuple[int, type]:
            return count + self.base, __class__

    log += [bump(), bump(5), Inner().method()[0], [lambda i=i: i + count for i in range(2)][1]()]


def matching(log: list[object]) -> None:
    for value in ([1, 2, 3], {"k": 1, "r": 2}, 5, "s", (1,)):
        match value:
            case [first, *rest]:
                log.append((first, rest))
            case {"k": k, **others}:
                log.append((k, others))
            case int(n) if n > 3:
                log.append(n)
            case _:
                log.append("other")


def generators(log: list[object]) -> None:
    def inner() -> Iterator[object]:
        received = yield 1
        log.append(received)
        try:
            yield 2
        except ValueError:
            yield "caught"
        return "end"

    def outer() -> Iterator[object]:
        log.append((yield from inner()))
        yield 3

    g = outer()
    log += [next(g), g.send("sent"), g.throw(ValueError), next(g), list(g)]


def coroutines(log: list[object]) -> None:
    class Async:
        async def __aenter__(self) -> str:
            return "in"

        async def __aexit__(self, *args: object) -> bool:
            return True

    async def numbers() -> object:
        for i in range(3):
            yield i
            await asyncio.sleep(0)

    async def main() -> None:
        async with Async() as a:
            log.append(a)
            raise KeyError
        log.append([i async for i in numbers() if i])
        async for i in numbers():
            log.append(i)

    asyncio.run(main())


def unbound(log: list[object]) -> None:
    try:
        log.append(later)  # noqa: F821
    except UnboundLocalError as error:
        log.append(str(error))
    later = 1
    del later
    try:
        log.append(later)  # noqa: F821
    except UnboundLocalError as error:
        log.append(str(error))


def loops(log: list[object]) -> None:
    i = 0
    while True:
        i += 1
        if i % 2:
            continue
        if i > 6:
            break
        log.append(i)
    else:
        log.append("never")
    for j in range(3):
        for k in range(3):
            if k == j:
                break
        else:
            log.append("all")
        log.append((j, k))
    value = None
    while value is None or value < 3:
        value = (value or 0) + 1
    log.append((value and log and "both") or "none")


FUNCTIONS = [
    calls, exceptions, contexts, containers, closures, matching, generators, coroutines, unbound,
    loops,
]  # fmt: skip


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_recoded_functions_do_what_the_original_does(fn: types.FunctionType) -> None:
    expected: list[object] = []
    fn(expected)
    got: list[object] = []
    recoded_function(fn)(got)
    assert len(expected) >= 2
    assert got == expected


def test_traceback_of_recoded_code_names_the_same_lines() -> None:
    def fails(x: int) -> float:
        y = x + 1
        return y / (x - 1)

    def lines(fn: Callable[[int], float]) -> list[tuple[object, ...]]:
        try:
            fn(1)
        except ZeroDivisionError as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            # Python 3.10 knows lines alone.
            names = ("lineno", "end_lineno", "colno", "end_colno")
            return [getattr(last, name, None) for name in names]
        raise AssertionError("did not fail")

    assert lines(recoded_function(fails)) == lines(fails)


def test_jumps_over_long_bodies_get_extended_arguments() -> None:
    body = "\n".join(f"        total += x + {i}" for i in range(3000))
    source = f"def f(x, n):\n    total = 0\n    for _ in range(n):\n{body}\n    return total\n"
    space: dict[str, Callable[[int, int], int]] = {}
    exec(source, space)
    assert recoded_function(space["f"])(2, 3) == space["f"](2, 3)


# ---- the form itself


def opnames(fn: Callable[..., object]) -> list[str]:
    return [i.opname for i in decode(fn.__code__)]


def test_normal_form_has_calls_without_nulls() -> None:
    def f(g: Callable[..., int], x: str) -> int:
        return g(x.strip(), 1, key=2)

    calls = [i for i in decode(f.__code__) if i.opname == "CALL"]
    assert [(i.arg, i.argval) for i in calls] == [(0, ()), (3, ("key",))]
    assert set(opnames(f)) <= set(NORMAL_OPCODES)
    assert opnames(f) == [
        "RESUME", "LOAD_FAST", "LOAD_FAST", "LOAD_ATTR", "CALL", "LOAD_CONST", "LOAD_CONST", "CALL",
        "RETURN_VALUE",
    ]  # fmt: skip


def test_decorators_count_the_function_as_argument() -> None:
    def f(decorate: Callable[..., object]) -> object:
        @decorate
        def g() -> None: ...

        return g

    assert [i.arg for i in decode(f.__code__) if i.opname == "CALL"] == [1]


def test_jumps_hold_instructions_of_the_list() -> None:
    instructions = decode(loops.__code__)
    targets = [i.target for i in instructions if i.opname in JUMPS]
    assert targets and all(any(t is i for i in instructions) for t in targets)
    assert all(i.target is None for i in instructions if i.opname not in JUMPS)


def test_handler_depth_does_not_count_nulls() -> None:
    def f(g: Callable[..., int], mgr: object) -> int:
        with mgr:
            return g(1)

    handlers = {i.depth for i in decode(f.__code__) if i.handler is not None}
    assert min(handlers) >= 0 and max(handlers) <= 3


def test_encode_with_new_parameters_makes_a_function_of_them() -> None:
    body = [
        Instruction("LOAD_FAST", argval="a"),
        Instruction("LOAD_FAST", argval="b"),
        Instruction("BINARY_OP", argval="*"),
        Instruction("STORE_FAST", argval="c"),
        Instruction("LOAD_FAST", argval="c"),
        Instruction("RETURN_VALUE"),
    ]
    code = encode(body, opnames.__code__, name="times", argcount=2, varnames=("a", "b"))
    assert code.co_varnames == ("a", "b", "c") and code.co_name == "times"
    assert types.FunctionType(code, {})(6, 7) == 42


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([Instruction("POP_TOP"), Instruction("LOAD_CONST", argval=1)], "stack"),
        ([Instruction("LOAD_CONST", argval=1)], "past its end"),
        ([Instruction("JUMP")], "leads to no instruction"),
        ([], "no instructions"),
        ([Instruction("BINARY_OP", argval="?")], "knows no operator"),
        ([Instruction("LOAD_DEREF", argval="x")], "variable is called 'x'"),
    ],
)
def test_encode_of_impossible_code_raises(body: list[Instruction], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(body, opnames.__code__, argcount=0, varnames=())


def test_unknown_names_and_wrong_types_raise() -> None:
    with pytest.raises(ValueError, match="PRECALL"):
        Instruction("PRECALL")
    with pytest.raises(TypeError, match="code object"):
        decode(opnames)
    with pytest.raises(TypeError, match="Instruction"):
        encode([1], opnames.__code__)
    with pytest.raises(TypeError, match="Instruction or None"):
        Instruction("NOP").target = 3


def test_codec_keeps_no_reference_to_constants() -> None:
    marker = object()
    before = sys.getrefcount(marker)
    code = encode(
        [Instruction("LOAD_CONST", argval=marker), Instruction("RETURN_VALUE")],
        opnames.__code__, argcount=0, varnames=(),
    )  # fmt: skip
    instructions = decode(code)
    assert sys.getrefcount(marker) > before
    del code, instructions
    gc.collect()
    assert sys.getrefcount(marker) == before


def outcomes(a: float, b: float) -> tuple[bool, ...]:
    return a < b, a <= b, a == b, a != b, a > b, a >= b


def test_recoded_comparisons_stay_right_when_the_interpreter_specialises_them() -> None:
    recoded_outcomes = recoded_function(outcomes)
    for pair in ((1, 2), (2, 1), (3, 3), (1.5, 2.5), (2.5, 2.5), (float("nan"), 1.0), ("a", "b")):
        for _ in range(100):
            assert recoded_outcomes(*pair) == outcomes(*pair)
