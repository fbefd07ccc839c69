"""The backend of TensorRT, which takes activations and weights with sign and fuses by itself."""

from __future__ import annotations

import torch
from torch.ao.quantization.backend_config import _patterns as patterns
from torch.ao.quantization.backend_config.backend_config import BackendConfig, DTypeConfig

__all__ = ["get_tensorrt_backend_config", "get_tensorrt_backend_config_dict"]


def get_tensorrt_backend_config() -> BackendConfig:
    """What the engine runs."""
    weighted = [DTypeConfig(torch.qint8, torch.qint8, torch.qint8, torch.float)]
    plain = [DTypeConfig(torch.qint8, torch.qint8)]
    made = BackendConfig("tensorrt")
    made.set_backend_pattern_configs(patterns.conv_configs(weighted))
    made.set_backend_pattern_configs(patterns.linear_configs(weighted))
    made.set_backend_pattern_configs(patterns.binary_configs(plain))
    made.set_backend_pattern_config(patterns.cat_config(plain))
    made.set_backend_pattern_configs(patterns.share_configs(plain))
    return made


def get_tensorrt_backend_config_dict() -> dict[str, object]:
    """The same as a dictionary."""
    return get_tensorrt_backend_config().to_dict()
