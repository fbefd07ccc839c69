"""Programs that a compiled function has to leave as they are: exceptions with arguments of their
own, deleted attributes, guards that run the program's code, loggers that write once."""

import collections.abc
import functools
import gc
import logging
import weakref

import pytest
from torch._C._dynamo.eval_frame import GraphCall

import torch
from torch import nn

X = torch.arange(3.0)


def compiled(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="eager", **options)


class Odd(Exception):
    def __init__(self, number):
        super().__init__(number, "odd")
        self.number = number


def raise_last(x):
    x = x + 1
    raise Odd(3)


def raise_in_try(x):
    try:
        raise Odd(3)
    finally:
        x = x + 1


@pytest.mark.parametrize("program", [raise_last, raise_in_try])
def test_exception_that_leaves_a_function_keeps_its_arguments(program):
    with pytest.raises(Odd) as caught:
        compiled(program)(X)
    assert caught.value.args == (3, "odd") and caught.value.number == 3


def test_exception_raised_after_a_handler_has_no_context():
    def program(x):
        try:
            x = x + int("no number")
        except ValueError as error:
            x = x + len(error.args)
        raise Odd(int(x.sum()))

    with pytest.raises(Odd) as caught:
        compiled(program)(X)
    assert caught.value.args == (6, "odd") and caught.value.__context__ is None


class Level:
    def __init__(self):
        self.extra = 5

    @property
    def level(self):
        return self.extra

    @level.deleter
    def level(self):
        self.extra = 0

    @property
    def fixed(self):
        return 1


def test_deleting_a_property_calls_its_deleter():
    def program(x, obj):
        del obj.level
        return x + obj.extra

    obj = Level()
    assert torch.equal(compiled(program)(X, obj), X) and obj.extra == 0


def test_deleting_a_property_without_deleter_raises():
    def program(x, obj):
        try:
            del obj.fixed
        except AttributeError as error:
            return x + len(error.args)

    assert torch.equal(compiled(program)(X, Level()), X + 1)


def test_attribute_that_is_set_and_deleted_is_gone_whether_it_was_there_or_not():
    def program(x, obj):
        obj.later = 3
        x = x + obj.later
        del obj.later
        return x

    run = compiled(program)
    for before in ({}, {"later": 1}, {}):
        obj = Level()
        vars(obj).update(before)
        assert torch.equal(run(X, obj), X + 3)
        assert vars(obj) == {"extra": 5}


def test_inverse_of_a_number_that_varies_is_traced():
    run = compiled(lambda x, n: x + ~n, fullgraph=True)
    for n in (3, 4, -7):
        assert torch.equal(run(X, n), X + ~n)


class Table:
    def __init__(self):
        self.items = {0: torch.ones(3), 1: torch.zeros(3)}

    def __getitem__(self, key):
        return self.items[key] + 0

    def __len__(self):
        return len(self.items)


def test_guards_that_run_code_of_the_program_do_not_check_themselves():
    table = Table()

    def inner(x, held):
        print(end="")
        return x + held[0] + held[1]

    def program(x, held):
        print(end="")
        return inner(x, held) + held[1]

    run = compiled(program)
    for _ in range(4):
        assert torch.equal(run(X, table), X + 1)


class Once(logging.Logger):
    @functools.lru_cache(None)  # noqa: B019
    def warning_once(self, text):
        self.warning(text)


def test_messages_of_a_logger_that_writes_once_do_not_break_the_graph(caplog):
    logger = Once("cresset.once")
    logger.addHandler(caplog.handler)

    def program(x):
        logger.warning_once("seen")
        return x + 1

    run = compiled(program, fullgraph=True)
    for _ in range(3):
        assert torch.equal(run(X), X + 1)
    written = [r.getMessage() for r in caplog.records if r.name == logger.name]
    assert written == ["seen"]


def test_method_with_a_cache_is_traced():
    class Cached:
        @functools.lru_cache(None)  # noqa: B019
        def double(self, n):
            return n * 2

    held = Cached()
    run = compiled(lambda x: x * held.double(4), fullgraph=True)
    assert torch.equal(run(X), X * 8)


def test_index_add_of_as_many_rows_as_data_say_is_captured():
    def program(x, mask):
        rows = mask.nonzero().squeeze(-1)
        return torch.zeros(4, 2).index_add_(0, rows, x[rows] * 2)

    x, mask = torch.arange(8.0).reshape(4, 2), torch.tensor([1, 0, 1, 1])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = compiled(program, fullgraph=True)
        for given in (mask, 1 - mask, mask * 0):
            assert torch.equal(run(x, given), x * 2 * given.reshape(4, 1))


class Held(collections.abc.Mapping):
    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def test_methods_inherited_from_abstract_collections_are_traced():
    held = Held(a=2)

    def program(x):
        return x * held.get("a") + ("b" in held) + held.get("b", 5)

    assert torch.equal(compiled(program, fullgraph=True)(X), X * 2 + 5)


# ---- inputs that are fetched together


class Deep(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) * self.scale
        return x


def test_compiled_module_sees_parameters_that_were_replaced():
    model = Deep(2)
    run = compiled(model)
    for step in range(12):
        assert torch.equal(run(X), model(X))
        model.layers[step % 3].weight = nn.Parameter(torch.randn(3, 3))
        assert torch.equal(run(X), model(X))
        if step % 4 == 0:
            model.layers[1] = nn.Linear(3, 3)
        assert torch.equal(run(X), model(X))


def test_modules_that_share_code_keep_their_own_parameters():
    models = [Deep(i) for i in range(3)]
    runs = [compiled(models[0]), *[torch.compile(m, backend="eager") for m in models[1:]]]
    for _ in range(5):
        for model, run in zip(models, runs, strict=True):
            assert torch.equal(run(X), model(X))


def test_compiled_code_does_not_keep_parameters_alive():
    model = Deep(1)
    run = compiled(model)
    for _ in range(5):
        run(X)
    held = weakref.ref(model.layers[0].weight)
    model.layers[0].weight = nn.Parameter(torch.ones(3, 3))
    gc.collect()
    assert held() is None
    assert torch.equal(run(X), model(X))


class Part:
    def __init__(self, value):
        self.value = value
        self.items = [value, {"k": value + 1}]


def test_graph_call_reads_attributes_items_and_cells():
    def outer(value):
        return lambda: value

    steps = [(0, "attr", "value"), (0, "attr", "items"), (3, "item", 1), (4, "item", "k")]
    steps += [(1, "closure", "__closure__"), (6, "item", 0), (7, "cell", "cell_contents")]
    call = GraphCall(lambda *args: args, 2, steps, [2, 5, 8, 1])
    for number in (1, 1, 1, 7):
        part, fn = Part(number), outer(number * 10)
        for _ in range(3):
            assert call(part, fn) == (number, number + 1, number * 10, fn)
        part.value = 100
        part.items[1]["k"] = 5
        assert call(part, fn) == (100, 5, number * 10, fn)


def test_graph_call_raises_what_reading_raises():
    call = GraphCall(lambda a: a, 1, [(0, "attr", "value"), (1, "item", "k")], [2])
    with pytest.raises(AttributeError):
        call(object())
    part = Part(1)
    part.value = {}
    with pytest.raises(KeyError):
        call(part)
    with pytest.raises(TypeError, match="expected 1 argument"):
        call()


@pytest.mark.parametrize(
    "given",
    [(3, 0, [], []), (len, 1, [(5, "attr", "a")], []), (len, 1, [(0, "no", "a")], []),
     (len, 0, [], [0]), (len, 1, [3], [])],
)  # fmt: skip
def test_graph_call_refuses_a_plan_that_makes_no_sense(given):
    with pytest.raises((TypeError, ValueError)):
        GraphCall(*given)


# ---- what is compiled by itself


def test_layers_called_from_code_that_broke_get_no_graph_of_their_own():
    layer = nn.Linear(3, 3)

    def program(x):
        for _ in range(2):
            print(end="")
            x = layer(x)
        return x

    counter = torch._dynamo.testing.CompileCounter()
    torch._dynamo.reset()
    assert torch.equal(torch.compile(program, backend=counter)(X), program(X))
    assert counter.frame_count == 0
    assert torch.equal(torch.compile(layer, backend=counter)(X), layer(X))
    assert counter.frame_count == 1


def test_layers_can_be_made_in_code_that_broke():
    def program(x):
        for _ in range(2):
            print(end="")
            layers = nn.ModuleList([nn.Identity(), nn.ReLU()])
        return layers[1](x)

    assert torch.equal(compiled(program)(X), X)


def test_python_that_was_not_tested_is_refused(monkeypatch):
    monkeypatch.setattr(torch._dynamo.eval_frame, "_VERSIONS", ())
    with pytest.raises(RuntimeError, match="compile: not tested"):
        torch.compile(lambda x: x, backend="eager")
