"""Numbers of a program that differ from call to call: they become symbols at the second value, and
numbers that `random` draws are drawn by the compiled code."""

import math
import random

import pytest

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter, EagerAndRecordGraphs


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_float_argument_with_a_third_value_is_not_compiled_again():
    counter = CompileCounter()

    @torch.compile(backend=counter, fullgraph=True)
    def scaled(x, factor):
        return x * factor + 1

    x = torch.arange(4.0)
    for factor in (2.0, 3.5, -0.25, 1e6):
        assert scaled(x, factor).tolist() == [v * factor + 1 for v in x.tolist()]
    assert counter.frame_count == 2


def test_float_that_decides_a_branch_is_guarded_by_the_comparison():
    counter = CompileCounter()

    @torch.compile(backend=counter, fullgraph=True)
    def chosen(x, y):
        return x + 2 if y > 5.0 else x + y

    x = torch.zeros(2)
    for y in (1.0, 2.0, 3.0):
        assert chosen(x, y).tolist() == [y, y]
    assert counter.frame_count == 2
    assert chosen(x, 6.0).tolist() == [2.0, 2.0]
    assert chosen(x, 7.0).tolist() == [2.0, 2.0]
    assert counter.frame_count == 3


def test_float_that_is_no_number_is_compiled_by_itself():
    @torch.compile(backend="eager", fullgraph=True)
    def chosen(x, y):
        return x + 2 if y == 5.0 else x * y

    x = torch.ones(1)
    for y in (2.0, 3.0):
        chosen(x, y)
    assert math.isnan(chosen(x, math.nan).item())
    assert chosen(x, math.inf).item() == math.inf


def test_float_with_specialize_float_is_compiled_for_each_value():
    counter = CompileCounter()
    with torch._dynamo.config.patch(specialize_float=True):
        compiled = torch.compile(lambda x, y: x + y, backend=counter, fullgraph=True)
        for y in (1.0, 2.0, 3.0):
            assert compiled(torch.zeros(1), y).item() == y
    assert counter.frame_count == 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_varying_float_gives_the_same_result_and_gradient_on_every_backend(backend):
    def run(x, p):
        return (x * p).sin() + p / 2 + int(p > 1.0)

    compiled = torch.compile(run, backend=backend)
    for p in (0.5, 1.5, 2.5):
        a = torch.linspace(-1, 1, 5, requires_grad=True)
        b = a.detach().clone().requires_grad_()
        wanted, got = run(a, p), compiled(b, p)
        wanted.sum().backward()
        got.sum().backward()
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(b.grad, a.grad)


def test_float_result_of_varying_floats_is_the_number_itself():
    @torch.compile(backend="eager", fullgraph=True)
    def both(x, a, b):
        return x + a, a * b - 1, a / b

    for a, b in ((1.5, 2.0), (2.5, 4.0), (0.1, 0.3)):
        _, product, quotient = both(torch.zeros(1), a, b)
        assert product == a * b - 1 and quotient == a / b and type(product) is float


def test_power_and_remainder_of_varying_floats_are_those_of_python():
    @torch.compile(backend="eager")
    def both(x, a):
        return x + 1, a**0.5, a % 0.75, a // 0.5

    for a in (4.0, 2.25, -4.0, 9.5):
        assert both(torch.zeros(1), a)[1:] == (a**0.5, a % 0.75, a // 0.5)


def test_division_by_a_float_that_becomes_zero_raises():
    @torch.compile(backend="eager")
    def inverse(x, a):
        return x + 1 / a

    inverse(torch.zeros(1), 2.0)
    inverse(torch.zeros(1), 4.0)
    with pytest.raises(ZeroDivisionError):
        inverse(torch.zeros(1), 0.0)


def test_default_of_a_parameter_stays_a_constant_where_everything_is_dynamic():
    backend = EagerAndRecordGraphs()

    def inner(x, n=8):
        return x * n

    torch.compile(lambda x: inner(x), backend=backend, dynamic=True)(torch.ones(3))
    node = next(n for n in backend.graphs[0].graph.nodes if n.op == "call_function")
    assert node.args[1] == 8


def test_size_marked_unbacked_is_compiled_once_for_sizes_0_1_and_many():
    counter = CompileCounter()

    @torch.compile(backend=counter, fullgraph=True)
    def doubled(x):
        return x * 2

    first = torch.ones(3, 2)
    torch._dynamo.mark_unbacked(first, 0)
    for x in (first, torch.ones(1, 2), torch.ones(0, 2), torch.ones(7, 2)):
        assert torch.equal(doubled(x), x + x)
    assert counter.frame_count == 1


# ---- random


def _drawn(x, other):
    first = random.randint(1, 9)
    second = other.uniform(-1, 1)
    own = random.Random(42)
    third = own.randrange(10)
    return x + first + second + third, other, own


def test_random_numbers_in_a_whole_graph_are_those_of_the_program_and_leave_its_state():
    compiled = torch.compile(_drawn, backend="eager", fullgraph=True)
    x = torch.zeros(3)
    for seed in (0, 1, 2):
        random.seed(seed)
        wanted, a, c = _drawn(x, random.Random(seed))
        state = random.getstate()
        random.seed(seed)
        got, b, d = compiled(x, random.Random(seed))
        assert torch.equal(wanted, got)
        assert random.getstate() == state
        assert a.getstate() == b.getstate() and c.getstate() == d.getstate()


def test_random_numbers_are_drawn_again_by_each_call_without_compiling():
    counter = CompileCounter()

    @torch.compile(backend=counter, fullgraph=True)
    def noisy(x):
        return x + random.random()

    random.seed(3)
    got = [noisy(torch.zeros(1, dtype=torch.float64)).item() for _ in range(5)]
    random.seed(3)
    assert got == [random.random() for _ in range(5)]
    assert counter.frame_count == 1


def test_random_state_that_is_read_seeded_and_set_in_a_trace_is_that_of_the_program():
    def run(x, a, b):
        a.seed(42)
        other = random.Random(9002)
        b.setstate(other.getstate())
        return x + a.random() + b.randint(1, 10) + other.gauss(0.0, 1.0)

    x = torch.zeros(2)
    one, two = random.Random(1), random.Random(2)
    wanted = run(x, one, two)
    three, four = random.Random(1), random.Random(2)
    got = torch.compile(run, backend="eager", fullgraph=True)(x, three, four)
    assert torch.equal(wanted, got)
    assert one.getstate() == three.getstate() and two.getstate() == four.getstate()


def test_branch_on_a_random_number_takes_the_way_of_the_program():
    def run(x):
        return x + 1 if random.random() < 0.5 else x - 1

    compiled = torch.compile(run, backend="eager")
    random.seed(7)
    wanted = [run(torch.zeros(1)).item() for _ in range(12)]
    random.seed(7)
    assert [compiled(torch.zeros(1)).item() for _ in range(12)] == wanted


def test_choice_of_a_list_breaks_the_graph_and_draws_once():
    def run(x, items):
        return x + random.choice(items)

    compiled = torch.compile(run, backend="eager")
    random.seed(5)
    wanted = [run(torch.zeros(1), [1, 2, 3]).item() for _ in range(6)]
    random.seed(5)
    assert [compiled(torch.zeros(1), [1, 2, 3]).item() for _ in range(6)] == wanted


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True)
def test_numbers_read_from_data_pass_all_stages(backend):
    """Each stage traces the graph again and meets symbols of its own for them."""

    def picked(x):
        y = x * 3 + 1
        places = y.nonzero().squeeze(1)
        count = int(places.numel())
        torch._check(count >= 0)
        return y[places] * 2, x[x > 0] + count, x + x.sum().int().item()

    compiled = torch.compile(picked, backend=backend, fullgraph=True)
    for n in (6, 6, 9):
        x = torch.randn(n)
        x[:2] = -1 / 3
        for got, want in zip(compiled(x), picked(x), strict=True):
            assert torch.equal(got, want)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_shape_that_depends_on_values_of_inference_tensors_is_traced():
    """They have no version by which a remembered size could be known to hold."""
    x = torch.tensor([0, 3, 0, 5])
    with torch.inference_mode():
        found = torch.compile(torch.nonzero, fullgraph=True, backend="aot_eager")(x)
    assert found.tolist() == [[1], [3]]


@pytest.mark.parametrize(
    "fn",
    [
        lambda v, t: torch.tensor([v, 2.5]),
        lambda v, t: torch.tensor([[v], [2]]),
        lambda v, t: torch.tensor(v),
        lambda v, t: torch.tensor([t, t]),
        lambda v, t: torch.tensor([torch.tensor(3), t]),
        lambda v, t: torch.tensor([[t, v], [1, 2.0]], dtype=torch.float64),
    ],
)
def test_tensor_of_symbols_and_tensors_is_that_of_their_numbers(fn) -> None:
    torch._dynamo.reset()
    counter = CompileCounter()
    run = torch.compile(fn, backend=counter, fullgraph=True, dynamic=True)
    for number in (3, 5, 7):
        given = torch.tensor([[[number + 1]]])
        wanted = fn(number, given)
        got = run(number, given)
        assert torch.equal(got, wanted) and got.dtype == wanted.dtype
    assert counter.frame_count == 1


def test_eager_then_compile_learns_from_the_first_call_what_varies():
    torch._dynamo.reset()
    count = CompileCounter()
    add = torch.compile(lambda x, n: x + n, backend=count)
    with torch.compiler.set_stance("eager_then_compile"):
        for compiled, size in enumerate((4, 6, 7, 9)):
            assert add(torch.ones(size), size)[0] == size + 1
            assert count.frame_count == min(compiled, 1)
