"""Which module replaces which, as tables. Other parts ask the functions, which return copies."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.ao.nn import qat, quantizable, quantized, sparse
from torch.ao.nn.intrinsic import qat as fused_qat
from torch.ao.nn.intrinsic import quantized as fused_quantized
from torch.ao.nn.quantized import dynamic, reference
from torch.ao.quantization.fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from torch.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from torch.ao.quantization.stubs import DeQuantStub, QuantStub
from torch.ao.quantization.utils import get_combined_dict
from torch.nn import functional
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.utils.parametrize import type_before_parametrizations

Mapping = dict[Callable, object]

_STUBS: Mapping = {QuantStub: quantized.Quantize, DeQuantStub: quantized.DeQuantize}
_BY_NAME = (
    "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
    "ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d "
    "InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU Softmax"
)


def _same_names(source: object, target: object, names: str) -> Mapping:
    return {getattr(source, name): getattr(target, name) for name in names.split()}


DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_STUBS,
    **_same_names(
        nn,
        reference,
        "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
        "EmbeddingBag GRUCell LSTMCell RNNCell LSTM",
    ),
}
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_STUBS,
    **_same_names(nn, quantized, _BY_NAME),
    NonDynamicallyQuantizableLinear: quantized.Linear,
    nn.modules.activation.Sigmoid: quantized.Sigmoid,
    quantized.FloatFunctional: quantized.QFunctional,
    **_same_names(
        fused,
        fused_quantized,
        "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU "
        "LinearLeakyReLU LinearTanh",
    ),
    fused_qat.ConvBn1d: quantized.Conv1d,
    fused_qat.ConvBn2d: quantized.Conv2d,
    fused_qat.ConvBn3d: quantized.Conv3d,
    fused_qat.ConvBnReLU1d: fused_quantized.ConvReLU1d,
    fused_qat.ConvBnReLU2d: fused_quantized.ConvReLU2d,
    fused_qat.ConvBnReLU3d: fused_quantized.ConvReLU3d,
    fused_qat.ConvReLU1d: fused_quantized.ConvReLU1d,
    fused_qat.ConvReLU2d: fused_quantized.ConvReLU2d,
    fused_qat.ConvReLU3d: fused_quantized.ConvReLU3d,
    fused_qat.LinearReLU: fused_quantized.LinearReLU,
    fused_qat.LinearBn1d: quantized.Linear,
    **_same_names(qat, quantized, "Linear Conv1d Conv2d Conv3d"),
}
DEFAULT_QAT_MODULE_MAPPINGS: Mapping = {
    nn.Conv1d: qat.Conv1d,
    nn.Conv2d: qat.Conv2d,
    nn.Conv3d: qat.Conv3d,
    nn.Linear: qat.Linear,
    NonDynamicallyQuantizableLinear: qat.Linear,
    **_same_names(
        fused,
        fused_qat,
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
        "ConvReLU3d LinearReLU LinearBn1d",
    ),
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_same_names(nn, dynamic, "GRUCell Linear LSTM GRU LSTMCell RNNCell"),
    qat.dynamic.Linear: dynamic.Linear,
    NonDynamicallyQuantizableLinear: dynamic.Linear,
    fused.LinearReLU: fused_quantized.dynamic.LinearReLU,
    nn.EmbeddingBag: quantized.EmbeddingBag,
    nn.Embedding: quantized.Embedding,
}
_INCLUDE_QCONFIG_PROPAGATE_LIST: set[Callable] = {nn.Sequential}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Callable, Callable] = {
    functional.elu: torch.ops.quantized.elu,
    functional.hardswish: torch.ops.quantized.hardswish,
    functional.instance_norm: torch.ops.quantized.instance_norm,
    functional.layer_norm: torch.ops.quantized.layer_norm,
    functional.leaky_relu: torch.ops.quantized.leaky_relu,
    functional.dropout: torch.ops.quantized.dropout,
}
# Modules whose range is known.
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Callable, Callable] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}
FIXED_OBSERVERS: dict[Callable, Callable] = {
    nn.Sigmoid: default_fixed_qparams_range_0to1_observer,
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_observer,
    nn.Softmax: default_fixed_qparams_range_0to1_observer,
    nn.Tanh: default_fixed_qparams_range_neg1to1_observer,
}
DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS: Mapping = {nn.Linear: sparse.quantized.Linear}
DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS: Mapping = {nn.Linear: sparse.quantized.dynamic.Linear}


def no_observer_set() -> set[Callable]:
    """Modules whose outputs need no observer."""
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> Mapping:
    """From observed modules to quantized ones."""
    return copy.deepcopy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> Mapping:
    """From observed modules to reference ones."""
    return copy.deepcopy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> Mapping:
    """The same with embeddings that were trained for it."""
    mapping = get_default_static_quant_module_mappings()
    mapping[qat.EmbeddingBag] = quantized.EmbeddingBag
    mapping[qat.Embedding] = quantized.Embedding
    return mapping


def get_default_static_sparse_quant_module_mappings() -> Mapping:
    """From layers with sparse weights to quantized ones."""
    return copy.deepcopy(DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> Mapping:
    """From float modules to dynamic ones."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_sparse_quant_module_mappings() -> Mapping:
    """From layers with sparse weights to dynamic ones."""
    return dict(DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> Mapping:
    """From float modules to those that train with rounded weights."""
    return copy.deepcopy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> Mapping:
    """The same with embeddings."""
    mapping = get_default_qat_module_mappings()
    mapping[nn.EmbeddingBag] = qat.EmbeddingBag
    mapping[nn.Embedding] = qat.Embedding
    return mapping


def get_static_quant_module_class(
    float_module_class: Callable,
    additional_static_quant_mapping: Mapping | None = None,
    is_reference: bool = False,
) -> object:
    """What replaces a float module."""
    table = (
        DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
        if is_reference
        else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    )
    found = get_combined_dict(table, additional_static_quant_mapping or {}).get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding "
            "quantized module class"
        )
    return copy.deepcopy(found)


def get_dynamic_quant_module_class(
    float_module_class: Callable, additional_dynamic_quant_mapping: Mapping | None = None
) -> object:
    """What replaces a float module under dynamic quantization."""
    table = get_combined_dict(
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping or {}
    )
    found = table.get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding "
            "quantized module class"
        )
    return copy.deepcopy(found)


def get_default_qconfig_propagation_list() -> set[Callable]:
    """Modules that a configuration is meant for."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        *_INCLUDE_QCONFIG_PROPAGATE_LIST,
    }


def get_default_compare_output_module_list() -> set[Callable]:
    """Modules whose outputs the numeric suite compares."""
    static = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    trained, found = DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
    parts = (static.values(), trained.values(), found.values(), static, trained, found)
    return {module for part in parts for module in part} | _INCLUDE_QCONFIG_PROPAGATE_LIST


def get_default_float_to_quantized_operator_mappings() -> dict[Callable, Callable]:
    """From float functions to operators on levels."""
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Callable) -> Callable:
    """The operator on levels for a float function."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: nn.Module) -> Callable | None:
    """The observer of a module whose range is known."""
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: nn.Module) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
