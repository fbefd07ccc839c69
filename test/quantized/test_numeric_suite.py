"""torch.ao.ns: weights and outputs of a float model beside those of its quantized form."""

import copy

import numpy as np
import pytest

import torch
from torch.ao.ns import _numeric_suite as suite
from torch.ao.ns.fx import utils as measures
from torch.ao.quantization import (
    DeQuantStub,
    QuantStub,
    convert,
    default_qconfig,
    prepare,
    quantize_dynamic,
)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.conv = torch.nn.Conv2d(3, 3, 1)
        self.sub = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.sum = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.sub(self.conv(self.quant(x)))
        return self.dequant(self.sum.add(x, x))


@pytest.fixture
def models():
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 3, 4, 4)
    model.qconfig = default_qconfig
    prepared = prepare(copy.deepcopy(model))
    prepared(x)
    return model, convert(prepared), x


def test_measures_equal_their_formulas():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    a, b = x.double().numpy(), y.double().numpy()
    ratio = np.linalg.norm(a) / np.linalg.norm(a - b)
    assert measures.compute_sqnr(x, y).item() == pytest.approx(20 * np.log10(ratio), rel=1e-5)
    error = measures.compute_normalized_l2_error(x, y).item()
    assert error == pytest.approx(1 / ratio, rel=1e-5)
    cosine = (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)
    found = measures.compute_cosine_similarity(x, y)
    assert found.shape == (1,) and found.item() == pytest.approx(cosine, rel=1e-4)
    several = measures.compute_sqnr((x, [y]), (y, [x]))
    assert several[0] == measures.compute_sqnr(x, y) and several[1] == [measures.compute_sqnr(y, x)]
    levels = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    assert measures.compute_sqnr(levels, y) == measures.compute_sqnr(levels.dequantize(), y)


def test_weights_are_paired_by_name(models):
    model, quantized, _ = models
    pairs = suite.compare_weights(model.state_dict(), quantized.state_dict())
    assert set(pairs) == {"conv.weight", "sub.0._packed_params._packed_params"}
    for pair in pairs.values():
        assert measures.compute_sqnr(pair["float"], pair["quantized"]) > 30
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LSTM(4, 4))
    dynamic = quantize_dynamic(plain, {torch.nn.Linear, torch.nn.LSTM})
    pairs = suite.compare_weights(plain.state_dict(), dynamic.state_dict())
    assert set(pairs) == {"0._packed_params._packed_params", "1._all_weight_values.0.param"}
    for pair in pairs.values():
        assert measures.compute_sqnr(pair["float"], pair["quantized"]) > 30


def test_shadows_see_the_inputs_of_the_quantized_modules(models):
    model, quantized, x = models
    kinds = {torch.nn.Conv2d, torch.nn.Linear, torch.ao.nn.quantized.FloatFunctional}
    found = suite.compare_model_stub(model, quantized, kinds, x)
    assert set(found) == {"conv.stats", "sub.0.stats", "sum.stats"}
    for pair in found.values():
        assert pair["quantized"][0].is_quantized and not pair["float"][0].is_quantized
        assert measures.compute_sqnr(pair["float"][0], pair["quantized"][0]) > 25
    assert isinstance(quantized.conv, suite.Shadow)


def test_outputs_of_modules_with_the_same_name_are_paired(models):
    model, quantized, x = models
    found = suite.compare_model_outputs(model, quantized, x)
    assert {"conv.stats", "sub.0.stats", "quant.stats"} <= set(found)
    for pair in found.values():
        assert len(pair["float"]) == len(pair["quantized"]) == 1
        assert measures.compute_sqnr(pair["float"][0], pair["quantized"][0]) > 20


def test_a_fused_module_is_compared_as_a_whole():
    model = torch.nn.Sequential(QuantStub(), torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU()).eval()
    model = torch.ao.quantization.fuse_modules(model, [["1", "2"]])
    model.qconfig, x = default_qconfig, torch.randn(2, 3, 4, 4)
    prepared = prepare(copy.deepcopy(model))
    prepared(x)
    found = suite.compare_model_outputs(model, convert(prepared), x)
    assert set(found) == {"0.stats", "1.stats"}


def test_synchronised_normalisation_keeps_the_configuration():
    norm = torch.nn.BatchNorm2d(2)
    norm.qconfig = default_qconfig
    assert torch.nn.SyncBatchNorm.convert_sync_batchnorm(norm).qconfig is default_qconfig
