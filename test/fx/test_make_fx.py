"""make_fx on real tensors and on tensors without data: which nodes a program becomes, what is
constant, and what is left behind when a trace fails."""

import contextlib
import gc
import weakref

import pytest

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensor,
    FakeTensorMode,
)
from torch.fx.experimental.proxy_tensor import (
    DecompositionInterpreter,
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    disable_proxy_modes_tracing,
    get_isolated_graphmodule,
    get_proxy_mode,
    make_fx,
    selective_decompose,
)

aten = torch.ops.aten


def lines(module: torch.fx.GraphModule) -> list[str]:
    """The statements of a graph's code, without what frees values."""
    text = [line.split(";")[0].strip() for line in module.code.strip().splitlines()]
    return text[1:]


def targets(module: torch.fx.GraphModule) -> list[object]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def test_make_fx_of_operators_names_nodes_after_operators_and_inputs_after_parameters():
    module = make_fx(lambda x, y: x + y + x * 2)(torch.ones(3), torch.ones(3))
    assert module.code.strip() == (
        "def forward(self, x_1, y_1):\n"
        "    add = torch.ops.aten.add.Tensor(x_1, y_1);  y_1 = None\n"
        "    mul = torch.ops.aten.mul.Tensor(x_1, 2);  x_1 = None\n"
        "    add_1 = torch.ops.aten.add.Tensor(add, mul);  add = mul = None\n"
        "    return add_1"
    )


def test_make_fx_of_varargs_and_modules_numbers_the_inputs():
    def total(*args):
        return args[0] + args[1]

    assert (
        make_fx(total)(torch.ones(1), torch.ones(1))
        .code.strip()
        .startswith("def forward(self, arg0_1, arg1_1):")
    )
    assert "forward(self, arg0_1):" in make_fx(torch.nn.ReLU())(torch.ones(1)).code


def test_make_fx_run_again_computes_on_the_new_inputs():
    module = make_fx(lambda x: (x.sin() * x).sum(0, keepdim=True))(torch.ones(3))
    x = torch.tensor([0.5, -1.0, 2.0])
    assert torch.equal(module(x), (x.sin() * x).sum(0, keepdim=True))


def test_make_fx_of_an_operator_with_several_results_takes_items():
    def both(x):
        values, indices = torch.max(x, 0)
        return {"values": values, "rest": [indices, 1]}

    module = make_fx(both)(torch.ones(3))
    assert lines(module) == [
        "max_1 = torch.ops.aten.max.dim(x_1, 0)",
        "getitem = max_1[0]",
        "getitem_1 = max_1[1]",
        "return {'values': getitem, 'rest': [getitem_1, 1]}",
    ]
    out = module(torch.tensor([1.0, 7.0, 2.0]))
    assert out["values"].item() == 7.0 and out["rest"][0].item() == 1


def test_make_fx_of_nested_inputs_flattens_them_in_the_graph():
    module = make_fx(lambda d: d["a"] + d["b"][0])({"a": torch.ones(2), "b": [torch.ones(2)]})
    assert [n.name for n in module.graph.nodes if n.op == "placeholder"] == ["d_1", "d_2"]
    out = module({"a": torch.full((2,), 3.0), "b": [torch.full((2,), 4.0)]})
    assert out.tolist() == [7.0, 7.0]


def test_make_fx_of_writes_continues_with_the_node_of_the_write():
    def write(x):
        y = x.clone()
        y.add_(1)
        return y.mul_(2), y

    assert lines(make_fx(write)(torch.ones(2))) == [
        "clone = torch.ops.aten.clone.default(x_1)",
        "add_ = torch.ops.aten.add_.Tensor(clone, 1)",
        "mul_ = torch.ops.aten.mul_.Tensor(add_, 2)",
        "return (mul_, mul_)",
    ]


def test_make_fx_of_closed_over_tensors_makes_attributes_of_the_module():
    parameter = torch.nn.Parameter(torch.full((2,), 3.0))
    tensor = torch.full((2,), 5.0)
    module = make_fx(lambda x: x * parameter + tensor + tensor)(torch.ones(2))
    names = [n.target for n in module.graph.nodes if n.op == "get_attr"]
    assert names == ["_param_constant0", "_tensor_constant0", "_tensor_constant0"]
    assert module._param_constant0 is parameter and module._tensor_constant0 is tensor
    assert module(torch.full((2,), 2.0)).tolist() == [16.0, 16.0]


def test_make_fx_of_gradients_uses_the_traced_outputs_that_were_saved():
    def slope(x):
        return torch.autograd.grad(x.exp().sum(), x)[0]

    module = make_fx(slope)(torch.ones(3, requires_grad=True))
    assert not [n for n in module.graph.nodes if n.op == "get_attr"]
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    assert torch.allclose(module(x), torch.tensor([1.0, 2.718281828, 7.389056099]))


def test_make_fx_of_the_value_of_a_traced_tensor_raises_that_it_depends_on_data():
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: x * x.sum().item())(torch.ones(3))
    module = make_fx(lambda x: x * x.sum().item(), _error_on_data_dependent_ops=False)(
        torch.ones(3)
    )
    assert aten._local_scalar_dense.default in targets(module)


def test_make_fx_of_the_value_of_a_closed_over_tensor_is_a_number():
    scale = torch.tensor(4.0)
    module = make_fx(lambda x: x * scale.item())(torch.ones(3))
    assert lines(module)[0] == "mul = torch.ops.aten.mul.Tensor(x_1, 4.0)"


def test_make_fx_with_decompositions_traces_what_they_do():
    def add_to_self(x, *, alpha=1):
        return NotImplemented

    table = {aten.silu.default: lambda x: x * torch.sigmoid(x), aten.sin.default: add_to_self}
    module = make_fx(lambda x: torch.nn.functional.silu(x).sin(), table)(torch.ones(2))
    assert targets(module) == [aten.sigmoid.default, aten.mul.Tensor, aten.sin.default]


def test_nodes_of_make_fx_note_shape_and_dtype_as_they_were():
    def reshape(x):
        y = x.clone()
        y.unsqueeze_(0)
        return y

    module = make_fx(reshape)(torch.ones(3, dtype=torch.float64))
    found = [tuple(n.meta["val"].shape) for n in module.graph.nodes if "val" in n.meta]
    assert found == [(3,), (3,), (1, 3)]
    meta = next(iter(module.graph.nodes)).meta["tensor_meta"]
    assert meta.shape == (3,) and meta.dtype == torch.float64 and meta.stride == (1,)


def test_nodes_of_make_fx_hold_fake_tensors_of_the_device_and_layout():
    module = make_fx(lambda x: (x.permute(0, 2, 3, 1), x[0].max(0)))(torch.ones(2, 3, 4, 5))
    found = {n.name: n.meta["val"] for n in module.graph.nodes if "val" in n.meta}
    assert isinstance(found["x_1"], FakeTensor) and found["x_1"].device == torch.device("cpu")
    assert found["permute"].stride() == (60, 5, 1, 20)
    assert [type(t) for t in found["max_1"]] == [FakeTensor, FakeTensor]
    assert found["getitem_1"].dtype == torch.int64
    metas = {n.name: n.meta["tensor_meta"] for n in module.graph.nodes if "tensor_meta" in n.meta}
    assert metas["permute"].memory_format is None
    assert metas["x_1"].memory_format is torch.contiguous_format


def test_fake_mode_traces_without_computing():
    def f(x, y):
        assert isinstance(x, FakeTensor)
        t = torch.ones(2, 2, device=x.device)
        return (x @ y + t).relu_()

    module = make_fx(f, tracing_mode="fake")(torch.ones(2, 3), torch.ones(3, 2))
    assert targets(module)[-2:] == [aten.add.Tensor, aten.relu_.default]
    a, b = torch.full((2, 3), -1.0), torch.full((3, 2), 2.0)
    assert module(a, b).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(Exception, match="Please convert all Tensors"):
        make_fx(lambda x: x + a, tracing_mode="fake")(torch.ones(2, 3))


def test_reading_data_raises_by_the_kind_of_trace():
    def f(a, b):
        return torch.allclose(a, b)

    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(f)(torch.zeros(3), torch.zeros(3))
    with pytest.raises(DataDependentOutputException):
        make_fx(f, tracing_mode="fake")(torch.zeros(3), torch.zeros(3))
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(lambda x: x.sum().item(), tracing_mode="fake")(torch.zeros(3))


def test_fake_mode_uses_the_mode_of_fake_inputs():
    mode = FakeTensorMode()
    x = mode.from_tensor(torch.ones(3))
    module = make_fx(lambda x: x.sin(), tracing_mode="fake")(x)
    assert next(iter(module.graph.nodes)).meta["val"].fake_mode is mode


def test_factories_from_python_show_device_and_pinning():
    module = make_fx(lambda x: torch.ones(2) + x.new_ones(2))(torch.ones(2))
    assert lines(module)[:2] == [
        "ones = torch.ops.aten.ones.default([2], device = device(type='cpu'), pin_memory = False)",
        "new_ones = torch.ops.aten.new_ones.default(x_1, [2], pin_memory = False)",
    ]


def test_a_trace_inside_a_trace_leaves_no_node_in_the_outer_one():
    def outer(x):
        inner = get_isolated_graphmodule(lambda a: a.cos().sum(), (x,), {})
        assert aten.cos.default in targets(inner)
        assert targets(make_fx(lambda a: a.tan())(x)) == [aten.tan.default]
        return x.sin()

    assert targets(make_fx(outer)(torch.ones(2))) == [aten.sin.default]


def test_a_module_made_by_an_inner_trace_is_traced_when_called():
    def outer(x):
        return make_fx(lambda a: a.tan())(x)(x)

    assert targets(make_fx(outer)(torch.ones(2))) == [aten.tan.default]


def test_nothing_is_recorded_where_tracing_is_disabled():
    def partly(x):
        assert get_proxy_mode() is not None
        with disable_proxy_modes_tracing():
            assert get_proxy_mode() is None
            x.cos()
        return x.sin()

    assert targets(make_fx(partly)(torch.ones(2))) == [aten.sin.default]
    assert get_proxy_mode() is None


def test_a_trace_that_fails_keeps_no_value_of_the_program():
    kept = []

    def fail(x):
        y = x.sin()
        kept.append(weakref.ref(y))
        kept.append(get_proxy_mode().tracer.graph)
        raise ValueError("no further")

    with pytest.raises(ValueError, match="no further"):
        make_fx(fail)(torch.ones(2))
    gc.collect()
    assert kept[0]() is None
    assert all(not node.meta for node in kept[1].nodes)
    assert get_proxy_mode() is None


def test_a_failed_operator_leaves_no_node():
    def recover(x):
        with contextlib.suppress(RuntimeError):
            x.view(7)
        return x.sin()

    assert targets(make_fx(recover)(torch.ones(2))) == [aten.sin.default]


def test_tensors_of_a_trace_are_freed_when_it_is_done():
    kept = []

    def watch(x):
        y = x.sin()
        kept.append(weakref.ref(y))
        return y.cos()

    module = make_fx(watch)(torch.ones(2))
    gc.collect()
    assert kept[0]() is None and module is not None


def test_decomposition_interpreter_writes_a_new_graph():
    module = make_fx(lambda x: torch.nn.functional.silu(x))(torch.ones(2))
    graph = torch.fx.Graph()
    table = {aten.silu.default: lambda x: x * torch.sigmoid(x)}
    x = torch.tensor([0.5, -2.0])
    DecompositionInterpreter(module, new_graph=graph, decomposition_table=table).run(x)
    decomposed = torch.fx.GraphModule(module, graph)
    assert targets(decomposed) == [aten.sigmoid.default, aten.mul.Tensor]
    assert torch.equal(decomposed(x), x * torch.sigmoid(x))


def test_selective_decompose_takes_chosen_nodes_apart():
    module = make_fx(lambda x: torch.nn.functional.silu(x.sin()).sin())(torch.ones(2))
    chosen = next(n for n in module.graph.nodes if n.target is aten.sin.default)
    again = selective_decompose(
        module,
        torch.ones(2),
        decomposition={aten.sin.default: lambda x: x.cos()},
        should_decompose=lambda node: node is chosen,
        trace_joint_graph=False,
    )
    assert targets(again) == [aten.cos.default, aten.silu.default, aten.sin.default]


def test_slots_of_a_tracer_give_proxies_by_identity():
    tracer = PythonKeyTracer()
    tracer.graph = torch.fx.Graph()
    tracer.root = torch.nn.Module()
    proxy = tracer.create_proxy("placeholder", "x", (), {})
    x, twin = torch.ones(2), torch.ones(2)
    tracer.recorder.set(x, proxy, None)
    assert tracer.unwrap_proxy(x) is proxy and tracer.unwrap_proxy(twin) is twin
    assert x in tracer.tensor_tracker and twin not in tracer.tensor_tracker
    with ProxyTorchDispatchMode(tracer, "real"):
        y = x + 1
    assert tracer.tensor_tracker[y].proxy.node.args == (proxy.node, 1)
    with pytest.raises(TypeError, match="expected a Tensor"):
        tracer.recorder.node(3)


def test_make_fx_of_an_unknown_mode_raises():
    with pytest.raises(AssertionError, match="Unexpected tracing type: other"):
        make_fx(lambda x: x, tracing_mode="other")
    with pytest.raises(RuntimeError, match="Tracing expected 2 arguments but got 1"):
        make_fx(lambda x, y: x)(torch.ones(1))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_constant_that_the_program_writes_to_is_kept_as_it_was(mode):
    def program(x):
        count = torch.tensor([3.0, 4.0])
        count.add_(1)
        return x + count

    module = make_fx(program, tracing_mode=mode)(torch.zeros(2))
    assert [module(torch.zeros(2)).tolist() for _ in range(2)] == [[4.0, 5.0]] * 2
