"""The backend that runs without knowledge of an engine: what the kernels take on any machine."""

from __future__ import annotations

import torch
from torch.ao.quantization.backend_config import _patterns as patterns
from torch.ao.quantization.backend_config.backend_config import BackendConfig, DTypeConfig

__all__ = [
    "default_dynamic_float16_dtype_config",
    "default_dynamic_int8_dtype_config",
    "default_op_fp16_dtype_config",
    "default_op_quint8_dtype_config",
    "get_native_backend_config",
    "get_native_backend_config_dict",
    "get_test_only_legacy_native_backend_config",
    "get_test_only_legacy_native_backend_config_dict",
    "input_output_only_quint8_dtype_config",
    "weight_only_quint4x2_dtype_config",
    "weight_only_quint8_dtype_config",
    "weighted_op_quint8_dtype_config",
]

weighted_op_quint8_dtype_config = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
default_op_quint8_dtype_config = DTypeConfig(torch.quint8, torch.quint8)
default_op_fp16_dtype_config = DTypeConfig(
    torch.float16, torch.float16, torch.float16, torch.float16
)
default_dynamic_int8_dtype_config = DTypeConfig(
    torch.quint8, torch.float, torch.qint8, torch.float, True
)
default_dynamic_float16_dtype_config = DTypeConfig(
    torch.float16, torch.float, torch.float16, torch.float, True
)
input_output_only_quint8_dtype_config = DTypeConfig(
    torch.quint8, torch.quint8, torch.float, torch.float
)
weight_only_quint8_dtype_config = DTypeConfig(torch.float, torch.float, torch.quint8)
weight_only_quint4x2_dtype_config = DTypeConfig(torch.float, torch.float, torch.quint4x2)

DYNAMIC = [default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config]
TABLES = [weight_only_quint8_dtype_config, weight_only_quint4x2_dtype_config]


def assembled(
    name: str, weighted: list[DTypeConfig], plain: list[DTypeConfig], norm: list[DTypeConfig]
) -> BackendConfig:
    """A backend of all patterns: dtypes of operators with weights, of others, of layer_norm."""
    made = BackendConfig(name)
    made.set_backend_pattern_configs(patterns.conv_configs(weighted))
    made.set_backend_pattern_configs(patterns.linear_configs([*weighted, *DYNAMIC]))
    made.set_backend_pattern_configs(patterns.binary_configs(plain))
    made.set_backend_pattern_config(patterns.cat_config(plain))
    made.set_backend_pattern_configs(patterns.default_op_configs(plain))
    made.set_backend_pattern_configs(patterns.fixed_configs(plain))
    made.set_backend_pattern_configs(patterns.share_configs(plain))
    made.set_backend_pattern_configs(patterns.size_configs(plain))
    made.set_backend_pattern_configs(patterns.bn_configs(plain))
    if norm:
        made.set_backend_pattern_configs(patterns.ln_configs(norm))
    made.set_backend_pattern_configs(patterns.rnn_configs(DYNAMIC))
    made.set_backend_pattern_configs(patterns.embedding_configs(TABLES))
    return made


def get_native_backend_config() -> BackendConfig:
    """The backend for 8-bit activations, dynamic layers and quantized tables."""
    return assembled(
        "native",
        [weighted_op_quint8_dtype_config],
        [default_op_quint8_dtype_config],
        [input_output_only_quint8_dtype_config],
    )


def get_native_backend_config_dict() -> dict[str, object]:
    """The same as a dictionary."""
    return get_native_backend_config().to_dict()


def get_test_only_legacy_native_backend_config() -> BackendConfig:
    """The same with operators in float16 as well."""
    half = default_op_fp16_dtype_config
    return assembled(
        "_native_and_fp16",
        [weighted_op_quint8_dtype_config, half],
        [default_op_quint8_dtype_config, half],
        [input_output_only_quint8_dtype_config, half],
    )


def get_test_only_legacy_native_backend_config_dict() -> dict[str, object]:
    """The same as a dictionary."""
    return get_test_only_legacy_native_backend_config().to_dict()
