"""The backend of PyTorch's engine of this name, which fuses more into convolutions and linear
layers: a sum behind a convolution, a leaky activation or tanh behind a linear layer."""

from __future__ import annotations

import operator

import torch
from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.ao.nn.quantized import reference
from torch.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    ObservationType,
)
from torch.ao.quantization.backend_config.native import (
    DYNAMIC,
    assembled,
    default_op_quint8_dtype_config,
    input_output_only_quint8_dtype_config,
    weighted_op_quint8_dtype_config,
)
from torch.ao.quantization.fuser_method_mappings import _sequential_wrapper2
from torch.ao.quantization.utils import MatchAllNode
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["get_onednn_backend_config"]

_DTYPES = [weighted_op_quint8_dtype_config]
_OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT


def _linear_then(activation: object, made: type[nn.Module]) -> list[BackendPatternConfig]:
    return [
        BackendPatternConfig((nn.Linear, activation))
        .set_dtype_configs([*_DTYPES, *DYNAMIC])
        .set_fuser_method(_sequential_wrapper2(made))
        .set_fused_module(made),
        BackendPatternConfig(made)
        .set_dtype_configs([*_DTYPES, *DYNAMIC])
        .set_root_module(nn.Linear)
        .set_reference_quantized_module(reference.Linear),
    ]


def _fuse_linear_bn_leaky_relu(
    is_qat: bool, linear: nn.Module, bn: nn.Module, leaky_relu: nn.Module
) -> nn.Module:
    if linear.training != bn.training or linear.training != leaky_relu.training:
        raise AssertionError("Linear, BN and LeakyReLU all must be in the same mode.")
    if is_qat:
        raise NotImplementedError(f"Cannot fuse train modules: {(linear, bn, leaky_relu)}")
    return fused.LinearLeakyReLU(fuse_linear_bn_eval(linear, bn), leaky_relu)


# A sum has two sides: the convolution stands on the left or on the right of it.
def _root(pattern: tuple, left: bool, bn: bool, relu: bool) -> object:
    if relu:
        _, pattern = pattern
    _, first, second = pattern
    side = first if left else second
    return side[1] if bn else side


def _extra(pattern: tuple, left: bool, relu: bool) -> list[object]:
    if relu:
        _, pattern = pattern
    _, first, second = pattern
    return [second if left else first]


def _fuse_add(left: bool, bn: bool, relu: bool) -> object:
    def fuse(is_qat: bool, *parts: object) -> nn.Module:
        last = parts[0] if relu else None
        add, first, second = parts[1] if relu else parts
        layer = first if left else second
        if bn:
            norm, conv = layer
            layer = fuse_conv_bn_eval(conv, norm)
        return fused.ConvAddReLU2d(layer, add, last) if relu else fused.ConvAdd2d(layer, add)

    return fuse


def _conv_add(add: object, left: bool, bn: bool, relu: bool) -> BackendPatternConfig:
    layer: object = (nn.BatchNorm2d, nn.Conv2d) if bn else nn.Conv2d
    pattern: tuple = (add, layer, MatchAllNode) if left else (add, MatchAllNode, layer)
    if relu:
        pattern = (nn.ReLU, pattern)
    made = fused.ConvAddReLU2d if relu else fused.ConvAdd2d
    return (
        BackendPatternConfig()
        ._set_pattern_complex_format(pattern)
        .set_dtype_configs(_DTYPES)
        .set_observation_type(_OWN)
        .set_fuser_method(_fuse_add(left, bn, relu))
        ._set_root_node_getter(lambda p: _root(p, left, bn, relu))
        ._set_extra_inputs_getter(lambda p: _extra(p, left, relu))
        .set_fused_module(made)
    )


def get_onednn_backend_config() -> BackendConfig:
    """What the engine runs."""
    made = assembled(
        "onednn",
        _DTYPES,
        [default_op_quint8_dtype_config],
        [input_output_only_quint8_dtype_config],
    )
    for add in (torch.add, operator.add):
        for left in (True, False):
            for bn in (False, True):
                for relu in (False, True):
                    made.set_backend_pattern_config(_conv_add(add, left, bn, relu))
    for kind in (fused.ConvAdd2d, fused.ConvAddReLU2d):
        made.set_backend_pattern_config(
            BackendPatternConfig(kind)
            .set_dtype_configs(_DTYPES)
            .set_root_module(nn.Conv2d)
            .set_reference_quantized_module(reference.Conv2d)
        )
    made.set_backend_pattern_configs(_linear_then(nn.LeakyReLU, fused.LinearLeakyReLU))
    made.set_backend_pattern_configs(_linear_then(nn.Tanh, fused.LinearTanh))
    made.set_backend_pattern_config(
        BackendPatternConfig((nn.Linear, nn.BatchNorm1d, nn.LeakyReLU))
        .set_dtype_configs([*_DTYPES, *DYNAMIC])
        .set_fuser_method(_fuse_linear_bn_leaky_relu)
        .set_fused_module(fused.LinearLeakyReLU)
    )
    for function in (functional.leaky_relu, torch.tanh):
        made.set_backend_pattern_config(
            BackendPatternConfig((functional.linear, function)).set_dtype_configs(_DTYPES)
        )
    return made
