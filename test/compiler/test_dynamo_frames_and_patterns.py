"""Code that looks at its own frame, iterators that have ended, wrappers and patterns, compiled."""

import functools
import typing

import pytest

import torch


def outcome(fn):
    try:
        return fn(torch.ones(2))
    except Exception as error:
        return type(error), str(error)


def names_of_the_frame(x):
    y = 1
    torch._dynamo.graph_break()
    z = 2
    return sorted(locals()), sorted(vars()), dir(), eval("y + z")


def text_in_an_inlined_function(x):
    def inner(q):
        w = 3
        return eval("w + q"), w

    return inner(4)


def calls_until_a_value(x):
    n = 0

    def count():
        nonlocal n
        n += 1
        if n == 2:
            raise ValueError
        return n

    it = iter(count, 4)
    got = [next(it)]
    try:
        next(it)
    except ValueError:
        got += list(it)
    torch._dynamo.graph_break()
    return got, list(it), n, type(it).__name__


def own_divmod(x):
    class Number:
        def __divmod__(self, other):
            return "divmod", other

        def __rdivmod__(self, other):
            return "rdivmod", other

    n = Number()
    torch._dynamo.graph_break()
    return divmod(n, 1), divmod(1, n)


def no_divmod(x):
    class Number:
        def __floordiv__(self, other):
            return 1

        def __mod__(self, other):
            return 2

    n = Number()
    torch._dynamo.graph_break()
    return divmod(n, 1)


def wraps_without_updates(x):
    def f():
        """Text."""

    f.attribute = 1

    @functools.wraps(f, (), ())
    def g():
        pass

    return g.__name__, g.__doc__, hasattr(g, "attribute"), g.__wrapped__ is f


def wraps_with_a_table(x):
    def f():
        pass

    f.table = {"a": 1}

    def g():
        pass

    g.table = {"b": 2}
    functools.update_wrapper(g, f, ("__name__",), ("table",))
    return g.__name__, g.table


def copy_of_a_class_in_c(x):
    class Bound(functools.partial):
        pass

    bound = Bound(max, 3)
    return bound(5), bound.func is max, type(bound).__name__


def classes_made_by_each_call(x):
    made = type("Made", (), {"a": 1})
    return made.__module__, made().a


def attributes_through_the_table(x):
    def mark(fn):
        fn.__dict__["author"] = "A"
        return fn

    @mark
    def f():
        return 1

    before = f.__dict__ == {"author": "A"}
    torch._dynamo.graph_break()
    return before, f(), f.author


def given(x):
    return x


def parts_of_another_type(x):
    said = []
    for name in ("__name__", "__qualname__", "__dict__", "__defaults__", "__code__", "__globals__"):
        try:
            setattr(given, name, 3)
        except (TypeError, AttributeError) as error:
            said.append(str(error))
    return said


def origin_of_a_type(x):
    return typing.get_origin(list[int]), typing.get_args(dict[str, int])


class Twice:
    __match_args__ = ("a", "a")
    a = None


class NotATuple:
    __match_args__ = "xyz"


class NotTexts:
    __match_args__ = (1,)


class Keys:
    KEY = "a"


def same_attribute_twice(x):
    match Twice():
        case Twice(y, z):
            return y, z


def names_that_are_no_tuple(x):
    match NotATuple():
        case NotATuple(y):
            return y


def names_that_are_no_texts(x):
    match NotTexts():
        case NotTexts(y):
            return y


def key_twice(x):
    match {"a": 0, "b": 1}:
        case {Keys.KEY: y, "a": z}:
            return y, z


PROGRAMS = [
    value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__
    and value not in (outcome, given) and not isinstance(value, type)
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_program_does_what_plain_python_does(program):
    torch._dynamo.reset()
    assert outcome(torch.compile(program, backend="eager")) == outcome(program)


def test_value_whose_repr_raises_breaks_the_graph_only():
    class Odd:
        __slots__ = ()

        def __repr__(self):
            raise AttributeError("a")

    odd = Odd()

    def program(x):
        odd.field = x

    with pytest.raises(AttributeError, match="field"):
        torch.compile(program, backend="eager")(torch.ones(1))
