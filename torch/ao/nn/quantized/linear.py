"""Linear layers on 8-bit integers. The packed weight is a module of its own, so that state
dictionaries name it as PyTorch's do."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn import intrinsic
from torch.ao.nn.quantized._weights import OnGrid, Stateful, observed_weight, output_grid

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
        ops = torch.ops.quantized
        pack = ops.linear_prepack_fp16 if self.dtype is _HALF else ops.linear_prepack
        self._packed_params = pack(weight, bias)

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


class _PackedLinear(nn.Module):
    """What linear layers with packed weights share."""

    def __init__(
        self, in_features: int, out_features: int, bias_: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        bias = torch.zeros(out_features) if bias_ else None
        if dtype is torch.qint8:
            weight = torch._empty_affine_quantized(
                [out_features, in_features], scale=1, zero_point=0, dtype=torch.qint8
            ).fill_(0.0)
        else:
            weight = torch.zeros(out_features, in_features)
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
        # The packed weight is not a part that a reader would look for.
        return f"{self._get_name()}({self.extra_repr()})"


class Linear(OnGrid, _PackedLinear):
    """nn.Linear from quantized inputs to quantized outputs."""

    _version = 3
    _FLOAT_MODULE = (nn.Linear,)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias_, dtype)

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
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of an observed or fake-quantized layer."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        made = cls(layer.in_features, layer.out_features)
        bias = None if layer.bias is None else layer.bias.detach().float()
        made.set_weight_bias(observed_weight(mod, layer), bias)
        made.scale, made.zero_point = output_grid(mod)
        return made


class LinearReLU(Linear):
    """Linear and ReLU in one."""

    _FLOAT_MODULE = (intrinsic.LinearReLU,)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )
