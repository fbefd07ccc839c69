"""Modules that one kernel computes: a sequence that is quantized as a whole. `fuse_modules` makes
them. Each class says which modules it stands for."""

from __future__ import annotations

from torch import nn


class _FusedModule(nn.Sequential):
    """Some modules in a row."""

    parts: tuple[type[nn.Module], ...] = ()

    def __init__(self, *modules: nn.Module) -> None:
        for module, wanted in zip(modules, self.parts, strict=True):
            if not isinstance(module, wanted):
                raise AssertionError(
                    f"{type(self).__name__} is made of "
                    f"{[part.__name__ for part in self.parts]}, got {type(module).__name__}"
                )
        super().__init__(*modules)


def _fused(name: str, *parts: type[nn.Module]) -> type[_FusedModule]:
    text = " and ".join(part.__name__ for part in parts)
    body = {"parts": parts, "__doc__": f"{text} in one.", "__module__": __name__}
    return type(name, (_FusedModule,), body)


ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU = _fused("LinearLeakyReLU", nn.Linear, nn.LeakyReLU)
LinearTanh = _fused("LinearTanh", nn.Linear, nn.Tanh)

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]
