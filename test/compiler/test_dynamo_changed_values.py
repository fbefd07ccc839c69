"""A compiled function that is called with one value of a kind after the other never takes a value
for an earlier one: every read of it rests on a condition."""

import collections
import datetime
import enum
import fractions
import functools
import operator
import os
import re
import types

import pytest

import torch


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(int):
    pass


class Word(str):
    __slots__ = ()


class Members(set):
    pass


class Frozen(frozenset):
    pass


class Line(collections.deque):
    pass


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


Pair = collections.namedtuple("Pair", "left right")
FIRST, SECOND = Plain(), Plain()


def closure(value):
    return lambda: value


def default(value):
    return lambda given=value: given


def types_of(values):
    return [type(value).__name__ for value in values]


# By kind: values that differ, and what is read of them.
KINDS = {
    "numbers": ([True, 1, 1.0, 0, False, 0.0, -0.0, 2.5, 3.5, 2**70], [repr, lambda v: v + 1]),
    "numbers in a list": ([[1], [True], [1.0], [-0.0], [0.0], [2.5]], [repr]),
    "numbers in a tuple": ([(1,), (True,), (1.0,), (0.0,), (-0.0,)], [repr]),
    "complex": ([0j, complex(0, -0.0), complex(-0.0, 0), 1j], [repr]),
    "keys": ([{1: 2}, {True: 2}, {1.0: 2}, {(1,): 2}, {(True,): 2}], [repr]),
    "sets": ([{1}, {True}, {1.0}, {1, 2}, {"a"}], [types_of, len]),
    "frozensets": ([frozenset([1]), frozenset([True]), frozenset([2])], [types_of, sorted]),
    "sets of a class": ([Members([1]), Members([1, 2]), Members([True])], [len, types_of]),
    "frozensets of a class": ([Frozen([1]), Frozen([1, 2])], [len, sorted, lambda s: 2 in s]),
    "deques of a class": ([Line([1]), Line([1], 2), Line([1, 2])], [len, lambda d: d.maxlen]),
    "ranges": ([range(0), range(5, 5), range(0, 5, 2), range(0, 6, 2)], [repr, lambda r: r.stop]),
    "slices": ([slice(1), slice(2), slice(1, 2)], [lambda s: list(range(4))[s]]),
    "ordered": ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [list]),
    "enums": (list(Color), [lambda c: c.name, lambda c: c is Color.RED]),
    "integers of a class": ([Number(1), Number(2), Number(5)], [int, hash, lambda n: n + 1]),
    "texts of a class": ([Word("a"), Word("b")], [len, str.upper, lambda w: {"a": 1}.get(w)]),
    "pairs": ([Pair(1, 2), Pair(2, 3)], [lambda p: p.left, sum]),
    "objects": ([Plain(a=1), Plain(a=2), Plain(a=2, b=1)], [vars, lambda o: hasattr(o, "b")]),
    "cells": ([closure(1), closure(2), closure([3])], [lambda f: f()]),
    "defaults": ([default(1), default(2), default(7)], [lambda f: f(), lambda f: f.__defaults__]),
    "partials": ([functools.partial(max, 1), functools.partial(max, 5)], [lambda p: p(3)]),
    "getters": ([operator.itemgetter(0), operator.itemgetter(1)], [lambda g: g([1, 2])]),
    "patterns": ([re.compile("a"), re.compile("b")], [lambda p: bool(p.match("a"))]),
    "dates": ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], [lambda d: d.year]),
    "fractions": ([fractions.Fraction(1, 2), fractions.Fraction(1, 3)], [float]),
    "namespaces": ([types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)], [lambda s: s.a]),
    "global objects": ([SECOND, FIRST, SECOND], [lambda o: o is FIRST, lambda o: o in [FIRST]]),
    "object keys": ([{SECOND: 1}, {FIRST: 1}], [lambda d: FIRST in d, lambda d: d.get(FIRST)]),
    "extremes": ([1.5, 2.5, -0.5, 0.25], [lambda v: max(v, 1), lambda v: min(v, 1)]),
}
CASES = [
    pytest.param(values, read, id=f"{kind} {place}")
    for kind, (values, reads) in KINDS.items()
    for place, read in enumerate(reads)
]


def plain(fn, calls):
    return [repr(fn(*args, [])) for args in calls]


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize(("values", "read"), CASES)
def test_each_value_is_read_as_it_is(values, read, broken):
    def fn(value, log):
        if broken:
            torch._dynamo.graph_break()
        log.append(read(value))
        return log

    for order in (values, values[::-1], [*values, *values]):
        torch._dynamo.reset()
        calls = [(value,) for value in order]
        assert plain(torch.compile(fn, backend="eager"), calls) == plain(fn, calls)


QUESTIONS = {
    "is": lambda a, b: a is b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "in a list": lambda a, b: a in [b],
    "in a tuple": lambda a, b: a in (b,),
    "in a set": lambda a, b: len({a, b}),
    "in a table": lambda a, b: {a: 1}.get(b),
    "lists": lambda a, b: [a] == [b],
    "count": lambda a, b: [b, b].count(a),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_two_objects_that_become_one(ask):
    def fn(a, b, log):
        log.append(ask(a, b))
        return log

    for order in ([0, 1], [1, 0], [0, 1, 0]):
        torch._dynamo.reset()
        calls = [(FIRST, FIRST) if same else (FIRST, SECOND) for same in order]
        assert plain(torch.compile(fn, backend="eager"), calls) == plain(fn, calls)


def test_variables_of_the_environment_are_read_whole(monkeypatch):
    def fn(x, log):
        log += [os.environ.get("CRESSET_SEEN", "0"), "CRESSET_SEEN" in os.environ]
        log.append(os.getenv("CRESSET_SEEN"))
        try:
            log.append(os.environ["CRESSET_SEEN"])
        except KeyError as error:
            log.append(repr(error))
        return x + 1

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend="eager", fullgraph=True)
    for value in (None, "1", "2", None):
        if value is None:
            monkeypatch.delenv("CRESSET_SEEN", raising=False)
        else:
            monkeypatch.setenv("CRESSET_SEEN", value)
        want, got = [], []
        fn(torch.ones(1), want)
        compiled(torch.ones(1), got)
        assert got == want


@pytest.mark.parametrize("divide", [operator.mod, operator.floordiv, operator.truediv, divmod])
def test_a_varying_number_divided_by_zero(divide):
    def fn(n, log):
        try:
            log.append(divide(n, 0))
        except ZeroDivisionError as error:
            log.append(str(error))
        return log

    torch._dynamo.reset()
    calls = [(n,) for n in (2, 3, 4)]
    assert plain(torch.compile(fn, backend="eager"), calls) == plain(fn, calls)
