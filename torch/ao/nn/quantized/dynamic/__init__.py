"""Layers with quantized weights on float tensors, whose grids are found at each call."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn import intrinsic
from torch.ao.nn.quantized._weights import default_weight_watcher, quantized_weight
from torch.ao.nn.quantized.linear import _PackedLinear

__all__ = ["Linear", "LinearReLU"]


class Linear(_PackedLinear):
    """nn.Linear with a weight of 8 bits, or of float16."""

    _version = 4
    _FLOAT_MODULE = (nn.Linear,)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = self._version

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._packed_params.dtype}"
        )
        if self._packed_params.dtype is torch.qint8:
            text += f", qscheme={self.weight().qscheme()}"
        return text

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        if self._packed_params.dtype is torch.qint8:
            return torch.ops.quantized.linear_dynamic(x, packed, True)
        return torch.ops.quantized.linear_dynamic_fp16(x, packed)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The dynamic form of a float layer with a configuration."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        qconfig = getattr(mod, "qconfig", None)
        watcher = default_weight_watcher() if qconfig is None else qconfig.weight()
        if watcher.dtype not in (torch.qint8, torch.float16):
            raise AssertionError(
                "The only supported dtypes for dynamic quantized linear are qint8 and float16 got: "
                f"{watcher.dtype}"
            )
        made = cls(layer.in_features, layer.out_features, dtype=watcher.dtype)
        weight = layer.weight.detach().float()
        if watcher.dtype is torch.qint8:
            watcher(weight)
            weight = quantized_weight(weight, watcher)
        bias = None if layer.bias is None else layer.bias.detach()
        made.set_weight_bias(weight, bias)
        return made


class LinearReLU(Linear):
    """Linear and ReLU in one."""

    _FLOAT_MODULE = (intrinsic.LinearReLU,)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        if self._packed_params.dtype is torch.qint8:
            return torch.ops.quantized.linear_relu_dynamic(x, packed, True)
        return torch.ops.quantized.linear_relu_dynamic_fp16(x, packed)
