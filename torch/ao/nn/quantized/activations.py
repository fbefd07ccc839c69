"""Functions of elements and normalisation on quantized tensors, and the borders between float and
quantized parts of a model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized._weights import output_grid


class Quantize(nn.Module):
    """Float tensors to quantized ones of one grid."""

    def __init__(
        self, scale: float, zero_point: int, dtype: torch.dtype, factory_kwargs: object = None
    ) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([float(scale)]))
        self.register_buffer("zero_point", torch.tensor([int(zero_point)], dtype=torch.long))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        return torch.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """With the grid of an observed QuantStub."""
        return cls(*output_grid(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Quantized tensors to float ones."""

    def forward(self, Xq: Tensor) -> Tensor:
        return Xq.dequantize()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """For a DeQuantStub."""
        return cls()


class _OnGrid(nn.Module):
    """A function whose results have a grid of their own."""

    def __init__(self, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(float(scale)))
        self.register_buffer("zero_point", torch.tensor(int(zero_point)))

    def _grid(self) -> tuple[float, int]:
        return float(self.scale), int(self.zero_point)


class ReLU6(nn.ReLU6):
    """min(max(x, 0), 6) on quantized tensors."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.relu6(input, self.inplace)

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return ReLU6(mod.inplace)


class Hardswish(_OnGrid):
    """nn.Hardswish on quantized tensors."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.hardswish(input, *self._grid())

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod))


class Sigmoid(_OnGrid):
    """nn.Sigmoid on quantized tensors."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__(output_scale, output_zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.sigmoid(input, *self._grid())

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod))


class ELU(_OnGrid):
    """nn.ELU on quantized tensors."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(scale, zero_point)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.elu(input, *self._grid(), self.alpha)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod), mod.alpha)


class LeakyReLU(_OnGrid):
    """nn.LeakyReLU on quantized tensors."""

    def __init__(self, scale: float, zero_point: int, negative_slope: float = 1e-2) -> None:
        super().__init__(scale, zero_point)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.leaky_relu(input, self.negative_slope, False, *self._grid())

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(*output_grid(mod), mod.negative_slope)


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation in evaluation, from levels to levels."""

    relu = False

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(num_features, eps, momentum)
        self.register_buffer("scale", torch.tensor(1.0))
        self.register_buffer("zero_point", torch.tensor(0))

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        run = torch.ops.quantized.batch_norm_relu if self.relu else torch.ops.quantized.batch_norm
        return run(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        made = cls(layer.num_features, layer.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(layer, name))
        scale, zero_point = output_grid(mod)
        made.scale.fill_(scale)
        made.zero_point.fill_(zero_point)
        return made


class BatchNorm2d(_BatchNorm):
    """nn.BatchNorm2d on quantized tensors."""


class BatchNorm3d(_BatchNorm):
    """nn.BatchNorm3d on quantized tensors."""


class BNReLU2d(BatchNorm2d):
    """BatchNorm2d and ReLU in one."""

    relu = True


class BNReLU3d(BatchNorm3d):
    """BatchNorm3d and ReLU in one."""

    relu = True
