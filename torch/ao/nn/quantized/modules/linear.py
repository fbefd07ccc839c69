"""Linear layers on 8-bit integers. The packed weight is a module of its own, so that state
dictionaries name it as PyTorch's do."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import (
    OnGrid,
    Stateful,
    WeightedQuantizedModule,
    _hide_packed_params_repr,
    inner_layer,
    observed_weight,
    output_grid,
)
from torch.nn.utils.fusion import fuse_linear_bn_weights
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["Linear", "LinearPackedParams"]

_HALF = torch.float16


class LinearPackedParams(Stateful):
    """A packed weight and its bias."""

    _version = 3

    def __init__(self, dtype: torch.dtype = torch.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        if dtype is torch.qint8:
            weight = torch._empty_affine_quantized([1, 1], scale=1, zero_point=0, dtype=torch.qint8)
        else:
            weight = torch.zeros(1, 1)
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Packs another weight."""
        if self.dtype is _HALF:
            self._packed_params = torch.ops.quantized.linear_prepack_fp16(weight.float(), bias)
        elif self.dtype is torch.qint8:
            self._packed_params = torch.ops.quantized.linear_prepack(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return torch.ops.quantized.linear_unpack(self._packed_params)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def entries(self) -> dict[str, object]:
        return {"dtype": self.dtype, "_packed_params": self._weight_bias()}

    def take(self, name: str, value: object) -> None:
        if name == "dtype":
            self.dtype = value
        else:
            self.set_weight_bias(*value)

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *rest: object
    ) -> None:
        # The second version of the state had weight and bias as entries of their own.
        if prefix + "weight" in state_dict and prefix + "_packed_params" not in state_dict:
            weight, bias = (state_dict.pop(prefix + n, None) for n in ("weight", "bias"))
            state_dict[prefix + "_packed_params"] = (weight, bias)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(OnGrid, WeightedQuantizedModule):
    """nn.Linear from quantized inputs to quantized outputs."""

    _version = 3
    _FLOAT_MODULE: type[nn.Module] | tuple[type[nn.Module], ...] = (
        nn.Linear,
        nn.modules.linear.NonDynamicallyQuantizableLinear,
    )

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        self._packed_params = LinearPackedParams(dtype)
        bias = torch.zeros(out_features) if bias_ else None
        if dtype is torch.qint8:
            weight = torch._empty_affine_quantized(
                [out_features, in_features], scale=1, zero_point=0, dtype=torch.qint8
            ).fill_(0.0)
        elif dtype is _HALF:
            weight = torch.zeros(out_features, in_features)
        else:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self.set_weight_bias(weight, bias)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Packs another weight."""
        self._packed_params.set_weight_bias(w, b)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The float bias."""
        return self._weight_bias()[1]

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, LinearPackedParams)

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    @classmethod
    def _check_source(cls, mod: nn.Module) -> None:
        kinds = cls._FLOAT_MODULE
        kinds = kinds if isinstance(kinds, Iterable) else (kinds,)
        if not any(type_before_parametrizations(mod) is kind for kind in kinds):
            names = ", ".join(kind.__name__ for kind in kinds)
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for [{names}], but got: {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")

    @classmethod
    def _empty(cls, mod: nn.Module) -> nn.Module:
        """A layer with the sizes of another one, to be filled."""
        layer = inner_layer(mod)
        return cls(layer.in_features, layer.out_features)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of an observed or fake-quantized layer."""
        layer = inner_layer(mod)
        if not hasattr(layer, "weight_fake_quant"):
            cls._check_source(mod)
        elif hasattr(layer, "bn"):
            bn = layer.bn
            layer.weight, layer.bias = fuse_linear_bn_weights(
                layer.weight,
                layer.bias,
                bn.running_mean,
                bn.running_var,
                bn.eps,
                bn.weight,
                bn.bias,
            )
        made = cls._empty(mod)
        bias = None if layer.bias is None else layer.bias.detach().float()
        weight = observed_weight(mod, layer, precomputed=use_precomputed_fake_quant)
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = output_grid(mod)
        return made

    @classmethod
    def from_reference(
        cls, ref_qlinear: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a reference layer says."""
        made = cls._empty(ref_qlinear)
        layer = inner_layer(ref_qlinear)
        made.set_weight_bias(layer.get_quantized_weight(), layer.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made
