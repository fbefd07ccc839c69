"""torch._inductor: traced graphs as plans of fused kernels and calls. Results are those of the same
operators run one by one, bit for bit."""

from __future__ import annotations

import copy
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

import torch
from torch import nn
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor import config, metrics
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def _counted() -> Iterator[None]:
    metrics.reset()
    yield
    assert metrics.not_lowered == []


def compiled(fn: Callable, *args: object) -> Callable:
    return compile_fx_inner(make_fx(fn)(*args), list(args))


def _examples(module: torch.fx.GraphModule) -> list[object]:
    return [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]


def check(fn: Callable, *args: torch.Tensor, kernels: int | None = None) -> None:
    """Compiled equals eager in bits, dtype and strides, with this many fused kernels."""
    run = compiled(fn, *args)
    expected = fn(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    got = run(list(args))
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype and g.stride() == e.stride()
        assert torch.equal(g.isnan(), e.isnan())
        assert torch.equal(g.nan_to_num(), e.nan_to_num())
    if kernels is not None:
        assert metrics.generated_kernel_count == kernels


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.complex128])
def test_copy_of_a_permuted_tensor_with_short_rows_equals_eager(dtype: torch.dtype) -> None:
    x = torch.randn(7, 4, 33, 5).mul(20).to(dtype)
    check(lambda x: x.permute(0, 2, 1, 3).clone(memory_format=torch.contiguous_format), x)
    check(lambda x: x.permute(3, 1, 0, 2).clone(memory_format=torch.contiguous_format), x)
    # The rows are read by another loop too.
    check(lambda x: ((y := x.permute(0, 2, 1, 3)).contiguous(), y.contiguous() + 1), x)
    check(lambda x: x[:, :1, :, :1].expand(7, 4, 33, 5).clone(), x)


def test_pointwise_chain_is_one_kernel_and_equals_numpy() -> None:
    x, y = torch.randn(3000), torch.randn(3000)
    run = compiled(lambda x, y: (x * 2 + y).relu() - x * y, x, y)
    (got,) = run([x, y])
    a, b = x.numpy(), y.numpy()
    np.testing.assert_allclose(got.numpy(), np.maximum(a * 2 + b, 0) - a * b, rtol=1e-6, atol=1e-6)
    assert metrics.generated_kernel_count == 1 and metrics.num_calls == 0


@pytest.mark.parametrize("n", [0, 1, 7, 255, 256, 2049, 70_000])
def test_chain_of_any_length_equals_eager(n: int) -> None:
    check(lambda x, y: (x.exp() + y).tanh() * y, torch.randn(n), torch.randn(n), kernels=1)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.bool]
)
def test_dtypes_round_where_eager_rounds(dtype: torch.dtype) -> None:
    x = torch.randint(0, 3, (513,)).to(dtype)
    check(lambda x: (x * 0.3 + x).sin() * 7, x, kernels=1)


@pytest.mark.parametrize("width", [1, 3, 16, 300, 2500])
def test_broadcast_rows_and_columns_equal_eager(width: int) -> None:
    x, row, column = torch.randn(11, width), torch.randn(width), torch.randn(11, 1)
    check(lambda x, r, c: (x + r) * c - r / (c * c + 1), x, row, column)


def test_transposed_operands_and_results_keep_eager_strides() -> None:
    x, y = torch.randn(37, 53), torch.randn(53, 37)
    check(lambda x, y: (x.t() * 2 + y, (x + y.t()).t() + 1), x, y)


def test_views_between_loops_do_not_stop_fusion() -> None:
    x = torch.randn(4, 6, 8)
    check(lambda x: (x + 1).view(24, 8).relu().view(4, 6, 8) * 2, x, kernels=1)


def test_comparison_where_and_masked_fill_are_fused() -> None:
    x, y = torch.randn(50, 40), torch.randn(40)
    check(lambda x, y: torch.where(x > y, x, 0.5).masked_fill(x < -1, 9.0), x, y, kernels=1)


def test_constants_need_no_memory() -> None:
    x = torch.randn(100)
    check(lambda x: x + torch.zeros_like(x) + torch.full((100,), 2.5), x, kernels=1)


def _reduced(op: str, dim: tuple[int, ...], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return getattr(x * y + 1, op)(*dim)


@pytest.mark.parametrize("shape", [(5,), (300, 70), (70, 300), (9, 5000), (3, 4, 600)])
@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
def test_reduction_computes_its_elements_itself(shape: tuple[int, ...], op: str) -> None:
    x, y = torch.randn(shape), torch.randn(shape)
    dims: list[tuple] = [(d,) for d in range(len(shape))]
    for dim in [*dims, ()] if op in ("sum", "mean") else dims:
        metrics.reset()
        check(functools.partial(_reduced, op, dim), x, y, kernels=1)


def test_results_needed_twice_are_computed_once() -> None:
    x = torch.randn(64, 32)

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.exp()
        return y.sum(1), y + 1

    check(fn, x, kernels=1)
    assert metrics.num_bytes_accessed < 3 * 4 * 64 * 32


def test_matrix_products_are_calls_with_fused_neighbours() -> None:
    args = [torch.randn(8, 16), torch.randn(16, 16), torch.randn(16)]
    check(lambda x, w, b: torch.tanh(torch.relu(x @ w + b) @ w + b) * 2, *args, kernels=2)
    assert metrics.num_calls == 2


def test_written_input_is_read_before_it_is_written() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x * 2
        x.add_(y)
        return z + x

    x, y = torch.randn(40), torch.randn(40)
    a, b = x.clone(), x.clone()
    expected = fn(a, y)
    (got,) = compile_fx_inner(make_fx(fn)(x.clone(), y), [x, y])([b, y])
    assert torch.equal(got, expected) and torch.equal(a, b)


def test_inputs_that_share_memory_are_written_in_order() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        before = y + 1
        x.mul_(3)
        return before + y

    memory = torch.arange(20.0)
    run = compile_fx_inner(make_fx(fn)(torch.ones(10), torch.ones(10)), [torch.ones(10)] * 2)
    expected_memory = memory.clone()
    expected = fn(expected_memory[:10], expected_memory[5:15])
    (got,) = run([memory[:10], memory[5:15]])
    assert torch.equal(got, expected) and torch.equal(memory, expected_memory)


def test_slices_at_another_offset_run_the_same_plan() -> None:
    data = torch.randn(10, 32)
    run = compiled(lambda x: (x * 2).sum(), data[0])
    for row in data:
        assert torch.equal(run([row])[0], (row * 2).sum())
    assert metrics.generated_kernel_count == 1


def test_other_shapes_get_plans_of_their_own() -> None:
    module = make_fx(lambda x, w: torch.relu(x @ w) + 1, tracing_mode="symbolic")(
        torch.randn(5, 8), torch.randn(8, 8)
    )
    run = compile_fx_inner(module, _examples(module))
    w = torch.randn(8, 8)
    for length in (2, 3, 17, 400):
        x = torch.randn(length, 8)
        assert torch.equal(run([x, w])[0], torch.relu(x @ w) + 1)


def test_sizes_computed_in_the_graph_follow_the_inputs() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).view(x.shape[0] * x.shape[1], -1).sum(0) / (x.shape[0] // 2 + 1)

    module = make_fx(fn, tracing_mode="symbolic")(torch.randn(4, 3, 6))
    run = compile_fx_inner(module, _examples(module))
    for shape in ((4, 3, 6), (6, 5, 6), (9, 2, 6)):
        x = torch.randn(shape)
        assert torch.equal(run([x])[0], fn(x))


def test_random_numbers_come_from_the_generator_in_program_order() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.dropout(x, 0.5, True) + torch.rand_like(x)

    x = torch.randn(1000)
    torch.manual_seed(3)
    run = compiled(fn, x)
    torch.manual_seed(7)
    expected = fn(x)
    torch.manual_seed(7)
    assert torch.equal(run([x])[0], expected)


def test_kernel_errors_come_out_as_eager_raises_them() -> None:
    x = torch.tensor([1, 2, 3])
    run = compiled(lambda x, y: x // y + 1, x, torch.ones(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run([x, torch.zeros(3, dtype=torch.int64)])


def test_wrong_number_of_arguments_is_an_error() -> None:
    run = compiled(lambda x: x + 1, torch.ones(2))
    with pytest.raises(RuntimeError, match="takes 1 arguments"):
        run([])


def test_operator_with_a_kernel_of_its_own_is_called() -> None:
    library = torch.library.Library("test_inductor", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", lambda x: torch.empty_like(x), "Meta")
    x = torch.randn(20)
    check(lambda x: torch.ops.test_inductor.twice(x + 1) * 3, x, kernels=2)
    assert metrics.num_calls == 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 48), nn.Linear(48, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def _losses(step: Callable[[torch.Tensor], torch.Tensor], model: nn.Module) -> list[float]:
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(5):
        loss = step(torch.randn(6, 16))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    return losses


def test_training_through_aot_autograd_has_the_losses_of_eager() -> None:
    torch.manual_seed(0)
    eager = nn.Sequential(Block(), Block())
    other = copy.deepcopy(eager)
    names = [name for name, _ in other.named_parameters()]

    def run(params: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        state = dict(zip(names, params, strict=True))
        return torch.func.functional_call(other, state, (x,)).square().mean()

    fast = aot_function(run, compile_fx_inner, partition_fn=min_cut_rematerialization_partition)
    expected = _losses(lambda x: eager(x).square().mean(), eager)
    got = _losses(lambda x: fast(list(other.parameters()), x), other)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_compile_fx_compiles_a_module_with_its_gradient() -> None:
    torch.manual_seed(0)
    model, x = Block(), torch.randn(6, 16)
    module = torch.fx.symbolic_trace(model)
    module.graph.output_node().args = ((module.graph.output_node().args[0],),)
    module.recompile()
    (out,) = compile_fx(module, [x])(x)
    out.sum().backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for g, p in zip(got, model.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad)


def test_custom_pass_sees_the_graph_before_it_is_compiled() -> None:
    seen: list[str] = []

    def note(graph: torch.fx.Graph) -> None:
        adds = graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)
        seen.extend(str(node.target) for node in adds)

    with config.patch(post_grad_custom_pre_pass=note):
        check(lambda x: x + x, torch.ones(3))
    assert seen == ["aten.add.Tensor"]


def test_graph_that_reads_data_runs_as_it_is() -> None:
    module = make_fx(lambda x: torch.nonzero(x) + 1)(torch.tensor([0.0, 2.0, 3.0]))
    run = compile_fx_inner(module, [torch.ones(3)])
    assert run([torch.tensor([1.0, 0.0, 4.0])])[0].tolist() == [[1], [3]]
    assert len(metrics.not_lowered) == 1
    metrics.not_lowered.clear()


def test_graph_of_unknown_shapes_that_reads_data_runs_as_it_is() -> None:
    module = make_fx(lambda x: x.sum() + torch.nonzero(x).sum())(torch.tensor([0.0, 2.0]))
    symbolic = make_fx(lambda x: x + 1, tracing_mode="symbolic")(torch.ones(5))
    run = compile_fx_inner(module, _examples(symbolic))
    for values in ([1.0, 0.0, 4.0], [0.0, 3.0]):
        x = torch.tensor(values)
        assert torch.equal(run([x])[0], x.sum() + torch.nonzero(x).sum())
    assert len(metrics.not_lowered) == 1
    metrics.not_lowered.clear()


def test_torch_compile_uses_the_compiler_when_no_backend_is_named() -> None:
    torch._dynamo.reset()

    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * 2 + y).relu().sum(-1)

    x, y = torch.randn(20, 30), torch.randn(30)
    assert torch.equal(torch.compile(fn, fullgraph=True)(x, y), fn(x, y))
    assert metrics.generated_kernel_count == 1 and metrics.num_calls == 0


def test_torch_compile_takes_settings_for_one_function() -> None:
    torch._dynamo.reset()
    seen: list[int] = []
    options = {"post_grad_custom_post_pass": lambda graph: seen.append(len(graph.nodes))}
    run = torch.compile(lambda x: x.sin() + 1, options=options)
    x = torch.randn(5)
    assert torch.equal(run(x), x.sin() + 1)
    assert len(seen) == 1 and config.post_grad_custom_post_pass is None


def test_compiled_module_trains_with_the_losses_of_eager() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    eager = nn.Sequential(Block(), Block())
    other = copy.deepcopy(eager)
    fast = torch.compile(other, fullgraph=True)
    expected = _losses(lambda x: eager(x).square().mean(), eager)
    got = _losses(lambda x: fast(x).square().mean(), other)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("transform", [torch.vmap, lambda f: torch.func.vjp(f, torch.ones(2))])
def test_compiled_backward_inside_of_a_transform_is_refused(transform):
    compiled = torch.compile(lambda x: x**2)
    x = torch.ones(2, requires_grad=True)
    y = compiled(x)

    def pull(v):
        return torch.autograd.grad(y, x, v)

    with pytest.raises(RuntimeError, match="compiled backward function within vmap/grad/vjp"):
        mapped = transform(pull)
        mapped(torch.ones(3, 2))


def test_tensor_reshaped_in_place_is_returned_in_its_new_shape() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x @ x
        y.squeeze_(0)
        return y, y + 1

    check(fn, torch.randn(1, 1))


def test_graph_with_fake_inputs_of_two_modes_is_compiled() -> None:
    x, y = torch.randn(4), torch.randn(4)
    module = make_fx(lambda x, y: (x + y) * 2)(x, y)
    fakes = [FakeTensorMode().from_tensor(t) for t in (x, y)]
    (got,) = compile_fx_inner(module, fakes)([x, y])
    assert torch.equal(got, (x + y) * 2)


def test_threads_that_meet_a_new_shape_at_once_do_not_wait_for_each_other_forever() -> None:
    """The shape function of the operator is Python and lets others run while a plan is made."""
    torch.library.define("indpieces::slow", "(Tensor x) -> Tensor")
    torch.library.impl("indpieces::slow", "cpu")(lambda x: x * 2)

    @torch.library.register_fake("indpieces::slow")
    def _(x):
        time.sleep(0.05)
        return torch.empty_like(x)

    graph = make_fx(lambda x: torch.ops.indpieces.slow(x.sin()) + 1, tracing_mode="symbolic")
    module = graph(torch.randn(8))
    places = module.graph.find_nodes(op="placeholder")
    run = compile_fx_inner(module, [place.meta["val"] for place in places])
    failed: list[object] = []

    def work(n: int) -> None:
        x = torch.randn(n)
        given = [x if isinstance(p.meta["val"], torch.Tensor) else n for p in places]
        if not torch.equal(run(given)[0], x.sin() * 2 + 1):
            failed.append(n)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in (3, 4, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads) and not failed


def test_hundreds_of_lengths_ask_for_the_shape_of_an_operator_twice() -> None:
    """Once for the first length, once with a symbol for all others."""
    torch.library.define("indpieces::counted", "(Tensor x) -> Tensor")
    torch.library.impl("indpieces::counted", "cpu")(lambda x: x * 3)
    made: list[int] = []

    @torch.library.register_fake("indpieces::counted")
    def _(x):
        made.append(len(x.shape))
        return torch.empty_like(x)

    module = make_fx(lambda x: torch.ops.indpieces.counted(x.sin()) + 1, tracing_mode="symbolic")(
        torch.randn(8)
    )
    places = module.graph.find_nodes(op="placeholder")
    run = compile_fx_inner(module, [place.meta["val"] for place in places])
    made.clear()
    for _ in range(3):
        for n in range(2, 302):
            x = torch.full((n,), 0.5)
            given = [x if isinstance(p.meta["val"], torch.Tensor) else n for p in places]
            assert torch.equal(run(given)[0], x.sin() * 3 + 1)
    assert len(made) == 2


def test_tensor_that_shows_an_element_twice_may_be_copied_to_itself() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        windows = x.expand(3, 4).unfold(0, 2, 1)
        windows.copy_(windows)
        return (windows + 1,)

    x = torch.randn(4)
    (got,) = compile_fx_inner(make_fx(function)(x), [x])([x])
    assert torch.equal(got, function(x)[0])
