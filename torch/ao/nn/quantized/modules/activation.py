"""Functions of elements on quantized tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import output_grid

__all__ = [
    "ELU",
    "Hardswish",
    "LeakyReLU",
    "MultiheadAttention",
    "PReLU",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


def _register_grid(module: nn.Module, scale: float, zero_point: int, **factory: object) -> None:
    module.register_buffer("scale", torch.tensor(float(scale), **factory))
    module.register_buffer("zero_point", torch.tensor(int(zero_point), **factory).long())


class ReLU6(nn.ReLU):
    """min(max(x, 0), 6) on quantized tensors."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return ReLU6(mod.inplace)


class Hardswish(nn.Hardswish):
    """nn.Hardswish on quantized tensors."""

    def __init__(
        self,
        scale: float,
        zero_point: int,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _register_grid(self, scale, zero_point, device=device)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.hardswish(input, float(self.scale), int(self.zero_point))

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return Hardswish(*output_grid(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """nn.ELU on quantized tensors."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return ELU(*output_grid(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """nn.LeakyReLU on quantized tensors."""

    def __init__(
        self,
        scale: float,
        zero_point: int,
        negative_slope: float = 1e-2,
        inplace: bool = False,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(negative_slope, inplace)
        _register_grid(self, scale, zero_point, device=device)

    def forward(self, input: Tensor) -> Tensor:
        grid = float(self.scale), int(self.zero_point)
        return torch.ops.quantized.leaky_relu(input, self.negative_slope, self.inplace, *grid)

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """nn.Sigmoid on quantized tensors."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod))


class Softmax(nn.Softmax):
    """nn.Softmax on quantized tensors."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return torch.ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return Softmax(mod.dim, *output_grid(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(mod.dim, float(scale), int(zero_point))


class MultiheadAttention(torch.ao.nn.quantizable.MultiheadAttention):
    """Attention whose projections compute on levels. It is made of an observed module alone."""

    _FLOAT_MODULE = torch.ao.nn.quantizable.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: nn.Module) -> nn.Module:
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the "
            "examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: nn.Module) -> nn.Module:
        """The quantized form of an observed attention."""
        from torch.ao.quantization.quantize import convert

        made = convert(other, inplace=False, remove_qconfig=True, convert_custom_config_dict=None)
        made.__class__ = cls
        for name in ("bias_k", "bias_v"):
            value = getattr(other, name, None)
            if value is not None:
                made.take_extra(name, value)
        return made


class PReLU(nn.Module):
    """nn.PReLU on quantized tensors, with a quantized slope."""

    def __init__(
        self, output_scale: float, output_zero_point: int, num_parameters: int = 1
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        self.set_weight(
            torch.quantize_per_tensor(torch.randn(num_parameters), 1.0, 0, torch.quint8)
        )

    def set_weight(self, w: Tensor) -> None:
        """Takes another slope."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls._made(mod, *output_grid(mod))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls._made(mod, float(scale), int(zero_point))

    @classmethod
    def _made(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        made = cls(scale, zero_point, mod.num_parameters)
        slope = mod.weight.detach().float()
        watcher = mod.qconfig.weight()
        watcher(slope)
        slope_scale, slope_zero = watcher.calculate_qparams()
        made.set_weight(
            torch.quantize_per_tensor(slope, float(slope_scale), int(slope_zero), torch.quint8)
        )
        return made
