"""Which module replaces which, as tables. Other parts ask the functions, which return copies."""

from __future__ import annotations

from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.ao.nn import qat, quantized
from torch.ao.nn.quantized import dynamic
from torch.ao.quantization import qconfig as configs
from torch.ao.quantization.fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from torch.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from torch.ao.quantization.stubs import DeQuantStub, QuantStub

Mapping = dict[type[nn.Module], type[nn.Module]]

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    nn.Linear: quantized.Linear,
    nn.Conv1d: quantized.Conv1d,
    nn.Conv2d: quantized.Conv2d,
    nn.Conv3d: quantized.Conv3d,
    nn.BatchNorm2d: quantized.BatchNorm2d,
    nn.BatchNorm3d: quantized.BatchNorm3d,
    nn.ReLU6: quantized.ReLU6,
    nn.Hardswish: quantized.Hardswish,
    nn.ELU: quantized.ELU,
    nn.LeakyReLU: quantized.LeakyReLU,
    nn.Sigmoid: quantized.Sigmoid,
    quantized.FloatFunctional: quantized.QFunctional,
    fused.LinearReLU: quantized.LinearReLU,
    fused.ConvReLU1d: quantized.ConvReLU1d,
    fused.ConvReLU2d: quantized.ConvReLU2d,
    fused.ConvReLU3d: quantized.ConvReLU3d,
    fused.BNReLU2d: quantized.BNReLU2d,
    fused.BNReLU3d: quantized.BNReLU3d,
    qat.Linear: quantized.Linear,
    qat.Conv1d: quantized.Conv1d,
    qat.Conv2d: quantized.Conv2d,
    qat.Conv3d: quantized.Conv3d,
}
DEFAULT_QAT_MODULE_MAPPINGS: Mapping = {
    nn.Linear: qat.Linear,
    nn.Conv1d: qat.Conv1d,
    nn.Conv2d: qat.Conv2d,
    nn.Conv3d: qat.Conv3d,
    nn.Embedding: qat.Embedding,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: Mapping = {
    nn.Linear: dynamic.Linear,
    fused.LinearReLU: dynamic.LinearReLU,
}
# Modules whose range is known.
DEFAULT_MODULE_TO_ACT_POST_PROCESS = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}
FIXED_OBSERVERS = {
    nn.Sigmoid: default_fixed_qparams_range_0to1_observer,
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_observer,
    nn.Softmax: default_fixed_qparams_range_0to1_observer,
    nn.Tanh: default_fixed_qparams_range_neg1to1_observer,
}
# What quantize_dynamic does without a specification.
DYNAMIC_CONFIGS = {nn.Linear: configs.default_dynamic_qconfig}


def get_default_static_quant_module_mappings() -> Mapping:
    """From observed modules to quantized ones."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> Mapping:
    """From float modules to dynamic ones."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> Mapping:
    """From float modules to those that train with rounded weights."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list() -> set[type[nn.Module]]:
    """Modules that a configuration is meant for."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    }


def no_observer_set() -> set[type[nn.Module]]:
    """Modules whose outputs need no observer."""
    return {quantized.Quantize, DeQuantStub}
