"""make_fx with symbolic sizes and above autograd: a graph traced on one shape computes what the
program computes on others, says which sizes it holds for, and names sizes where they are used."""

from collections.abc import Callable

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

aten = torch.ops.aten


def traced(f: Callable, *args: object, **settings: object) -> torch.fx.GraphModule:
    return make_fx(f, tracing_mode="symbolic", **settings)(*args)


def targets(module: torch.fx.GraphModule) -> list[object]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def inputs(*shapes: tuple[int, ...], grad: bool = False) -> list[torch.Tensor]:
    generator = np.random.default_rng(0)
    made = [torch.from_numpy(generator.standard_normal(shape)) for shape in shapes]
    return [t.requires_grad_(grad) for t in made]


# What is traced, the shapes of its inputs in the trace, and other shapes it must hold for.
PROGRAMS = {
    "broadcast": (lambda a, b: a * b + 1, [(4, 5), (5,)], [(7, 3), (3,)]),
    "reshape": (lambda a: a.view(a.shape[0] * a.shape[1]), [(4, 5)], [(2, 9)]),
    "matmul": (lambda a, b: a @ b, [(2, 4, 5), (2, 5, 3)], [(6, 7, 8), (6, 8, 9)]),
    "linear": (F.linear, [(2, 4, 5), (3, 5), (3,)], [(6, 7, 9), (8, 9), (8,)]),
    "convolution": (
        lambda a, w: F.conv2d(a, w, stride=2, padding=1),
        [(2, 6, 9, 11), (4, 6, 3, 3)],
        [(5, 2, 12, 8), (7, 2, 3, 3)],
    ),
    "pooling": (lambda a: F.max_pool2d(a, 2), [(2, 3, 8, 10)], [(4, 5, 6, 12)]),
    "mean pooling": (lambda a: F.avg_pool2d(a, 3, 2), [(2, 3, 8, 10)], [(4, 5, 7, 13)]),
    "index": (lambda a: a[torch.tensor([1, 0])], [(4, 5)], [(7, 3)]),
    "sort": (lambda a: a.sort(0)[0], [(4, 5)], [(7, 3)]),
    "topk": (lambda a: a.topk(2, 1)[0], [(4, 5)], [(7, 3)]),
    "scan": (lambda a: a.cumsum(1), [(4, 5)], [(7, 3)]),
    "triangle": (lambda a: a.tril(), [(4, 5)], [(7, 3)]),
    "diagonal": (lambda a: a.diagonal(1) * 2, [(4, 5)], [(7, 3)]),
    "repeat": (lambda a: a.repeat(2, 3), [(4, 5)], [(7, 3)]),
    "pad": (lambda a: F.pad(a, (1, 2)), [(4, 5)], [(7, 3)]),
    "split": (lambda a: a.split([2, a.shape[0] - 2])[1], [(4, 5)], [(7, 3)]),
    "flip": (lambda a: a.flip(0).roll(1, 1), [(4, 5)], [(7, 3)]),
    "range": (lambda a: a.sum() + torch.arange(2, a.shape[0], 2), [(5, 4)], [(8, 3)]),
    "transform": (lambda a: torch.fft.rfft(a).abs(), [(4, 6)], [(7, 9)]),
    "layer norm": (lambda a: F.layer_norm(a, (5,)), [(4, 5)], [(7, 5)]),
    "zeros": (lambda a: torch.zeros(a.shape[0], 2 * a.shape[1]), [(4, 5)], [(7, 3)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph_traced_on_symbols_computes_the_program_on_other_shapes(name):
    program, first, other = PROGRAMS[name]
    module = traced(program, *inputs(*first))
    given = inputs(*other)
    torch.testing.assert_close(module(*given), program(*given), rtol=1e-12, atol=1e-12)


GRADIENTS = {
    "broadcast": (lambda a, b: (a * b).sum(), [(4, 5), (5,)], [(7, 3), (3,)]),
    "mean": (lambda a: a.mean(), [(4, 5)], [(7, 3)]),
    "mean of rows": (lambda a: (a.mean(1) * a.sum(1)).sum(), [(4, 5)], [(7, 3)]),
    "variance": (lambda a: a.var(1).sum(), [(4, 5)], [(7, 3)]),
    "slice": (lambda a: a.view(-1).cos()[2:].sum(), [(4, 5)], [(7, 3)]),
    "select": (lambda a: (a[1] * 2).sum(), [(4, 5)], [(7, 3)]),
    "cat": (lambda a, b: torch.cat([a, b]).sin().sum(), [(4, 5), (3, 5)], [(7, 3), (2, 3)]),
    "matmul": (lambda a, b: (a @ b).tanh().sum(), [(4, 5), (5, 3)], [(7, 8), (8, 2)]),
    "linear": (
        lambda a, w, b: F.linear(a, w, b).tanh().sum(),
        [(2, 4, 5), (3, 5), (3,)],
        [(6, 7, 9), (8, 9), (8,)],
    ),
    "convolution": (
        lambda a, w: F.conv2d(a, w).tanh().sum(),
        [(2, 6, 9, 11), (4, 6, 3, 3)],
        [(5, 2, 12, 8), (7, 2, 3, 3)],
    ),
    "repeat": (lambda a: a.repeat(2, 3).sin().sum(), [(4, 5)], [(7, 3)]),
    "maximum": (lambda a: a.max(1)[0].sum(), [(4, 5)], [(7, 3)]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_traced_on_symbols_are_those_of_other_shapes(name):
    loss, first, other = GRADIENTS[name]

    def gradients(*args):
        return torch.autograd.grad(loss(*args), args)

    module = traced(gradients, *inputs(*first, grad=True))
    given = inputs(*other, grad=True)
    for ours, expected in zip(module(*given), gradients(*given), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-13, atol=1e-13)
    assert module.shape_env.evaluate_guards_for_args(
        [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"], given
    )


def test_sizes_are_asked_for_where_they_are_used_and_unused_numbers_leave_no_node():
    def f(x):
        y = x.cos()
        if x.shape[0] * 3 > 2:
            y = y.sin()
        return y.new_zeros(x.shape[0] * 2)

    module = traced(f, torch.randn(4, 6))
    assert [str(t) for t in targets(module)] == [
        "aten.cos.default",
        "aten.sym_size.int",
        "aten.sin.default",
        "<built-in function mul>",
        "aten.new_zeros.default",
    ]


def test_a_shape_as_result_is_a_tuple_of_nodes():
    module = traced(lambda x: x.shape, torch.randn(4, 6))
    assert tuple(module(torch.randn(3, 5))) == (3, 5)


def test_integer_input_is_a_symbol():
    module = traced(lambda x, n: x.view(n), torch.randn(3, 4), 12)
    assert module(torch.ones(2, 5), 10).shape == (10,)


def test_item_of_a_traced_tensor_is_a_symbol_that_the_node_binds():
    module = traced(lambda n: torch.zeros(n.item()), torch.tensor(4))
    assert module(torch.tensor(7)).shape == (7,)
    read = next(n for n in module.graph.nodes if n.target is aten._local_scalar_dense.default)
    assert [str(symbol) for symbol in read.meta["unbacked_bindings"]] == ["u0"]


def test_a_traced_tensor_as_size_is_a_symbol():
    module = traced(lambda n: torch.zeros([n, 2]), torch.tensor(4))
    assert module(torch.tensor(3)).shape == (3, 2)


def test_split_and_chunk_of_an_empty_dimension_give_as_many_pieces_as_they_do_eagerly():
    def f(a):
        return len(a.split(2, 0)), len(a.chunk(3, 0))

    counts = []
    traced(lambda a: counts.append(f(a)) or a, torch.ones(0, 5))
    assert counts == [f(torch.ones(0, 5))] == [(1, 3)]


def test_mask_gives_a_size_that_depends_on_data():
    module = traced(lambda a: a[a > 0] * 2, torch.randn(4, 5))
    given = torch.tensor([[1.0, -1.0], [3.0, 4.0]])
    assert module(given).tolist() == [2.0, 6.0, 8.0]
    with pytest.raises(GuardOnDataDependentSymNode):
        traced(lambda a: 1 if a[a > 0].shape[0] > 3 else 2, torch.randn(4, 5))


def test_assignment_under_a_mask_of_a_size_that_depends_on_data_is_traced():
    def f(a, valid):
        chosen = a[valid]
        right = chosen[:, 0] > 0
        chosen[right] = chosen[right].flip(-1)
        return chosen

    module = traced(f, torch.randn(4, 3), torch.tensor([True, False, True, True]))
    a, valid = (
        torch.tensor([[1.0, 2.0], [-3.0, 4.0], [5.0, 6.0]]),
        torch.tensor([True, True, False]),
    )
    assert module(a, valid).tolist() == [[2, 1], [-3, 4]]


def test_error_about_a_tensor_of_unknown_size_names_the_symbol():
    with pytest.raises(IndexError, match=r"self: float32\[u0\]"):
        traced(lambda a: a[a > 0].unsqueeze(9), torch.randn(4))


def test_guards_name_the_inputs_given_as_variables_and_leave_out_the_range_of_sizes():
    def f(a):
        assert a.shape[0] < 20
        return a.cos()

    module = traced(f, torch.randn(15))
    held = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    lines = module.shape_env.produce_guards(held, ["a"], _simplified=True)
    assert lines == ["L['a'].size()[0] <= 19"]


# ---- above autograd
def test_pre_dispatch_records_operators_that_are_made_of_others_whole():
    module = make_fx(lambda a, w: F.linear(a, w) @ a, pre_dispatch=True)(
        torch.ones(4, 4), torch.ones(4, 4)
    )
    assert targets(module) == [aten.linear.default, aten.matmul.default]


def test_pre_dispatch_says_where_gradients_are_not_recorded():
    def f(a):
        b = a.sin()
        with torch.no_grad():
            c = b.cos()
        return b + c.sin()

    module = make_fx(f, pre_dispatch=True)(torch.ones(3, requires_grad=True))
    ours, expected = (torch.ones(3, requires_grad=True) for _ in range(2))
    module(ours).sum().backward()
    f(expected).sum().backward()
    assert torch.equal(ours.grad, expected.grad)
    assert targets(module).count(torch._C._set_grad_enabled) == 2


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_pre_dispatch_under_functionalisation_keeps_operators_whole_and_writes_nothing(mode):
    def f(x):
        with FunctionalTensorMode(pre_dispatch=True, export=True):
            held = FunctionalTensor.to_functional(x)
            y = torch.matmul(held, held).add(held)
            y.mul_(5)
            return torch._from_functional_tensor(y.elem)

    module = make_fx(f, pre_dispatch=True, tracing_mode=mode)(torch.ones(4, 4))
    assert targets(module) == [aten.matmul.default, aten.add.Tensor, aten.mul.Tensor]
    assert torch.equal(module(torch.ones(2, 2)), torch.full((2, 2), 15.0))


def test_nothing_is_recorded_above_autograd_after_a_trace_that_failed():
    def f(a):
        a.sin()
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        make_fx(f, pre_dispatch=True)(torch.ones(2))
    assert torch._dispatch.pre_dispatch.count() == 0
    assert torch.equal(torch.matmul(torch.eye(2), torch.eye(2)), torch.eye(2))


def test_tensor_that_loses_its_only_symbolic_dimension_stays_a_tensor():
    def program(x):
        tail = x[2:]
        tail.squeeze_(0)
        return tail.exp()

    module = make_fx(program, tracing_mode="symbolic")(torch.zeros(3))
    assert module(torch.tensor([5.0, 5.0, 0.0])).item() == 1.0


@pytest.mark.parametrize("place", [0, 1, 2])
def test_indexed_tensor_of_symbolic_size_lies_in_memory_as_the_real_one(place):
    def program(x):
        return x[(slice(None),) * place + (torch.tensor([1, 0]),)]

    x = torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)
    module = make_fx(program, tracing_mode="symbolic")(x)
    held = module.graph.output_node().args[0].meta["val"]
    assert [int(n) for n in held.stride()] == list(program(x).stride())
