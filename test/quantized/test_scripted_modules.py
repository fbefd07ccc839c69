"""Quantized modules in scripts, traces and archives: objects of C++ classes are values there."""

import io

import pytest

import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn import quantized as nnq


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv, self.relu, self.point = nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 1)
        self.fc, self.sum = nn.Linear(16, 5), nnq.FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.point(self.relu(self.conv(self.quant(x)))).flatten(1)
        x = self.fc(x)
        return self.dequant(self.sum.add(x, x))


def static() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    model = tq.fuse_modules(Net().eval(), [["conv", "relu"]])
    model.qconfig = tq.get_default_qconfig("fbgemm")
    x = torch.randn(4, 2, 4, 4)
    tq.prepare(model, inplace=True)(x)
    return tq.convert(model, inplace=True), (x,)


def dynamic() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 2))
    return tq.quantize_dynamic(layers, {nn.Linear}).eval(), (torch.randn(3, 6),)


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(10, 8, mode="sum")
        self.bags.qconfig = tq.float_qparams_weight_only_qconfig

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bags(indices, offsets)


def bags() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    model = tq.convert(tq.prepare(Bags()))
    return model, (torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2]))


@pytest.mark.parametrize("make", [static, dynamic, bags])
@pytest.mark.parametrize("how", ["script", "trace"])
def test_quantized_model_scripted_or_traced_computes_and_reloads(make, how) -> None:
    model, inputs = make()
    made = torch.jit.script(model) if how == "script" else torch.jit.trace(model, inputs)
    place = io.BytesIO()
    torch.jit.save(made, place)
    place.seek(0)
    again = torch.jit.load(place)
    # Other values than those that were traced, of which a constant would know nothing.
    others = tuple(x * 0.5 if x.is_floating_point() else x.flip(0).sort()[0] for x in inputs)
    for given in (inputs, others):
        assert torch.equal(made(*given), model(*given))
        assert torch.equal(again(*given), model(*given))


def test_trace_keeps_packed_weight_as_attribute() -> None:
    model, inputs = dynamic()
    graph = torch.jit.trace(model, inputs).inlined_graph
    assert "quantized::linear_dynamic" in str(graph)
    assert "LinearPackedParamsBase" in str(graph)


def test_method_of_packed_weight_called_in_script_gives_weight() -> None:
    class Unpacks(nn.Module):
        def __init__(self, packed: torch.ScriptObject) -> None:
            super().__init__()
            self.packed = packed

        def forward(self) -> torch.Tensor:
            weight, _ = self.packed.unpack()
            return weight.dequantize()

    weight = torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    assert torch.equal(torch.jit.script(Unpacks(packed))(), weight.dequantize())
    with pytest.raises(RuntimeError, match="no attribute or method 'pack'"):
        torch.jit.script(_calls_missing(packed))


def _calls_missing(packed: torch.ScriptObject) -> nn.Module:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.packed = packed

        def forward(self) -> torch.Tensor:
            return self.packed.pack()

    return Calls()


def test_conv_state_is_a_table_of_numbers_and_tensors() -> None:
    weight = torch.quantize_per_tensor(torch.randn(3, 2, 3, 3), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(weight, None, [1, 2], [0, 1], [1, 1], 1)
    version, (numbers, kept), biases = packed.__getstate__()
    assert (version, biases) == ("2", [None])
    assert numbers.tolist() == [2, 1, 2, 0, 1, 1, 1, 0, 0, 1, 0]
    assert torch.equal(kept.int_repr(), weight.int_repr())


def test_damaged_state_of_packed_objects_is_refused() -> None:
    make = torch._C._script_object_from_state
    name = "__torch__.torch.classes.quantized.Conv2dPackedParamsBase"
    weight = torch.quantize_per_tensor(torch.randn(3, 2, 3, 3), 0.1, 0, torch.qint8)
    short = torch.zeros(3, dtype=torch.int16)
    for state in (("1", [short, weight], [None]), ("2", [short, weight], [None]), ("2", [], [])):
        with pytest.raises(RuntimeError):
            make(name, state)


def test_traced_graph_module_finds_packed_weight_it_holds() -> None:
    model, inputs = dynamic()
    held = model[0]._packed_params._packed_params

    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = held

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.quantized.linear_dynamic(x, self.held, True)

    made = torch.fx.symbolic_trace(Calls())
    assert [n.target for n in made.graph.nodes if n.op == "get_attr"] == ["held"]
    assert torch.equal(made(*inputs), Calls()(*inputs))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda *grid: nnq.LayerNorm([4], *grid), (2, 4)),
        (lambda *grid: nnq.GroupNorm(2, 4, *grid), (2, 4, 3)),
        (lambda *grid: nnq.InstanceNorm1d(4, *grid), (2, 4, 3)),
        (lambda *grid: nnq.InstanceNorm2d(4, *grid), (2, 4, 3, 3)),
        (lambda *grid: nnq.InstanceNorm3d(4, *grid), (2, 4, 3, 3, 2)),
    ],
)
def test_scripted_normalisation_on_levels_equals_the_plain_one(make, shape):
    parameters = nn.Parameter(torch.rand(4) + 0.5), nn.Parameter(torch.rand(4))
    module = make(*parameters, 0.02, 3)
    x = torch.quantize_per_tensor(torch.randn(shape), 0.05, 0, torch.qint8)
    plain, scripted = module(x), torch.jit.script(module)(x)
    assert torch.equal(plain.int_repr(), scripted.int_repr())
    assert scripted.q_scale() == plain.q_scale() and scripted.q_zero_point() == 3
