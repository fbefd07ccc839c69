"""Python's protocols as random functions test them: containers that change while they are walked,
patterns, unpacking, what operators and calls say when they refuse, tracebacks, caches. Each program
is compared with plain Python, as it is and after a graph break."""

from __future__ import annotations

import builtins
import collections
import collections.abc
import functools
import itertools
from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo
import torch._dynamo.testing

X = torch.arange(3.0)
Group = vars(builtins).get("ExceptionGroup")
log: list[object] = []


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def ending(fn: Callable, *args: object) -> tuple:
    """What a call returns or raises, and what it noted."""
    log.clear()
    try:
        result = fn(X.clone(), *args)
        seen = [r.tolist() if isinstance(r, torch.Tensor) else r for r in result]
    except Exception as error:
        seen = [type(error), error.args]
    return seen, list(log)


def same(fn: Callable, *make: Callable[[], object]) -> None:
    """Compiled and plain end alike, also where the arguments come over a break."""

    def broken(x: torch.Tensor, *args: object) -> object:
        torch._dynamo.graph_break()
        return fn(x, *args)

    wanted = ending(fn, *[m() for m in make])
    for program in (fn, broken):
        compiled = torch.compile(program, backend="eager")
        for _ in range(2):
            args = [m() for m in make]
            assert ending(compiled, *args) == wanted


def caught(fn: Callable) -> Callable:
    """A program that handles what fn raises."""

    def program(x: torch.Tensor, *args: object) -> object:
        try:
            return x + 1, fn(*args)
        except Exception as error:
            return x + 2, type(error).__name__, str(error)

    return program


# ---- walks


def table() -> dict:
    return {1: 2, 3: 4}


@pytest.mark.parametrize("walked", [iter, dict.items, lambda d: (k for k in d), reversed])
def test_dictionary_that_grows_after_the_walk_began_raises(walked: Callable) -> None:
    def program(x, d):
        it = iter(walked(d))
        d[9] = 1
        return x + 1, next(it)

    same(program, table)


def test_dictionary_changed_at_its_last_key_raises() -> None:
    def program(x, d):
        for k in d:
            if k == 3:
                d[7] = 1
        return (x + 1,)

    same(program, table)


def test_dictionary_that_keeps_its_size_gives_what_python_gives() -> None:
    def program(x, d):
        seen = []
        for k in d:
            seen.append(k)
            if len(seen) < 3:
                d[k + 10] = d.pop(k)
        return x + 1, seen

    same(program, table)


def test_set_that_changes_its_size_during_a_walk_raises() -> None:
    def program(x, s):
        it = iter(s)
        s.add(17)
        return x + 1, next(it)

    same(program, lambda: {1, 2})


def test_generator_over_a_dictionary_is_left_to_raise_after_the_graph() -> None:
    def program(x, d, items):
        it = zip(items, d, strict=False)
        first = next(it, 0)
        d.clear()
        return x + 1, first, next(it, 1)

    same(program, table, lambda: [5, 6])


def test_set_is_walked_in_the_order_of_its_history() -> None:
    def program(x, s):
        t = set(range(100))
        for i in range(100):
            if i not in (8, 1, 33):
                t.discard(i)
        s |= {8, 16, 0}
        s -= {16}
        return x + 1, list(t), list(s), list({24, 8, 0, 16}), list(frozenset([9, 1, 17]))

    same(program, lambda: {3, 11})


def test_set_is_walked_in_its_order_where_a_number_varies() -> None:
    def program(x, s, n):
        s |= {n}
        t = {(n, 1), (1, 2), (2, 3), (3, 4)}
        return x + 1, list(s), list(t), hash((n, "a")), hash(n)

    compiled = torch.compile(program, backend="eager")
    for n in (5, 0, 3, 0, 17):
        assert compiled(X, {1, 2}, n)[1:] == program(X, {1, 2}, n)[1:]


def test_hash_of_what_has_an_address_is_that_of_python() -> None:
    def program(x):
        objects = (x, (1).bit_length, id)
        again = [hash(o) == hash(o) for o in objects]
        return x + 1, [hash(o) == hash((o,)) for o in objects], again

    same(program)


def test_set_in_another_order_is_another_graph() -> None:
    def program(x, s):
        return x + 1, list(s)

    compiled = torch.compile(program, backend="eager")
    for members in ([0, 8], [8, 0], [0, 8]):
        s = {members[0]}
        s.add(members[1])
        assert compiled(X, s)[1] == list(s)


def test_set_written_back_keeps_the_order_of_python() -> None:
    def program(x, s):
        s.add(16)
        s.discard(0)
        s.update([24, 32])
        return (x + 1,)

    results = []
    for fn in (program, torch.compile(program, backend="eager")):
        s = {0, 8}
        fn(X, s)
        results.append(list(s))
    assert results[0] == results[1]


# ---- unpacking


def counting() -> Iterator[int]:
    for i in range(10):
        log.append(i)
        yield i


def test_unpacking_takes_no_more_than_it_needs() -> None:
    def program(x):
        it = counting()
        try:
            a, b = it
        except ValueError as error:
            return x + 1, str(error), next(it, "over")
        return x, a, b

    same(program)


def test_unpacking_an_endless_iterator_raises() -> None:
    @caught
    def program():
        a, b = itertools.count()
        return a, b

    same(program)


# ---- what is said when something is refused


class Small:
    __slots__ = ("a",)
    kind = 3


class Whole(int):
    pass


def take(a, b=2, /, *, c):
    return a


REFUSED = {
    "tuple item": lambda: (1, 2).__class__((1, 2)).__setitem__(0, 1),
    "set item": lambda: set(X.shape)[0],
    "unpack int": lambda: (lambda a: [*a])(3),
    "less": lambda: [1] < (1,),
    "less dict": lambda: {} < {},
    "concatenate": lambda: [1] + (2,),
    "concatenate deque": lambda: collections.deque([1]) + [2],
    "concatenate number": lambda: (1,) + 2,
    "multiply": lambda: [1] * "a",
    "negative": lambda: -[1],
    "absolute": lambda: abs([1]),
    "in place": lambda: functools.reduce(lambda a, b: a.__class__(a) if b else a, [{1}], 0),
    "index": lambda: [1, 2].index(7),
    "index of deque": lambda: collections.deque([1]).index("q"),
    "index of tuple": lambda: (1, 2).index(3),
    "next of list": lambda: next([1]),
    "key": lambda: {}[(1, Whole)],
    "key of set": lambda: {1}.remove((2, 3)),
    "popitem": lambda: {}.popitem(),
    "popitem of ordered": lambda: collections.OrderedDict().popitem(),
    "too many": lambda: take(1, 2, 3),
    "missing": lambda: take(1),
    "positional only": lambda: take(1, b=2, c=3),
    "unexpected": lambda: take(1, d=2, c=3),
    "twice": lambda: (lambda a, b=1: a)(1, a=2),
    "keyword twice": lambda: (lambda a, b: take(1, **a, **b))({"c": 1}, {"c": 2}),
    "throw": lambda: (lambda g: (next(g), g.throw(KeyError, "k")))(counting()),
    "throw parts": lambda: (lambda g: (next(g), g.throw(KeyError, ("k", 2))))(counting()),
    "group": lambda: Group("g", [IndexError]),
    "text of a group": lambda: str(Group("g", [IndexError(1)])),
    "call of none": lambda: (lambda a: a())(None),
    "call of list": lambda: (lambda a: a())([1]),
    "reflected": lambda: 3 - Whole(1),
    "whole": lambda: (Whole(3) + 1, Whole(3) == 3, -Whole(2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_is_worded_as_python_words_it(name: str) -> None:
    same(caught(REFUSED[name]))


@pytest.mark.parametrize("kind", [int, float])
def test_division_by_a_varying_number_that_is_zero(kind: type) -> None:
    def program(x, n):
        seen = []
        for i in range(3):
            try:
                seen.append(1 / n if i == 0 else (1 // n if i == 1 else 1 % n))
            except ZeroDivisionError as error:
                seen.append(str(error))
        return x + 1, seen

    compiled = torch.compile(program, backend="eager")
    for n in (1, 2, 3, 0, 0):
        assert ending(compiled, kind(n)) == ending(program, kind(n))


def test_statements_that_are_refused() -> None:
    def program(x):
        seen = []
        t, s, small = (1, 2), "ab", Small()
        for i in range(7):
            try:
                if i == 0:
                    t[0] = 1
                elif i == 1:
                    del t[0]
                elif i == 2:
                    s[0] = "c"
                elif i == 3:
                    small.b = 1
                elif i == 4:
                    small.kind = 1
                elif i == 5:
                    seen, t = 3
                else:
                    t += 1
            except Exception as error:
                seen.append(repr(error))
        return x + 1, seen

    same(program)


# ---- patterns


class Ring(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, key):
        return self.items[key]


class Bag(collections.abc.Mapping):
    def __init__(self, **kept):
        self.kept = kept

    def __getitem__(self, key):
        return self.kept[key]

    def __iter__(self):
        return iter(self.kept)

    def __len__(self):
        return len(self.kept)


class Spot:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def sum(self):
        return self.a + self.b

    def less(self):
        return self.a - self.b


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: Ring(1, 2), lambda: Bag(k=3, z=1), lambda: collections.deque([1, 5])),
        *(lambda: "ab", lambda: 7, lambda: range(2), lambda: {"k": 3}, lambda: Spot(1, 2)),
        *(lambda: collections.defaultdict(list), lambda: True, lambda: Spot(3, 4)),
    ],
)
def test_patterns_fit_what_they_fit_in_python(make: Callable) -> None:
    def program(x, value):
        match value:
            case Spot(1, b):
                got = ("spot", b)
            case [1, last]:
                got = ("sequence", last)
            case {"k": found, **rest}:
                got = ("mapping", found, rest)
            case bool(flag):
                got = ("bool", flag)
            case int(number):
                got = ("int", number)
            case [*items]:
                got = ("items", items)
            case {}:
                got = ("any mapping", len(value))
            case _:
                got = ("nothing", type(value).__name__)
        return x + 1, got

    same(program, make)


def test_pattern_with_too_many_parts_raises() -> None:
    @caught
    def program(value):
        match value:
            case Spot(1, 2, 3):
                return 1
        return 2

    same(program, lambda: Spot(1, 2))


# ---- exceptions and contexts


class Noting:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        log.append((kind and kind.__name__, tb is not None))
        return True


def test_context_is_left_with_a_traceback() -> None:
    def program(x):
        with Noting():
            raise KeyError(1)
        with Noting():
            x = x + 1
        return (x,)

    same(program)


def test_exception_has_a_traceback_once_it_was_raised() -> None:
    def program(x):
        error = ValueError(1)
        before = error.__traceback__ is None
        try:
            raise error
        except ValueError as kept:
            inside = kept.__traceback__ is None
        torch._dynamo.graph_break()
        return x + 1, before, inside, error.__traceback__ is None

    same(program)


# ---- functions and generators


@functools.lru_cache
def cached(n):
    log.append(n)
    return n * 2


@functools.lru_cache
def pure(n):
    return n * 2


def test_cached_function_has_its_side_effects_once() -> None:
    def program(x):
        cached.cache_clear()
        return x + cached(3), cached(3), cached.cache_info().hits

    same(program)


def test_cached_function_without_side_effects_is_part_of_the_graph() -> None:
    compiled = torch.compile(lambda x: x + pure(4), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X + 8)


def test_finished_generator_has_no_frame() -> None:
    def program(x):
        it = counting()
        first = it.gi_frame is None
        list(it)
        return x + 1, first, it.gi_frame is None, it.gi_running, it.__name__

    same(program)


total = 0


def test_globals_as_a_dictionary_are_the_globals() -> None:
    def program(x):
        global total
        total = 1
        globals()["total"] = total + 4
        seen = total
        globals().update(total=seen + 1)
        return x + total, seen

    same(program)


def test_view_of_a_dictionary_that_comes_over_a_break_has_its_length() -> None:
    def program(x, view):
        try:
            return x + 1, len(view)
        except TypeError as error:
            return x + 2, str(error)

    same(program, lambda: {1: 2, 3: 4}.keys())


def test_methods_of_one_object_are_equal() -> None:
    def program(x):
        one, other = Spot(1, 2), Spot(1, 2)
        return x + 1, one.sum == one.sum, one.sum == other.sum, one.sum != one.less, one.sum()

    same(program)


class Steps(collections.abc.Sequence):
    """Its iterator is a generator that waits inside of `except IndexError`."""

    def __init__(self, *values):
        self.values = values

    def __getitem__(self, i):
        return self.values[i]

    def __len__(self):
        return len(self.values)


def test_walk_that_ends_early_inside_of_a_try_without_effect_stays_in_the_graph() -> None:
    def program(x):
        found = 7 in Steps(5, 7, 9)
        return x + 1, found, next(iter(Steps(3, 4)))

    same(program)
    counter = torch._dynamo.testing.CompileCounter()
    torch.compile(program, backend=counter)(X)
    assert counter.frame_count == 1


def pairs(count):
    try:
        yield from range(count)
    except (KeyError, builtins.ValueError):
        log.append("lookup")


def noted(count):
    try:
        yield from range(count)
    except BaseException as error:
        log.append(type(error).__name__)
        raise


def finished(count):
    try:
        try:
            yield from range(count)
        except IndexError:
            log.append("index")
    finally:
        log.append("finally")


@pytest.mark.parametrize("numbers", [pairs, noted, finished])
def test_generators_that_are_freed_while_they_wait_do_as_in_python(numbers) -> None:
    def program(x):
        return x + 1, 1 in numbers(3), next(numbers(2))

    same(program)


# ---- classes of classes


class Meta(type):
    def __call__(cls, *args):
        log.append(cls.__name__)
        return super().__call__(*args)


class Made(metaclass=Meta):
    def __init__(self, v=1):
        self.v = v


def test_class_whose_class_makes_the_objects_is_part_of_the_graph() -> None:
    def program(x):
        return x + Made(3).v, Made().v

    same(program)
    log.clear()
    compiled = torch.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X)[0], X + 3)
