"""Programs whose result, exception or side effects a tracer gets wrong easily: contexts of
exceptions, variables without a value, class attributes that change, texts of objects, iterators
over containers that change, aliased arguments. Each is compared with plain Python, as it is and
with a graph break where it stands."""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib.util
import pathlib
import sys
from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo

FUZZ = pathlib.Path(__file__).parents[2] / "tools" / "fuzz"
X = torch.arange(3.0)
graph_break = torch._dynamo.graph_break


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def origins(error: BaseException | None) -> tuple | None:
    """An exception with its cause and context."""
    if error is None:
        return None
    kept = (type(error), error.args, error.__suppress_context__)
    return (*kept, origins(error.__cause__), origins(error.__context__))


def ending(fn: Callable, *args: object) -> object:
    """What a call returns or raises, tensors as lists."""
    try:
        result = fn(*args)
    except Exception as error:
        return origins(error)
    if isinstance(result, tuple):
        return tuple(r.tolist() if isinstance(r, torch.Tensor) else r for r in result)
    return result.tolist() if isinstance(result, torch.Tensor) else result


def same(fn: Callable, *args: Callable[[], object]) -> None:
    """Compiled and plain end alike, twice. Arguments are made anew for each call."""
    wanted = ending(fn, *[make() for make in args])
    compiled = torch.compile(fn, backend="eager")
    for _ in range(2):
        assert ending(compiled, *[make() for make in args]) == wanted


def x() -> torch.Tensor:
    return X.clone()


# ---- exceptions


def test_exception_raised_again_in_another_handler_gets_the_new_context() -> None:
    def program(x):
        try:
            raise KeyError(1)
        except KeyError as error:
            kept = error
        try:
            raise ValueError(2)
        except ValueError:
            try:
                raise kept
            except KeyError as error:
                seen = type(error.__context__).__name__
        return x + 1, seen

    same(program, x)


def test_exception_raised_again_without_expression_keeps_its_context() -> None:
    def program(x):
        try:
            try:
                raise KeyError(1)
            except KeyError:
                raise
        except KeyError as error:
            return x + 1, error.__context__ is None
        return x

    same(program, x)


def test_chain_of_contexts_does_not_come_back_to_its_start() -> None:
    def program(x):
        try:
            raise KeyError(1)
        except KeyError as first:
            try:
                raise ValueError(2)
            except ValueError as second:
                try:
                    raise first
                except KeyError:
                    return x + 1, first.__context__ is second, second.__context__ is None
        return x

    same(program, x)


def stops() -> Iterator[int]:
    yield 1
    raise StopIteration(2)


def test_generator_that_raises_stop_iteration_names_it_as_cause() -> None:
    def program(x):
        try:
            for i in stops():
                x = x + i
        except RuntimeError as error:
            return x, type(error.__cause__).__name__, type(error.__context__).__name__
        return x

    same(program, x)


def test_generator_made_in_a_handler_has_no_context_outside_of_it() -> None:
    def raising():
        yield 1
        raise ValueError(1)

    def program(x):
        try:
            raise KeyError(1)
        except KeyError:
            made = raising()
            next(made)
        try:
            next(made)
        except ValueError as error:
            return x + 1, error.__context__
        return x

    same(program, x)


def test_function_called_in_a_handler_sees_the_exception_of_its_caller_as_context() -> None:
    def inner(x):
        try:
            raise KeyError(1)
        except KeyError as error:
            return x + 1, type(error.__context__).__name__

    def program(x):
        before = inner(x)
        try:
            raise ValueError(2)
        except ValueError:
            graph_break()
            return x + 1, before[1], inner(x)[1]

    same(program, x)


class Own(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number, "own")


def test_text_of_an_exception_names_its_class() -> None:
    def program(x):
        return x + 1, repr(Own(3)), str(Own(3)), repr(KeyError(1))

    same(program, x)


def test_error_of_an_operator_is_that_of_the_operator() -> None:
    def program(x):
        y = x * 2
        return y * (x, x)

    same(program, x)


# ---- variables without a value


def test_shared_variable_read_before_its_value_after_a_break_is_unbound() -> None:
    def program(x):
        graph_break()
        total = later  # noqa: F821
        read = lambda: later
        later = 1
        return x + total + read()

    same(program, x)


def test_shared_variable_deleted_after_a_break_is_unbound() -> None:
    def program(x):
        value = 1
        read = lambda: value  # noqa: F821
        graph_break()
        y = x + read()
        del value
        return y + value  # noqa: F821

    same(program, x)


def test_shared_variable_deleted_twice_is_unbound() -> None:
    def program(x):
        value = 1
        read = lambda: value  # noqa: F821
        y = x + read()
        del value
        try:
            del value  # noqa: F821
        except UnboundLocalError as error:
            return y, str(error)
        return y

    same(program, x)


def test_local_deleted_in_a_resume_function_is_unbound() -> None:
    def program(x):
        y = x + 1
        graph_break()
        del y
        return x + y  # noqa: F821

    same(program, x)


def test_free_variable_without_value_raises_a_name_error() -> None:
    def program(x):
        def read():
            return later

        graph_break()
        y = x + read()
        later = 1
        return y + later

    same(program, x)


# ---- classes


class Counted:
    made = 0

    def __init__(self) -> None:
        type(self).made += 1


def test_class_attribute_changed_in_a_loop_after_a_break_is_counted() -> None:
    def program(x):
        Counted.made = 0
        for _ in range(3):
            graph_break()
            Counted()
        return x + Counted.made

    same(program, x)


def test_class_attribute_stored_is_seen_by_objects_and_derived_classes() -> None:
    class Base:
        level = 1

    class Derived(Base):
        pass

    def program(x):
        obj = Derived()
        Base.level = 5
        return x * obj.level, Derived.level

    same(program, x)


class Scale:
    by = 2


def test_class_attribute_of_an_object_made_inside_is_guarded() -> None:
    compiled = torch.compile(lambda x: x * Scale().by, backend="eager")
    before = Scale.by
    try:
        assert compiled(X).tolist() == (X * 2).tolist()
        Scale.by = 3
        assert compiled(X).tolist() == (X * 3).tolist()
    finally:
        Scale.by = before


class Lazy:
    """A descriptor that puts its value into the object."""

    calls = 0

    def __get__(self, obj: object, owner: type | None = None) -> int:
        Lazy.calls += 1
        obj.__dict__["value"] = 7
        return 7


class WithLazy:
    value = Lazy()

    @functools.cached_property
    def cached(self) -> int:
        return 5


def test_attribute_in_front_of_a_descriptor_is_deleted_once() -> None:
    def program(x, obj):
        del obj.value
        return x + 1

    compiled = torch.compile(program, backend="eager")
    obj = WithLazy()
    obj.__dict__["value"] = 7
    compiled(X, obj)
    Lazy.calls = 0
    with pytest.raises(AttributeError) as plain:
        program(X, obj)
    with pytest.raises(AttributeError, match=f"^{plain.value}$"):
        compiled(X, obj)
    assert Lazy.calls == 0, "no guard runs a descriptor"


def test_cached_property_is_kept_in_the_object_and_does_not_break_the_graph() -> None:
    obj = WithLazy()
    compiled = torch.compile(lambda x, o: x + o.cached, backend="eager", fullgraph=True)
    assert compiled(X, obj).tolist() == (X + 5).tolist()
    assert obj.__dict__ == {"cached": 5}


def test_object_of_a_class_in_c_in_a_with_statement_is_left_to_python() -> None:
    import threading

    lock = threading.RLock()

    def program(x):
        try:
            with lock:
                return x + 1
        except Exception:
            return None

    same(program, x)


class Doubling(dict):
    def __missing__(self, key: int) -> int:
        self[key] = key * 2
        return self[key] + 1


def test_missing_key_of_a_derived_dictionary_asks_the_class() -> None:
    def program(x):
        table = Doubling()
        return x + table[3], x + table[3], dict(table)

    same(program, x)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_attribute_of_a_function_that_was_not_there_is_seen_later() -> None:
    def program(x):
        scaled.calls = getattr(scaled, "calls", 0) + 1
        return scaled(x)

    compiled = torch.compile(program, backend="eager")
    try:
        for count in (1, 2, 3):
            compiled(X)
            assert scaled.calls == count
    finally:
        del scaled.calls


def test_attribute_deleted_and_set_again_comes_last() -> None:
    def program(x, obj):
        del obj.first
        obj.first = 3
        return x + obj.first

    def made() -> WithLazy:
        obj = WithLazy()
        obj.first, obj.second = 1, 2
        return obj

    obj = made()
    torch.compile(program, backend="eager")(X, obj)
    assert list(obj.__dict__.items()) == [("second", 2), ("first", 3)]


# ---- texts


class Shown:
    def __format__(self, form: str) -> str:
        return f"<{form}>"

    def __str__(self) -> str:
        return "text"

    def __repr__(self) -> str:
        return "Shown()"


Pair = collections.namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"{Shown():>3}",
        lambda n: f"{Shown()}",
        lambda n: f"{Shown()!r}",
        lambda n: "{!r} {}".format(Shown(), Shown()),  # noqa: UP032
        lambda n: "%r %s" % (Shown(), Shown()),  # noqa: UP031
        lambda n: repr(Pair(n, Shown())),
        lambda n: repr(collections.deque([n, 2], 3)),
        lambda n: repr(collections.OrderedDict(a=n)),
        lambda n: str([Pair(n, 1)]),
    ],
)
def test_text_of_an_object_is_what_its_class_says(text: Callable) -> None:
    def program(x, n):
        return x + n, text(n)

    compiled = torch.compile(program, backend="eager")
    for n in (3, 4, 5):  # the number becomes a symbol
        assert compiled(X, n)[1] == text(n)


# ---- displays


def test_list_and_set_displays_with_a_break_inside_are_whole() -> None:
    def number():
        graph_break()
        return 3

    def program(x):
        some = [1, *(2, number()), *range(2)]
        other = {1, *(2, number()), *range(2)}
        return x + 1, some, other, {"a": 1, "b": number()}

    same(program, x)


def test_list_display_broken_before_its_last_part_is_whole() -> None:
    def program(x):
        some = [1, *[x.sum().item()], *range(2)]
        return x + 1, some

    same(program, x)


# ---- iterators


def test_deque_changed_during_iteration_raises() -> None:
    def program(x, queue):
        for item in queue:
            queue.append(item)
            x = x + item
        return x

    same(program, x, lambda: collections.deque([1, 2]))


def test_iterator_over_a_deque_goes_on_after_a_break() -> None:
    def program(x, queue):
        pairs = enumerate(queue)
        first = next(pairs)
        graph_break()
        return x + first[1], list(pairs)

    same(program, x, lambda: collections.deque([1, 2, 3]))


def test_generator_left_inside_of_try_is_closed_when_the_function_ends() -> None:
    seen = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            seen.append("closed")

    def program(x):
        for i in numbers():
            return x + i
        return x

    assert torch.compile(program, backend="eager")(X).tolist() == (X + 1).tolist()
    assert seen == ["closed"]


# ---- arguments that are one object


def test_item_that_was_another_argument_is_its_own_in_later_calls() -> None:
    def program(x, items):
        items.append(1)
        return x + 1

    compiled = torch.compile(program, backend="eager")
    one = X.clone()
    compiled(one, [one])
    other = X + 5
    items = [other]
    compiled(X, items)
    assert items[0] is other


# ---- random functions


@contextlib.contextmanager
def fuzzer() -> Iterator[object]:
    """tools/fuzz/functions.py, with the modules beside it importable."""
    sys.path.insert(0, str(FUZZ))
    try:
        spec = importlib.util.spec_from_file_location("fuzz_functions", FUZZ / "functions.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FUZZ))
        sys.modules.pop("fuzzed", None)


@pytest.mark.parametrize("start", [0, 700_000])
def test_random_functions_with_a_break_at_each_statement_do_as_plain(start: int) -> None:
    with fuzzer() as functions:
        checker = functions.Check(1, False)
        wrong = [found for i in range(start, start + 15) if (found := checker.check(i))]
    assert not wrong, wrong[0]
    assert checker.compiled > 60


def test_outer_handler_of_a_try_that_holds_only_another_is_entered_after_a_break() -> None:
    def program(x):
        match [1, {"k": (2, None)}]:
            case [first, {"k": (second, None)}] if first != second:
                x = x + first + second
        try:
            try:
                graph_break()
                raise KeyError(1)
            except ArithmeticError:
                raise ValueError(2) from None
        except KeyError as error:
            return x + error.args[0]

    same(program, x)
