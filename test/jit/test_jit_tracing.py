"""Traces: what they follow, how they are structured, what they refuse."""

import io

import pytest

import torch
import torch.nn.functional as F
from torch import nn


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return self.linear(x.reshape(x.shape[0], -1))


def test_trace_follows_sizes_of_its_inputs():
    def f(x):
        rows, columns = x.shape
        grid = torch.arange(rows * columns).view(rows, -1)
        return grid + torch.full(x.shape, 2.0) + x.size(0) // 2

    traced = torch.jit.trace(f, torch.ones(2, 3))
    other = torch.ones(5, 4)
    assert torch.equal(traced(other), f(other))


def test_trace_follows_slices_that_cover_the_example():
    def f(x):
        return x[0:5, 0] + x[..., None][:5, 1, 0]

    traced = torch.jit.trace(f, torch.rand(5, 4))
    other = torch.rand(8, 3)
    assert torch.equal(traced(other), f(other))


def test_trace_of_interpolation_by_a_factor_works_for_other_sizes():
    def f(x):
        return F.interpolate(x, scale_factor=3, mode="bilinear", align_corners=False)

    traced = torch.jit.trace(f, torch.rand(1, 1, 4, 4))
    other = torch.rand(2, 3, 5, 2)
    assert torch.equal(traced(other), f(other))


def test_trace_returns_sizes_as_tensors():
    traced = torch.jit.trace(lambda x: x.numel(), torch.rand(2, 3))
    assert traced(torch.rand(4, 5)) == 20


def test_trace_records_assignments_to_parts():
    def f(x):
        y = torch.zeros_like(x)
        y[1:, 0] = x[1:, 1]
        y[0] = 3.0
        return y

    traced = torch.jit.trace(f, torch.rand(3, 2))
    other = torch.rand(6, 2)
    assert torch.equal(traced(other), f(other))


def test_trace_keeps_the_control_flow_of_scripted_functions():
    @torch.jit.script
    def sign(x):
        if bool(x.sum() > 0):
            return x + 1
        return x - 1

    traced = torch.jit.trace(lambda x: sign(x * 2), torch.ones(2))
    assert torch.equal(traced(-torch.ones(2)), torch.full((2,), -3.0))
    assert "prim::CallFunction" in str(traced.graph)


def test_traced_submodules_are_called_and_can_be_called():
    model = _Net().eval()
    traced = torch.jit.trace(model, torch.rand(3, 1, 4, 4))
    x = torch.rand(5, 1, 4, 4)
    assert torch.allclose(traced(x), model(x))
    assert str(traced.graph).count('prim::CallMethod[name="forward"]') == 3
    y = torch.rand(2, 8)
    assert torch.equal(traced.linear(y), model.linear(y))


def test_module_that_is_called_twice_has_two_methods():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(torch.tanh(self.linear(x)))

    model = Twice()
    traced = torch.jit.trace(model, torch.rand(2, 3))
    x = torch.rand(4, 3)
    assert torch.equal(traced(x), model(x))
    assert {"forward", "forward1"} <= set(traced.linear._c._method_names())


def test_traced_models_are_saved_and_loaded():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    traced = torch.jit.trace(layer, torch.rand(2, 3, 8))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    x = torch.rand(4, 5, 8)
    assert torch.allclose(loaded(x), layer(x), atol=1e-6)


def test_tensor_that_requires_grad_cannot_be_a_constant():
    weight = torch.rand(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad"):
        torch.jit.trace(lambda x: x + weight, torch.rand(3))


def test_runs_that_record_other_graphs_are_refused():
    kept: list[torch.Tensor] = []

    def f(x):
        if not kept:
            kept.append(torch.neg(x))
        return x + kept[0]

    with pytest.raises(torch.jit.TracingCheckError, match="Graphs differed"):
        torch.jit.trace(f, torch.rand(3), check_inputs=[(torch.rand(3),)])


def test_graph_for_groups_operators_that_need_gradients():
    @torch.jit.script
    def f(x, y):
        return torch.tanh(x * y) + 1

    x = torch.rand(3, requires_grad=True)
    groups = f.graph_for(x, x).findAllNodes("prim::DifferentiableGraph")
    assert len(groups) == 1
    kinds = [n.kind() for n in groups[0].g("Subgraph").nodes()]
    assert [k for k in kinds if k.startswith("aten")] == ["aten::mul", "aten::tanh", "aten::add"]
    plain = torch.rand(3)
    assert not f.graph_for(plain, plain).findAllNodes("prim::DifferentiableGraph")


def test_loops_of_known_length_unroll_to_the_same_result():
    def f(x):
        for i in range(4):
            x = x * i + 1
        return x

    graph = torch.jit.script(f).graph.copy()
    torch._C._jit_pass_loop_unrolling(graph)
    assert not graph.findAllNodes("prim::Loop")
    made = torch._C._create_function_from_graph("f", graph)
    x = torch.rand(3)
    assert torch.equal(made(x), f(x))


def test_direct_call_of_a_submodules_forward_skips_its_hooks():
    class Inner(nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner.forward(x)

    assert torch.equal(torch.jit.script(Outer())(torch.ones(2)), torch.full((2,), 2.0))


def test_trace_indexes_by_masks_lists_and_single_numbers():
    def f(x, mask, at):
        return x[mask], x[[0, 2]], x[at], x[:, mask[0]]

    def inputs(seed):
        x = torch.randn(3, 3, generator=torch.Generator().manual_seed(seed))
        return x, x > 0, torch.tensor(1)

    traced = torch.jit.trace(f, inputs(0))
    for got, wanted in zip(traced(*inputs(1)), f(*inputs(1)), strict=True):
        assert torch.equal(got, wanted)


def test_traced_lambda_is_saved_and_loaded():
    traced = torch.jit.trace(lambda a, b: (b, a * 2), (torch.ones(2), torch.zeros(2)))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    first, second = torch.jit.load(file)(torch.tensor([1.0]), torch.tensor([5.0]))
    assert first.tolist() == [5] and second.tolist() == [2]


def test_trace_while_parametrizations_are_cached_raises():
    class Double(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    model = torch.nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(model, "weight", Double())
    refused = pytest.raises(RuntimeError, match="Cannot trace a model while caching")
    with torch.nn.utils.parametrize.cached(), refused:
        torch.jit.trace(model, torch.ones(1, 2))


class Passing(nn.Module):
    """Uses one of its inputs."""

    def forward(self, x, y):
        return x * 2


class Chained(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Passing()

    def forward(self, x):
        first = self.inner(x, None)
        return first, first + 1


def test_traced_module_is_given_results_that_it_does_not_use():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.chained, self.last = Chained(), Passing()

        def forward(self, x):
            first, second = self.chained(x)
            return self.last(second, first)

    traced = torch.jit.trace(Net(), torch.ones(2))
    assert traced(torch.tensor([1.0, 2.0])).tolist() == [6, 10]
    assert len(list(traced.graph.inputs())) == 2


class Cube(torch.autograd.Function):
    """Gradients that no operator of forward has."""

    @staticmethod
    def forward(ctx, x, factor):
        return x * factor, x + 1

    @staticmethod
    def backward(ctx, of_product, of_sum):
        return of_product * 5 + of_sum * 2, None


def test_autograd_function_in_a_trace_keeps_its_gradient():
    traced = torch.jit.trace(lambda x: Cube.apply(x.sin(), 3)[0] + 1, torch.ones(2))
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    result = traced(x)
    assert torch.equal(result, x.sin() * 3 + 1)
    result.sum().backward()
    torch.testing.assert_close(x.grad, 5 * x.detach().cos())


def test_autograd_function_of_a_parameter_in_a_traced_module_keeps_its_gradient():
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            first, second = Cube.apply(x * self.w, 2.0)
            return first + second

    traced = torch.jit.trace(Net(), torch.ones(2))
    traced(torch.tensor([1.0, 3.0])).sum().backward()
    assert traced.w.grad.tolist() == [7.0, 21.0]


def test_trace_with_an_autograd_function_cannot_be_saved():
    traced = torch.jit.trace(lambda x: Cube.apply(x, 3)[0], torch.ones(2))
    with pytest.raises(RuntimeError, match="Could not export Python function call 'Cube'"):
        torch.jit.save(traced, io.BytesIO())
    assert "apply" not in vars(torch.autograd.function._SingleLevel)


NAMESAKES = torch.library.Library("namesakes", "DEF")
NAMESAKES.define("sin(Tensor x) -> Tensor")
NAMESAKES.impl("sin", lambda x: x * 10, "CompositeExplicitAutograd")
NAMESAKES.define("add(Tensor a, Tensor b) -> Tensor")
NAMESAKES.impl("add", lambda a, b: a - b, "CompositeExplicitAutograd")


def relu(x):
    """Not torch's, but one that modes see."""
    if torch.overrides.has_torch_function_unary(x):
        return torch.overrides.handle_torch_function(relu, (x,), x)
    return x * 100


def test_operators_of_programs_that_are_named_like_ours_stay_theirs_in_a_trace():
    def f(x):
        return torch.ops.namesakes.sin(x), torch.ops.namesakes.add.default(x, x), relu(x)

    x = torch.tensor([-1.0, 2.0])
    traced = torch.jit.trace(f, x)
    for found, expected in zip(traced(x), f(x), strict=True):
        assert torch.equal(found, expected)
    kinds = [n.kind() for n in traced.graph.nodes()]
    assert "namesakes::sin" in kinds and "aten::sin" not in kinds


def test_quantized_activation_in_a_trace_keeps_its_grid():
    x = torch.quantize_per_tensor(torch.linspace(-2, 2, 10), 0.02, 100, torch.quint8)
    layer = torch.ao.nn.quantized.ELU(0.03, 40)
    found, expected = torch.jit.trace(layer, x)(x), layer(x)
    assert torch.equal(found.int_repr(), expected.int_repr())
    assert (found.q_scale(), found.q_zero_point()) == (expected.q_scale(), 40)
