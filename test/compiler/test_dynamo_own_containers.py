"""Classes that derive from builtin containers, compiled: which class copies and sums have, which
methods of the class run, and that writing changes back runs none of them."""

import collections

import pytest

import torch

LOG = []


class Items(list):
    def __setitem__(self, *args):
        LOG.append("list")
        super().__setitem__(*args)

    def clear(self):
        LOG.append("list.clear")
        super().clear()


class Members(set):
    def add(self, value):
        LOG.append("set")
        super().add(value)

    def update(self, *args):
        LOG.append("set.update")
        super().update(*args)

    def discard(self, value):
        LOG.append("set.discard")
        super().discard(value)


class Queue(collections.deque):
    def extend(self, values):
        LOG.append("deque")
        super().extend(values)

    def clear(self):
        LOG.append("deque.clear")
        super().clear()


class Table(dict):
    def __setitem__(self, key, value):
        LOG.append("dict")
        super().__setitem__(key, value)


class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        LOG.append(("ordered", key))
        super().__setitem__(key, (value,))


class Default(collections.defaultdict):
    pass


def shown(*values):
    return [(type(v).__name__, repr(v), getattr(v, "maxlen", None)) for v in values]


def copies(x):
    o, d, q = Ordered(a=1), Default(int, a=1), Queue([1, 2], 3)
    return (
        shown(o.copy(), o | {"b": 2}, {"b": 1} | o, Ordered.fromkeys("ab")),
        shown(collections.OrderedDict(o)),
        shown(d.copy(), d | {"b": 1}, {"z": 1} | d),
        shown(q.copy(), q + Queue([4]), q * 2, 2 * q),
        shown(Default.fromkeys("ab"), Table.fromkeys("ab", 1)),
        shown(collections.defaultdict.fromkeys("a")),
        shown(Table(a=1).copy(), Items([1]).copy(), Members([1]).copy(), Members([1]) | {2}),
    )  # fmt: skip


def sum_of_other_kinds(x):
    return Queue([1]) + [2]


def union_with_a_list(x):
    return Ordered(a=1) | [2]


def stored_by_update(x):
    o = Ordered(a=1)
    o.update({"b": 2}, c=3)
    o.update([("d", 4)])
    o |= {"e": 5}
    return shown(o)


def method_of_a_base_class(x):
    o = collections.OrderedDict(a=1)
    return (
        dict.__len__(o), dict.get({"a": 1}, "a"), list.__len__(Items([1])), int.__repr__(True),
        object.__sizeof__(collections.deque()), dict.__repr__(Ordered(a=1)), dict.pop(o, "a"),
    )  # fmt: skip


def outcome(fn):
    LOG.clear()
    try:
        return fn(torch.ones(2)), list(LOG)
    except Exception as error:
        return type(error), str(error), list(LOG)


@pytest.mark.parametrize(
    "program",
    [copies, sum_of_other_kinds, union_with_a_list, stored_by_update, method_of_a_base_class],
    ids=lambda fn: fn.__name__,
)
def test_methods_give_what_plain_python_gives(program):
    torch._dynamo.reset()
    assert outcome(torch.compile(program, backend="eager")) == outcome(program)


def change(x, items, members, queue, table, ordered):
    items.append(3)
    items[0] = 5
    members.add(3)
    members.discard(1)
    queue.append(4)
    table["z"] = 1
    ordered["k"] = 2
    ordered.pop("a")
    made = Ordered(a=1), Items([1]), Members([1]), Queue([1, 2], 2)
    made[0]["b"] = 2
    made[2].add(9)
    made[3].extend([5])
    return made, x + 1


def test_changes_are_written_back_without_methods_of_the_class():
    def run(fn):
        given = Items([1, 2]), Members([1, 2]), Queue([1], 5), Table(a=1), Ordered(a=1, b=2)
        LOG.clear()
        made, _ = fn(torch.ones(2), *given)
        return shown(*given, *made), list(LOG)

    torch._dynamo.reset()
    compiled = torch.compile(change, backend="eager", fullgraph=True)
    assert run(compiled) == run(change)
    assert run(compiled) == run(change)
