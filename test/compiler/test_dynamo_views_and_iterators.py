"""Views and iterators of containers that go over a graph break, cells without a value, and symbolic
numbers that do not have an operator: compiled functions do as plain ones."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo

X = torch.arange(3.0)
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
        seen: list = [r.tolist() if isinstance(r, torch.Tensor) else r for r in fn(X, *args)]
    except Exception as error:
        seen = [type(error), error.args]
    return seen, list(log)


class Table(dict):
    def items(self):
        return [("no", "items")]

    def __iter__(self):
        return iter(["other"])


class Row(list):
    def __iter__(self):
        return iter(["other"])

    def __getitem__(self, i):
        return "changed"


class Plain(dict):
    pass


class Line(list):
    pass


class Group(set):
    pass


def pairs(cls):
    return cls({1: 2, 3: 4})


CONTAINERS = {
    "dict": lambda: pairs(dict),
    "Plain": lambda: pairs(Plain),
    "Table": lambda: pairs(Table),
    "OrderedDict": lambda: pairs(collections.OrderedDict),
    "Counter": lambda: pairs(collections.Counter),
    "defaultdict": lambda: collections.defaultdict(int, {1: 2, 3: 4}),
}


@pytest.mark.parametrize("how", ["view", "iterator", "begun"])
@pytest.mark.parametrize("kind", ["keys", "values", "items"])
@pytest.mark.parametrize("name", CONTAINERS)
def test_views_of_new_dictionaries_show_what_is_stored_after_a_break(name, kind, how) -> None:
    def program(x, grow):
        d = CONTAINERS[name]()
        view = getattr(dict, kind)(d) if name == "Table" else getattr(d, kind)()
        if how != "view":
            view = iter(view)
        if how == "begun":
            log.append(next(view))
        torch._dynamo.graph_break()
        if grow:
            d[9] = 10
        dict.__setitem__(d, 3, 7)
        return x + 1, list(view), dict(d)

    compiled = torch.compile(program, backend="eager")
    for grow in (False, True):
        assert ending(compiled, grow) == ending(program, grow)


@pytest.mark.parametrize("cls", [list, Line, Row, Group, set, collections.deque])
@pytest.mark.parametrize("begun", [False, True])
def test_iterators_of_new_containers_see_what_is_added_after_a_break(cls, begun) -> None:
    def program(x):
        made = cls([1, 2])
        it = list.__iter__(made) if cls is Row else iter(made)
        if begun:
            log.append(next(it))
        torch._dynamo.graph_break()
        (made.add if isinstance(made, set) else made.append)(9)
        return x + 1, list(it)

    assert ending(torch.compile(program, backend="eager")) == ending(program)


@pytest.mark.parametrize("cls", [list, Line, Row, tuple])
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_reversed_sequences_are_walked_where_they_were(cls, taken) -> None:
    def program(x, given):
        made = cls([1, 2, 3])
        walks = [reversed(made), reversed(given)]
        for walk in walks:
            log.extend(next(walk, None) for _ in range(taken))
        torch._dynamo.graph_break()
        if not isinstance(made, tuple):
            list.__setitem__(made, 0, 7)
            given.append(9)
            made.append(11)
        return x + 1, [type(walk).__name__ for walk in walks], [list(walk) for walk in walks]

    compiled = torch.compile(program, backend="eager")
    assert ending(compiled, [4, 5, 6]) == ending(program, [4, 5, 6])


class Scaled(dict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 100

    def __iter__(self):
        return iter([])


class Hundreds(list):
    def __getitem__(self, i):
        return super().__getitem__(i) * 100


class Fixed(tuple):
    def __getitem__(self, i):
        return super().__getitem__(i) * 100


@pytest.mark.parametrize("key", [1, X], ids=["number", "object"])
def test_values_of_a_dictionary_are_not_read_by_its_own_method(key) -> None:
    def program(x, d):
        return x + 1, *[v + 1 for v in d.values()], d.get(key) * 2, d[key], *d.keys()

    compiled = torch.compile(program, backend="eager")
    for factor in (1, 2):
        d = Scaled({key: X * factor, 2: X + factor})
        assert ending(compiled, d) == ending(program, d)


@pytest.mark.parametrize("cls", [Hundreds, Fixed])
def test_items_of_a_sequence_are_not_read_by_its_own_method(cls) -> None:
    def program(x, items, other):
        first = list(items)
        torch._dynamo.graph_break()
        return x + 1, first[0] + 1, *[v + 1 for v in items], items[1], next(other)

    compiled = torch.compile(program, backend="eager")
    for factor in (1, 2):
        items = cls([X * factor, X + factor])
        assert ending(compiled, items, iter(items)) == ending(program, items, iter(items))


@pytest.mark.parametrize("first", [True, False])
def test_cell_without_a_value_is_another_form_of_the_code(first) -> None:
    def make(bound):
        k = 3

        def program(x):
            try:
                return x + k, "bound"
            except NameError as error:
                return x - 1, str(error)

        if not bound:
            del k
        return program

    def call(x, program):
        return program(x)

    compiled = torch.compile(call, backend="eager")
    for bound in (first, not first, first):
        assert ending(compiled, make(bound)) == ending(call, make(bound))


def test_numbers_that_vary_refuse_what_floats_refuse() -> None:
    def program(x, n):
        whole, broken = ~n, 1 + float(n)
        try:
            return x + whole, ~broken
        except TypeError as error:
            return x + broken, str(error)

    compiled = torch.compile(program, backend="eager")
    for n in (3, 4, 6):
        assert ending(compiled, n) == ending(program, n)
