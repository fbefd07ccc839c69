"""`torch.cpu.amp.autocast`, the old name of `torch.amp.autocast("cpu", ...)`."""

import warnings

import torch

__all__ = ["autocast"]


class autocast(torch.amp.autocast_mode.autocast):
    """torch.amp.autocast for the CPU."""

    def __init__(self, enabled=True, dtype=torch.bfloat16, cache_enabled=True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
