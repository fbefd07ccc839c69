"""What libraries of models do inside of forward: function modes, layers made on the way, slices of
module lists, signatures of methods, sums that begin with a number."""

import gc
import inspect
import weakref

import pytest

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

X = torch.arange(6.0).reshape(2, 3)


class Cosines(TorchFunctionMode):
    def __torch_function__(self, func, types, args, kwargs=None):
        if func is torch.sin:
            return torch.cos(*args, **(kwargs or {}))
        if func is torch.Tensor.__getitem__:
            return args[0].sum()
        return func(*args, **(kwargs or {}))


def under_a_mode(x):
    with Cosines():
        inside = torch.sin(x) + x[0]
    return inside + torch.sin(x)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers[:2]:
            x = layer(x)
        return self.layers[-1](x)


def with_a_loss(x):
    return nn.CrossEntropyLoss()(x, torch.tensor([0, 2])) + nn.ReLU()(x).sum()


class Chunked:
    def part(self, a, b=2):
        return a


CHUNKED = Chunked()


def by_signature(x):
    return x + len(inspect.signature(CHUNKED.part).parameters)


def from_a_number(x):
    total = 0
    total += x.sum()
    total += x.mean()
    return total


@pytest.mark.parametrize("program", [under_a_mode, with_a_loss, by_signature, from_a_number])
def test_program_is_captured_whole_and_equals_eager(program):
    compiled = torch.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), program(X))


def test_slice_of_a_module_list_is_captured():
    model = Layers()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), model(X))


def test_a_break_under_a_function_mode_runs_the_frame_as_it_is():
    def program(x):
        with Cosines():
            print(end="")
            return torch.sin(x)

    assert torch.equal(torch.compile(program, backend="eager")(X), X.cos())


def test_a_size_known_only_from_data_breaks_the_graph():
    def program(x):
        return sum(row.sum() for row in x.nonzero())

    assert torch.equal(torch.compile(program, backend="eager")(X), program(X))


def test_lengths_of_sequences_compile_twice():
    counter = torch._dynamo.testing.CompileCounter()
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def step(x):
        out = layer(x)
        hidden = out.masked_fill(torch.ones(x.shape[1], 1, dtype=torch.bool), 0.5)
        rows = (out + hidden).reshape(-1, 8)
        return nn.functional.cross_entropy(rows, torch.zeros(rows.shape[0], dtype=torch.long))

    compiled = torch.compile(step, backend=counter)
    for length in range(3, 9):
        x = torch.ones(2, length, 8) * length
        assert torch.equal(compiled(x), step(x))
    assert counter.frame_count == 2


def test_layers_that_count_from_zero_compile_twice():
    class Numbered(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, x):
            return x * self.number

    counter = torch._dynamo.testing.CompileCounter()
    run = torch.compile(lambda layer, x: layer(x), backend=counter)
    for number in range(12):
        layer = Numbered(number)
        assert torch.equal(run(layer, X), layer(X))
    assert counter.frame_count == 2


def test_compiled_code_does_not_keep_what_a_dead_function_closed_over():
    class Held:
        pass

    def make():
        held = Held()
        held.weight = torch.ones(3)
        compiled = torch.compile(lambda x: x * held.weight.sum(), backend="eager")
        assert torch.equal(compiled(X), X * 3)
        return weakref.ref(held)

    alive = [make(), make()]
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
