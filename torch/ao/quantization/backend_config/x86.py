"""The backend of PyTorch's engine of this name: 8-bit activations without sign."""

from __future__ import annotations

from torch.ao.quantization.backend_config.backend_config import BackendConfig
from torch.ao.quantization.backend_config.native import (
    assembled,
    default_op_quint8_dtype_config,
    input_output_only_quint8_dtype_config,
    weighted_op_quint8_dtype_config,
)

__all__ = ["get_x86_backend_config"]


def get_x86_backend_config() -> BackendConfig:
    """What the engine runs."""
    return assembled(
        "x86",
        [weighted_op_quint8_dtype_config],
        [default_op_quint8_dtype_config],
        [input_output_only_quint8_dtype_config],
    )
