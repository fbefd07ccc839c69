"""OrderedSet: a set in the order of insertion. The reference is the built-in set for what is in it,
and a dict for the order."""

import copy
import itertools
import operator
import pickle

import pytest

from torch.utils._ordered_set import OrderedSet

LISTS = [[], [1], [3, 1, 2], [2, 2, 1, 5, 3], [5, 4]]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(LISTS, LISTS)))
def test_methods_on_any_two_sets_hold_what_the_builtin_set_holds(first, second):
    mine, theirs = OrderedSet(first), set(first)
    for name in ("union", "intersection", "difference", "symmetric_difference"):
        result = getattr(mine, name)(second)
        assert type(result) is OrderedSet
        assert set(result) == getattr(theirs, name)(second)
    for name in ("issubset", "issuperset", "isdisjoint"):
        assert getattr(mine, name)(second) is getattr(theirs, name)(second)
    for name in ("update", "difference_update", "intersection_update"):
        changed, reference = OrderedSet(first), set(first)
        getattr(changed, name)(second)
        getattr(reference, name)(second)
        assert changed == reference


def test_iteration_follows_the_first_insertion():
    made = OrderedSet([3, 1, 3, 2])
    made.add(1)
    assert list(made) == [3, 1, 2]
    assert list(reversed(made)) == [2, 1, 3]
    assert list(made.union([0], [3, 9])) == [3, 1, 2, 0, 9]
    assert list(made.intersection([2, 3])) == [3, 2]


def test_pop_takes_the_last_and_refuses_an_empty_set():
    made = OrderedSet("ab")
    assert (made.pop(), made.pop()) == ("b", "a")
    with pytest.raises(KeyError):
        made.pop()


def test_operators_accept_iterables_on_either_side():
    assert OrderedSet([1]) | [2] == {1, 2}
    assert list([2] | OrderedSet([1])) == [1, 2]
    assert {1, 2} - OrderedSet([1]) == {2}
    same = OrderedSet([1, 2])
    same -= same
    assert len(same) == 0
    with pytest.raises(TypeError):
        operator.le(OrderedSet([1]), [1])


def test_copies_and_pickles_are_equal_and_separate():
    made = OrderedSet([(1, 2), "x"])
    for again in (made.copy(), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert list(again) == list(made)
        again.add("new")
        assert "new" not in made
    assert repr(OrderedSet([1, 2])) == "OrderedSet([1, 2])"
    with pytest.raises(TypeError):
        hash(made)
