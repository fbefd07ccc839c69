"""Values that live across a graph break, numbers that became symbols, and exceptions: compiled
functions do what plain Python does with them."""

import collections
import gc
import weakref

import pytest

import torch


def attempt(fn, *args):
    """What a call gives, or the exception with what it was raised in."""
    try:
        return fn(*args)
    except Exception as error:
        return type(error).__name__, str(error), type(error.__context__).__name__


def shown(value):
    """A text of a value; the order of sets does not count."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(repr, value))}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(shown, value))}]"
    return repr(value)


def agrees(fn, *calls):
    """Each call gets arguments of its own; what it leaves in them counts. Functions without tensors
    or changes of their arguments would not be compiled at all."""

    def outcomes(run):
        made = []
        for call in calls:
            args = call()
            result = attempt(run, *args)
            made.append((result, [getattr(arg, "__dict__", arg) for arg in args]))
        return shown(made)

    torch._dynamo.reset()
    want = outcomes(fn)
    assert outcomes(torch.compile(fn, backend="eager")) == want


class Plain:
    def __init__(self, value=1):
        self.value = value


WALKS = {
    "list": iter,
    "reversed": reversed,
    "enumerate": enumerate,
    "map": lambda items: map(abs, items),
    "zip": lambda items: zip(items, items, strict=False),
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_an_iterator_that_ended_stays_so_after_a_break(walk):
    def fn(items):
        values = walk(items)
        count = len(list(values))
        items.append(3)
        torch._dynamo.graph_break()
        return count, next(values, "over")

    agrees(fn, lambda: ([1, 2],))


@pytest.mark.parametrize("walk", ["keys", "values", "items"])
def test_an_iterator_over_a_table_that_ended_stays_so_after_a_break(walk):
    def fn(table):
        values = iter(getattr(table, walk)())
        count = len(list(values))
        torch._dynamo.graph_break()
        table[5] = 6
        return count, next(values, "over")

    agrees(fn, lambda: ({1: 2},))


def own_table_after_a_break(obj):
    table = obj.__dict__
    torch._dynamo.graph_break()
    table.update(extra=5)
    found = [obj.extra]
    del obj.__dict__["extra"]
    return [*found, hasattr(obj, "extra")]


def own_table_as_argument(obj, table):
    table["extra"] = obj.value
    obj.value = 3
    return table["value"], obj.extra


def test_an_object_and_its_dictionary_are_one():
    def both():
        obj = Plain()
        return obj, obj.__dict__

    agrees(own_table_after_a_break, lambda: (Plain(),))
    agrees(own_table_as_argument, both)
    agrees(lambda table, obj: own_table_as_argument(obj, table), lambda: both()[::-1])


def test_views_of_a_dictionary_after_a_break():
    def fn(table, some):
        view = table.items()
        torch._dynamo.graph_break()
        return view | some, view == some, some == view, view >= some, len(view)

    agrees(fn, lambda: ({1: 2}, {(1, 2)}), lambda: ({1: 2}, {(1, 3), (1, 2)}))


class Number(int):
    pass


class Word(str):
    __slots__ = ()


def test_keys_of_classes_that_derive_from_numbers_and_texts_are_equal_by_value():
    def fn(log, table):
        for _ in range(2):
            key = Number(7)
            table[key] = table.get(key, 0) + 1
        table[Word("a")] = 1
        log += [table[7], 7 in table, "a" in table, Word("b") in table]

    agrees(fn, lambda: ([], {}), lambda: ([], {7: 1}))


def test_an_iterator_over_a_deque_that_ended_sees_changes():
    def fn(queue, log):
        values = iter(queue)
        log.append(next(values, "over"))
        queue.append(1)
        log.append(next(values, "over"))

    calls = [lambda n=n: (collections.deque(range(n)), []) for n in (0, 1, 2)]
    agrees(fn, *calls)


def test_the_order_of_moved_keys():
    def moved(log, table):
        table.move_to_end("a")
        torch._dynamo.graph_break()
        log.append(list(table))
        log.append(table.popitem(last=False))

    def given(log, table):
        log.append(list(table))

    def keys(*moves):
        table = collections.OrderedDict(a=1, b=2, c=3)
        for key in moves:
            table.move_to_end(key)
        return [], table

    agrees(moved, keys, lambda: keys("b"))
    agrees(given, keys, lambda: keys("b"), lambda: keys("a", "c"), keys)


def test_the_start_of_enumerate_is_an_integer():
    def fn(n, log):
        log.append(1)
        return list(enumerate("ab", start=float(sum(i for i in [n, 1]))))

    agrees(fn, lambda: (2, []), lambda: (4, []))


def test_small_symbolic_numbers_are_one_object():
    three = int("3")

    def fn(n, log):
        log.append(three is sum(i for i in [n, 1]))

    def negated(n, log):
        log.append(three is not n)

    for function in (fn, negated):
        agrees(function, *[lambda n=n: (n, []) for n in (1, 2, 3, 4)])


class Negative:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return -6 * self.n


@pytest.mark.parametrize("ask", [len, bool])
def test_a_symbolic_length_below_zero_raises(ask):
    agrees(lambda n: ask(Negative(n)), *[lambda n=n: (n,) for n in (1, 2, 3, -1, -2)])


def test_sets_keep_the_member_that_python_keeps():
    def fn(n, k, made):
        for a in ({1, k}, {1.0, k}, {True}, frozenset([1.0, 2.0, n])):
            for b in ({1, 2.0}, {True, 5}, frozenset([2, True, 1.5])):
                made.append([a & b, a | b, a - b, a ^ b])
                made.append([a.union(b), a.intersection(b), a.symmetric_difference(list(b))])
                changed = [set(a) for _ in range(3)]
                changed[0].update(b)
                changed[1].intersection_update(b)
                changed[2].symmetric_difference_update(b)
                made += changed

    agrees(fn, lambda: (1, 2, []), lambda: (2, 3, []), lambda: (4, 2, []))


def waits(kind):
    if kind == 0:
        yield 1
    elif kind == 1:
        try:
            raise OSError
        except OSError:
            yield 1
    else:
        try:
            yield 1
        except KeyError:
            raise IndexError from None


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("started", [False, True])
def test_an_exception_thrown_into_a_generator_has_the_context_of_the_generator(kind, started):
    def fn(log):
        values = waits(kind)
        if started:
            next(values)
        try:
            try:
                raise TypeError
            finally:
                values.throw(KeyError("k"))
        except Exception as error:
            found = error
            while found is not None:
                log.append(type(found).__name__)
                found = found.__context__
        return log

    agrees(fn, lambda: ([],))


def chained():
    try:
        try:
            raise KeyError
        except KeyError as error:
            raise IndexError from error
    except IndexError as error:
        return error


@pytest.mark.parametrize(
    "read",
    [
        lambda error: len(error.args),
        lambda error: error.args,
        lambda error: (str(error), repr(error)),
        lambda error: error.__suppress_context__,
    ],
)
def test_exceptions_as_arguments_are_looked_at(read):
    made = [IndexError(), IndexError("a"), IndexError("b"), IndexError("a", 2), chained()]
    agrees(
        lambda error, log: log.append(read(error)),
        *[lambda error=error: (error, []) for error in made],
    )


def test_names_in_exceptions_as_arguments():
    calls = [lambda name=name: (AttributeError("x", name=name), []) for name in ("a", "b", None)]
    agrees(lambda error, log: log.append(error.name), *calls)


def fails(value):
    raise KeyError(value)


def raises_after_a_caught_one(obj):
    try:
        fails(obj)
    except KeyError as error:
        kept = type(error)
    raise ValueError(kept)


def raises(obj):
    raise ValueError(obj)


def keeps_what_it_raised(log):
    made = TypeError("t")
    try:
        raise made
    except TypeError as error:
        log.append(error is made)
    log.append(made.__traceback__ is None)
    return str(made)


@pytest.mark.parametrize("broken", [False, True])
def test_a_variable_holds_the_exception_that_was_raised_from_it(broken):
    def fn(log):
        if broken:
            torch._dynamo.graph_break()
        return keeps_what_it_raised(log)

    agrees(fn, lambda: ([],))
    agrees(keeps_what_it_raised, lambda: ([],))


@pytest.mark.parametrize("function", [raises, raises_after_a_caught_one])
@pytest.mark.parametrize("seen", [True, False], ids=["traced", "not traced"])
def test_frames_that_an_exception_left_do_not_hold_it(function, seen, monkeypatch):
    if not seen:
        monkeypatch.setitem(globals(), "fails", torch.compiler.disable(fails))
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for _ in range(2):
        obj = Plain()
        gone = weakref.ref(obj)
        gc.collect()
        gc.disable()
        try:
            compiled(obj)
        except ValueError as error:
            error.__traceback__ = None
        finally:
            del obj
            left = gone()
            gc.enable()
        assert left is None


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Made(metaclass=Meta):
    log = []

    def __init__(self, value=1):
        self.value = value
        self.log.append(value)


def test_a_tuple_at_the_address_of_one_that_died_is_looked_at():
    """The arguments of Meta.__call__ are a tuple that lies where the last one lay."""

    def fn(n, items, found):
        for _ in items:
            torch._dynamo.graph_break()
            found.append(Made(n).value)

    agrees(fn, lambda: (2, [1, 2, 3], []), lambda: (3, [1, 2, 3], []), lambda: (2, [1], []))
