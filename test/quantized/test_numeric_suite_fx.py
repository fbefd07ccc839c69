"""torch.ao.ns._numeric_suite_fx: two forms of a model compared operator by operator."""

import copy

import pytest

import torch
from torch import nn
from torch.ao.ns import _numeric_suite_fx as ns
from torch.ao.ns.fx.graph_matcher import GraphMatchingException, get_matching_subgraph_pairs
from torch.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
from torch.ao.ns.fx.utils import compute_sqnr
from torch.ao.quantization import (
    default_dynamic_qconfig,
    default_qconfig,
    get_default_qconfig_mapping,
)
from torch.ao.quantization.backend_config import get_native_backend_config
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Linear(2, 2)
        self.weight = nn.Parameter(torch.randn(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(F.relu(self.bn(self.conv(x))))
        x = F.linear(x, self.weight)
        return torch.cat([x, x], 0) + 1.0


def forms() -> tuple[nn.Module, nn.Module, nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    model, inputs = Model().eval(), (torch.randn(3, 1, 2, 2),)
    prepared = prepare_fx(copy.deepcopy(model), get_default_qconfig_mapping(), inputs)
    prepared(*inputs)
    return model, prepared, convert_fx(copy.deepcopy(prepared)), inputs


def test_weights_of_float_and_quantized_layers_are_close() -> None:
    model, prepared, quantized, _ = forms()
    for a, b in ((torch.fx.symbolic_trace(model), prepared), (prepared, quantized)):
        results = ns.extract_weights("a", a, "b", b)
        ns.extend_logger_results_with_comparison(results, "a", "b", compute_sqnr, "sqnr")
        assert len(results) == 3
        for layer in results.values():
            (record,) = layer["weight"]["b"]
            assert record["sqnr"][0] > 30 or a is not prepared
    assert results["conv"]["weight"]["a"][0]["fqn"] == "conv"


@pytest.mark.parametrize("scripted", [False, True])
def test_loggers_keep_outputs_and_inputs_of_both_models(scripted: bool) -> None:
    _, prepared, quantized, inputs = forms()
    models = ns.add_loggers("a", prepared, "b", quantized, ns.OutputLogger, should_log_inputs=True)
    if scripted:
        models = tuple(torch.jit.script(m) for m in models)
    for m, plain in zip(models, (prepared, quantized), strict=True):
        assert torch.equal(m(*inputs), plain(*inputs))
    results = ns.extract_logger_info(*models, ns.OutputLogger, "b")
    ns.extend_logger_results_with_comparison(results, "a", "b", compute_sqnr, "sqnr")
    assert len(results) == 5
    for layer in results.values():
        assert set(layer) == {"node_input", "node_output"}
        assert layer["node_output"]["b"][0]["sqnr"][0] > 10


@pytest.mark.parametrize("scripted", [False, True])
def test_shadows_run_float_layers_on_inputs_of_quantized_ones(scripted: bool) -> None:
    _, prepared, quantized, inputs = forms()
    both = ns.add_shadow_loggers("a", prepared, "b", quantized, ns.OutputLogger)
    expected = quantized(*inputs)
    both = torch.jit.script(both) if scripted else both
    assert torch.equal(both(*inputs), expected)
    results = ns.extract_shadow_logger_info(both, ns.OutputLogger, "b")
    ns.extend_logger_results_with_comparison(results, "a", "b", compute_sqnr, "sqnr")
    assert len(results) == 3  # what has several inputs has no shadow
    assert all(layer["node_output"]["b"][0]["sqnr"][0] > 10 for layer in results.values())


def test_quantized_layers_in_the_shadow_of_float_ones_take_their_grids() -> None:
    _, prepared, quantized, inputs = forms()
    grid = quantized.conv.scale
    both = ns.add_shadow_loggers("int8", quantized, "fp32", prepared, ns.OutputLogger)
    assert both.fc_input_scale_0 == grid
    assert torch.equal(both(*inputs), prepared(*inputs))
    assert len(ns.extract_shadow_logger_info(both, ns.OutputLogger, "fp32")) == 3


def test_models_that_compute_other_things_are_not_matched() -> None:
    one = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1)))
    two = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)))
    other = torch.fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 1, 1)))
    for a, b in ((one, two), (one, other)):
        with pytest.raises(GraphMatchingException):
            get_matching_subgraph_pairs(a, b)


def test_each_configuration_has_a_shadow_that_is_compared() -> None:
    model, _, _, inputs = forms()
    mapping = QConfigMultiMapping().set_global([default_qconfig, default_dynamic_qconfig])
    mapping.set_module_name("fc", [None, default_qconfig])
    expected = model(*inputs)
    made = ns.prepare_n_shadows_model(model, inputs, mapping, get_native_backend_config())
    made(*inputs)
    made = ns.convert_n_shadows_model(made)
    ns.loggers_set_enabled(made, True)
    assert torch.equal(made(*inputs), expected)
    found = ns.extract_results_n_shadows_model(made)["model"]["node_output"]
    assert isinstance(made.shadow_wrapper_1_1.mod_0, torch.ao.nn.quantized.Linear)
    assert not hasattr(made, "shadow_wrapper_1_2")
    assert found["subgraph_1_0"][0]["comparisons"] == []
    assert found["subgraph_1_1"][0]["comparisons"][0] > 20


def test_added_quantized_model_gives_what_it_gives_alone() -> None:
    model, _, _, inputs = forms()
    mapping, backend = get_default_qconfig_mapping(), get_native_backend_config()
    made = ns._prepare_n_shadows_add_loggers_model(copy.deepcopy(model), inputs, mapping, backend)
    made(*inputs)
    made = ns.convert_n_shadows_model(made)
    ns.loggers_set_enabled(made, True)
    made(*inputs)
    found = ns.extract_results_n_shadows_model(made)["model"]["node_output"]
    prepared = prepare_fx(model, mapping, inputs)
    prepared(*inputs)
    last = list(found)[-1]
    # Each shadow rounds for itself: a result may be the next level.
    alone = convert_fx(prepared)(*inputs)
    assert torch.allclose(found[last][0]["values"][-1], alone, atol=0.05)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 2)

    def forward(self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]):
        return self.lstm(x, state)


def test_recurrent_layer_has_a_shadow_with_its_state() -> None:
    model = Recurrent().eval()
    inputs = (torch.rand(1, 1, 2), (torch.rand(1, 1, 2), torch.rand(1, 1, 2)))
    mapping = {"object_type": [(nn.LSTM, default_dynamic_qconfig)]}
    prepared = prepare_fx(model, mapping, inputs)
    quantized = convert_fx(copy.deepcopy(prepared))
    both = ns.add_shadow_loggers("a", prepared, "b", quantized, ns.OutputLogger)
    both(*inputs)
    results = ns.extract_shadow_logger_info(both, ns.OutputLogger, "b")
    (layer,) = results.values()
    assert layer["node_output"]["a"][0]["values"][0][0].shape == (1, 1, 2)


def test_functions_in_a_row_with_relu_keep_signed_weights() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(F.relu(F.linear(x, self.weight, self.bias)), self.weight, self.bias)

    model, inputs = Two().eval(), (torch.randn(8, 4),)
    expected = model(*inputs)
    prepared = prepare_fx(model, {"": default_qconfig}, inputs)
    prepared(*inputs)
    made = convert_fx(prepared)(*inputs)
    assert (made - expected).abs().max() < 0.2 * expected.abs().max()
