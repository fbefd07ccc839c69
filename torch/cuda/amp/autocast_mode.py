"""torch.autocast with the device filled in."""

import functools

import torch

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(torch.amp.autocast):
    """torch.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=torch.float16, cache_enabled=True) -> None:
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd(..., device_type="cuda")."""
    return functools.partial(torch.amp.custom_fwd, device_type="cuda")(
        fwd=fwd, cast_inputs=cast_inputs
    )


def custom_bwd(bwd):
    """torch.amp.custom_bwd(..., device_type="cuda")."""
    return torch.amp.custom_bwd(bwd, device_type="cuda")
