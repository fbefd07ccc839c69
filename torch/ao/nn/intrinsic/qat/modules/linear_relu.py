"""A linear layer with an activation that trains with a rounded weight."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.nn import qat
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.intrinsic.modules.fused import _FusedModule

__all__ = ["LinearReLU"]


class LinearReLU(qat.Linear, _FusedModule):
    """Linear and ReLU with a rounded weight."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: object = None
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.relu(super().forward(input))

    def to_float(self) -> nn.Module:
        """The plain layer and its activation."""
        return self._FLOAT_MODULE(self.plain(nn.Linear), nn.ReLU())
