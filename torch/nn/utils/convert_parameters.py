"""Parameters as one vector, and back."""

from __future__ import annotations

import itertools
from typing import Any as _Any

import torch

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _one_device(params) -> None:
    """Refuses parameters that live on different devices."""
    devices = {str(param.device) for param in params}
    if len(devices) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )


def parameters_to_vector(parameters) -> _Any:
    """All parameters, flattened, one after another."""
    params = list(parameters)
    _one_device(params)
    return torch.cat([param.reshape(-1) for param in params])


def vector_to_parameters(vec, parameters) -> _Any:
    """Gives each parameter its slice of the vector, in place of its data."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    params = list(parameters)
    _one_device(params)
    ends = itertools.accumulate(param.numel() for param in params)
    for param, end in zip(params, ends, strict=True):
        param.data = vec[end - param.numel() : end].view_as(param).data
