"""The backend of PyTorch's engine of this name: activations with sign or without."""

from __future__ import annotations

import torch
from torch.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    DTypeConfig,
    DTypeWithConstraints,
)
from torch.ao.quantization.backend_config.native import (
    assembled,
    default_op_quint8_dtype_config,
    weighted_op_quint8_dtype_config,
)

__all__ = ["get_qnnpack_backend_config"]

_SIGNED = DTypeWithConstraints(dtype=torch.qint8, scale_min_lower_bound=2**-12)
_EVEN = DTypeWithConstraints(
    dtype=torch.qint8,
    quant_min_lower_bound=-127,
    quant_max_upper_bound=127,
    scale_min_lower_bound=2**-12,
)


def get_qnnpack_backend_config() -> BackendConfig:
    """What the engine runs."""
    return assembled(
        "qnnpack",
        [DTypeConfig(_SIGNED, _SIGNED, _EVEN, torch.float), weighted_op_quint8_dtype_config],
        [DTypeConfig(_SIGNED, _SIGNED), default_op_quint8_dtype_config],
        [],
    )
