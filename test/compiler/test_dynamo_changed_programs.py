"""A program that changes between two calls of a compiled function: classes, functions, modules and
settings that the trace read are read again."""

import types

import pytest

import torch

module = types.ModuleType("changing")
scale = 2


def double(x):
    return x * 2


def triple(x):
    return x * 3


class Base:
    factor = 2
    table = {"a": 1}

    def __init__(self):
        self.value = 3

    def method(self):
        return self.factor

    @property
    def size(self):
        return self.value

    @classmethod
    def made(cls):
        return cls.factor

    @staticmethod
    def fixed():
        return 5


def fresh():
    """A class of its own for each case, with an object."""
    cls = type("Fresh", (Base,), {})
    return cls, cls()


def reader(name):
    return lambda cls, obj, x: x + getattr(obj, name)


def replace_code(fn, other):
    fn.__code__ = other.__code__


def helper_with(default):
    def helper(x, n=default):
        return x * n

    return helper


def keyword_with(default):
    def helper(x, *, n=default):
        return x * n

    return helper


def called(cls, obj, x):
    return x + obj.method()


# By name: what is called, and what changes afterwards.
CHANGES = {
    "class attribute": (reader("factor"), lambda c, o: setattr(c, "factor", 7)),
    "attribute of a base": (reader("factor"), lambda c, o: setattr(c, "factor", 9)),
    "object hides the class": (reader("factor"), lambda c, o: setattr(o, "factor", 7)),
    "object hides a method": (called, lambda c, o: setattr(o, "method", lambda: 11)),
    "class replaces a method": (called, lambda c, o: setattr(c, "method", lambda self: 12)),
    "method gets another class": (
        called,
        lambda c, o: setattr(o, "__class__", type("Other", (Base,), {"factor": 8})),
    ),
    "bases": (
        called,
        lambda c, o: setattr(c, "__bases__", (type("New", (Base,), {"factor": 6}),)),
    ),
    "property": (reader("size"), lambda c, o: setattr(c, "size", property(lambda s: 21))),
    "class method": (
        lambda c, o, x: x + o.made(),
        lambda c, o: setattr(c, "made", classmethod(lambda cls: 31)),
    ),
    "static method": (
        lambda c, o, x: x + o.fixed(),
        lambda c, o: setattr(c, "fixed", staticmethod(lambda: 41)),
    ),
    "attribute goes": (
        lambda c, o, x: x + getattr(o, "value", 50),
        lambda c, o: delattr(o, "value"),
    ),
    "attribute comes": (
        lambda c, o, x: x + getattr(o, "more", 50),
        lambda c, o: setattr(o, "more", 1),
    ),
    "attribute of the class comes": (
        lambda c, o, x: x + getattr(o, "more", 50),
        lambda c, o: setattr(c, "more", 1),
    ),
    "hasattr": (
        lambda c, o, x: x + hasattr(o, "more"),
        lambda c, o: setattr(c, "more", 1),
    ),
    "__getattr__ comes": (
        lambda c, o, x: x + getattr(o, "more", 50),
        lambda c, o: setattr(c, "__getattr__", lambda self, name: 60),
    ),
    "__getattribute__ comes": (
        reader("value"),
        lambda c, o: setattr(c, "__getattribute__", lambda self, name: 70),
    ),
    "data descriptor comes": (
        reader("value"),
        lambda c, o: setattr(c, "value", property(lambda self: 80)),
    ),
    "__len__": (
        lambda c, o, x: x + (1 if o else 2),
        lambda c, o: setattr(c, "__len__", lambda self: 0),
    ),
    "__bool__": (
        lambda c, o, x: x + (1 if o else 2),
        lambda c, o: setattr(c, "__bool__", lambda self: False),
    ),
    "__eq__": (
        lambda c, o, x: x + (o == 1),
        lambda c, o: setattr(c, "__eq__", lambda self, other: True),
    ),
    "table of a class": (
        lambda c, o, x: x + o.table["a"],
        lambda c, o: setattr(c, "table", {"a": 90}),
    ),
    "name of a class": (
        lambda c, o, x: x + len(type(o).__name__),
        lambda c, o: setattr(c, "__name__", "Longer name"),
    ),
    "attribute of a function": (
        lambda c, o, x: x + getattr(double, "extra", 0),
        lambda c, o: setattr(double, "extra", 4),
    ),
}


@pytest.fixture(autouse=True)
def unchanged():
    yield
    double.__dict__.clear()


def outcomes(call, change):
    cls, obj = fresh()
    seen = []
    for step in (None, change, None):
        if step is not None:
            step(cls, obj)
        seen.append(call(cls, obj, torch.zeros(1)).item())
    return seen


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_class_or_object_is_seen(name, broken):
    read, change = CHANGES[name]

    def fn(cls, obj, x):
        if broken:
            torch._dynamo.graph_break()
        return read(cls, obj, x) + 1

    torch._dynamo.reset()
    wanted = outcomes(fn, change)
    double.__dict__.clear()
    assert outcomes(torch.compile(fn, backend="eager"), change) == wanted


def test_change_of_globals_and_modules_is_seen(monkeypatch):
    module.number, module.call = 2, double

    def fn(x):
        return double(x) * scale + module.number + module.call(x) + len([1, 2])

    compiled = torch.compile(fn, backend="eager")
    x = torch.ones(1)
    changes = [
        lambda: None,
        lambda: monkeypatch.setitem(globals(), "scale", 5),
        lambda: monkeypatch.setitem(globals(), "double", triple),
        lambda: setattr(module, "number", 30),
        lambda: setattr(module, "call", triple),
        lambda: monkeypatch.setitem(globals(), "len", lambda items: 100),
        lambda: monkeypatch.delitem(globals(), "len"),
        monkeypatch.undo,
    ]
    for change in changes:
        change()
        wanted, got = fn(x), compiled(x)
        assert torch.equal(wanted, got)


@pytest.mark.parametrize(
    "change",
    [
        lambda fn: replace_code(fn, lambda x, n=1: x * n + 100),
        lambda fn: setattr(fn, "__defaults__", (9,)),
        lambda fn: setattr(fn, "__defaults__", (2, 9)),
    ],
    ids=["code", "defaults", "more defaults"],
)
def test_change_of_a_function_is_seen(change):
    results = []
    for compile_it in (False, True):
        helper = helper_with(3)

        def fn(x, helper=helper):
            return helper(x) + 1

        torch._dynamo.reset()
        call = torch.compile(fn, backend="eager") if compile_it else fn
        seen = [call(torch.ones(1)).item()]
        change(helper)
        seen.append(call(torch.ones(1)).item())
        results.append(seen)
    assert results[0] == results[1]


def test_change_of_keyword_defaults_is_seen():
    helper = keyword_with(3)
    compiled = torch.compile(lambda x: helper(x) + 1, backend="eager")
    assert compiled(torch.ones(1)).item() == 4
    helper.__kwdefaults__["n"] = 8
    assert compiled(torch.ones(1)).item() == 9
    helper.__kwdefaults__ = {"n": 10}
    assert compiled(torch.ones(1)).item() == 11


def test_change_of_the_compiled_function_itself_is_seen():
    def fn(x, n=2):
        return x * n

    compiled = torch.compile(fn, backend="eager")
    assert compiled(torch.ones(1)).item() == 2
    fn.__defaults__ = (5,)
    assert compiled(torch.ones(1)).item() == 5
    replace_code(fn, lambda x, n: x + n)
    assert compiled(torch.ones(1)).item() == 6


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 2)
        self.register_buffer("mean", torch.zeros(2))
        self.items = [1]
        self.rate = 1

    def forward(self, x):
        y = self.line(x) * self.rate + self.mean + len(self.items)
        return torch.relu(y) if self.training else y * 2


def set_weight(layer):
    layer.line.weight = torch.nn.Parameter(torch.ones(2, 2))


def add_hook(layer):
    layer.line.register_forward_hook(lambda m, args, out: out + 10)


def freeze(layer):
    layer.line.requires_grad_(False)


LAYER_CHANGES = {
    "eval": lambda m: m.eval(),
    "inner eval": lambda m: m.line.eval(),
    "weight in place": lambda m: m.line.weight.data.fill_(2.0),
    "weight replaced": set_weight,
    "layer replaced": lambda m: setattr(m, "line", torch.nn.Identity()),
    "layer of another class": lambda m: m._modules.update(line=torch.nn.ReLU()),
    "buffer replaced": lambda m: setattr(m, "mean", torch.full((2,), 4.0)),
    "buffer in the table": lambda m: m._buffers.update(mean=torch.full((2,), 5.0)),
    "bias goes": lambda m: m.line.register_parameter("bias", None),
    "hook": add_hook,
    "forward of the object": lambda m: setattr(m.line, "forward", lambda x: x * 7),
    "list grows": lambda m: m.items.append(2),
    "number": lambda m: setattr(m, "rate", 3),
    "double": lambda m: m.double().float(),
    "frozen": freeze,
}


@pytest.mark.parametrize("whole", [True, False], ids=["module", "function"])
@pytest.mark.parametrize("name", LAYER_CHANGES)
def test_change_of_a_module_is_seen(name, whole):
    results = []
    for compile_it in (False, True):
        torch.manual_seed(0)
        layer = Layer()
        torch._dynamo.reset()
        call = layer if whole else lambda x, layer=layer: layer(x)
        if compile_it:
            call = torch.compile(call, backend="eager")
        x = torch.ones(1, 2)
        seen = []
        for step in (lambda m: None, LAYER_CHANGES[name], lambda m: None):
            step(layer)
            out = call(x)
            seen.append((out.tolist(), out.requires_grad))
        results.append(seen)
    assert results[0] == results[1]
