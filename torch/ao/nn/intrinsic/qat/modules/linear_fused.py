"""A linear layer with a normalisation that trains with a rounded weight."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.intrinsic.modules.fused import _FusedModule
from torch.ao.nn.intrinsic.qat.modules._folded import Folded

__all__ = ["LinearBn1d"]


class LinearBn1d(Folded, nn.Linear, _FusedModule):
    """Linear and BatchNorm1d with a rounded product of both weights."""

    _FLOAT_MODULE = fused.LinearBn1d

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: object = None,
    ) -> None:
        self.freeze_bn = False
        nn.Linear.__init__(self, in_features, out_features, bias)
        self.watch(qconfig)
        self.attach_bn(nn.BatchNorm1d(out_features, eps, momentum), freeze_bn)
        self.reset_bn_parameters()

    def _run(self, input: Tensor, weight: Tensor) -> Tensor:
        return nn.functional.linear(input, weight)
