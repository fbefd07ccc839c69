"""Dictionaries that are parts of objects, inside of compiled functions: what is stored in one of
the two is in the other, in whichever order they are looked at, and there is one for an object."""

from __future__ import annotations

import copy
import functools
import types

import pytest

import torch


class Plain:
    pass


class WithSlot:
    __slots__ = ("__dict__", "slot")


SHARED = Plain()
SHARED.first = 1


def existing() -> None:
    pass


def of_new_object():
    made = Plain()
    own = made.__dict__
    made.a = 1
    return "a" in own, own is made.__dict__, len(own)


def by_two_looks():
    made = Plain()
    one, other = made.__dict__, vars(made)
    one["q"] = 1
    return other.get("q"), made.q


def of_shared_object():
    own = SHARED.__dict__
    SHARED.a = 1
    during = "a" in own, len(own)
    del SHARED.a
    return during, "a" in own, list(own)


def deleted_and_stored_again():
    SHARED.a, SHARED.b = 1, 2
    del SHARED.first
    SHARED.first = 1
    order = list(SHARED.__dict__)
    own = SHARED.__dict__
    del own["a"]
    del SHARED.b
    return order, list(own), hasattr(SHARED, "a")


def of_new_function():
    def made():
        pass

    own = made.__dict__
    made.a = 1
    made.__dict__["b"] = 2
    return own, own is made.__dict__, made.b


def of_existing_function():
    own = existing.__dict__
    existing.a = 1
    found = "a" in own
    del existing.a
    return found


def written_by_dictionary():
    existing.__dict__["b"] = 1
    found = existing.b
    del existing.b
    return found


def read_after_store():
    existing.q = 1
    found = dict(existing.__dict__)
    del existing.q
    return found


def slots_are_apart():
    made = WithSlot()
    made.slot = 1
    own = made.__dict__
    made.slot, made.other = 2, 3
    return own


def of_exceptions():
    try:
        try:
            raise ValueError(1)
        except ValueError as cause:
            raise KeyError(2) from cause
    except KeyError as error:
        error.mine = 3
        return dict(error.__dict__)


def walked_while_it_grows():
    made = Plain()
    made.a = 1
    walk = iter(made.__dict__)
    next(walk)
    made.b = 2
    return next(walk)


def over_a_break():
    made = Plain()
    own = made.__dict__
    made.a = 1
    torch._dynamo.graph_break()
    made.b = 2
    return own, own is made.__dict__


def by_methods():
    made = Plain()
    own = made.__dict__
    own.update(a=1, b=2)
    own.setdefault("c", 3)
    taken = own.pop("a")
    return made.b, made.c, hasattr(made, "a"), taken, list(own)


def by_a_key_that_is_no_text():
    made = Plain()
    made.__dict__[1] = 2
    return made.__dict__


def copied():
    made = Plain()
    made.a = 1
    copy = made.__dict__.copy()
    made.b = 2
    return copy, {**made.__dict__}


def takes_by_name(*, k=1):
    return k


PARTIAL = functools.partial(dict, a=1)
PARTIAL.note = "n"


def defaults_of_new_function():
    def made(*, k=1, j=2):
        return k, j

    own = made.__kwdefaults__
    own["k"] = 4
    return made(), own is made.__kwdefaults__, sorted(own)


def defaults_of_existing_function():
    takes_by_name.__kwdefaults__["k"] = 5
    found = takes_by_name()
    takes_by_name.__kwdefaults__["k"] = 1
    return found, takes_by_name()


def keywords_of_new_partial():
    made = functools.partial(dict, a=1)
    made.keywords["b"] = 2
    return made(), made.args, made.keywords is made.keywords


def keywords_of_existing_partial():
    own = PARTIAL.keywords
    own["z"] = 2
    during = PARTIAL()
    del own["z"]
    return during, PARTIAL(), PARTIAL.keywords is own


def attributes_of_partials():
    made = functools.partial(dict, a=1)
    made.other = 3
    return made.__dict__, made.other, PARTIAL.note, dict(PARTIAL.__dict__), hasattr(PARTIAL, "zz")


def partials_are_equal_to_themselves():
    made = functools.partial(dict, a=1)
    other = functools.partial(dict, a=1)
    return made == made, made == other, copy.copy(made)(), copy.copy(made) is made


MODULE = types.ModuleType("made_for_tests")
TENSOR = torch.ones(2)


def of_modules():
    own = vars(MODULE)
    MODULE.y = 2
    found = "y" in own, MODULE.__dict__ is own
    own["z"] = 3
    found += (MODULE.z, own["y"])
    del MODULE.y, MODULE.z
    return found, hasattr(MODULE, "y")


def of_tensors():
    own = TENSOR.__dict__
    TENSOR.tag = "a"
    found = dict(own)
    own["other"] = 1
    found["read"] = TENSOR.other
    del TENSOR.tag, TENSOR.other
    return found, own


def defaults_that_are_set():
    def made(v=1):
        return v

    torch._dynamo.graph_break()
    before = made.__defaults__
    made.__defaults__ = (3,)
    return before, made(), made.__defaults__


CASES = (
    of_modules, of_tensors, defaults_that_are_set,
    defaults_of_new_function, defaults_of_existing_function, keywords_of_new_partial,
    keywords_of_existing_partial, attributes_of_partials, partials_are_equal_to_themselves,
    of_new_object, by_two_looks, of_shared_object, deleted_and_stored_again, of_new_function,
    of_existing_function, written_by_dictionary, read_after_store, slots_are_apart, of_exceptions,
    walked_while_it_grows, over_a_break, by_methods, by_a_key_that_is_no_text, copied,
)  # fmt: skip


def outcome(run, x: torch.Tensor) -> str:
    try:
        return repr(run(x)[1])
    except RuntimeError as error:
        return repr(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_own_dictionaries_are_as_in_plain_python(case) -> None:
    torch._dynamo.reset()

    def run(x: torch.Tensor):
        return x + 1, case()

    x = torch.ones(2)
    assert outcome(torch.compile(run, backend="eager"), x) == outcome(run, x)


class Slotted:
    __slots__ = ("later",)


@pytest.mark.parametrize(
    "holder",
    [types.ModuleType("m"), torch.ones(1), Slotted(), Plain(), functools.partial(dict), existing],
    ids=lambda holder: type(holder).__name__,
)
def test_attribute_that_comes_later_is_seen(holder) -> None:
    torch._dynamo.reset()
    runs = 0

    def count(gm, inputs):
        nonlocal runs
        runs += 1
        return gm

    @torch.compile(backend=count, fullgraph=True)
    def run(x: torch.Tensor):
        return x + 1, hasattr(holder, "later"), getattr(holder, "later", 3)

    x = torch.ones(2)
    assert run(x)[1:] == (False, 3)
    assert run(x)[1:] == (False, 3) and runs == 1
    holder.later = 5
    assert run(x)[1:] == (True, 5)
