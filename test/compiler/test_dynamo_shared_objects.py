"""One object that a compiled function reaches by two ways, or two objects that are alike: a change
that is made by one way is seen by the other exactly where the object is one, whichever came
first."""

import collections
import functools
import itertools
import types

import pytest

import torch


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Method:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


class Meta(type):
    pass


def closure(value):
    return lambda: value


def default(value):
    def read(given=value):
        return given

    return read


def keyword(value):
    def read(*, given=value):
        return given

    return read


def bound_class(value):
    return Meta("Bound", (), {"value": value})


# Ways to an object: how the holder is made, and how the object is read from it.
WAYS = {
    "argument": (lambda v: v, lambda h: h),
    "attribute": (lambda v: Plain(value=v), lambda h: h.value),
    "slot": (Slotted, lambda h: h.value),
    "item": (lambda v: [0, v], lambda h: h[1]),
    "entry": (lambda v: {"k": v}, lambda h: h["k"]),
    "part": (lambda v: (v, 1), lambda h: h[0]),
    "deque": (lambda v: collections.deque([v]), lambda h: h[0]),
    "cell": (closure, lambda h: h()),
    "default": (default, lambda h: h()),
    "keyword": (keyword, lambda h: h()),
    "method": (lambda v: Method(v).get, lambda h: h()),
    "class": (bound_class, lambda h: h.value),
    "partial": (lambda v: functools.partial(lambda a: a, v), lambda h: h()),
    "namespace": (lambda v: types.SimpleNamespace(value=v), lambda h: h.value),
    "proxy": (lambda v: types.MappingProxyType({"k": v}), lambda h: h["k"]),
    "dictionary": (lambda v: Plain(value=v).__dict__, lambda h: h["value"]),
}
# Kinds of objects: how one is made, how it is changed, and what is read of it.
KINDS = {
    "list": (lambda: [1, 2], lambda o: o.append(3), lambda o: list(o)),
    "dict": (lambda: {1: 2}, lambda o: o.update({3: 4}), lambda o: dict(o)),
    "set": (lambda: {1, 2}, lambda o: o.add(3), lambda o: sorted(o)),
    "deque": (lambda: collections.deque([1]), lambda o: o.append(3), lambda o: list(o)),
    "object": (lambda: Plain(n=1), lambda o: setattr(o, "n", 5), lambda o: o.n),
    "tensor": (lambda: torch.ones(2), lambda o: o.add_(1), lambda o: o.tolist()),
}
PAIRS = list(itertools.combinations_with_replacement(WAYS, 2))


def calls_of(first, second, kind, order):
    """Fresh arguments for each call: one object or two."""
    for shared in order:
        one = KINDS[kind][0]()
        other = one if shared else KINDS[kind][0]()
        yield WAYS[first][0](one), WAYS[second][0](other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["apart first", "one first"])
def test_changes_are_seen_where_the_object_is_one(kind, order):
    change, read = KINDS[kind][1:]
    wrong = []
    for first, second in PAIRS:
        get_first, get_second = WAYS[first][1], WAYS[second][1]

        def fn(a, b, x, log, get_first=get_first, get_second=get_second):
            change(get_first(a))
            log.append(get_first(a) is get_second(b))
            return x + 1, read(get_second(b)), read(get_first(a))

        results = []
        torch._dynamo.reset()
        for call in (fn, torch.compile(fn, backend="eager")):
            seen = []
            for a, b in calls_of(first, second, kind, order):
                log = []
                out = call(a, b, torch.zeros(1), log)
                seen.append((out[1:], log, read(get_second(b)), read(get_first(a))))
            results.append(seen)
        if results[0] != results[1]:
            wrong.append((first, second, results))
    assert not wrong, wrong


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0)])
@pytest.mark.parametrize("dictionary_first", [False, True])
def test_object_beside_its_own_dictionary(order, dictionary_first):
    def fn(given, other, x):
        obj, table = (other, given) if dictionary_first else (given, other)
        table["a"] = table["a"] + 5
        obj.b = obj.a
        return x + obj.a, dict(table)

    results = []
    for call in (fn, torch.compile(fn, backend="eager")):
        seen = []
        for own in order:
            obj = Plain(a=1)
            table = obj.__dict__ if own else {"a": 1}
            args = (table, obj) if dictionary_first else (obj, table)
            out = call(*args, torch.zeros(1))
            seen.append((out[0].item(), out[1], dict(vars(obj))))
        results.append(seen)
    assert results[0] == results[1]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0)])
def test_closures_that_share_a_variable(order):
    def counters(shared):
        def make():
            n = 0

            def add(x):
                nonlocal n
                n += 2
                return x + n

            def get(x):
                return x + n

            return add, get

        add, get = make()
        return (add, get) if shared else (add, make()[1])

    def fn(add, get, x):
        return add(x) + get(x) * 10

    torch._dynamo.reset()
    results = [
        [call(*counters(shared), torch.zeros(1)).item() for shared in order]
        for call in (fn, torch.compile(fn, backend="eager"))
    ]
    assert results[0] == results[1]
