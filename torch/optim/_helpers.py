"""Helpers that optimizers written elsewhere import from torch.optim.optimizer: which form of an
update to take, how step counts are kept, and the paragraphs that the settings shared by all
optimizers have in their documentation. Our own optimizers need few of them."""

from __future__ import annotations

import functools

import torch
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)

_foreach_supported_types = [torch.Tensor, torch.nn.parameter.Parameter]

_params_doc = """params (iterable): parameters, named parameters or dictionaries of a group each."""
_foreach_doc = (
    """foreach (bool, optional): whether to update all parameters by operators on lists."""
)
_fused_doc = """fused (bool, optional): whether to use the kernel that does the whole update."""
_maximize_doc = """maximize (bool, optional): whether to ascend instead of descend."""
_capturable_doc = """capturable (bool, optional): whether step counts stay on the device."""
_differentiable_doc = """differentiable (bool, optional): whether autograd sees the update."""


def _use_grad_for_differentiable(func):
    """A step that runs with gradients on exactly when the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x) -> float:
    return x.item() if isinstance(x, torch.Tensor) else x


def _to_scalar(x):
    """A tensor of one element without dimensions; a number as it is."""
    return x.squeeze() if isinstance(x, torch.Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x):
    return x


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counts."""
    if is_fused:
        return torch.float32
    return torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda"]


def _default_to_fused_or_foreach(params, differentiable: bool, use_fused: bool = False):
    """(fused, foreach) where the user has chosen neither."""
    if differentiable:
        return False, False
    devices = {p.device.type for p in params if p is not None}
    plain = all(p is None or type(p) in _foreach_supported_types for p in params)
    fused = (
        use_fused
        and devices <= set(_get_fused_kernels_supported_devices())
        and all(p is None or (plain and torch.is_floating_point(p)) for p in params)
    )
    return fused, not fused and plain and devices <= {"cuda"}


def _device_dtype_check_for_fused(p, cuda_unsupported: bool = False) -> None:
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not torch.is_floating_point(p):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _view_as_real(params, *state_and_grads) -> None:
    """Replaces complex tensors in all lists by views of real ones."""
    for i, p in enumerate(params):
        if torch.is_complex(p):
            params[i] = torch.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = torch.view_as_real(tensors[i])


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """Marks an update for a compiler, of which there is none here."""
    return lambda func: func


__all__ = [
    "_capturable_doc",
    "_default_to_fused_or_foreach",
    "_device_dtype_check_for_fused",
    "_differentiable_doc",
    "_disable_dynamo_if_unsupported",
    "_foreach_doc",
    "_foreach_supported_types",
    "_fused_doc",
    "_get_capturable_supported_devices",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_maximize_doc",
    "_params_doc",
    "_stack_if_compiling",
    "_to_scalar",
    "_use_grad_for_differentiable",
    "_view_as_real",
]
