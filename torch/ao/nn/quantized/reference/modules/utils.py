"""The grid of a weight, kept beside the weight.

A module may have several such weights: each has its scale, zero point and axis as buffers, and its
scheme and dtype as attributes, all under the weight's name."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["ReferenceQuantizedModule"]

_CHANNELS = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)
_PLAIN = {
    torch.qint8: torch.int8,
    torch.quint8: torch.uint8,
    torch.qint32: torch.int32,
    torch.quint4x2: torch.uint8,
}
_DEFAULT = {
    "qscheme": torch.per_tensor_affine,
    "dtype": torch.quint8,
    "scale": 1.0,
    "zero_point": 0,
}
# What the state dictionary holds besides the buffers.
_EXTRA = ("qscheme", "dtype")


def _as_buffer(value: object, dtype: torch.dtype, device: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().clone().to(device=device)
    return torch.tensor(value, dtype=dtype, device=device)


def note_grid(
    module: nn.Module, name: str, qparams: dict[str, object] | None, device: object = None
) -> None:
    """Keeps the grid of one weight in a module."""
    given = {**_DEFAULT, **(qparams or {})}
    scheme = given["qscheme"]
    if scheme is torch.per_tensor_symmetric:
        scheme = torch.per_tensor_affine
    elif scheme is torch.per_channel_symmetric:
        scheme = torch.per_channel_affine
    setattr(module, f"{name}_qscheme", scheme)
    setattr(module, f"{name}_dtype", given["dtype"])
    setattr(module, f"{name}_quant_min", given.get("quant_min"))
    setattr(module, f"{name}_quant_max", given.get("quant_max"))
    real = scheme is torch.per_channel_affine_float_qparams
    scale = _as_buffer(given["scale"], torch.float, device)
    zero = _as_buffer(given["zero_point"], torch.float if real else torch.int, device)
    axis = given.get("axis", 0) if scheme in _CHANNELS else 0
    module.register_buffer(f"{name}_scale", scale)
    module.register_buffer(f"{name}_zero_point", zero)
    module.register_buffer(f"{name}_axis", _as_buffer(axis, torch.int, device))
    module.is_decomposed = bool(given.get("is_decomposed", False))
    module.__dict__[f"{name}_axis_int"] = int(axis)


def _grid(module: nn.Module, name: str) -> tuple[Tensor, Tensor, int]:
    axis = module.__dict__.get(f"{name}_axis_int")
    if axis is None:
        axis = int(getattr(module, f"{name}_axis"))
    return getattr(module, f"{name}_scale"), getattr(module, f"{name}_zero_point"), axis


def _levels(module: nn.Module, name: str, weight: Tensor) -> Tensor:
    """The weight as levels in plain integers, by the decomposed operators."""
    scale, zero, axis = _grid(module, name)
    dtype = getattr(module, f"{name}_dtype")
    low, high = getattr(module, f"{name}_quant_min"), getattr(module, f"{name}_quant_max")
    ops = torch.ops.quantized_decomposed
    plain = _PLAIN.get(dtype, dtype)
    if getattr(module, f"{name}_qscheme") in _CHANNELS:
        return ops.quantize_per_channel(weight, scale, zero, axis, low, high, plain)
    return ops.quantize_per_tensor(weight, scale.float(), zero.long(), low, high, plain)


def quantized_weight(module: nn.Module, name: str) -> Tensor:
    """The weight as a quantized tensor, or as levels where the module is decomposed."""
    weight = getattr(module, name).detach()
    dtype = getattr(module, f"{name}_dtype")
    scheme = getattr(module, f"{name}_qscheme")
    if dtype is torch.float16:
        return weight.to(torch.float16)
    if scheme is None or dtype is torch.float:
        return weight
    if module.is_decomposed:
        return _levels(module, name, weight)
    scale, zero, axis = _grid(module, name)
    if scheme in _CHANNELS:
        real = scheme is torch.per_channel_affine_float_qparams
        return torch.quantize_per_channel(weight, scale, zero if real else zero.long(), axis, dtype)
    return torch.quantize_per_tensor(weight, float(scale), int(zero), dtype)


def rounded_weight(module: nn.Module, name: str) -> Tensor:
    """The weight rounded to its grid, in float."""
    weight = getattr(module, name)
    dtype = getattr(module, f"{name}_dtype")
    scheme = getattr(module, f"{name}_qscheme")
    if dtype is torch.float16:
        return weight.to(torch.float16).to(weight.dtype)
    if scheme is None or dtype is torch.float:
        return weight
    if not module.is_decomposed:
        return quantized_weight(module, name).dequantize()
    scale, zero, axis = _grid(module, name)
    plain = _PLAIN.get(dtype, dtype)
    low, high = getattr(module, f"{name}_quant_min"), getattr(module, f"{name}_quant_max")
    ops = torch.ops.quantized_decomposed
    levels = _levels(module, name, weight)
    if scheme in _CHANNELS:
        return ops.dequantize_per_channel(levels, scale, zero, axis, low, high, plain)
    return ops.dequantize_per_tensor(levels, scale.float(), zero.long(), low, high, plain)


class ReferenceQuantizedModule(nn.Module):
    """A module with one weight, `weight`, on a grid."""

    def _init_weight_qparams(
        self, weight_qparams: dict[str, object] | None, device: object
    ) -> None:
        note_grid(self, "weight", weight_qparams, device)

    def get_weight(self) -> Tensor:
        """The weight rounded to its grid, in float."""
        return rounded_weight(self, "weight")

    def get_quantized_weight(self) -> Tensor:
        """The weight as a quantized tensor."""
        return quantized_weight(self, "weight")

    def _save_to_state_dict(
        self, destination: dict[str, object], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in _EXTRA:
            destination[f"{prefix}weight_{name}"] = getattr(self, f"weight_{name}")

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *rest: object
    ) -> None:
        for name in _EXTRA:
            key = f"{prefix}weight_{name}"
            if key in state_dict:
                setattr(self, f"weight_{name}", state_dict.pop(key))
        for name in ("weight_scale", "weight_zero_point", "weight_axis"):
            value = state_dict.get(prefix + name)
            if value is not None and value.shape != getattr(self, name).shape:
                self.register_buffer(name, torch.empty_like(value))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.__dict__["weight_axis_int"] = int(self.weight_axis)
