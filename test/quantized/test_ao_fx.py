"""Graph mode: tracing, observers, conversion to levels, and the records that describe it."""

import copy

import pytest

import torch
import torch.ao.quantization as tq
from torch import nn
from torch.ao.nn import intrinsic, quantized
from torch.ao.nn.quantized import reference
from torch.ao.quantization import backend_config as backends
from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
from torch.ao.quantization.quantize_fx import (
    convert_fx,
    convert_to_reference_fx,
    fuse_fx,
    prepare_fx,
    prepare_qat_fx,
)
from torch.nn import functional


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 4)
        self.weight = nn.Parameter(torch.linspace(-1, 1, 20).reshape(5, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn(self.conv(x)))
        z = torch.flatten(self.pool(y + y), 1)
        return functional.linear(functional.relu(self.fc(z)), self.weight).sigmoid()


def made() -> tuple[Small, torch.Tensor]:
    torch.manual_seed(0)
    return Small().eval(), torch.randn(2, 3, 8, 8)


def targets(graph: torch.fx.GraphModule) -> list[object]:
    return [n.target for n in graph.graph.nodes if n.op in ("call_function", "call_method")]


def test_fuse_fx_conv_bn_relu_becomes_one_module_with_equal_outputs() -> None:
    model, x = made()
    fused = fuse_fx(copy.deepcopy(model))
    assert isinstance(fused.conv, intrinsic.ConvReLU2d)
    assert torch.allclose(fused(x), model(x), atol=1e-5)


def test_prepare_and_convert_fx_static_computes_on_levels_close_to_float() -> None:
    model, x = made()
    observed = prepare_fx(copy.deepcopy(model), tq.get_default_qconfig_mapping("x86"), (x,))
    observed(x)
    result = convert_fx(observed)
    assert isinstance(result.conv, intrinsic.quantized.ConvReLU2d)
    assert isinstance(result.fc, intrinsic.quantized.LinearReLU)
    called = targets(result)
    assert torch.ops.quantized.add in called and torch.ops.quantized.linear in called
    assert called.count(torch.quantize_per_tensor) == 1 and called.count("dequantize") == 1
    assert (result(x) - model(x)).abs().max() < 0.02
    assert "_packed_weight_0" in result.state_dict()


def test_convert_to_reference_fx_equals_the_lowered_model_within_a_level() -> None:
    model, x = made()
    observed = prepare_fx(copy.deepcopy(model), tq.get_default_qconfig_mapping("x86"), (x,))
    observed(x)
    float_form = convert_to_reference_fx(copy.deepcopy(observed))
    assert isinstance(float_form.fc[0], reference.Linear)
    assert (float_form(x) - convert_fx(observed)(x)).abs().max() <= 2 / 256


def test_prepare_fx_operators_that_move_values_share_the_observer_of_their_input() -> None:
    class Move(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x.transpose(0, 1), y]).reshape(-1)

    mapping = tq.QConfigMapping().set_global(tq.default_qconfig)
    pair = (torch.randn(3, 3), torch.randn(3, 3))
    observed = prepare_fx(Move(), mapping, pair)
    calls = [n.target for n in observed.graph.nodes if n.op == "call_module"]
    assert len(set(calls)) == 1 and len(calls) >= 4


def test_qconfig_mapping_name_wins_over_kind_and_kind_over_all() -> None:
    model, x = made()
    mapping = tq.QConfigMapping().set_global(tq.default_qconfig)
    mapping.set_object_type(nn.Conv2d, None).set_module_name("fc", None)
    observed = prepare_fx(copy.deepcopy(model), mapping, (x,))
    observed(x)
    result = convert_fx(observed)
    assert type(result.conv) is intrinsic.ConvReLU2d and type(result.fc) is intrinsic.LinearReLU
    again = tq.QConfigMapping.from_dict(mapping.to_dict())
    assert again.to_dict() == mapping.to_dict()


def test_convert_fx_dynamic_layers_take_float_and_keep_packed_weights() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.LSTMCell(6, 5)).eval()

    class Use(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.cell = model[0], model[1]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.cell(self.linear(x))[0]

    x = torch.randn(3, 8)
    mapping = tq.QConfigMapping().set_global(tq.default_dynamic_qconfig)
    expected = Use().eval()(x)
    result = convert_fx(prepare_fx(Use().eval(), mapping, (x,)))
    assert isinstance(result.linear, quantized.dynamic.Linear)
    assert isinstance(result.cell, quantized.dynamic.LSTMCell)
    assert (result(x) - expected).abs().max() < 0.02


def test_prepare_qat_fx_trains_folded_normalisation_and_converts_to_levels() -> None:
    model, x = made()
    trained = prepare_qat_fx(
        copy.deepcopy(model).train(), tq.get_default_qat_qconfig_mapping("x86"), (x,)
    )
    assert isinstance(trained.conv, intrinsic.qat.ConvBnReLU2d)
    trained(x).sum().backward()
    assert trained.conv.weight.grad.abs().sum() > 0 and trained.conv.bn.weight.grad is not None
    result = convert_fx(trained.eval())
    assert isinstance(result.conv, intrinsic.quantized.ConvReLU2d)
    assert result(x).shape == (2, 5)


def test_conv_bn_qat_in_evaluation_equals_the_folded_product() -> None:
    torch.manual_seed(0)
    qconfig = tq.get_default_qat_qconfig("x86")
    layer = intrinsic.qat.ConvBn2d(2, 3, 3, qconfig=qconfig)
    layer.bn.running_mean.copy_(torch.tensor([0.1, -0.2, 0.3]))
    layer.bn.running_var.copy_(torch.tensor([0.5, 2.0, 1.5]))
    layer.eval()
    layer.weight_fake_quant.disable_fake_quant()
    x = torch.randn(2, 2, 6, 6)
    factor = layer.bn.weight / torch.sqrt(layer.bn.running_var + layer.bn.eps)
    plain = functional.conv2d(x, layer.weight)
    centred = plain - layer.bn.running_mean.view(1, -1, 1, 1)
    expected = centred * factor.view(1, -1, 1, 1) + layer.bn.bias.view(1, -1, 1, 1)
    assert torch.allclose(layer(x), expected, atol=1e-5)
    assert torch.allclose(layer.to_float()(x), expected, atol=1e-5)


def test_prepare_custom_config_quantized_input_and_output_stay_quantized() -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 1)).eval()
    settings = PrepareCustomConfig().set_input_quantized_indexes([0])
    settings.set_output_quantized_indexes([0])
    x = torch.randn(1, 1, 2, 2)
    mapping = tq.QConfigMapping().set_global(tq.default_qconfig)
    observed = prepare_fx(model, mapping, (x,), prepare_custom_config=settings)
    observed(x)
    result = convert_fx(observed)
    levels = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    assert result(levels).is_quantized
    assert torch.quantize_per_tensor not in targets(result)


@pytest.mark.parametrize("name", ["native", "fbgemm", "x86", "qnnpack", "onednn", "executorch"])
def test_backend_config_survives_the_round_trip_through_dictionaries(name: str) -> None:
    config = getattr(backends, f"get_{name}_backend_config")()
    again = backends.BackendConfig.from_dict(config.to_dict())
    assert again.name == name and len(again.configs) == len(config.configs)
    assert again.to_dict() == config.to_dict()


def test_dtype_config_without_constraints_equals_its_plain_form() -> None:
    plain = backends.DTypeConfig(torch.quint8, torch.quint8)
    wrapped = backends.DTypeConfig(
        backends.DTypeWithConstraints(torch.quint8), backends.DTypeWithConstraints(torch.quint8)
    )
    assert plain == wrapped and plain.input_dtype is torch.quint8


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_dynamic_recurrent_layers_follow_the_float_ones(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    layer = kind(4, 6, num_layers=2, bidirectional=True, batch_first=True)
    result = tq.quantize_dynamic(nn.Sequential(layer))[0]
    x = torch.randn(3, 5, 4)
    expected, state = layer(x)
    got, got_state = result(x)
    assert (got - expected).abs().max() < 0.05
    flat = state if kind is nn.GRU else state[0]
    assert (got_state if kind is nn.GRU else got_state[0]).shape == flat.shape
    again = type(result)(4, 6, num_layers=2, bidirectional=True, batch_first=True)
    again.load_state_dict(result.state_dict())
    assert torch.equal(again(x)[0], got)


def test_old_module_paths_give_the_new_classes() -> None:
    import importlib

    for old, new, name in [
        ("torch.nn.quantized.modules.conv", "torch.ao.nn.quantized.modules.conv", "Conv2d"),
        ("torch.nn.intrinsic.qat", "torch.ao.nn.intrinsic.qat", "ConvBn2d"),
        ("torch.quantization.observer", "torch.ao.quantization.observer", "MinMaxObserver"),
    ]:
        left, right = importlib.import_module(old), importlib.import_module(new)
        assert getattr(left, name) is getattr(right, name)


def test_weights_are_cut_to_the_levels_of_their_observer() -> None:
    layer = nn.Linear(4, 1, bias=False)
    layer.weight.data = torch.tensor([[-10.0, 0.1, 0.2, 0.3]])
    watcher = tq.weight_observer_range_neg_127_to_127
    layer.qconfig = tq.QConfig(activation=tq.default_observer, weight=watcher)
    result = quantized.dynamic.Linear.from_float(layer)
    assert int(result.weight().int_repr().min()) == -127


def test_reference_layers_round_their_weights() -> None:
    torch.manual_seed(0)
    grid = {
        "qscheme": torch.per_tensor_affine,
        "dtype": torch.qint8,
        "scale": 0.1,
        "zero_point": 0,
    }
    layer = nn.ConvTranspose2d(2, 3, 2)
    made_of = reference.ConvTranspose2d.from_float(layer, grid)
    rounded = torch.clamp(torch.round(layer.weight / 0.1), -128, 127) * 0.1
    x = torch.randn(1, 2, 4, 4)
    expected = functional.conv_transpose2d(x, rounded, layer.bias)
    assert torch.allclose(made_of(x), expected, atol=1e-5)
    cells = {"weight_ih_l0": grid, "weight_hh_l0": grid}
    lstm = nn.LSTM(3, 4)
    recurrent = reference.LSTM.from_float(lstm, cells)
    for name in ("weight_ih_l0", "weight_hh_l0"):
        value = getattr(lstm, name)
        value.data = torch.clamp(torch.round(value.data / 0.1), -128, 127) * 0.1
    steps = torch.randn(2, 1, 3)
    assert torch.allclose(recurrent(steps)[0], lstm(steps)[0], atol=1e-5)


def test_shared_activation_modules_fuse_at_every_use() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.relu = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.b(self.relu(self.a(x))))

    model = Twice().eval()
    x = torch.randn(2, 3)
    fused = fuse_fx(copy.deepcopy(model))
    assert type(fused.a) is intrinsic.LinearReLU and type(fused.b) is intrinsic.LinearReLU
    assert torch.equal(fused(x), model(x))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.relu = nn.Linear(5, 5), nn.ReLU()

    def forward(self, x):
        x = self.relu(self.linear(x))
        return self.relu(self.linear(x))


def test_fused_layer_that_is_called_twice_is_quantized_at_both_calls():
    model, x = Twice().eval(), torch.randn(4, 5)
    expected = model(x)
    mapping = tq.QConfigMapping().set_global(tq.default_dynamic_qconfig)
    converted = convert_fx(prepare_fx(model, mapping, (x,)))
    calls = [node for node in converted.graph.nodes if node.op == "call_module"]
    assert len(calls) == 2 and len(list(converted.graph.nodes)) == 4
    assert type(converted.linear) is intrinsic.quantized.dynamic.LinearReLU
    assert (converted(x) - expected).abs().max() < 0.1


def test_operator_without_a_choice_between_quantized_ones_stays_real():
    class Sums(nn.Module):
        def forward(self, x):
            x = torch.add(x, x)
            x = torch.add(x, x)
            return torch.add(x, x)

    x, chosen = torch.randn(3), tq.default_qconfig
    mapping = tq.QConfigMapping()
    for index in (0, 2):
        mapping.set_module_name_object_type_order("", torch.add, index, chosen)
    prepared = prepare_fx(Sums().eval(), mapping, (x,))
    prepared(x)
    converted = convert_fx(prepared)
    adds = [n.target for n in converted.graph.nodes if "add" in str(n.target)]
    assert adds == [torch.ops.quantized.add, torch.add, torch.ops.quantized.add]
    assert (converted(x) - 8 * x).abs().max() < 0.5


def test_sizes_are_asked_of_levels_without_dequantizing():
    class Sizes(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(2, 2, 2), nn.Conv2d(2, 2, 2)

        def forward(self, x):
            x = self.first(x)
            rows, shape = x.size(0), x.shape
            torch._assert(rows == shape[0], "rows")
            return self.second(x)

    x = torch.randn(2, 2, 4, 4)
    prepared = prepare_fx(Sizes().eval(), tq.QConfigMapping().set_global(tq.default_qconfig), (x,))
    prepared(x)
    converted = convert_fx(prepared)
    targets = [node.target for node in converted.graph.nodes]
    assert targets.count("dequantize") == 1
    assert targets.count(torch.quantize_per_tensor) == 1
    assert converted(x).shape == (2, 2, 2, 2)
