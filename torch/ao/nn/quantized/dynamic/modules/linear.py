"""A linear layer with a quantized weight on float tensors, whose grid is found at each call."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import linear as static
from torch.ao.nn.quantized.modules.utils import (
    _quantize_weight,
    default_weight_watcher,
    inner_layer,
)
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["Linear"]


class Linear(static.Linear):
    """nn.Linear with a weight of 8 bits, or of float16."""

    _version = 4

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
        if self._packed_params.dtype == torch.qint8:
            return torch.ops.quantized.linear_dynamic(x, packed, True)
        return torch.ops.quantized.linear_dynamic_fp16(x, packed)

    @classmethod
    def _kinds(cls) -> tuple[type[nn.Module], ...]:
        from torch.ao.nn.qat import dynamic

        plain = nn.modules.linear.NonDynamicallyQuantizableLinear
        return (nn.Linear, plain, fused.LinearReLU, dynamic.Linear)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The dynamic form of a float layer with a configuration."""
        if type_before_parametrizations(mod) not in cls._kinds():
            names = [kind.__name__ for kind in cls._kinds()]
            raise AssertionError(
                f"nn.quantized.dynamic.Linear.from_float only works for one of {names}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        layer = inner_layer(mod)
        maker = getattr(mod.qconfig, "weight", None) or default_weight_watcher
        watcher = maker()
        if watcher.dtype not in (torch.qint8, torch.float16):
            raise AssertionError(
                "The only supported dtypes for dynamic quantized linear are qint8 and float16 got: "
                f"{watcher.dtype}"
            )
        result = cls._dynamic(layer, watcher.dtype)
        weight = layer.weight.detach().float()
        if watcher.dtype is torch.qint8:
            watcher(weight)
            weight = _quantize_weight(weight, watcher)
        bias = None if layer.bias is None else layer.bias.detach()
        result.set_weight_bias(weight, bias)
        return result

    @classmethod
    def _dynamic(cls, layer: nn.Module, dtype: torch.dtype) -> nn.Module:
        return cls(layer.in_features, layer.out_features, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_qlinear: nn.Module) -> nn.Module:
        """With the weight of a reference layer."""
        layer = inner_layer(ref_qlinear)
        made = cls._dynamic(layer, layer.weight_dtype)
        made.set_weight_bias(layer.get_quantized_weight(), layer.bias)
        return made
