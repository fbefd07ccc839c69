"""Layers that train with a weight rounded to levels. Their outputs are rounded by the observer that
`prepare_qat` attaches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "Linear"]


class _Rounded:
    """A layer whose forward uses the weight that its fake quantizer returns."""

    _FLOAT_MODULE: type[nn.Module]

    def _watch(self, qconfig: object) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The layer that trains in place of a plain one, with its parameters."""
        given = mod[0] if isinstance(mod, nn.Sequential) else mod
        if not isinstance(given, cls._FLOAT_MODULE):
            raise AssertionError(
                f"{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}"
            )
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.__dict__.update(
            {name: value for name, value in given.__dict__.items() if not name.startswith("_")}
        )
        for name in ("_reversed_padding_repeated_twice",):
            if name in given.__dict__:
                made.__dict__[name] = given.__dict__[name]
        for name, parameter in given._parameters.items():
            made.register_parameter(name, parameter)
        made._watch(mod.qconfig if hasattr(mod, "qconfig") else given.qconfig)
        made.train(given.training)
        return made

    def to_float(self) -> nn.Module:
        """The plain layer with the parameters that were learned."""
        made = self._FLOAT_MODULE.__new__(self._FLOAT_MODULE)
        nn.Module.__init__(made)
        skip = ("qconfig",)
        made.__dict__.update(
            {k: v for k, v in self.__dict__.items() if not k.startswith("_") and k not in skip}
        )
        for name, parameter in self._parameters.items():
            made.register_parameter(name, parameter)
        return made


class Linear(_Rounded, nn.Linear):
    """nn.Linear with a rounded weight."""

    _FLOAT_MODULE = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: object = None,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias, device=device, dtype=dtype)
        self._watch(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


class _Conv(_Rounded):
    def __init__(self, *args: object, qconfig: object = None, **kwargs: object) -> None:
        self._FLOAT_MODULE.__init__(self, *args, **kwargs)
        self._watch(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_Conv, nn.Conv1d):
    """nn.Conv1d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """nn.Conv2d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """nn.Conv3d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv3d


class Embedding(_Rounded, nn.Embedding):
    """nn.Embedding with a rounded weight."""

    _FLOAT_MODULE = nn.Embedding

    def __init__(self, *args: object, qconfig: object = None, **kwargs: object) -> None:
        nn.Embedding.__init__(self, *args, **kwargs)
        self._watch(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.embedding(input, self.weight_fake_quant(self.weight))
