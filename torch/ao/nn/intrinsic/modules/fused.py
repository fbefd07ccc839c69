"""Modules that one kernel computes: a sequence that is quantized as a whole. `fuse_modules` makes
them. Each class says which modules it stands for."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.utils.parametrize import type_before_parametrizations


class _FusedModule(nn.Sequential):
    """Some modules in a row."""


def _check_parts(made: nn.Module, given: tuple[nn.Module, ...], wanted: tuple[type, ...]) -> None:
    for module, kind in zip(given, wanted, strict=True):
        if type_before_parametrizations(module) is not kind:
            names = [part.__name__ for part in wanted]
            raise AssertionError(
                f"{type(made).__name__} is made of {names}, got {type(module).__name__}"
            )


class _TwoParts(_FusedModule):
    parts: tuple[type[nn.Module], ...] = ()


# The names of the arguments are part of the interface, so each shape of call is a function.
def _conv_relu(self: _TwoParts, conv: nn.Module, relu: nn.Module) -> None:
    _check_parts(self, (conv, relu), self.parts)
    nn.Sequential.__init__(self, conv, relu)


def _conv_bn(self: _TwoParts, conv: nn.Module, bn: nn.Module) -> None:
    _check_parts(self, (conv, bn), self.parts)
    nn.Sequential.__init__(self, conv, bn)


def _conv_bn_relu(self: _TwoParts, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> None:
    _check_parts(self, (conv, bn, relu), self.parts)
    nn.Sequential.__init__(self, conv, bn, relu)


def _bn_relu(self: _TwoParts, batch_norm: nn.Module, relu: nn.Module) -> None:
    _check_parts(self, (batch_norm, relu), self.parts)
    nn.Sequential.__init__(self, batch_norm, relu)


def _linear_relu(self: _TwoParts, linear: nn.Module, relu: nn.Module) -> None:
    _check_parts(self, (linear, relu), self.parts)
    nn.Sequential.__init__(self, linear, relu)


def _linear_bn(self: _TwoParts, linear: nn.Module, bn: nn.Module) -> None:
    _check_parts(self, (linear, bn), self.parts)
    nn.Sequential.__init__(self, linear, bn)


def _linear_leaky(self: _TwoParts, linear: nn.Module, leaky_relu: nn.Module) -> None:
    _check_parts(self, (linear, leaky_relu), self.parts)
    nn.Sequential.__init__(self, linear, leaky_relu)


def _linear_tanh(self: _TwoParts, linear: nn.Module, tanh: nn.Module) -> None:
    _check_parts(self, (linear, tanh), self.parts)
    nn.Sequential.__init__(self, linear, tanh)


def _fused(name: str, init: Callable[..., None], *parts: type[nn.Module]) -> type[_FusedModule]:
    text = " and ".join(part.__name__ for part in parts)
    body = {
        "parts": parts,
        "__init__": init,
        "__doc__": f"{text} in one.",
        "__module__": "torch.ao.nn.intrinsic.modules.fused",
    }
    return type(name, (_TwoParts,), body)


ConvReLU1d = _fused("ConvReLU1d", _conv_relu, nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", _conv_relu, nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", _conv_relu, nn.Conv3d, nn.ReLU)
LinearReLU = _fused("LinearReLU", _linear_relu, nn.Linear, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", _conv_bn, nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", _conv_bn, nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", _conv_bn, nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", _conv_bn_relu, nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", _conv_bn_relu, nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", _conv_bn_relu, nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", _bn_relu, nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", _bn_relu, nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", _linear_bn, nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU = _fused("LinearLeakyReLU", _linear_leaky, nn.Linear, nn.LeakyReLU)
LinearTanh = _fused("LinearTanh", _linear_tanh, nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution whose result is added to a second input; `add` is the function that adds."""

    def __init__(self, conv: nn.Module, add: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """The same with an activation behind it."""

    def __init__(
        self, conv: nn.Module, add: Callable[[Tensor, Tensor], Tensor], relu: nn.Module
    ) -> None:
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.relu(self.add(self[0](x1), x2))


__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
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
