"""Marks where a model's quantized part begins and ends."""

from __future__ import annotations

from torch import Tensor, nn


class QuantStub(nn.Module):
    """Here float values become quantized: observed while preparing, swapped by convert."""

    def __init__(self, qconfig: object = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(nn.Module):
    """Here quantized values become float."""

    def __init__(self, qconfig: object = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantWrapper(nn.Module):
    """A module between the two marks."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant = QuantStub(qconfig)
        self.dequant = DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))
