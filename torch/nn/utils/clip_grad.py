"""Limits on gradients: by their norm taken together, or element by element."""

from __future__ import annotations

import math
import warnings

import torch

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(tensors) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _gradients(parameters) -> list[torch.Tensor]:
    return [param.grad for param in _as_list(parameters) if param.grad is not None]


def _total_norm(tensors, norm_type, error_if_nonfinite):
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    device = tensors[0].device
    if any(tensor.layout is not torch.strided for tensor in tensors):
        norms = [torch.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
    else:
        norms = torch._foreach_norm(tensors, norm_type)
    norms = [norm.to(device) for norm in norms]
    total = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _scale_to_norm(grads, max_norm, total_norm) -> None:
    # Multiplying by one where nothing needs clipping costs less than reading the norm back.
    factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    strided = all(grad.layout is torch.strided for grad in grads)
    if grads and strided and all(grad.device == factor.device for grad in grads):
        torch._foreach_mul_(grads, factor)
        return
    for grad in grads:
        grad.mul_(factor.to(grad.device))


def _fuses(grads, norm_type) -> bool:
    """Whether one CUDA call clips them all: one device, one dtype, a norm it knows."""
    if not grads or norm_type not in (1.0, 2.0, math.inf):
        return False
    device, dtype = grads[0].device, grads[0].dtype
    if device.type != "cuda" or not dtype.is_floating_point:
        return False
    return all(g.device == device and g.dtype == dtype and g.numel() for g in grads)


@torch.no_grad()
def get_total_norm(
    tensors, norm_type=2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> torch.Tensor:
    """The norm of all tensors taken as one vector."""
    return _total_norm(_as_list(tensors), norm_type, error_if_nonfinite)


@torch.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach: bool | None = None) -> None:
    """Scales gradients, whose norm together is total_norm, down to max_norm."""
    _scale_to_norm(_gradients(parameters), max_norm, total_norm)


@torch.no_grad()
def clip_grad_norm_(
    parameters,
    max_norm,
    norm_type=2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Scales gradients so that their norm together is at most max_norm; returns what it was."""
    grads = _gradients(parameters)
    if not grads:
        return torch.tensor(0.0)
    if not error_if_nonfinite and _fuses(grads, float(norm_type)):
        return torch._fused_clip_grad_norm(grads, float(max_norm), float(norm_type))
    total = _total_norm(grads, norm_type, error_if_nonfinite)
    _scale_to_norm(grads, max_norm, total)
    return total


def clip_grad_norm(
    parameters,
    max_norm,
    norm_type=2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
):
    """The old name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@torch.no_grad()
def clip_grad_value_(parameters, clip_value, foreach: bool | None = None) -> None:
    """Limits each element of each gradient to [-clip_value, clip_value]."""
    bound = float(clip_value)
    for grad in _gradients(parameters):
        grad.clamp_(min=-bound, max=bound)


# The names under which the module itself has always held them.
_get_total_norm = get_total_norm
_clip_grads_with_norm_ = clip_grads_with_norm_
