"""The backend for programs that run on devices: activations and weights with sign as well."""

from __future__ import annotations

from torch.ao.quantization.backend_config.backend_config import BackendConfig
from torch.ao.quantization.backend_config.qnnpack import get_qnnpack_backend_config

__all__ = ["get_executorch_backend_config"]


def get_executorch_backend_config() -> BackendConfig:
    """What such programs run."""
    return get_qnnpack_backend_config().set_name("executorch")
