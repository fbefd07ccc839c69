"""Modules from quantized tensors to quantized tensors."""

from torch.ao.nn.quantized import dynamic
from torch.ao.nn.quantized.activations import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    BNReLU2d,
    BNReLU3d,
    DeQuantize,
    Hardswish,
    LeakyReLU,
    Quantize,
    ReLU6,
    Sigmoid,
)
from torch.ao.nn.quantized.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
)
from torch.ao.nn.quantized.functional_modules import (
    FloatFunctional,
    FXFloatFunctional,
    QFunctional,
)
from torch.ao.nn.quantized.linear import Linear, LinearPackedParams, LinearReLU

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "DeQuantize",
    "ELU",
    "FXFloatFunctional",
    "FloatFunctional",
    "Hardswish",
    "LeakyReLU",
    "Linear",
    "LinearPackedParams",
    "LinearReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "dynamic",
]
