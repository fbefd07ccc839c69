"""Classes and modes that take over calls of torch, inside of compiled functions: the trace follows
__torch_function__, and the graph holds what it calls."""

from __future__ import annotations

import weakref

import pytest

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

X = torch.tensor([0.5, 1.0, 2.0])


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


class Exp(torch.Tensor):
    """Computes exp where the program asks for sigmoid."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.sigmoid, torch.Tensor.sigmoid):
            func = torch.Tensor.exp
        return super().__torch_function__(func, types, args, kwargs or {})


class Holder:
    """No tensor, but torch's functions take it."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.tensor if isinstance(a, Holder) else a for a in args]
        return func(*plain, **(kwargs or {}))


class Doubled(TorchFunctionMode):
    """Doubles what torch.add computes."""

    def __torch_function__(self, func, types, args, kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.add else result


def test_subclass_that_takes_over_calls_is_followed_and_kept():
    def fn(x, y):
        z = x.sigmoid() + torch.sigmoid(y)
        return z, [z[0]], y * 2

    count = CompileCounter()
    run = torch.compile(fn, backend=count, fullgraph=True)
    z, parts, plain = run(X.as_subclass(Exp), X)
    assert type(z) is Exp and type(parts[0]) is Exp and type(plain) is torch.Tensor
    assert torch.allclose(z.as_subclass(torch.Tensor), X.exp() + X.sigmoid())
    assert count.frame_count == 1


def test_subclass_made_in_the_function_leaves_it_with_its_class():
    made = torch.compile(lambda x: Exp(x + 1), backend="eager", fullgraph=True)(X)
    assert type(made) is Exp
    assert torch.equal(made.as_subclass(torch.Tensor), X + 1)


def test_object_that_takes_over_calls_is_followed():
    fn = torch.compile(lambda h: torch.add(h, 1.0, alpha=2.0), backend="eager", fullgraph=True)
    assert torch.equal(fn(Holder(X)), X + 2)


def test_mode_that_is_open_before_the_call_takes_part_and_is_guarded():
    count = CompileCounter()
    fn = torch.compile(lambda x: torch.add(x, 1), backend=count, fullgraph=True)
    assert torch.equal(fn(X), X + 1)
    with Doubled():
        assert torch.equal(fn(X), (X + 1) * 2)
        assert torch.equal(fn(X), (X + 1) * 2)
    assert torch.equal(fn(X), X + 1)
    assert count.frame_count == 2


def test_mode_that_the_function_leaves_open_is_open_afterwards():
    mode = Doubled()

    def fn(x):
        mode.__enter__()
        return x + 1

    torch.compile(fn, backend="eager", fullgraph=True)(X)
    assert _get_current_function_mode_stack() == [mode]
    mode.__exit__(None, None, None)
    assert _get_current_function_mode_stack() == []


def test_lazy_layer_gets_its_shape_while_it_is_compiled():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LazyLinear(2)

        def forward(self, x):
            return self.layer(x)

    net = Net()
    run = torch.compile(net, backend="eager", fullgraph=True)
    first = run(torch.ones(4, 3))
    assert type(net.layer) is nn.Linear and net.layer.weight.shape == (2, 3)
    assert torch.equal(first, net(torch.ones(4, 3)))


def test_mode_sees_operators_whose_left_operand_is_a_number():
    class Through(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def fn(x, n):
        with Through():
            parts = [20 + x, 3 - x, 4 * x, 5 / x, 7 // x, 7 % x, 2**x, x > 1, x >= 1, x < 1, x <= 1]
            return [*parts, 6 & n, 6 | n, 6 ^ n, 1 << n, 64 >> n]

    n = torch.tensor([1, 2, 5])
    for got, want in zip(
        torch.compile(fn, backend="eager", fullgraph=True)(X, n), fn(X, n), strict=True
    ):
        assert torch.equal(got, want) and got.dtype == want.dtype


def test_mode_is_shown_the_tensor_first_in_comparisons():
    class Through(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            assert isinstance(args[0], torch.Tensor)
            return func(*args, **(kwargs or {}))

    def fn(x, number):
        with Through():
            return [number == x, number != x, number < x, number <= x, number > x, number >= x]

    compiled = torch.compile(fn, backend="eager", fullgraph=True)
    for got, want in zip(compiled(X, 1), fn(X, 1), strict=True):
        assert torch.equal(got, want)


def test_weak_reference_is_followed_and_made():
    class Part:
        value = 3

    part = Part()
    known = weakref.ref(part)

    def fn(x):
        return x * known().value, weakref.ref(part)

    result, made = torch.compile(fn, backend="eager", fullgraph=True)(X)
    assert torch.equal(result, X * 3)
    assert made() is part


def test_parameters_and_buffers_are_marked_static_for_the_backend():
    seen = []

    def backend(gm, inputs):
        for node in gm.graph.find_nodes(op="placeholder"):
            seen.append(node.meta["tensor_dict"].get("_dynamo_static_input_type"))
        return gm

    layer = nn.Linear(3, 3)
    torch.compile(lambda x: layer(x), backend=backend)(X)
    assert sorted(seen, key=str) == [None, "unguarded", "unguarded"]
