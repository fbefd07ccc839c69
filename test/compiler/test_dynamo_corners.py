"""Corners of Python's data model, compiled: what special methods may return, tables whose keys
compare by code of the program, state that functions keep, exceptions that are being handled."""

import abc
import collections
import copy
import functools
import itertools
import operator

import pytest

import torch

LOG = []


def note(value):
    LOG.append(value)
    return value


def attempt(fn, *args):
    """What a call gives, or the exception as a pair."""
    try:
        return fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def outcome(fn):
    LOG.clear()
    return attempt(fn, torch.ones(2).requires_grad_(False)), list(LOG)


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


def lengths(x):
    x = x + 1
    calls = [
        (fn, n) for n in (2, 0, -1, True, 1.5, "a") for fn in (len, bool, operator.length_hint)
    ]
    return [attempt(fn, Sized(n)) for fn, n in calls]


class Index:
    def __init__(self, v):
        self.v = v

    def __index__(self):
        return self.v


def indices(x):
    x = x + 1
    return [attempt(fn, Index(v)) for v in (1, 1.5) for fn in (operator.index, [4, 5].__getitem__)]


class Hashed:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return self.v

    def __eq__(self, other):
        return isinstance(other, Hashed) and self.v == other.v


def hash_of_no_integer(x):
    x = x + 1
    return attempt(hash, Hashed("a")), attempt(lambda: {Hashed(1.5): 1})


def keys_of_equal_objects(x):
    x = x + 1
    first = Hashed(1)
    table = {first: "a", Hashed(1): "b"}
    return len(table), next(iter(table)) is first, table[Hashed(1)]


def order_of_hashed_objects(x):
    x = x + 1
    return [item.v for item in {Hashed(9), Hashed(2), Hashed(17), Hashed(3)}]


class Noisy(Hashed):
    def __hash__(self):
        return note(self.v)

    def __eq__(self, other):
        return note((self.v, other.v))[0] == other.v


def tables_of_noisy_keys(x):
    x = x + 1
    table = {Noisy(1): 1}
    table[Noisy(1)] = 2
    members = {Noisy(1), Noisy(2)}
    members.add(Noisy(2))
    return table.pop(Noisy(1)), len(members), x


class Returning:
    def __init__(self):
        return 5


class Abstract(abc.ABC):
    @abc.abstractmethod
    def go(self): ...


class NoIterator:
    def __iter__(self):
        return 5


class NoExit:
    def __enter__(self):
        return self


def enter(manager):
    with manager:
        pass


class Read:
    @property
    def only(self):
        return 1


def refusals(x):
    x = x + 1
    return [
        attempt(Returning),
        attempt(Abstract),
        attempt(list, NoIterator()),
        attempt(iter, NoIterator()),
        attempt(enter, NoExit()),
        attempt(enter, 3),
        attempt(super, Sized, 3),
        attempt(setattr, Read(), "only", 2),
        attempt(collections.namedtuple("Pair", "a b"), 1),
        attempt(operator.contains, Read(), 1),
    ]


class Modular:
    def __pow__(self, other, mod=None):
        return "pow", other, mod


class Checking(type):
    def __instancecheck__(cls, obj):
        return obj == 3


class Three(metaclass=Checking):
    pass


def power_and_checks(x):
    x = x + 1
    return pow(Modular(), 2, 5), isinstance(3, Three), isinstance(4, Three), issubclass(int, object)


def groups_share_an_iterator(x):
    x = x + 1
    groups = itertools.groupby(map(note, [1, 1, 2]))
    _, first = next(groups)
    _, second = next(groups)
    return list(first), list(second), x


def walk_of_an_ordered_table(x):
    table = collections.OrderedDict(a=1, b=2)

    def change():
        for key in table:
            table["n" + key] = 1

    same = collections.OrderedDict(a=1, b=2) == collections.OrderedDict(b=2, a=1)
    return attempt(change), same, x + 1


class Doubled:
    def __get__(self, obj, owner):
        return self if obj is None else obj.__dict__["value"]

    def __set__(self, obj, value):
        obj.__dict__["value"] = value * 2


class Holder:
    value = Doubled()


def attribute_behind_a_descriptor(x):
    made = Holder()
    made.value = 4
    torch._dynamo.graph_break()
    return made.value, x + 1


class Keeping:
    def add(self, value, to=[]):  # noqa: B006
        to.append(value)
        return len(to)

    def __init__(self, made=[]):  # noqa: B006
        made.append(1)
        self.count = len(made)


def default_values_that_change(x):
    return Keeping().count > 0, Keeping().count - Keeping().count, Keeping().add(x + 1) > 0


class Counting:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return note(self)

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n


def iterators_are_asked_once(x):
    x = x + 1
    got = list(enumerate(Counting(2))), list(map(str, Counting(2))), any(Counting(1))
    return got, len(LOG)


PROGRAMS = [
    *(lengths, indices, hash_of_no_integer, keys_of_equal_objects, order_of_hashed_objects),
    *(tables_of_noisy_keys, refusals, power_and_checks, groups_share_an_iterator),
    *(walk_of_an_ordered_table, attribute_behind_a_descriptor, iterators_are_asked_once),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_corner_of_python_compiled_gives_what_plain_gives(program):
    torch._dynamo.reset()
    (expected, log), (got, got_log) = (
        outcome(program),
        outcome(torch.compile(program, backend="eager")),
    )
    assert repr(got) == repr(expected) and repr(got_log).count("(") == repr(log).count("(")
    assert len(got_log) == len(log)


def test_default_values_of_methods_change_when_compiled():
    torch._dynamo.reset()
    kept = Keeping.__init__.__defaults__[0], Keeping.add.__defaults__[0]
    for one in kept:
        one.clear()
    torch.compile(default_values_that_change, backend="eager")(torch.ones(2))
    assert [len(one) for one in kept] == [4, 1]


def test_variable_of_a_constructor_is_read_and_changed_when_compiled():
    table = {"made": 0}

    class Made:
        def __init__(self):
            table["made"] += 1
            self.number = table["made"]

    def make(cls, x):
        return cls().number, x + 1

    torch._dynamo.reset()
    compiled = torch.compile(make, backend="eager")
    assert [compiled(Made, torch.ones(1))[0] for _ in range(3)] == [1, 2, 3]
    assert table == {"made": 3}


def test_cached_function_made_in_each_call_keeps_its_own_results():
    def program(x):
        calls = []

        @functools.lru_cache
        def double(n):
            calls.append(n)
            return n * 2

        torch._dynamo.graph_break()
        return double(1) + double(1) + double(2), calls, x + 1

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(1))[:2] == (8, [1, 2])


def test_exception_being_handled_keeps_its_traceback_while_compiling():
    def inner(x):
        torch._dynamo.graph_break()
        return x + 1

    torch._dynamo.reset()
    try:
        raise ValueError("outer")
    except ValueError as error:
        torch.compile(inner, backend="eager")(torch.ones(1))
        assert error.__traceback__ is not None


class Loud:
    def __init__(self):
        self.kept = 1

    def __getattr__(self, name):
        note(name)
        return 7


def test_guards_call_no_attribute_method_of_the_program():
    def program(x, obj):
        return x + obj.kept

    torch._dynamo.reset()
    LOG.clear()
    compiled = torch.compile(program, backend="eager")
    obj = Loud()
    compiled(torch.ones(1), obj)
    del obj.kept
    assert compiled(torch.ones(1), obj).item() == 8
    assert LOG == ["kept"]


def test_fault_of_the_tracer_leaves_the_instruction_to_python(monkeypatch):
    from torch._dynamo.data_model import DataModel

    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounter()
    monkeypatch.setattr(DataModel, "contains", None)
    result = torch.compile(lambda x: ((x + 1) * 2, 3 in [1, 2, 3]), backend=counter)(torch.ones(1))
    assert result[0].item() == 4 and result[1] is True
    assert counter.frame_count == 1
    with pytest.raises(torch._dynamo.exc.InternalTorchDynamoError, match="not callable"):
        torch.compile(lambda x: (x + 1, 3 in [1]), backend="eager", fullgraph=True)(torch.ones(1))


def test_keywords_that_are_numbers_raise_with_symbolic_numbers_too():
    def program(x, n):
        return attempt(lambda: dict(**{n + 1: 1})), x + n

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="eager")
    for n in (3, 4, 5):
        assert compiled(torch.ones(1), n)[0] == ("TypeError", "keywords must be strings")


@pytest.mark.parametrize("fullgraph", [False, True])
def test_marks_of_sizes_inside_of_compiled_code_are_an_error(fullgraph):
    def program(x):
        torch._dynamo.mark_dynamic(x, 0)
        return x * x

    torch._dynamo.reset()
    with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
        torch.compile(program, backend="eager", fullgraph=fullgraph)(torch.ones(3))


def test_dictionary_of_an_object_is_copied_whole():
    class Settings:
        def __init__(self):
            self.sizes, self.name = [1, 2], "a"

    def program(x, settings):
        copied = copy.deepcopy(settings.__dict__)
        copied["sizes"].append(3)
        return x + len(copied["sizes"]), copied

    torch._dynamo.reset()
    settings = Settings()
    out, copied = torch.compile(program, backend="eager", fullgraph=True)(torch.ones(1), settings)
    assert (out.item(), copied) == (4.0, {"sizes": [1, 2, 3], "name": "a"})
    assert settings.sizes == [1, 2]
