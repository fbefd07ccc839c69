"""Folding, normalising, typing, partitioning over devices, tracing with known shapes."""

import operator
import typing

import pytest

import torch
from torch import fx, nn
from torch.fx.experimental import meta_tracer, optimization
from torch.fx.experimental.accelerator_partitioner import Partitioner
from torch.fx.experimental.const_fold import split_const_subgraphs
from torch.fx.experimental.graph_gradual_typechecker import (
    GraphTypeChecker,
    Refine,
    broadcast_types,
)
from torch.fx.experimental.merge_matmul import merge_matmul
from torch.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from torch.fx.experimental.partitioner_utils import Device, PartitionerConfig, PartitionMode
from torch.fx.experimental.refinement_types import Equality
from torch.fx.experimental.rewriter import RewritingTracer
from torch.fx.experimental.unification import reify, unify, var
from torch.fx.operator_schemas import (
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    type_matches,
)
from torch.fx.passes.graph_manipulation import get_size_of_all_nodes
from torch.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


def test_constants_are_computed_once():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.randn(2))
            self.b = nn.Parameter(torch.randn(2))

        def forward(self, x):
            c = self.a * self.b
            return x + c, c.exp() + self.a

    model, x = Model(), torch.randn(2)
    folded = split_const_subgraphs(model)
    assert [n.op for n in folded.graph.nodes].count("call_function") == 3  # two reads and an add
    for got, expected in zip(folded(x), model(x), strict=True):
        assert torch.equal(got, expected)
    with pytest.raises(AssertionError, match="already"):
        folded.run_folding()
    assert split_const_subgraphs(nn.ReLU()).const_subgraph_module is None
    skipped = split_const_subgraphs(model, lambda node: node.target == operator.mul)
    assert skipped.const_subgraph_module is None


def test_arguments_are_sorted_by_the_signature():
    pair = normalize_function(torch.add, (1, 2), {"alpha": 3}, (torch.Tensor, torch.Tensor), {})
    x = torch.ones(2)
    args, kwargs = normalize_function(
        torch.conv2d, (x, x), {"stride": 2}, normalize_to_only_use_kwargs=True
    )
    assert args == () and kwargs["stride"] == 2 and kwargs["groups"] == 1
    assert list(kwargs)[:3] == ["input", "weight", "bias"]
    assert pair is not None and normalize_function(torch.relu, (1, 2)) is None
    module = fx.symbolic_trace(lambda x: torch.add(torch.relu(x), 2))
    made = NormalizeArgs(module).transform()
    relu = made.graph.find_nodes(op="call_function", target=torch.relu)[0]
    assert relu.args == () and list(relu.kwargs) == ["input"]
    assert torch.equal(made(x), module(x))
    plain = NormalizeOperators(module).transform()
    assert plain.graph.find_nodes(op="call_function", target=operator.add)


def test_types_of_operators_match_as_calls_do():
    assert type_matches(typing.List[int], create_type_hint([int, int]))  # noqa: UP006
    assert type_matches(typing.Optional[torch.Tensor], nn.Parameter)  # noqa: UP045
    assert not type_matches(int, float)
    signature = get_signature_for_torch_op(torch.ops.aten.relu.default)[0]
    assert list(signature.parameters) == ["input"] and signature.return_annotation is torch.Tensor
    inferred = torch._C._jit_try_infer_type([1, 2])
    assert inferred.success() and str(inferred.type()) == "List[int]"
    assert not torch._C._jit_try_infer_type(object()).success()


def test_norms_fold_into_convolutions_and_dropout_goes():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout()).eval()
    model[1].running_mean.normal_()
    x = torch.randn(1, 3, 5, 5)
    fused = optimization.optimize_for_inference(model)
    kinds = [type(m) for m in fused.modules()]
    assert nn.BatchNorm2d not in kinds and nn.Dropout not in kinds
    assert torch.allclose(fused(x), model(x), atol=1e-6)
    assert any(isinstance(m, nn.BatchNorm2d) for m in model.modules())


def test_products_with_one_right_operand_are_merged():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 2))

        def forward(self, x, y):
            return torch.matmul(x, self.weight) + 1, torch.matmul(y, self.weight)

    model, x, y = Model(), torch.randn(4, 3), torch.randn(2, 3)
    merged = merge_matmul(model)
    assert len(merged.graph.find_nodes(op="call_function", target=torch.matmul)) == 1
    for got, expected in zip(merged(x, y), model(x, y), strict=True):
        assert torch.allclose(got, expected)


def test_known_shapes_may_decide_while_tracing():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            y = self.norm(x) + torch.arange(x.shape[-1], dtype=torch.float, device=x.device)
            return torch.relu(y) if y.shape[0] < 3 else torch.sigmoid(y)

    model = Model()
    for rows in (2, 5):
        x = torch.randn(rows, 4)
        traced = meta_tracer.symbolic_trace(model, meta_args={"x": x.to("meta")})
        assert torch.equal(traced(x), model(x))
    assert torch.arange.__module__ == "torch"


def test_assertions_and_annotations_of_the_source_reach_the_graph():
    class Checked(nn.Module):
        def forward(self, a, b):
            assert a == b, "differ"
            c: int = a + b
            return c

    tracer = RewritingTracer()
    module = fx.GraphModule(
        tracer.root if hasattr(tracer, "root") else nn.Module(), tracer.trace(Checked())
    )
    assert module(1, 1) == 2
    with pytest.raises(AssertionError, match="differ"):
        module(1, 2)
    assert module.graph.find_nodes(op="call_function", target=operator.add)[0].type is int


def test_shapes_are_checked_as_far_as_they_are_known():
    assert broadcast_types(TensorType((2, 3, 4)), TensorType((1, 2, 1, 4))) == (
        TensorType((1, 2, 3, 4)),
        TensorType((1, 2, 3, 4)),
    )
    assert is_consistent(TensorType((1, Dyn)), TensorType((1, 2)))
    assert is_more_precise(TensorType((1, 2)), TensorType((1, Dyn)))
    assert not is_consistent(TensorType((1, 2)), int)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 5)
            self.pool = nn.MaxPool2d(2, 2)

        def forward(self, x: TensorType((4, 3, 32, Dyn))):
            return torch.flatten(self.pool(self.conv(x)), 1)

    module = fx.symbolic_trace(Net())
    assert GraphTypeChecker({}, module).type_check()
    types = [n.type for n in module.graph.nodes]
    assert types[1] == TensorType((4, 6, 28, Dyn)) and types[2] == TensorType((4, 6, 14, Dyn))
    assert types[3] == TensorType((4, Dyn))
    module.graph.find_nodes(op="placeholder")[0].type = TensorType((4, 5, 32, 32))
    with pytest.raises(TypeError, match="Cannot apply Conv2d"):
        GraphTypeChecker({}, module).type_check()


def test_sums_say_which_dimensions_are_equal():
    def add(x: TensorType((1, 2, Dyn)), y: TensorType((2, 4))):
        return torch.add(x, y)

    module = fx.symbolic_trace(add)
    GraphTypeChecker({}, module).type_check()
    refined = Refine(module)
    refined.refine()
    assert refined.constraints == [Equality(1, 1), Equality(2, 2)]


def test_unification_finds_what_makes_values_equal():
    x, y = var("x"), var("y")
    found = unify((1, [x, {"k": y}]), (1, [2, {"k": x}]))
    assert found == {x: 2, y: 2} and reify((x, [y]), found) == (2, [2])
    assert unify((1, x), (2, 3)) is False and unify([x], (1,)) is False


@pytest.mark.parametrize("mode", [PartitionMode.size_based, PartitionMode.cost_aware])
def test_partitions_fit_their_devices(mode):
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, a, b):
            c = a + b
            return self.linear(c) + c

    from torch.fx.experimental.partitioner_utils import NodeLatency

    model = Model()
    module = fx.symbolic_trace(model)
    a, b = torch.randn(4), torch.randn(4)
    get_size_of_all_nodes(module, [a, b])
    latency = {
        n: NodeLatency(n.size_bytes.total_size, 1) for n in module.graph.nodes if n.op[0] == "c"
    }
    devices = [Device(f"dev_{i}", 125, i) for i in range(3)]
    config = PartitionerConfig(devices, mode, 2.0, latency)
    partitioner = Partitioner()
    result = partitioner.partition_graph(module, model, config)
    assert torch.equal(result.module_with_submodules(a, b), model(a, b))
    used: dict[int, int] = {}
    for part in result.dag.nodes:
        for device in part.logical_device_ids:
            used[device] = used.get(device, 0) + part.size_bytes
    assert all(size <= 125 for size in used.values()) and len(used) > 1
    with pytest.raises(RuntimeError):
        Partitioner().partition_graph(module, model, PartitionerConfig([Device("d", 4, 0)]))


def test_functions_are_chosen_by_pattern():
    from torch.fx.experimental.unification.match import VarDispatcher, match

    n = var("n")
    space: dict = {}

    @match(0, namespace=space)
    def fib(_):
        return 0

    @match(1, namespace=space)
    def fib(_):  # noqa: F811
        return 1

    @match(n, namespace=space)
    def fib(n):  # noqa: F811
        return fib(n - 1) + fib(n - 2)

    assert [fib(i) for i in range(7)] == [0, 1, 1, 2, 3, 5, 8]
    named = VarDispatcher("named")
    named.add(("inc", n), lambda n: n + 1)
    assert named("inc", 4) == 5
    with pytest.raises(NotImplementedError, match="No match found"):
        named("dec", 4)


def test_settings_are_kept_and_patched():
    from torch.fx.experimental import _config

    with _config.patch(use_duck_shape=False):
        assert not _config.use_duck_shape
    assert _config.use_duck_shape
