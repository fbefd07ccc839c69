"""The stages of torch.compile's default backend that users take over: passes, partitioner,
lowerings, decompositions, freezing, counters, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import torch
from torch import fx, nn
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.utils import ReinplaceCounters, counters
from torch._functorch.partitioners import default_partition
from torch._inductor import config, decomposition, lowering, metrics
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.custom_graph_pass import (
    CustomGraphPass,
    CustomPartitionerFn,
    get_hash_for_files,
)
from torch._inductor.ir import Pointwise, Reduction
from torch._inductor.lowering import fallback_handler, make_pointwise, register_lowering
from torch._inductor.virtualized import V, ops

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    metrics.reset()
    registered = dict(lowering.lowerings)
    yield
    lowering.lowerings.clear()
    lowering.lowerings.update(registered)
    torch._dynamo.reset()


def _cos_to_sin(graph: fx.Graph) -> None:
    for node in graph.nodes:
        if node.target in (aten.cos.default, torch.cos):
            node.target = aten.sin.default
        elif node.op == "call_method" and node.target == "cos":
            node.target = "sin"


@pytest.mark.parametrize(
    "setting",
    [
        "pre_grad_custom_pass",
        "joint_custom_pre_pass",
        "joint_custom_post_pass",
        "post_grad_custom_pre_pass",
        "post_grad_custom_post_pass",
    ],
)
def test_pass_of_each_stage_changes_what_is_computed(setting: str) -> None:
    x = torch.randn(8)
    with config.patch({setting: _cos_to_sin}):
        got = torch.compile(lambda x: x.cos().cos())(x)
    assert torch.equal(got, x.sin().sin())


@pytest.mark.parametrize("setting", ["joint_custom_pre_pass", "post_grad_custom_post_pass"])
def test_pass_sees_graphs_of_training(setting: str) -> None:
    seen: list[list[str]] = []

    def look(graph: fx.Graph) -> None:
        seen.append([str(n.target) for n in graph.nodes if n.op == "call_function"])

    x = torch.randn(8, requires_grad=True)
    with config.patch({setting: look}):
        torch.compile(lambda x: x.sin().sum())(x).backward()
    assert len(seen) == (1 if setting.startswith("joint") else 2)
    assert any("aten.cos.default" in calls for calls in seen)


def test_pass_that_raises_is_named() -> None:
    def spoils(graph: fx.Graph) -> None:
        raise KeyError("lost")

    with (
        config.patch(post_grad_custom_pre_pass=spoils),
        pytest.raises(BackendCompilerFailed, match=r"post_grad_custom_pre_pass \(spoils\).*lost"),
    ):
        torch.compile(lambda x: x + 1)(torch.randn(3))


def test_pass_that_leaves_an_invalid_graph_is_named() -> None:
    def turns_round(graph: fx.Graph) -> None:
        calls = [n for n in graph.nodes if n.op == "call_function"]
        calls[-1].append(calls[0])

    with (
        config.patch(joint_custom_post_pass=turns_round),
        pytest.raises(BackendCompilerFailed, match=r"joint_custom_post_pass \(turns_round\)"),
    ):
        torch.compile(lambda x: (x + 1).sin().cos())(torch.randn(3))


class _Doubling(CustomGraphPass):
    """Adds a value to itself where sin was asked for."""

    def __call__(self, graph: fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is aten.sin.default:
                node.target = aten.add.Tensor
                node.args = (node.args[0], node.args[0])

    def uuid(self) -> bytes:
        return get_hash_for_files((__file__,))


def test_pass_with_an_identity_is_run() -> None:
    x = torch.randn(5)
    with config.patch(post_grad_custom_post_pass=_Doubling()):
        assert torch.equal(torch.compile(lambda x: x.sin())(x), x + x)
    assert len(_Doubling().uuid()) == 32
    assert get_hash_for_files((__file__,), "a") != get_hash_for_files((__file__,), "b")


def test_pass_without_an_identity_cannot_be_made() -> None:
    class Nameless(CustomGraphPass):
        def __call__(self, graph: fx.Graph) -> None:
            return None

    with pytest.raises(TypeError, match="uuid"):
        Nameless()


def test_options_of_one_call_hold_for_its_backward_too() -> None:
    seen: list[int] = []
    fn = torch.compile(
        lambda x: x.sin().sum(),
        options={"post_grad_custom_post_pass": lambda graph: seen.append(len(graph.nodes))},
    )
    x = torch.randn(4, requires_grad=True)
    out = fn(x)
    assert config.post_grad_custom_post_pass is None
    out.backward()
    assert len(seen) == 2


class _EverythingForward(CustomPartitionerFn):
    """Saves whatever the backward reads."""

    def __init__(self) -> None:
        self.outputs: list[int] = []

    def __call__(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: object
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        self.outputs.append(kwargs["num_fwd_outputs"])
        return default_partition(gm, joint_inputs, **kwargs)

    def uuid(self) -> str:
        return "everything"


def test_partitioner_of_a_user_divides_the_joint_graph() -> None:
    partitioner = _EverythingForward()
    x = torch.randn(6, requires_grad=True)
    with config.patch(custom_partitioner_fn=partitioner):
        torch.compile(lambda x: x.sin().exp().sum())(x).backward()
    assert partitioner.outputs == [1]
    wanted = np.exp(np.sin(x.detach().numpy())) * np.cos(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5)


# ---- lowerings ------------------------------------------------------------------------------


def _operator(name: str, schema: str, kernel, fake=None) -> object:
    torch.library.define(f"inddiag::{name}", schema)
    torch.library.impl(f"inddiag::{name}", "cpu")(kernel)
    torch.library.register_fake(f"inddiag::{name}")(fake or (lambda x, *rest: torch.empty_like(x)))
    return getattr(torch.ops.inddiag, name)


scale = _operator("scale", "(Tensor x, float factor) -> Tensor", lambda x, factor: x * factor)
total = _operator(
    "total", "(Tensor x) -> Tensor", lambda x: x.sum(1), lambda x: x.new_empty(x.shape[0])
)
turn = _operator("turn", "(Tensor x) -> Tensor", lambda x: x.flip(1))


def test_custom_operator_without_a_lowering_is_called() -> None:
    x = torch.randn(30)
    assert torch.equal(torch.compile(lambda x: scale(x + 1, 2.0) - 1)(x), (x + 1) * 2 - 1)
    assert metrics.num_calls == 1 and metrics.generated_kernel_count == 2


def test_pointwise_lowering_is_fused_with_its_neighbours() -> None:
    @register_lowering(scale)
    def lowered(x, factor):
        load = x.make_loader()

        def body(index):
            return ops.mul(load(index), ops.constant(factor, x.get_dtype()))

        return Pointwise.create(
            device=x.get_device(), dtype=x.get_dtype(), inner_fn=body, ranges=x.get_size()
        )

    x = torch.randn(30)
    got = torch.compile(lambda x: scale(x + 1, 2.0) - 1)(x)
    np.testing.assert_allclose(got.numpy(), (x.numpy() + 1) * 2 - 1, rtol=1e-6)
    assert metrics.num_calls == 0 and metrics.generated_kernel_count == 1
    assert counters["inductor"]["user_lowerings"] == 1


def test_make_pointwise_takes_a_function_of_elements() -> None:
    register_lowering(scale)(make_pointwise(lambda x, f: ops.where(ops.gt(x, 0.0), x * f, x)))
    x = torch.randn(50)
    got = torch.compile(lambda x: scale(x, 3.0))(x)
    np.testing.assert_allclose(got.numpy(), np.where(x.numpy() > 0, x.numpy() * 3, x.numpy()))


def test_reduction_lowering_folds_its_ranges() -> None:
    @register_lowering(total)
    def lowered(x):
        load = x.make_loader()
        rows, columns = x.get_size()
        return Reduction.create(
            device=x.get_device(),
            dst_dtype=x.get_dtype(),
            src_dtype=x.get_dtype(),
            inner_fn=lambda index, rindex: ops.square(load([*index, *rindex])),
            ranges=[rows],
            reduction_ranges=[columns],
            reduction_type="sum",
        )

    x = torch.randn(6, 9)
    got = torch.compile(lambda x: total(x) + 1)(x)
    np.testing.assert_allclose(got.numpy(), (x.numpy() ** 2).sum(1) + 1, rtol=1e-5)


def test_lowering_may_compute_its_indices() -> None:
    @register_lowering(turn)
    def lowered(x):
        load = x.make_loader()
        columns = x.get_size()[1]
        return Pointwise.create(
            device=x.get_device(),
            dtype=x.get_dtype(),
            inner_fn=lambda index: load([index[0], columns - 1 - index[1]]),
            ranges=x.get_size(),
        )

    x = torch.randn(4, 7)
    assert torch.equal(torch.compile(lambda x: turn(x) * 2)(x), x.flip(1) * 2)


def test_lowering_may_read_by_values_and_by_its_own_index() -> None:
    @register_lowering(turn)
    def lowered(x):
        load = x.make_loader()
        rows = x.get_size()[0]

        def body(index):
            row = ops.indirect_indexing(ops.index_expr(rows - 1 - index[0], torch.int64), rows)
            place = ops.index_expr(index[1], x.get_dtype())
            return load([row, index[1]]) + place

        return Pointwise.create(
            device=x.get_device(), dtype=x.get_dtype(), inner_fn=body, ranges=x.get_size()
        )

    x = torch.randn(4, 7)
    wanted = x.numpy()[::-1] + np.arange(7, dtype=np.float32)
    np.testing.assert_allclose(torch.compile(lambda x: turn(x))(x).numpy(), wanted, rtol=1e-6)


def test_lowerings_call_each_other_and_operators() -> None:
    @register_lowering(scale, type_promotion_kind=None)
    def lowered(x, factor):
        squared = lowering.lowerings[aten.mul](x, x)
        return fallback_handler(aten.cumsum.default)(squared, 0)

    x = torch.randn(12)
    got = torch.compile(lambda x: scale(x, 1.0))(x)
    np.testing.assert_allclose(got.numpy(), np.cumsum(x.numpy() ** 2), rtol=1e-5)


def test_lowering_that_raises_names_operator_and_arguments() -> None:
    @register_lowering(scale)
    def lowered(x, factor):
        raise ValueError("no such factor")

    with pytest.raises(BackendCompilerFailed, match=r"(?s)no such factor.*inddiag.scale"):
        torch.compile(lambda x: scale(x, 4.0))(torch.randn(3))


def test_lowering_of_dynamic_shapes_follows_the_sizes() -> None:
    register_lowering(scale)(make_pointwise(lambda x, f: ops.mul(x, f)))
    fn = torch.compile(lambda x: scale(x, 3.0) + 1, dynamic=True)
    for n in (3, 8, 21):
        x = torch.randn(n)
        np.testing.assert_allclose(fn(x).numpy(), x.numpy() * 3 + 1, rtol=1e-6)


def test_handlers_of_ops_can_be_exchanged() -> None:
    with V.set_ops_handler(V.MockHandler()):
        text = ops.add("a", ops.constant(1, torch.int64))
    assert text == "ops.add(a, ops.constant(1, torch.int64))"


# ---- tables, settings, entry points ---------------------------------------------------------


def test_decomposition_of_a_user_is_traced_instead_of_the_operator() -> None:
    @decomposition.register_decomposition(aten.silu)
    def silu(x):
        return x * 0 + 7

    try:
        x = torch.randn(5)
        got = torch.compile(lambda x: nn.functional.silu(x))(x)
        assert torch.equal(got, torch.full((5,), 7.0))
    finally:
        decomposition.remove_decompositions(decomposition.decompositions, [aten.silu])
        decomposition.fast_random_decomps.cache_clear()
    assert aten.silu.default not in decomposition.select_decomp_table()


def test_decompositions_of_one_call_are_used() -> None:
    seen = []

    def inner(gm: fx.GraphModule, inputs: Sequence[object], **kwargs: object):
        seen.extend(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        return compile_fx_inner(gm, inputs, **kwargs)

    def backend(gm: fx.GraphModule, inputs: Sequence[object]):
        table = {aten.addmm.default: lambda b, x, w: x @ w + b}
        return compile_fx(gm, inputs, inner_compile=inner, decompositions=table)

    layer = nn.Linear(3, 4)
    x = torch.randn(2, 3)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(layer, backend=backend)(x), layer(x))
    assert "aten.mm.default" in seen and "aten.addmm.default" not in seen


def test_freezing_computes_with_parameters_once() -> None:
    seen: list[list[str]] = []

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, x):
            return x @ (self.weight.exp() * 2).t()

    def look(graph: fx.Graph) -> None:
        seen.append([str(n.target) for n in graph.nodes if n.op == "call_function"])

    model, x = Scaled().eval(), torch.randn(2, 4)
    with torch.no_grad(), config.patch(freezing=True, post_grad_custom_post_pass=look):
        got = torch.compile(model)(x)
        torch.testing.assert_close(got, model(x))
    assert all("exp" not in call for call in seen[0])
    assert counters["inductor"]["frozen_values"] == 1


def test_frozen_code_of_one_module_is_not_run_for_another() -> None:
    first, second = nn.Linear(3, 3).eval(), nn.Linear(3, 3).eval()
    x = torch.randn(2, 3)
    with torch.no_grad(), config.patch(freezing=True):
        for model in (first, second, first):
            torch.testing.assert_close(torch.compile(model)(x), model(x))


def test_unknown_option_and_wrong_type_are_errors() -> None:
    with pytest.raises(RuntimeError, match="Unexpected optimization option no_such"):
        torch.compile(torch.sin, options={"no_such": 1})
    with pytest.raises(RuntimeError, match="Unexpected type of attr max-autotune, got str"):
        torch.compile(torch.sin, options={"max-autotune": "yes"})


def test_compiled_function_says_its_settings() -> None:
    usual = torch.compile(lambda x: x + 1)
    changed = torch.compile(nn.Linear(2, 2), options={"triton.cudagraphs": True})
    other = torch.compile(lambda x: x + 1, backend="eager")
    assert usual.get_compiler_config()["triton.cudagraphs"] is False
    assert changed.get_compiler_config()["triton.cudagraphs"] is True
    assert other.get_compiler_config() is None


def test_settings_are_listed_saved_patched_and_checked() -> None:
    known = set(torch._inductor.list_options())
    assert {"max_autotune", "triton.cudagraphs", "cpp.threads"} <= known
    saved = config.save_config()
    with config.patch({"cpp.threads": 7, "max_fusion_size": 3}):
        assert config.cpp.threads == 7 and config.get_config_copy()["max_fusion_size"] == 3
    config.max_fusion_size = 5
    config.load_config(saved)
    assert config.max_fusion_size == 64
    with pytest.raises(AttributeError, match="does not exist"):
        config.no_such_setting = 1
    assert torch._inductor.list_mode_options("max-autotune")["max_autotune"] is True


def test_backend_function_gets_mode_and_options() -> None:
    seen = []

    def backend(gm, inputs, *, mode=None, options=None):
        seen.append((mode, options))
        return gm.forward

    torch.compile(lambda x: x + 1, backend=backend, mode="fast")(torch.randn(2))
    torch.compile(lambda x: x + 1, backend=backend, options={"foo": "bar"})(torch.randn(2))
    assert seen == [("fast", None), (None, {"foo": "bar"})]


class _Structured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        a, b = x["key"]
        return {"result": self.layer(a) + b}


def test_inductor_compiles_modules_with_containers() -> None:
    model = _Structured().eval()
    given = {"key": [torch.randn(3), torch.randn(3)]}
    compiled = torch._inductor.compile(fx.symbolic_trace(model), [given])
    torch.testing.assert_close(compiled(given)["result"], model(given)["result"])
    bare = torch._inductor.compile(nn.ReLU(), [torch.randn(4)])
    assert torch.equal(bare(torch.tensor([-1.0, 2, 0, 3])), torch.tensor([0.0, 2, 0, 3]))


def test_bytes_and_kernels_of_fused_code_are_counted() -> None:
    def count(fn, *args) -> tuple[int, int]:
        torch._dynamo.reset()
        metrics.reset()
        torch.compile(fn)(*args)
        return metrics.num_bytes_accessed // 4, metrics.generated_kernel_count

    x, y = torch.randn(10, 10), torch.randn(10, 10)
    assert count(lambda x: x.cos(), x[0]) == (20, 1)
    assert count(lambda x, y: (x + y).relu() * 2, x, y) == (300, 1)
    assert count(lambda x, y: torch.mm(x, y), x, y) == (300, 0)
    assert count(lambda x: torch.mm(x.cos(), x.sin()), x) == (600, 1)


# ---- writing in place -----------------------------------------------------------------------


@torch.library.custom_op("inddiag::sin_into", mutates_args={"result"})
def sin_into(x: torch.Tensor, result: torch.Tensor) -> None:
    result.copy_(x.sin())


def _clones(fn, *args) -> tuple[object, int]:
    """What a compiled function returns, and how many copies its graph makes."""
    seen: list[int] = []

    def inner(gm: fx.GraphModule, inputs: Sequence[object], **kwargs: object):
        compiled = compile_fx_inner(gm, inputs, **kwargs)
        seen.append(sum(n.target is aten.clone.default for n in gm.graph.nodes))
        return compiled

    def backend(gm: fx.GraphModule, inputs: Sequence[object]):
        return compile_fx(gm, inputs, inner_compile=inner)

    return torch.compile(fn, backend=backend)(*args), sum(seen)


def test_operator_that_writes_gets_no_copy_of_memory_that_nobody_reads_again() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        sin_into(x, out)
        return out + 1

    ReinplaceCounters.clear()
    x = torch.randn(6)
    got, copies = _clones(fn, x)
    assert torch.equal(got, x.sin() + 1) and copies == 0
    assert ReinplaceCounters.get_total_missed() == 0
    assert metrics.not_lowered == []


def test_operator_that_writes_to_an_input_writes_there() -> None:
    x, out = torch.randn(6), torch.zeros(6)
    _, copies = _clones(lambda x, out: sin_into(x, out), x, out)
    assert torch.equal(out, x.sin()) and copies == 0


def test_value_that_is_read_after_a_write_is_copied_and_counted() -> None:
    from torch._higher_order_ops.auto_functionalize import auto_functionalized
    from torch._inductor.fx_passes.reinplace import (
        decompose_auto_functionalized,
        reinplace_inplaceable_ops_core,
    )
    from torch.fx.experimental.proxy_tensor import make_fx

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = x + 5
        _, new = auto_functionalized(sin_into._opoverload, x=x, result=out)
        return new, out * new

    x = torch.randn(3)
    gm = make_fx(fn, tracing_mode="fake")(x)
    ReinplaceCounters.clear()
    reinplace_inplaceable_ops_core(gm.graph)
    assert ReinplaceCounters.get_total_missed() == 1
    assert ReinplaceCounters.get_total_missed_bytes() == 12
    decompose_auto_functionalized(gm.graph)
    gm.recompile()
    new, product = gm(x)
    np.testing.assert_allclose(new.numpy(), np.sin(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(product.numpy(), np.sin(x.numpy()) * (x.numpy() + 5), rtol=1e-6)


@pytest.mark.parametrize("read_after", [False, True])
def test_scatter_into_an_input_is_written_in_place(read_after: bool) -> None:
    def fn(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        before = x * 2 if not read_after else x.clone()
        x.index_put_((index,), torch.tensor(9.0))
        return before + x

    x, index = torch.randn(5), torch.tensor([1, 3])
    wanted = x.clone()
    expected = fn(wanted, index)
    assert torch.equal(torch.compile(fn)(x, index), expected)
    assert torch.equal(x, wanted)


def test_pass_of_a_device_sees_graphs_with_its_tensors() -> None:
    from torch._inductor.codegen.common import device_codegens, register_backend_for_device

    seen: list[int] = []
    register_backend_for_device(
        "cpu", None, None, device_custom_pass=lambda gm: seen.append(len(gm.graph.nodes))
    )
    try:
        torch.compile(lambda x: x.sin())(torch.randn(3))
    finally:
        del device_codegens["cpu"]
    assert seen == [3]


def test_permutations_around_products_are_fused_where_asked_for() -> None:
    layer = nn.Linear(4, 6)
    x = torch.randn(2, 5, 4)
    seen: list[str] = []

    def look(graph: fx.Graph) -> None:
        seen.extend(str(getattr(n.target, "__name__", n.target)) for n in graph.nodes)

    with torch.no_grad(), config.patch(permute_fusion=True, pre_grad_custom_pass=look):
        got = torch.compile(lambda x: layer(x).permute(0, 2, 1))(x)
        torch.testing.assert_close(got, layer(x).permute(0, 2, 1))
    assert "linear_transpose" in seen


def test_graph_is_compiled_without_torch_compile() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(4, 3)
    gm = make_fx(lambda x: (x.sin().sum(1),), tracing_mode="fake")(x)
    compiled = torch._inductor.standalone_compile(gm, [x])
    assert torch.equal(compiled(x)[0], x.sin().sum(1))
    with pytest.raises(ValueError, match="dynamic_shapes must be one of"):
        torch._inductor.standalone_compile(gm, [x], dynamic_shapes="guess")


def test_kernels_of_symbolic_sizes_are_counted_for_the_sizes_met() -> None:
    torch.compile(lambda x: (x.sin() * 2).cos(), dynamic=True)(torch.randn(7))
    assert metrics.generated_kernel_count == 1
    assert metrics.num_bytes_accessed == 56


_LISTS = {
    "unary": lambda a, b: [
        y
        for op in (torch._foreach_sqrt, torch._foreach_neg, torch._foreach_exp)
        for y in op([t.abs() for t in a])
    ],
    "lists": lambda a, b: [
        y
        for op in (
            torch._foreach_add,
            torch._foreach_sub,
            torch._foreach_mul,
            torch._foreach_div,
            torch._foreach_maximum,
            torch._foreach_minimum,
            torch._foreach_clamp_max,
            torch._foreach_clamp_min,
        )
        for y in op(a, b)
    ],
    "alpha": lambda a, b: torch._foreach_add(a, b, alpha=0.3),
    "numbers": lambda a, b: [
        y
        for op in (
            torch._foreach_add,
            torch._foreach_mul,
            torch._foreach_div,
            torch._foreach_maximum,
            torch._foreach_clamp_max,
            torch._foreach_pow,
        )
        for y in op(a, 0.7)
    ],
    "many numbers": lambda a, b: torch._foreach_mul(a, [0.1, 3.0]),
    "three lists": lambda a, b: [
        *torch._foreach_addcmul(a, b, a, value=0.3),
        *torch._foreach_addcdiv(a, b, b, 0.7),
        *torch._foreach_lerp(a, b, 0.25),
    ],
}


@pytest.mark.parametrize("kind", _LISTS)
def test_operators_over_lists_become_kernels_with_the_bits_of_eager(kind: str) -> None:
    a, b = ([torch.rand(30) + 0.1, torch.rand(4, 5) + 0.1] for _ in range(2))
    fn = _LISTS[kind]
    got, wanted = torch.compile(fn)(a, b), fn(a, b)
    assert metrics.num_calls == 0 and metrics.generated_kernel_count == 2
    for g, w in zip(got, wanted, strict=True):
        assert torch.equal(g.isnan(), w.isnan())
        assert torch.equal(g.nan_to_num(), w.nan_to_num())
