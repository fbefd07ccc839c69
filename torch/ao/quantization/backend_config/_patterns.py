"""The patterns that our kernels run, written once: a backend is these with dtypes of its own."""

from __future__ import annotations

import operator

import torch
from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.ao.nn import qat
from torch.ao.nn.intrinsic import qat as fused_qat
from torch.ao.nn.quantized import reference
from torch.ao.quantization.backend_config.backend_config import (
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)
from torch.ao.quantization.fuser_method_mappings import (
    _sequential_wrapper2,
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
)
from torch.nn import functional

Configs = list[BackendPatternConfig]
Dtypes = list[DTypeConfig]
_SHARE = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
_OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
_WEIGHTED = {"weight": 1, "bias": 2}


def _config(
    pattern: object, dtypes: Dtypes, observed: ObservationType = _OWN, **fields: object
) -> BackendPatternConfig:
    made = BackendPatternConfig(pattern).set_observation_type(observed).set_dtype_configs(dtypes)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _conv_relu(dims: int, dtypes: Dtypes) -> Configs:
    conv, function = getattr(nn, f"Conv{dims}d"), getattr(functional, f"conv{dims}d")
    both, both_qat = getattr(fused, f"ConvReLU{dims}d"), getattr(fused_qat, f"ConvReLU{dims}d")
    target = getattr(reference, f"Conv{dims}d")
    root = {"root_module": conv, "reference_quantized_module": target}
    together = {"fused_module": both, "fuser_method": _sequential_wrapper2(both)}
    trained = getattr(qat, f"Conv{dims}d")
    return [
        _config(conv, dtypes, qat_module=trained, **root),
        _config(trained, dtypes, **root),
        _config(function, dtypes, _input_type_to_index=_WEIGHTED),
        _config((conv, nn.ReLU), dtypes, **together),
        _config((conv, functional.relu), dtypes, **together),
        _config(both, dtypes, qat_module=both_qat),
        _config(both_qat, dtypes, **root),
        _config((function, nn.ReLU), dtypes, _input_type_to_index=_WEIGHTED),
        _config((function, functional.relu), dtypes, _input_type_to_index=_WEIGHTED),
    ]


def _conv_bn(dims: int, dtypes: Dtypes) -> Configs:
    conv, bn = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    root = {"root_module": conv, "reference_quantized_module": getattr(reference, f"Conv{dims}d")}
    two, three = getattr(fused, f"ConvBn{dims}d"), getattr(fused, f"ConvBnReLU{dims}d")
    two_qat = getattr(fused_qat, f"ConvBn{dims}d")
    three_qat = getattr(fused_qat, f"ConvBnReLU{dims}d")
    threefold = {"fused_module": three, "fuser_method": fuse_conv_bn_relu}
    return [
        _config((conv, bn), dtypes, fused_module=two, fuser_method=fuse_conv_bn),
        _config((conv, bn, nn.ReLU), dtypes, **threefold),
        _config((conv, bn, functional.relu), dtypes, root_module=conv, **threefold),
        _config(two, dtypes, qat_module=two_qat),
        _config(three, dtypes, qat_module=three_qat),
        _config(two_qat, dtypes, **root),
        _config(three_qat, dtypes, **root),
    ]


def _conv_transpose(dims: int, dtypes: Dtypes) -> Configs:
    conv, bn = getattr(nn, f"ConvTranspose{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    target = getattr(reference, f"ConvTranspose{dims}d")
    root = {"root_module": conv, "reference_quantized_module": target}
    function = getattr(functional, f"conv_transpose{dims}d")
    return [
        _config(conv, dtypes, **root),
        _config((conv, bn), dtypes, fuser_method=fuse_convtranspose_bn, **root),
        _config(function, dtypes, _input_type_to_index=_WEIGHTED),
    ]


def conv_configs(dtypes: Dtypes) -> Configs:
    """Convolutions, with normalisation and activation."""
    made: Configs = []
    for dims in (1, 2, 3):
        made += _conv_relu(dims, dtypes) + _conv_bn(dims, dtypes) + _conv_transpose(dims, dtypes)
    return made


def linear_configs(dtypes: Dtypes) -> Configs:
    """Linear layers, with normalisation and activation."""
    root = {"root_module": nn.Linear, "reference_quantized_module": reference.Linear}
    together = {
        "fused_module": fused.LinearReLU,
        "fuser_method": _sequential_wrapper2(fused.LinearReLU),
    }
    function = functional.linear
    return [
        _config(nn.Linear, dtypes, qat_module=qat.Linear, **root),
        _config(qat.Linear, dtypes, **root),
        _config(function, dtypes, _input_type_to_index=_WEIGHTED),
        _config((nn.Linear, nn.ReLU), dtypes, **together),
        _config((nn.Linear, functional.relu), dtypes, **together),
        _config(fused.LinearReLU, dtypes, qat_module=fused_qat.LinearReLU, **root),
        _config(fused_qat.LinearReLU, dtypes, **root),
        _config((function, nn.ReLU), dtypes, _input_type_to_index=_WEIGHTED),
        _config((function, functional.relu), dtypes, _input_type_to_index=_WEIGHTED),
        _config(
            (nn.Linear, nn.BatchNorm1d),
            dtypes,
            fused_module=fused.LinearBn1d,
            fuser_method=fuse_linear_bn,
        ),
        _config(fused.LinearBn1d, dtypes, qat_module=fused_qat.LinearBn1d, **root),
        _config(fused_qat.LinearBn1d, dtypes, **root),
    ]


def binary_configs(dtypes: Dtypes) -> Configs:
    """Sums and products of two tensors; with one tensor alone the grid is that of the input."""
    made: Configs = []
    counts = {0: _OWN, 1: _SHARE, 2: _OWN}
    for function in (operator.add, torch.add, operator.mul, torch.mul):
        patterns = [(function, relu) for relu in (nn.ReLU, functional.relu, torch.relu)]
        for pattern in (*patterns, function):
            made.append(_config(pattern, dtypes, _num_tensor_args_to_observation_type=counts))
    made.append(_config(torch.matmul, dtypes))
    return made


def cat_config(dtypes: Dtypes) -> BackendPatternConfig:
    """Concatenation."""
    return _config(torch.cat, dtypes, _SHARE)


def default_op_configs(dtypes: Dtypes) -> Configs:
    """Functions with one input and a grid of their own."""
    modules = (nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d)
    more = (nn.InstanceNorm3d, nn.Dropout, nn.PReLU)
    functions = (functional.elu, functional.hardswish, functional.leaky_relu, functional.dropout)
    made = [_config(pattern, dtypes) for pattern in (*modules, *more, *functions)]
    made.append(
        _config(functional.group_norm, dtypes, _input_type_to_index={"weight": 2, "bias": 3})
    )
    made.append(
        _config(functional.instance_norm, dtypes, _input_type_to_index={"weight": 3, "bias": 4})
    )
    return made


def _on_fixed(dtype: DTypeConfig, constraints: DTypeWithConstraints) -> DTypeConfig:
    def fixed(given: DTypeWithConstraints) -> DTypeWithConstraints | torch.dtype | None:
        return constraints if given.dtype is constraints.dtype else given

    return DTypeConfig(
        fixed(dtype.input_dtype_with_constraints),
        fixed(dtype.output_dtype_with_constraints),
        dtype.weight_dtype_with_constraints,
        dtype.bias_dtype,
        dtype.is_dynamic,
    )


FIXED_0_TO_1 = DTypeWithConstraints(
    dtype=torch.quint8,
    quant_min_lower_bound=0,
    quant_max_upper_bound=255,
    scale_exact_match=1 / 256,
    zero_point_exact_match=0,
)
FIXED_NEG1_TO_1 = DTypeWithConstraints(
    dtype=torch.quint8,
    quant_min_lower_bound=0,
    quant_max_upper_bound=255,
    scale_exact_match=2 / 256,
    zero_point_exact_match=128,
)
_UNIT_OPS = (
    nn.Hardsigmoid,
    functional.hardsigmoid,
    "hardsigmoid",
    "hardsigmoid_",
    nn.Sigmoid,
    torch.sigmoid,
    "sigmoid",
    "sigmoid_",
    nn.Softmax,
)
_TANH_OPS = (nn.Tanh, torch.tanh, "tanh", "tanh_")


def fixed_configs(dtypes: Dtypes) -> Configs:
    """Functions whose results have a known range, and so a known grid."""
    unit = [_on_fixed(dtype, FIXED_0_TO_1) for dtype in dtypes]
    signed = [_on_fixed(dtype, FIXED_NEG1_TO_1) for dtype in dtypes]
    made = [_config(pattern, unit) for pattern in _UNIT_OPS]
    return made + [_config(pattern, signed) for pattern in _TANH_OPS]


_SHARED_MODULES = (
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Hardtanh "
    "Identity MaxPool1d MaxPool2d MaxPool3d PixelShuffle PixelUnshuffle ReLU ReLU6"
)
_SHARED_FUNCTIONS = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d hardtanh hardtanh_ interpolate "
    "max_pool1d max_pool2d max_pool3d pixel_shuffle pixel_unshuffle relu relu6 avg_pool1d "
    "avg_pool2d avg_pool3d"
)
_SHARED_TORCH = "clamp flatten mean narrow repeat_interleave transpose squeeze stack unsqueeze"
_SHARED_METHODS = (
    "contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu "
    "relu_ squeeze squeeze_ transpose unsqueeze unsqueeze_ view"
)


def share_configs(dtypes: Dtypes) -> Configs:
    """Operators that move or choose values: their results lie on the grid of the input."""
    patterns: list[object] = [getattr(nn, name) for name in _SHARED_MODULES.split()]
    patterns += [getattr(functional, name) for name in _SHARED_FUNCTIONS.split()]
    patterns += [getattr(torch, name) for name in _SHARED_TORCH.split()]
    patterns += [operator.floordiv, *_SHARED_METHODS.split()]
    return [_config(pattern, dtypes, _SHARE) for pattern in patterns]


def size_configs(dtypes: Dtypes) -> Configs:
    """Questions about the shape, which need no grid at all."""
    unobserved = ObservationType.INPUT_OUTPUT_NOT_OBSERVED
    return [_config(pattern, dtypes, unobserved) for pattern in ("shape", "size")]


def bn_configs(dtypes: Dtypes) -> Configs:
    """Batch normalisation, with an activation."""
    made: Configs = []
    pairs = ((nn.BatchNorm2d, fused.BNReLU2d), (nn.BatchNorm3d, fused.BNReLU3d))
    for bn, both in pairs:
        together = {"fused_module": both, "fuser_method": _sequential_wrapper2(both)}
        made.append(_config((bn, nn.ReLU), dtypes, **together))
        made.append(_config((bn, functional.relu), dtypes, **together))
        made.append(_config(bn, dtypes))
    return made + [_config(both, dtypes) for _, both in pairs]


def ln_configs(dtypes: Dtypes) -> Configs:
    """Layer normalisation."""
    places = {"weight": 2, "bias": 3}
    return [
        _config(nn.LayerNorm, dtypes),
        _config(functional.layer_norm, dtypes, _input_type_to_index=places),
    ]


def rnn_configs(dtypes: Dtypes) -> Configs:
    """Recurrent layers and cells."""
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    made = []
    for name in names:
        source, target = getattr(nn, name), getattr(reference, name)
        made.append(_config(source, dtypes, root_module=source, reference_quantized_module=target))
    return made


def embedding_configs(dtypes: Dtypes) -> Configs:
    """Tables of embeddings."""
    made = []
    for name in ("Embedding", "EmbeddingBag"):
        source, trained = getattr(nn, name), getattr(qat, name)
        root = {
            "root_module": source,
            "reference_quantized_module": getattr(reference, name),
        }
        made.append(_config(source, dtypes, qat_module=trained, **root))
        made.append(_config(trained, dtypes, **root))
    return made
