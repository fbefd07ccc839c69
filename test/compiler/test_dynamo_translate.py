"""The symbolic interpreter by itself: a frame is translated and the code that takes its place is
called. What it returns, raises and changes must be what plain Python does."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import itertools
import types
from collections.abc import Callable

import pytest

import torch
from torch._dynamo.exc import SkipFrame, TorchRuntimeError, Unsupported
from torch._dynamo.translate import Options, Translation, translate


class Ran:
    """A translation and what its code returned."""

    def __init__(self, found: Translation, result: object) -> None:
        self.result = result
        self.graph, self.guards = found.graph, found.guards
        self.break_reason, self.has_break = found.break_reason, found.has_break


def translated(fn: Callable[..., object], *args: object, **options: bool) -> Ran:
    bound = inspect.signature(fn).bind(*args)
    bound.apply_defaults()
    code = fn.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    values = {name: bound.arguments[name] for name in code.co_varnames[:count]}
    found = translate(code, fn.__globals__, fn.__closure__, values, Options(**options))
    made = types.FunctionType(found.code, fn.__globals__, fn.__name__, None, fn.__closure__)
    return Ran(found, made(*values.values()))


def same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


X = torch.arange(4.0) - 1
counter = 0


class Point:
    def __init__(self, a: object, b: object) -> None:
        self.a, self.b = a, b

    @property
    def sum(self) -> object:
        return self.a + self.b

    def __add__(self, other: Point) -> Point:
        return Point(self.a + other.a, self.b + other.b)


def f_arithmetic(x, n=3):
    z = x + n
    for i in range(n):
        z = z * i - 1 if i % 2 else z + i
    return z


def f_closure(x):
    k = 2

    def grow(z):
        nonlocal k
        k += 1
        return z * k

    return grow(x) + grow(x), k


def f_containers(x):
    items = [x]
    items.append(x + 1)
    items[0] = items[1] * 2
    table = {"a": items, "n": len(items)}
    table["s"] = {i * 2 for i in (1, 2)}
    return items, table, [x * i for i in range(3) if i != 1]


def f_objects(x):
    p = Point(x, x + 1)
    q = p + p
    q.extra = 5
    return q.sum + p.sum + q.extra


def f_generator(x):
    def values():
        got = yield x
        yield got + 1
        return 7

    it = values()
    first = next(it)
    second = it.send(first * 2)
    try:
        next(it)
    except StopIteration as stop:
        return second * stop.value


def f_exceptions(x):
    try:
        try:
            raise ValueError("abc")
        except KeyError:
            return x
        finally:
            x = x + 1
    except ValueError as error:
        return x * len(error.args[0])


def f_standard_library(x):
    parts = [x, x + 1]
    rows = [a * b for a, b in zip(parts, itertools.count(2), strict=False)]
    total = functools.reduce(lambda a, b: a + b, rows)
    ordered = sorted([3, 1, 2], key=lambda v: -v)
    groups = collections.Counter("abca")
    return total, ordered, dict(groups), list(itertools.product([1, 2], "a"))


def f_context(x):
    @contextlib.contextmanager
    def shifted(v):
        yield v + 1

    with shifted(x) as y, torch.no_grad():
        z = y * 2
    return z, torch.is_grad_enabled()


def f_match(x):
    match (1, [2, 3]):
        case (1, [a, *rest]):
            return x + a, rest
    return x


@pytest.mark.parametrize(
    "fn",
    [f_arithmetic, f_closure, f_containers, f_objects, f_generator, f_exceptions,
     f_standard_library, f_context, f_match],
    ids=lambda fn: fn.__name__[2:],
)  # fmt: skip
def test_function_without_breaks_gives_what_python_gives(fn: Callable[..., object]) -> None:
    found = translated(fn, X, fullgraph=True)
    assert found.break_reason is None and found.graph is not None
    assert same(found.result, fn(X))


def b_print(x):
    y = x + 1
    print(end="")
    return y * 2


def b_branch(x):
    y = x + 1
    y = y * 2 if y.sum() > 0 else y * 3
    return y + 1


def b_item(x):
    return x + x.sum().item()


def b_no_grad(x):
    with torch.no_grad():
        y = x * 2
        torch._dynamo.graph_break()
        z = y + 1, torch.is_grad_enabled()
    return z, torch.is_grad_enabled()


def b_try(x):
    y = x + 1
    try:
        torch._dynamo.graph_break()
        raise ValueError("v")
    except ValueError:
        y = y - 1
    return y


def b_closure(x):
    k = 1

    def add(z):
        nonlocal k
        k += 1
        return z + k

    y = add(x)
    torch._dynamo.graph_break()
    return add(y), k


@pytest.mark.parametrize(
    "fn",
    [b_print, b_branch, b_item, b_no_grad, b_try, b_closure],
    ids=lambda fn: fn.__name__[2:],
)
def test_function_with_a_break_goes_on_behind_it(fn: Callable[..., object]) -> None:
    found = translated(fn, X)
    assert found.break_reason is not None and found.has_break
    assert same(found.result, fn(X))


def test_break_under_fullgraph_raises_and_names_the_line() -> None:
    with pytest.raises(Unsupported, match="print") as caught:
        translated(b_print, X, fullgraph=True)
    assert "b_print" in str(caught.value) and 'print(end="")' in str(caught.value)


def test_changes_of_arguments_and_globals_are_made_after_the_graph() -> None:
    def change(items, table, point):
        global counter
        counter += 1
        old = point.a
        items.append(table["k"] * 2)
        table["z"] = items[0] + 1
        point.a = point.a * 2
        point.new = counter
        del items[1]
        return old, len(items)

    def arguments() -> list[object]:
        return [[X, 1], {"k": X}, Point(X, 2)]

    global counter
    counter = 0
    plain, compiled = arguments(), arguments()
    expected = change(*plain)
    counter = 0
    found = translated(change, *compiled, fullgraph=True)
    assert same(found.result, expected) and counter == 1
    assert same(plain[:2], compiled[:2]) and same(vars(plain[2]), vars(compiled[2]))


def test_module_is_inlined_with_parameters_as_inputs() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())

    def run(x):
        return net(x)

    found = translated(run, X, fullgraph=True)
    assert torch.equal(found.result, net(X))
    names = [node.name for node in found.graph.graph.nodes if node.op == "placeholder"]
    assert len(names) == 3 and any("weight" in name for name in names)


def test_wrong_shapes_raise_while_tracing() -> None:
    def wrong(x):
        return x + torch.ones(3)

    with pytest.raises(TorchRuntimeError, match="must match"):
        translated(wrong, X, fullgraph=True)


def test_wrong_shapes_without_fullgraph_raise_as_in_python() -> None:
    def wrong(x):
        y = x * 2
        return y + torch.ones(3)

    with pytest.raises(RuntimeError, match="must match") as plain:
        wrong(X)
    with pytest.raises(RuntimeError, match="must match") as compiled:
        torch.compile(wrong, backend="eager")(X)
    assert type(compiled.value) is type(plain.value)


def test_function_without_tensor_operations_runs_as_it_is() -> None:
    with pytest.raises(SkipFrame, match="no content"):
        translated(lambda x: len(x), [1, 2])


def test_guards_name_what_the_trace_relied_on() -> None:
    def use(x, n, items):
        return x * n + items[0]

    found = translated(use, X, 3, [1, "unused"])
    kinds = {(r.source.name(), r.kind) for r in found.guards}
    assert ("L['x']", "TENSOR_MATCH") in kinds and ("L['n']", "CONSTANT_MATCH") in kinds
    assert ("L['items']", "SEQUENCE_LENGTH") in kinds
    assert ("L['items'][0]", "CONSTANT_MATCH") in kinds
    assert not any(name == "L['items'][1]" for name, _ in kinds)


def test_returned_input_is_the_same_object() -> None:
    def keep(x, items):
        return x, items, x + 1

    items = [1]
    found = translated(keep, X, items)
    assert found.result[0] is X and found.result[1] is items


def test_attributes_of_a_class_are_not_those_of_its_objects() -> None:
    def probe(x):
        partial = functools.partial(torch.add, x)
        return x + sum(hasattr(v, "__name__") for v in (partial, [x], {"a": x}, iter([x])))

    assert torch.equal(translated(probe, X, fullgraph=True).result, X)


@pytest.mark.parametrize("text", ["n % n", "5 // n", "1 / n"])
def test_division_by_a_number_that_turns_zero_raises_after_the_changes_before_it(text):
    names: dict = {}
    exec(f"def fn(x, n, seen):\n    seen.append(n)\n    return x + ({text})\n", names)
    run = torch.compile(names["fn"], backend="eager")
    for n in (3, 4, 0, 5):
        seen: list = []
        if n:
            assert torch.equal(run(torch.ones(2), n, seen), torch.ones(2) + eval(text))
        else:
            with pytest.raises(ZeroDivisionError):
                run(torch.ones(2), n, seen)
        assert seen == [n]


def test_number_in_a_tensor_is_a_bool():
    run = torch.compile(lambda x, y: (x + 1, 3 in y), backend="eager")
    assert run(torch.ones(2), torch.tensor([1, 3]))[1] is True
    assert run(torch.ones(2), torch.tensor([1, 2]))[1] is False


def test_number_under_a_key_that_is_named_like_a_table_of_modules_becomes_a_symbol():
    torch._dynamo.reset()
    count = torch._dynamo.testing.CompileCounter()
    run = torch.compile(lambda x, d: x * d["_modules"], backend=count)
    for n in (2, 3, 4, 5):
        assert torch.equal(run(torch.ones(2), {"_modules": n}), torch.full((2,), float(n)))
    assert count.frame_count == 2


class Counted(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.line = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.line(x) * self.number + self.number


def compiled_each(make, backend):
    return [torch.compile(layer, backend=backend) for layer in make]


def compiled_in_place(make, backend):
    for layer in make:
        layer.compile(backend=backend)
    return make


@pytest.mark.parametrize("compiled", [compiled_each, compiled_in_place])
def test_layers_that_differ_in_an_integer_share_two_graphs(compiled):
    torch._dynamo.reset()
    count = torch._dynamo.testing.CompileCounter()
    layers = [Counted(number) for number in range(12)]
    x = torch.ones(2)
    wanted = [layer(x) for layer in layers]
    for layer, want in zip(compiled(layers, count), wanted, strict=True):
        assert torch.equal(layer(x), want)
    assert count.frame_count == 2


def test_integers_of_modules_stay_numbers_where_settings_say_so():
    torch._dynamo.reset()
    count = torch._dynamo.testing.CompileCounter()
    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=False):
        for number in range(4):
            torch.compile(Counted(number), backend=count)(torch.ones(2))
    assert count.frame_count == 4


def test_settings_of_layers_of_the_library_stay_numbers():
    torch._dynamo.reset()
    count = torch._dynamo.testing.CompileCounter()
    run = torch.compile(lambda layer, x: layer(x), backend=count)
    for groups in (1, 2, 4):
        layer = torch.nn.Conv1d(4, 4, 1, groups=groups)
        x = torch.ones(1, 4, 3)
        assert torch.equal(run(layer, x), layer(x))
    assert count.frame_count == 3
